//! The search for a variant's line ([`plimsoll_stats::search`]), by the objectives of a scenario.

use plimsoll_stats::search;
use plimsoll_stats::verdict::Verdict;

pub use plimsoll_stats::search::{Ask, Found, Line, Range, State, rounded};

use crate::measure::{Run, Sample, judge, strain};
use crate::slo::Slo;

/// The search of one variant.
pub type Search<'a> = search::Search<Slos<'a>>;

/// The objectives of a search, all of which a load has to meet.
#[derive(Clone, Copy, Debug)]
pub struct Slos<'a>(pub &'a [Slo]);

impl search::Objectives for Slos<'_> {
    type Run = Run;

    fn count(&self) -> usize {
        self.0.len()
    }

    fn is_overloaded(&self, runs: &[&Run]) -> bool {
        runs.iter().any(|run| run.undrained.is_some())
    }

    fn judge(&self, objective: usize, runs: &[&Run], level: f64) -> Verdict {
        judge(&self.0[objective], &samples(runs, objective), level)
    }

    fn strain(&self, objective: usize, runs: &[&Run]) -> Option<f64> {
        strain(&self.0[objective], &samples(runs, objective))
    }
}

fn samples<'a>(runs: &[&'a Run], objective: usize) -> Vec<&'a Sample> {
    runs.iter().filter_map(|run| run.samples.get(objective)).collect()
}
