//! The functions of studies whose rows no measure, claim or model can express yet.

mod idle_flows;
mod idle_requests;
mod optimum;
mod pacer_associations;
mod queue_in_time;
mod reach;
mod small_flows;

pub(crate) use idle_flows::theory as idle_flows;
pub(crate) use idle_requests::exact as idle_requests;
pub(crate) use optimum::solved as optimum;
pub(crate) use pacer_associations::association as pacer_associations;
pub(crate) use queue_in_time::occupancy as queue_in_time;
pub(crate) use small_flows::rows as small_flows;

/// The schemes of the figure of small flows, in the order of its legend.
const SCHEMES: &[&str] = &["TCP", "DCTCP", "pFabric", "QJump"];
