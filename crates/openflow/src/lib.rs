//! Messages of OpenFlow 1.0 and 1.3, as a controller reads and writes them.
//!
//! ```text
//! bytes of a switch ──> Header ──read──> Features, PacketIn, PortStatus
//! Match, FlowChange, Output ──Writer──> bytes for the switch
//! ```

#![forbid(unsafe_code)]

mod frame;
pub mod read;
mod wire;
mod write;

pub use frame::Ethernet;
pub use read::{Features, NO_BUFFER, PacketIn, PortStatus};
pub use wire::{ERROR_DATA_BYTES, ErrorCode, HEADER_BYTES, Header, Version, Versions, kind};
pub use wire::{u16_at, u32_at, u64_at};
pub use write::{FlowChange, Match, Output, Writer};
