//! [`Pace`]: the rate of a scenario's messages, and the cost of simulating them.

use std::time::Duration;

/// The pace of a scenario at the load where a search begins, measured by one run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Pace {
    /// The load at which it was measured; `None` where the searched key is not a load, so that all runs have one
    /// length.
    pub(crate) load: Option<f64>,
    /// Whether the messages belong to the load that is searched.
    pub(crate) is_of_load: bool,
    /// The simulated time before which messages do not count, in seconds.
    pub(crate) warmup: f64,
    /// The messages of the objectives' rarest workload in a simulated second.
    pub(crate) messages_per_second: f64,
    /// The seconds that a simulated second takes; 0 where nothing tells the time.
    pub(crate) cost: f64,
}

/// The number of runs that a variant takes, for estimates: three loads of eight seeds, and those on the way.
const RUNS: f64 = 30.0;
/// The part of a budget that is planned; the rest is for loads above today's, whose runs take longer.
const PLANNED: f64 = 0.7;
/// The bounds of a run's length in messages that a budget may choose: fewer say nothing of a tail.
const MESSAGES: (f64, f64) = (50.0, 20_000.0);
/// The most by which a run at a low load is longer.
const LONGER: f64 = 8.0;
/// The part of a run's messages that a run of the first look has.
const FIRST_LOOK: u64 = 16;

impl Pace {
    /// Writes the length of a run with `messages` messages, as `--set` takes it. Where the messages are of the searched
    /// load, they come as fast as that. Otherwise a run at a lower `load` costs less, so it is longer by as much, up to
    /// [`LONGER`].
    pub(crate) fn length(&self, messages: u64, load: f64) -> String {
        let times = self.load.map_or(1.0, |measured| measured / load);
        let times = if self.is_of_load { times } else { times.clamp(1.0, LONGER) };
        format!("run.duration={}us", (self.simulated(messages as f64 * times) * 1e6).ceil())
    }

    /// Estimates the wall time of a run of `messages` messages.
    pub(crate) fn run(&self, messages: u64) -> Duration {
        Duration::from_secs_f64(self.simulated(messages as f64) * self.cost)
    }

    /// Estimates how long a search takes on `threads` threads.
    pub(crate) fn search(&self, messages: u64, variants: usize, threads: usize) -> Duration {
        self.run(messages).mul_f64(RUNS * variants as f64 / threads.max(1) as f64)
    }

    /// Returns the length of a run in messages with which a search takes about `budget`, in two digits: a run is at
    /// least twice its warm-up, or little of it would be measured.
    pub(crate) fn affordable(&self, budget: Duration, variants: usize, threads: usize) -> u64 {
        let runs = RUNS * variants as f64 / threads.max(1) as f64;
        let simulated = PLANNED * budget.as_secs_f64() / runs / self.cost.max(1e-9) - self.warmup;
        let least = MESSAGES.0.max(self.warmup * self.messages_per_second);
        let messages = (simulated * self.messages_per_second).clamp(least, MESSAGES.1.max(least));
        format!("{messages:.1e}").parse::<f64>().unwrap_or(messages).ceil() as u64
    }

    fn simulated(&self, messages: f64) -> f64 {
        self.warmup + messages / self.messages_per_second
    }
}

/// Returns the length of a run of the first look in messages, where the runs of a search have `messages`: shorter, so
/// that something is known early. `None` where shorter runs would say nothing.
pub(crate) fn of_first_look(messages: u64) -> Option<u64> {
    let few = (messages / FIRST_LOOK).max(MESSAGES.0 as u64);
    (few < messages).then_some(few)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace =
        Pace { load: Some(0.4), is_of_load: false, warmup: 0.01, messages_per_second: 2_000.0, cost: 200.0 };

    #[test]
    fn a_run_has_its_warm_up_and_its_messages() {
        assert_eq!(PACE.length(1_000, 0.4), "run.duration=510000us");
        assert_eq!(PACE.length(1_000, 0.8), "run.duration=510000us");
        assert_eq!(PACE.length(1_000, 0.2), "run.duration=1010000us");
        assert_eq!(PACE.length(1_000, 0.001), "run.duration=4010000us");
        let own = Pace { is_of_load: true, ..PACE };
        assert_eq!(own.length(1_000, 0.8), "run.duration=260000us");
        assert_eq!(own.length(1_000, 0.04), "run.duration=5010000us");
        let of_key = Pace { load: None, ..PACE };
        assert_eq!(of_key.length(1_000, 0.2), "run.duration=510000us");
        assert_eq!(PACE.run(1_000), Duration::from_secs(102));
        assert_eq!(PACE.search(1_000, 3, 2), Duration::from_secs(102 * 45));
    }

    #[test]
    fn a_budget_chooses_runs_that_fit_and_say_something() {
        let fits = PACE.affordable(Duration::from_secs(3_600), 3, 2);
        assert_eq!(fits, 540);
        assert!(PACE.search(fits, 3, 2) <= Duration::from_secs(3_600));
        assert_eq!(PACE.affordable(Duration::from_secs(1), 3, 2), 50, "fewer say nothing of a tail");
        let slow_start = Pace { warmup: 0.1, ..PACE };
        assert_eq!(slow_start.affordable(Duration::from_secs(1), 3, 2), 200, "half of a run counts");
        let free = Pace { cost: 0.0, ..PACE };
        assert_eq!(free.affordable(Duration::from_secs(1), 1, 1), 20_000);
    }

    #[test]
    fn a_first_look_is_shorter_where_that_says_something() {
        assert_eq!(of_first_look(1_600), Some(100));
        assert_eq!(of_first_look(160), Some(50));
        assert_eq!(of_first_look(50), None);
    }
}
