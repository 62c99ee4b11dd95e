//! [`Neighbour`]: a job on the server's machine that takes a share of cores, of the last-level cache and of the NIC.
//!
//! ```text
//! core of a thread   ----[slice]-----------------[slice]----------->  time
//! request               |   ^ work begins        |      ^ work ends
//!                     from  at the slice's end   the slice interrupts it
//! ```
//!
//! * **Processors.** The neighbour holds a core for a slice, leaves it for a gap, and so on, whatever the server does.
//!   A thread whose core is held makes no progress, even if it has a lock: this makes the tail. With slices in equal
//!   gaps, a request to an idle server waits for `share x slice / 2` in the mean, and at most for a slice.
//! * **Cache.** A request takes `lines x evicted x miss` longer in the application: the lines of the shared cache that
//!   it reads, the share of them that the neighbour has evicted, and the extra time of a miss.
//! * **NIC.** A response takes `1 / (1 - line)` times as long on the line, of which the neighbour has the share `line`.
//!
//! Departures from a kernel's scheduler: a slice begins at its time even if the thread has just begun, its length does
//! not depend on the time that the thread has used, and a change of a lock's count is not interrupted.

use plimsoll_mechanisms::InvalidParam;
use plimsoll_traffic::distribution::uniform;
use plimsoll_units::{Span, Stream, Streams, Time};
use serde::Deserialize;

use super::spacing::Spacing;

/// A job on the server's machine, by the shares that it takes; without any of them it takes nothing.
#[derive(Clone, PartialEq, Default, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Neighbour {
    /// Its time on the cores of the server's threads.
    pub processors: Option<ProcessorShare>,
    /// Its part of the last-level cache.
    pub cache: Option<EvictedLines>,
    /// Its share of the line on which responses leave; 0 to less than 1.
    #[serde(default)]
    pub line: f64,
}

/// The neighbour's time on cores, in slices. Each core has its own, at a random phase.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProcessorShare {
    /// The share of each core's time that it takes; 0 to 0.99.
    pub share: f64,
    /// Time for which it keeps a core: its work at each wake-up, or the slice of the scheduler if it never sleeps
    /// (`sched_runtime` of Linux's `sched_getattr`: 0.7 ms on one processor, 2.8 ms from eight on); 100 ns
    /// to 1 s.
    pub slice: Span,
    /// The spacing of slices. The mean gap between two is `slice x (1 - share) / share`.
    pub gaps: Spacing,
    /// The number of threads whose core it runs on, from the first thread on; `None` for all. At least 1.
    pub cores: Option<u32>,
}

/// The lines of the last-level cache that the neighbour takes from a request.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EvictedLines {
    /// The lines that a request reads from the shared cache: 16 for each KB of its value, and those of the index.
    pub lines: u32,
    /// The share of them that the neighbour has evicted; 0 to 1.
    pub evicted: f64,
    /// The time by which memory is slower than the cache.
    pub miss: Span,
}

impl Neighbour {
    pub(super) fn check(&self, threads: u32) -> Result<(), InvalidParam> {
        InvalidParam::unless((0.0..1.0).contains(&self.line), "line", self.line, "0 to less than 1")?;
        let evicted = self.cache.map_or(0.0, |cache| cache.evicted);
        InvalidParam::unless((0.0..=1.0).contains(&evicted), "evicted", evicted, "0 to 1")?;
        let Some(ProcessorShare { share, slice, cores, .. }) = self.processors else { return Ok(()) };
        InvalidParam::unless((0.0..=SHARE_MOST).contains(&share), "share", share, "0 to 0.99")?;
        InvalidParam::unless((SLICE_LEAST..=SLICE_MOST).contains(&slice), "slice", slice, "100ns to 1s")?;
        let cores = cores.unwrap_or(threads);
        InvalidParam::unless((1..=threads).contains(&cores), "cores", cores, "1 to the number of threads")
    }

    /// Returns the slices on the cores of the first threads; the cores of further threads have none.
    pub(super) fn slices(&self, threads: u32, streams: &Streams) -> Vec<CoreSlices> {
        let Some(processors) = self.processors.filter(|processors| processors.share > 0.0) else {
            return Vec::new();
        };
        let word = streams.word("server/neighbour");
        let cores = processors.cores.unwrap_or(threads);
        (0..cores).map(|core| CoreSlices::new(processors, Streams::keyed(word, u64::from(core)))).collect()
    }

    /// Returns the time that misses add to a request.
    pub(super) fn misses(&self) -> Span {
        self.cache.map_or(Span::ZERO, |EvictedLines { lines, evicted, miss }| {
            Span::from_secs_f64(f64::from(lines) * evicted * miss.as_secs_f64())
        })
    }

    /// Returns the time of a response on the part of the line that is left.
    pub(super) fn line(&self, alone: Span) -> Span {
        Span::from_secs_f64(alone.as_secs_f64() / (1.0 - self.line))
    }
}

/// The neighbour's slices on one core. One of them is kept: the first that had not ended at the last call.
#[derive(Debug)]
pub(super) struct CoreSlices {
    slice: Span,
    gaps: Spacing,
    /// The mean gap, in seconds.
    gap: f64,
    stream: Stream,
    begin: Time,
    end: Time,
}

impl CoreSlices {
    fn new(of: ProcessorShare, mut stream: Stream) -> CoreSlices {
        let ProcessorShare { share, slice, gaps, .. } = of;
        let period = slice.as_secs_f64() / share;
        let begin = Time::ZERO + Span::from_secs_f64(period * uniform(&mut stream));
        CoreSlices { slice, gaps, gap: period * (1.0 - share), stream, begin, end: begin + slice }
    }

    /// Returns when `work` that can begin at `from` is done. Successive calls never go back in time.
    pub(super) fn end_of(&mut self, from: Time, work: Span) -> Time {
        let (mut at, mut left) = (from, work);
        loop {
            if self.holds(at) {
                at = self.end;
                continue;
            }
            let free = self.begin - at;
            if left <= free {
                return at + left;
            }
            left -= free;
            at = self.begin;
        }
    }

    /// Returns whether the neighbour has the core at `at`, which is not before the time of the last call.
    pub(super) fn holds(&mut self, at: Time) -> bool {
        while self.end <= at {
            self.begin = self.end + Span::from_secs_f64(self.gap * self.gaps.draw(&mut self.stream));
            self.end = self.begin + self.slice;
        }
        self.begin <= at
    }
}

/// Largest share: gaps have to be long enough for a thread to make progress.
const SHARE_MOST: f64 = 0.99;
/// Shortest slice: with shorter ones, a run would do little but count them.
const SLICE_LEAST: Span = Span::from_ns(100);
/// Longest slice: a neighbour that keeps a core for longer is an outage.
const SLICE_MOST: Span = Span::from_secs(1);
