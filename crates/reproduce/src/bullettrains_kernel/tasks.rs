//! The tasks of the arms: what this system measures, or why it does not.

use std::sync::Arc;

use super::arms::{Arm, Rounds};
use crate::study::{Measured, Point, Task};

/// An arm on this machine's kernel.
struct OnKernel {
    arm: Arm,
    rounds: Rounds,
    point: String,
}

/// Makes the task of an arm.
pub(super) fn on_kernel(arm: Arm, rounds: Rounds, point: &Point<'_>) -> Arc<dyn Task> {
    Arc::new(OnKernel { arm, rounds, point: format!("{} at {}", point.series, point.x) })
}

impl Task for OnKernel {
    fn settings(&self) -> String {
        let OnKernel { arm, rounds, point } = self;
        format!("{point}: {arm:?}, {rounds:?}")
    }

    #[cfg(target_os = "linux")]
    fn check(&self) -> Result<(), String> {
        plimsoll_linux::Star::lacks().map_or(Ok(()), Err)
    }

    #[cfg(target_os = "linux")]
    fn measure(&self, goes_on: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        super::run::measure(&self.arm, self.rounds, goes_on).map_err(|error| format!("{error:#}"))
    }

    #[cfg(not(target_os = "linux"))]
    fn check(&self) -> Result<(), String> {
        Err("only Linux has the network namespaces that this needs".to_owned())
    }

    #[cfg(not(target_os = "linux"))]
    fn measure(&self, _: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        self.check().map(|()| Vec::new())
    }
}
