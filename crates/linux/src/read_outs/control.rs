//! The control loop of a scenario, and the demand that it reads.

use plimsoll_circuits::{ControlParams, Estimator};
use plimsoll_scenario::model::{Model, Topology};

/// Returns the control loop of a hybrid network's circuits; other networks have none.
pub(crate) fn control(model: &Model) -> Option<ControlParams> {
    let is_hybrid = matches!(model.topology, Topology::Hybrid(_));
    is_hybrid.then(|| model.circuits.clone().unwrap_or_default())
}

/// Returns whether the estimator reads the bytes in sockets.
pub(crate) fn reads_sockets(control: &ControlParams) -> bool {
    match control.estimator {
        Estimator::SocketBuffers
        | Estimator::SlowSocketBuffers
        | Estimator::Hints
        | Estimator::TimedHints => true,
        Estimator::NicQueues | Estimator::SwitchCounters | Estimator::SendCalls => false,
    }
}
