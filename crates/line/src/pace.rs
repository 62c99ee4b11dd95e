//! [`Pace`]: how far a search is, and how long the rest of it may take.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::drive::Round;

/// The work of a search so far, counted in runs. It reads no clock.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// The number of runs that this search has finished.
    done: usize,
    /// The number of runs that the search may still need, as far as an estimate goes.
    left: usize,
    /// The finished part of each run under way, 0 to 1.
    under_way: BTreeMap<usize, f64>,
}

/// The number of runs without which their mean duration says too little.
const TELLING: f64 = 0.2;

impl Pace {
    /// Begins a round of runs.
    pub fn on_round(&mut self, round: &Round<'_>) {
        self.left = round.left;
        self.under_way.clear();
    }

    /// Records the finished part of a run of the round.
    pub fn on_progress(&mut self, run: usize, share: f64) {
        self.under_way.insert(run, share);
    }

    /// Records the end of a run of the round.
    pub fn on_run(&mut self, run: usize) {
        self.under_way.remove(&run);
        self.done += 1;
        self.left = self.left.saturating_sub(1);
    }

    /// Returns the number of runs that this search has finished.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Estimates the number of runs until all lines are known; those under way are among them.
    pub fn runs_left(&self) -> usize {
        self.left
    }

    /// Estimates the time until all lines are known, from the time that the search has taken; `None` before there is
    /// enough to judge by.
    pub fn time_left(&self, taken: Duration) -> Option<Duration> {
        let under_way: f64 = self.under_way.values().sum();
        let done = self.done as f64 + under_way;
        (done >= TELLING).then(|| taken.mul_f64((self.left as f64 - under_way).max(0.0) / done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_its_share_of_the_work() {
        let mut pace = Pace::default();
        let taken = Duration::from_secs(10);
        pace.on_round(&Round { runs: 8, left: 40, lines: &[] });
        assert_eq!(pace.time_left(taken), None);
        pace.on_progress(0, 0.5);
        assert_eq!(pace.time_left(taken), Some(Duration::from_secs(790)));
        pace.on_progress(1, 0.5);
        pace.on_run(0);
        assert_eq!((pace.done(), pace.runs_left()), (1, 39));
        assert_eq!(pace.time_left(Duration::from_secs(15)), Some(Duration::from_secs(385)));
        pace.on_round(&Round { runs: 0, left: 0, lines: &[] });
        assert_eq!(pace.time_left(taken), Some(Duration::ZERO));
    }
}
