//! Packets, ports, switches, topologies and paths.

pub mod detours;
mod ideal;
pub mod meter;
pub mod notes;
pub mod packet;
pub mod paths;
pub mod port;
pub mod sink;
pub mod topology;

pub use detours::Detours;
pub use ideal::ideal_time;
pub use meter::{MeterReading, QueueMeter};
pub(crate) use notes::Note;
pub use notes::Notes;
pub use packet::{EcnField, Flags, HostId, Packet, PathClass, PortId, Slot, WaitPlace};
pub use paths::{PathSelector, SelectPath, SelectorFactory};
pub use port::{Port, PortConfig};
pub use sink::Sink;
pub use topology::{Network, Node};
