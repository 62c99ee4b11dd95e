//! A scenario's model becomes a network with its ports: what a simulated and an emulated run have in common.
//!
//! ```text
//! Model ──network──> Network ──Schedule──> slower links ──ports::build──> Vec<Port>   the general ones where links
//!                                                    └──> Pools, FlowControl, Faults  change or switches pause
//! ```
//!
//! Nothing here moves a packet: that is for who has the clock.

#![forbid(unsafe_code)]

mod draw;
pub mod faults;
pub mod flow_control;
mod host_pacer;
mod ideal;
mod network;
mod pools;
pub mod ports;
mod qjump;
mod selector;
mod watched;
mod window;

pub use draw::{stretched, uniform_choice};
pub use host_pacer::{HostPacer, host_pacers};
pub use ideal::ideal_time;
pub use network::{network, port_name};
pub use pools::Pools;
pub use ports::{MakeDiscipline, PortExtensions};
pub use qjump::qjump_levels;
pub use selector::selector;
pub use watched::{Watched, watched};
pub use window::Window;

use plimsoll_scenario::quantity::MaybeOff;

/// The model cannot be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct Unbuildable {
    /// Dotted key of the scenario.
    pub key: String,
    /// What is wrong with its value.
    pub problem: String,
}

fn error(key: impl Into<String>, problem: impl ToString) -> Unbuildable {
    Unbuildable { key: key.into(), problem: problem.to_string() }
}

fn on<T>(mechanism: &Option<MaybeOff<T>>) -> Option<&T> {
    mechanism.as_ref().and_then(MaybeOff::on)
}
