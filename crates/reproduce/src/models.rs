//! The tasks of figures that run a model without a network: a server, servers with the same data, the last of
//! answers, schedulers of circuits.

mod cluster;
mod fan_out;
mod schedules;
mod server;

use std::sync::Arc;

use plimsoll_servers::Parameters;

pub(crate) use fan_out::normal_law;
pub(crate) use schedules::DEMANDS;
pub(crate) use server::ModelGauge;

use crate::study::{Point, Task};

/// Makes the task of a point from the parameters of its figure.
pub(crate) type ModelTask = fn(&Parameters, &Point<'_>) -> Result<Arc<dyn Task>, String>;

/// The tasks, by the names that study files have for them.
pub(crate) const TASKS: [(&str, ModelTask); 4] = [
    ("cluster-model", cluster::task),
    ("fan-out", fan_out::task),
    ("schedules", schedules::task),
    ("server-model", server::task),
];
