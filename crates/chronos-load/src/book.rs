//! What a run has counted.

use hdrhistogram::Histogram;
use plimsoll_units::Span;
use serde::{Deserialize, Serialize};

/// Numbers of what happened. Operations are what is timed: one request, or several that belong together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Counts {
    /// Operations due within the measured time.
    pub due: u64,
    /// Operations that ended within the measured time, whenever they began.
    pub completed: u64,
    /// Operations due within the measured time, of which a part was never answered.
    pub lost: u64,
    /// Operations due within the measured time, which the server refused or answered with nonsense.
    pub refused: u64,
    /// Gets sent to a server, each of one or more keys.
    pub gets: u64,
    /// Sets sent to a server.
    pub sets: u64,
    /// Values read.
    pub hits: u64,
    /// Keys without a value.
    pub misses: u64,
    /// Values that nobody has stored under their key.
    pub wrong: u64,
    /// Replies that came when their request had been given up.
    pub late: u64,
    /// Operations that were never sent: too many were outstanding, or the connection was gone.
    pub unsent: u64,
    /// Connections that ended before the run did.
    pub closed: u64,
}

/// Counts and distributions of one thread, or of all.
#[derive(Clone, Debug)]
pub struct Book {
    /// Numbers.
    pub counts: Counts,
    /// Nanoseconds from when an operation should have been sent to the end of its reply.
    pub latency: Histogram<u64>,
    /// Nanoseconds for which operations were waited for that were lost: the timeout or longer.
    pub given_up: Histogram<u64>,
    /// Nanoseconds from when a request should have been sent to when it was.
    pub lag: Histogram<u64>,
    /// The first few things that went wrong.
    pub examples: Vec<String>,
    /// Time spent where there was something to do.
    pub busy: Span,
    /// Time in which the generator could have run, but others had its processors.
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
    /// Notes how long something took.
    pub fn record(histogram: &mut Histogram<u64>, span: Span) {
        histogram.saturating_record((span.as_ps() / 1_000).max(1));
    }

    /// What all operations took, those that were lost among them.
    pub fn waits(&self) -> Histogram<u64> {
        let mut waits = self.latency.clone();
        waits.add(&self.given_up).expect("all histograms have the same bounds");
        waits
    }

    /// Keeps `what` as an example, if there are not enough yet.
    pub fn example(&mut self, what: impl FnOnce() -> String) {
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(what());
        }
    }

    /// Adds what another thread has counted.
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

/// The longest time that a histogram tells apart: ten minutes.
const NS_MAX: u64 = 600_000_000_000;
/// Significant digits of a histogram: times are within 0.1 %.
const DIGITS: u8 = 3;
const EXAMPLES_MAX: usize = 8;
