//! [`WakeUp`]: what it takes to wake a thread on the other processor.

use plimsoll_chronos_load::wake_up::wake_up;
use plimsoll_results::stats::Estimate;

use super::turns::two_processors;
use crate::study::{Measured, Task};

/// So many round trips between the two processors.
pub(super) struct WakeUp {
    pub(super) rounds: u32,
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
        let row = |metric: &str, value| Measured {
            series: None,
            metric: metric.to_owned(),
            unit: "us".to_owned(),
            estimate: Estimate::bare(value, found.samples),
            suspect: false,
        };
        Ok(vec![row("latency_us_p50", found.p50), row("latency_us_p99", found.p99)])
    }
}
