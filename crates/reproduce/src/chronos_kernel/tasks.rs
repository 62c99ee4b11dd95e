//! The tasks of the figures: what this system measures, or why it does not.

use std::sync::Arc;

use super::plan::TurnsPlan;
use crate::study::{Point, Task};

#[cfg(target_os = "linux")]
pub(super) fn turns(plan: TurnsPlan, point: &Point<'_>) -> Arc<dyn Task> {
    Arc::new(super::turns::Turns::new(plan, point))
}

#[cfg(target_os = "linux")]
pub(super) fn controllers(switches: u32, outstanding: usize, point: &Point<'_>) -> Arc<dyn Task> {
    Arc::new(super::controllers::Controllers::new(switches, outstanding, point))
}

#[cfg(target_os = "linux")]
pub(super) fn wake_up(rounds: u32) -> Arc<dyn Task> {
    Arc::new(super::wake_up::WakeUp { rounds })
}

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{controllers, turns, wake_up};

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::sync::Arc;

    use crate::chronos_kernel::plan::TurnsPlan;
    use crate::study::{Measured, Point, Task};

    /// The load generator polls as only Linux can.
    struct Elsewhere;

    impl Task for Elsewhere {
        fn settings(&self) -> String {
            String::new()
        }

        fn check(&self) -> Result<(), String> {
            Err("only Linux has the polling that the load generator needs".to_owned())
        }

        fn measure(&self, _: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
            self.check().map(|()| Vec::new())
        }
    }

    pub(crate) fn turns(_: TurnsPlan, _: &Point<'_>) -> Arc<dyn Task> {
        Arc::new(Elsewhere)
    }

    pub(crate) fn controllers(_: u32, _: usize, _: &Point<'_>) -> Arc<dyn Task> {
        Arc::new(Elsewhere)
    }

    pub(crate) fn wake_up(_: u32) -> Arc<dyn Task> {
        Arc::new(Elsewhere)
    }
}
