//! [`WakeUp`]: the time to wake a thread on the other processor.

use plimsoll_chronos_load::wake_up::wake_up;
use plimsoll_stats::Estimate;

use crate::task::{Measured, Task};
use crate::turns::two_processors;

/// Round trips between the two processors.
pub(crate) struct WakeUp {
    pub(crate) rounds: u32,
}

impl Task for WakeUp {
    fn settings(&self) -> String {
        format!("a wake-up: {} round trips", self.rounds)
    }

    fn check(&self) -> Result<(), String> {
        two_processors().map(|_| ())
    }

    fn measure(&self, _: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        let found = wake_up(two_processors()?, self.rounds).map_err(|error| error.to_string())?;
        let row = |metric, value| Measured::own(metric, "us", Some(Estimate::bare(value, found.samples)));
        Ok([row("latency_us_p50", found.p50), row("latency_us_p99", found.p99)]
            .into_iter()
            .flatten()
            .collect())
    }
}
