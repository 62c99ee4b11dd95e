//! Circuit scheduling for hybrid networks, where a circuit switch carries most of the bytes and a packet switch the
//! rest.
//!
//! ```text
//! Demand ──Scheduler──> Schedule { configurations, residue } ──Controller──> actions of switch and hosts, with times
//! ```
//!
//! A *demand matrix* has the bytes that each port has for each other port. A *scheduler* makes a *schedule* of it: a
//! sequence of *configurations*, each a matching of senders to receivers that is kept for a *day*; between two of them
//! the circuit switch is dark for a *night*. The *residue*, which no circuit carries, is left to the packet switch. The
//! *controller* repeats this every *week*, which is one accumulation period of demand. This crate has neither a network
//! nor a clock: demand and the time are its input, schedules and instructions its output.

#![forbid(unsafe_code)]

mod assignment;
mod bits;
mod bvn;
mod comparison;
mod control;
mod demand;
mod eclipse;
mod evaluation;
mod islip;
mod kind;
mod live;
mod matching;
mod params;
mod reach;
mod read;
mod rotor;
mod schedule;
mod scheduler;
mod solstice;
mod stuffing;
#[cfg(test)]
mod tests;
mod tms;
mod workload;

pub use bvn::Bvn;
pub use comparison::{Compared, Comparison};
pub use control::{CircuitController, Instruction};
pub use demand::Demand;
pub use eclipse::Eclipse;
pub use evaluation::{Evaluation, LowerBounds, WEEKS, evaluate};
pub use islip::Islip;
pub use kind::{SchedulerKind, UnknownScheduler};
pub use live::{
    CircuitAgent, CircuitGrant, ControlMessage, DemandReport, LIVE_HOSTS_MAX, LiveAction, LiveController,
    LiveCounts, LiveParams, MessageBody, MessageError,
};
pub use matching::Matching;
pub use params::{AckPath, Classify, ControlParams, Estimator, InvalidControl, ResidueRate};
pub use reach::ScheduleReach;
pub use read::{DemandError, PORTS_MAX};
pub use rotor::Rotor;
pub use schedule::{Configuration, Schedule};
pub use scheduler::{Scheduler, SchedulerFactory, Switching, SwitchingError};
pub use solstice::Solstice;
pub use tms::Tms;
pub use workload::{FlowPlacement, Workload};
