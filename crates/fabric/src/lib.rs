//! The network between the hosts, as sans-IO state machines.
//!
//! ```text
//! packet arrives ──> switch ──> path (which port?) ──> port (room? mark? when?) ──> Sink::transmit
//!                                                        │ general engine only
//!                                                        └──> Sink::call_at ──> Port::on_due
//! ```
//!
//! Nothing here knows whether it is simulated or live: [`net`] takes `now` as an argument and hands
//! everything it wants done to a [`net::Sink`]. [`engine`] is what a simulated world uses as that
//! sink: the event queue, the lanes of packets in flight, and the named random streams.

#![forbid(unsafe_code)]

mod boundary;
mod build;
pub mod engine;
mod fabric;
pub mod faults;
mod flow_control;
mod host_pacer;
mod links;
pub mod net;
pub mod observed;
mod spec;

pub use boundary::Crossing;
pub use fabric::{Fabric, Handled, LinkReading};
pub use flow_control::Deadlock;
pub use links::Hooks;
pub use observed::{MeasurementWindow, WatchedQueue, port_name};
pub use spec::{Extensions, FabricSpec, MakeDiscipline, PortSpec, Unbuildable};
