//! The search for a variant's line ([`plimsoll_stats::search`]), by the objectives of a scenario.

use std::collections::BTreeMap;

use plimsoll_experiment::slo::Slo;
use plimsoll_stats::search;
use plimsoll_stats::verdict::Verdict;

pub use plimsoll_stats::search::{Ask, Found, Line, SearchRange, SearchState, rounded};

use crate::measure::{Run, SloSample, confirms, judge, may_decide, strain};

/// The lines of a smaller network, by variant, with which a search of the whole network begins.
pub type ExpectedLines = BTreeMap<String, Line>;

/// The search of one variant's load line, which reads the objectives' measurements.
pub type VariantSearch<'a> = search::Search<Slos<'a>>;

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

    fn confirms(&self, objective: usize, runs: &[&Run], level: f64) -> bool {
        confirms(&self.0[objective], &samples(runs, objective), level)
    }

    fn may_decide(&self, objective: usize, runs: &[&Run], most: u32, level: f64) -> bool {
        may_decide(&self.0[objective], &samples(runs, objective), most, level)
    }

    fn is_far_below(&self, runs: &[&Run]) -> bool {
        (0..self.0.len()).all(|number| self.strain(number, runs).is_some_and(|strain| strain < FAR_BELOW))
    }

    fn strain(&self, objective: usize, runs: &[&Run]) -> Option<f64> {
        strain(&self.0[objective], &samples(runs, objective))
    }
}

/// The objectives of a first look, which judges each load by one run: the mean alone says whether it meets them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstLook<'a>(pub(crate) Slos<'a>);

impl FirstLook<'_> {
    /// Returns the range of a first look: coarser than that of the search, with one run a load.
    pub(crate) fn range(range: SearchRange) -> SearchRange {
        SearchRange { precision: range.precision.max(FIRST_PRECISION), replicates_max: 1, ..range }
    }
}

impl search::Objectives for FirstLook<'_> {
    type Run = Run;

    fn count(&self) -> usize {
        self.0.count()
    }

    fn is_overloaded(&self, runs: &[&Run]) -> bool {
        self.0.is_overloaded(runs)
    }

    fn judge(&self, objective: usize, runs: &[&Run], _level: f64) -> Verdict {
        match self.strain(objective, runs) {
            Some(strain) if strain > 1.0 => Verdict::Breaks,
            Some(_) => Verdict::Keeps,
            None => Verdict::Open,
        }
    }

    fn confirms(&self, _objective: usize, _runs: &[&Run], _level: f64) -> bool {
        true
    }

    fn is_far_below(&self, runs: &[&Run]) -> bool {
        self.0.is_far_below(runs)
    }

    fn strain(&self, objective: usize, runs: &[&Run]) -> Option<f64> {
        self.0.strain(objective, runs)
    }
}

/// The width of a first look's bracket, as a share of the load: what one run tells is not more exact.
const FIRST_PRECISION: f64 = 0.5;

/// A measured number below this share of its limit is far from it.
const FAR_BELOW: f64 = 0.1;

fn samples<'a>(runs: &[&'a Run], objective: usize) -> Vec<&'a SloSample> {
    runs.iter().filter_map(|run| run.samples.get(objective)).collect()
}
