//! [`Book`] counts the events of a run.

use hdrhistogram::Histogram;
use plimsoll_units::Span;
use serde::{Deserialize, Serialize};

/// The counts of a run. An operation is the timed unit: one request, or several that belong together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Counts {
    /// The operations due within the measured time.
    pub due: u64,
    /// The operations that ended within the measured time, whenever they began.
    pub completed: u64,
    /// The operations due within the measured time of which a part got no reply.
    pub lost: u64,
    /// The operations due within the measured time that the server rejected or answered incorrectly.
    pub refused: u64,
    /// The gets sent to a server, each of one or more keys.
    pub gets: u64,
    /// The sets sent to a server.
    pub sets: u64,
    /// The values that were read.
    pub hits: u64,
    /// The requested keys without a value.
    pub misses: u64,
    /// The values that no client has stored under their key.
    pub wrong: u64,
    /// The replies that arrived after their request had timed out.
    pub late: u64,
    /// The operations that were never sent: too many were outstanding, or the connection was closed.
    pub unsent: u64,
    /// The connections that ended before the run did.
    pub closed: u64,
}

/// The counts and distributions of one thread, or of all threads.
#[derive(Clone, Debug)]
pub struct Book {
    /// The counts of operations and requests.
    pub counts: Counts,
    /// The nanoseconds from when an operation should have been sent to the end of its reply.
    pub latency: Histogram<u64>,
    /// The nanoseconds until lost operations were given up: the timeout or longer.
    pub given_up: Histogram<u64>,
    /// The nanoseconds from when a request should have been sent to when it was.
    pub lag: Histogram<u64>,
    /// Descriptions of the first few errors.
    pub examples: Vec<String>,
    /// The time in which the generator had work to do.
    pub busy: Span,
    /// The time in which the generator was runnable, but other threads had its processors.
    pub waited: Span,
}

impl Default for Book {
    fn default() -> Book {
        let histogram = || Histogram::new_with_bounds(1, NS_MAX, DIGITS).expect("the bounds are in order");
        Book {
            counts: Counts::default(),
            latency: histogram(),
            given_up: histogram(),
            lag: histogram(),
            examples: Vec::new(),
            busy: Span::ZERO,
            waited: Span::ZERO,
        }
    }
}

impl Book {
    /// Records a length of time in `histogram`.
    pub fn record(histogram: &mut Histogram<u64>, span: Span) {
        histogram.saturating_record((span.as_ps() / 1_000).max(1));
    }

    /// Returns the latencies of all operations, including the lost ones.
    pub fn waits(&self) -> Histogram<u64> {
        let mut waits = self.latency.clone();
        waits.add(&self.given_up).expect("all histograms have the same bounds");
        waits
    }

    /// Records the description of an error, unless there are enough already.
    pub fn example(&mut self, what: impl FnOnce() -> String) {
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(what());
        }
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &Book) {
        let Counts { due, completed, lost, refused, gets, sets, hits, misses, wrong, late, unsent, closed } =
            &mut self.counts;
        let theirs = &other.counts;
        for (ours, theirs) in [
            (due, theirs.due),
            (completed, theirs.completed),
            (lost, theirs.lost),
            (refused, theirs.refused),
            (gets, theirs.gets),
            (sets, theirs.sets),
            (hits, theirs.hits),
            (misses, theirs.misses),
            (wrong, theirs.wrong),
            (late, theirs.late),
            (unsent, theirs.unsent),
            (closed, theirs.closed),
        ] {
            *ours += theirs;
        }
        self.latency.add(&other.latency).expect("all histograms have the same bounds");
        self.given_up.add(&other.given_up).expect("all histograms have the same bounds");
        self.lag.add(&other.lag).expect("all histograms have the same bounds");
        let room = EXAMPLES_MAX.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.iter().take(room).cloned());
        self.busy += other.busy;
        self.waited += other.waited;
    }
}

/// The longest time that a histogram resolves: ten minutes.
const NS_MAX: u64 = 600_000_000_000;
/// The significant digits of a histogram: times are within 0.1 %.
const DIGITS: u8 = 3;
const EXAMPLES_MAX: usize = 8;
