//! The search for a variant's line ([`plimsoll_stats::search`]), by the objectives of a scenario.

use plimsoll_stats::search;
use plimsoll_stats::verdict::Verdict;

pub use plimsoll_stats::search::{Ask, Found, Line, Range, State, rounded};

use crate::measure::{Run, Sample, confirms, judge, may_decide, strain};
use crate::slo::{Metric, Slo};

/// The search of one variant.
pub type Search<'a> = search::Search<Slos<'a>>;

/// The objectives of a search, all of which a load has to meet.
#[derive(Clone, Copy, Debug)]
pub struct Slos<'a> {
    /// The objectives, in the order in which they were given.
    pub slos: &'a [Slo],
    /// The workload whose load is searched.
    pub searched: &'a str,
}

impl search::Objectives for Slos<'_> {
    type Run = Run;

    fn count(&self) -> usize {
        self.slos.len()
    }

    fn is_overloaded(&self, runs: &[&Run]) -> bool {
        runs.iter().any(|run| run.undrained.is_some())
    }

    fn judge(&self, objective: usize, runs: &[&Run], level: f64) -> Verdict {
        judge(&self.slos[objective], &samples(runs, objective), level)
    }

    fn confirms(&self, objective: usize, runs: &[&Run], level: f64) -> bool {
        confirms(&self.slos[objective], &samples(runs, objective), level)
    }

    fn may_decide(&self, objective: usize, runs: &[&Run], most: u32, level: f64) -> bool {
        may_decide(&self.slos[objective], &samples(runs, objective), most, level)
    }

    fn is_far_below(&self, runs: &[&Run]) -> bool {
        let mut falling = (0..self.slos.len()).filter(|&number| !self.rises_with_load(number)).peekable();
        falling.peek().is_some()
            && falling.all(|number| self.strain(number, runs).is_some_and(|strain| strain < FAR_BELOW))
    }

    fn rises_with_load(&self, objective: usize) -> bool {
        let slo = &self.slos[objective];
        slo.metric == Metric::Goodput && slo.workload == self.searched
    }

    fn strain(&self, objective: usize, runs: &[&Run]) -> Option<f64> {
        strain(&self.slos[objective], &samples(runs, objective))
    }
}

/// A measured number below this share of its limit is far from it.
const FAR_BELOW: f64 = 0.1;

fn samples<'a>(runs: &[&'a Run], objective: usize) -> Vec<&'a Sample> {
    runs.iter().filter_map(|run| run.samples.get(objective)).collect()
}
