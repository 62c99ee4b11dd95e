//! [`Sources`]: the workloads of a run, and when each acts next.

use plimsoll_traffic::{Actions, Source};
use plimsoll_units::Time;

/// The workloads of a run.
pub(crate) struct Sources {
    /// The workloads by number.
    pub(crate) workloads: Vec<Box<dyn Source>>,
    /// By workload: when its event in the queue is; [`Time::MAX`] if it has none.
    pub(crate) armed: Vec<Time>,
    /// The actions that the current workload asks for; empty between events.
    pub(crate) actions: Actions,
    /// A workload has acted since the run last looked whether all have finished.
    pub(crate) acted: bool,
    /// Events of workloads so far; every logical process with workloads has them all.
    pub(crate) events: u64,
}

impl Sources {
    pub(crate) fn new(workloads: Vec<Box<dyn Source>>) -> Sources {
        let armed = vec![Time::MAX; workloads.len()];
        Sources { workloads, armed, actions: Actions::default(), acted: false, events: 0 }
    }

    /// Returns whether all workloads have finished.
    pub(crate) fn have_finished(&self) -> bool {
        self.workloads.iter().all(|workload| workload.is_finished())
    }
}
