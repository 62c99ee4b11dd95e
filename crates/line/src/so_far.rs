//! [`SoFar`]: the progress of a search, and an estimate of the remaining time.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_experiment::bench::duration;

use crate::search::Line;

/// The state of a running search. It reads no clock.
#[derive(Clone, Debug, Default)]
pub struct SoFar {
    /// The number of finished runs that the directory held already.
    pub there: usize,
    /// The loads that are judged, in their order.
    pub judged: Vec<Judged>,
    /// The lines as the finished runs determine them, by variant.
    pub lines: Vec<(String, Line)>,
    /// Whether the search compares variants by further runs, at loads between their lines.
    pub compares: bool,
    /// The number of runs that this search has finished.
    pub(crate) done: usize,
    /// The number of runs that the search may still need, as far as an estimate goes.
    pub(crate) left: usize,
    /// The finished part of each running run, 0 to 1.
    pub(crate) under_way: BTreeMap<usize, f64>,
}

/// A load of a variant that the finished runs have judged, in words for the progress display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judged {
    /// The name of the variant, with its point of a sweep if there is one.
    pub variant: String,
    /// The load with its unit, as tables print it.
    pub load: String,
    /// Whether the load meets the objectives, in words.
    pub verdict: String,
    /// The number of runs at this load.
    pub runs: usize,
}

/// The number of runs below which their mean duration is not used.
const TELLING: f64 = 0.2;

impl SoFar {
    /// Begins a round of runs. `left` runs are left until all lines are known, these included.
    pub(crate) fn on_round(&mut self, left: usize, lines: Option<Vec<(String, Line)>>) {
        self.left = left;
        self.under_way.clear();
        self.compares = lines.is_none();
        self.lines = lines.unwrap_or_else(|| std::mem::take(&mut self.lines));
    }

    /// Records the finished part of a run of the round.
    pub(crate) fn on_progress(&mut self, run: usize, share: f64) {
        self.under_way.insert(run, share);
    }

    /// Records the end of a run of the round.
    pub(crate) fn on_run(&mut self, run: usize) {
        self.under_way.remove(&run);
        self.done += 1;
        self.left = self.left.saturating_sub(1);
    }

    /// Returns the number of runs that this search has finished.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Returns the number of runs that are kept, runs of earlier searches included.
    pub fn kept(&self) -> usize {
        self.there + self.done
    }

    /// Estimates the time until all lines are known, from the time that the search has taken; `None` before there is
    /// enough to judge by.
    pub fn time_left(&self, taken: Duration) -> Option<Duration> {
        let under_way: f64 = self.under_way.values().sum();
        let done = self.done as f64 + under_way;
        (done >= TELLING).then(|| taken.mul_f64((self.left as f64 - under_way).max(0.0) / done))
    }

    /// Writes the rest of the search: `about 80 to go, about 20 s left`.
    pub fn rest(&self, taken: Duration) -> String {
        let left = self.time_left(taken);
        let left = left.map_or_else(String::new, |left| format!(", about {} left", duration(left)));
        format!("about {} to go{left}", self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_its_share_of_the_work() {
        let mut so_far = SoFar::default();
        let taken = Duration::from_secs(10);
        so_far.on_round(40, Some(Vec::new()));
        assert_eq!(so_far.time_left(taken), None);
        so_far.on_progress(0, 0.5);
        assert_eq!(so_far.time_left(taken), Some(Duration::from_secs(790)));
        so_far.on_progress(1, 0.5);
        so_far.on_run(0);
        assert_eq!((so_far.done(), so_far.left), (1, 39));
        assert_eq!(so_far.time_left(Duration::from_secs(15)), Some(Duration::from_secs(385)));
        assert_eq!(so_far.rest(Duration::from_secs(15)), "about 39 to go, about 6 min left");
        so_far.on_round(0, None);
        assert_eq!(so_far.time_left(taken), Some(Duration::ZERO));
    }
}
