//! The traffic agent: the sources of a simulated run, driven over the kernel's sockets.
//!
//! ```text
//! AgentPlan ──> Agents: a thread a source ──> SourceDriver ──> Pipes (TCP), Datagrams (UDP)
//!                                                 └──> DriverRecords
//! ```
//!
//! Both ends of a connection belong to one driver, so a message needs no header: only its bytes travel.

mod context;
mod counts;
mod datagrams;
mod driver;
mod events;
mod pace;
mod pipes;
mod plan;
mod run;
mod sockets;

pub(crate) use context::{AgentContext, AgentSettings};
pub(crate) use counts::Counts;
pub(crate) use driver::DriverRecords;
pub(crate) use pace::Shares;
pub(crate) use plan::AgentPlan;
pub(crate) use run::AgentThreads;
pub(crate) use sockets::DRIVER_PORT;
