//! The network between the hosts, as sans-IO state machines.
//!
//! ```text
//! FabricSpec ──Fabric::build──> Fabric { network, ports, gates, path selector, Links }
//!
//! packet arrives ──> switch ──> path (which port?) ──> port (room? mark? when?) ──> Sink::transmit
//!                                                        │ general engine only
//!                                                        └──> Sink::call_at ──> Port::on_due
//! ```
//!
//! Simulated and live runs share all of it. [`net`] takes `now` as an argument and hands all actions to a
//! [`net::Sink`]; [`engine`] has the event queue, the lanes of packets in flight, and the named random streams. A
//! [`Fabric`] puts them together: it owns the queue, and its caller owns the loop over it and the clock.

#![forbid(unsafe_code)]

mod boundary;
mod build;
mod circuits;
pub mod engine;
mod fabric;
pub mod faults;
mod flow_control;
mod host_gate;
mod host_pacer;
mod links;
pub mod net;
mod nights;
pub mod observed;
mod spec;
mod telemetry;
mod unbuildable;

pub use boundary::{Crossing, Outbox};
pub use circuits::{
    CIRCUITS_CLOCK, CircuitLog, CircuitLosses, CircuitUse, CircuitWeek, DemandShare, ScheduleTimes,
    circuit_drain,
};
pub use fabric::{Fabric, Handled, LeadsTo, LinkReading};
pub use flow_control::{
    BlockedFlow, BufferKind, BufferUse, Deadlock, HeldPort, SentSignal, SwitchMemory, lossless_memories,
};
pub use links::{Hooks, LostAt};
pub use observed::{MeasurementWindow, WatchedQueue, number_name, port_name};
pub use spec::{CircuitSpec, FabricSpec, PortSpec};
pub use unbuildable::Unbuildable;
