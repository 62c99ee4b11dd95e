//! Reorder buffers between the NICs and TCP, where hosts have them.
//!
//! ```text
//! NIC, receive offload ──> in order? ──────────────────────────────> the transport
//!                              └─ behind a gap ──> ReorderBuffer ──┘ the gap is filled, or the time is up
//! ```
//!
//! Only an end of a connection that misses something has a buffer. The time that a packet is held counts as waiting
//! in the NIC ([`Wait::Nic`](plimsoll_fabric::net::Wait::Nic)), as that of receive offload does.

mod hand_over;

use std::collections::BTreeMap;

use plimsoll_fabric::net::Packet;
use plimsoll_mechanisms::reorder_buffer::{ReorderBuffer, ReorderBufferParams};
use plimsoll_units::Time;

/// The reorder buffers of all hosts.
#[derive(Debug)]
pub(super) struct ReorderBuffers {
    params: ReorderBufferParams,
    /// By end, twice its connection's number plus the end: the ends with a gap.
    ends: BTreeMap<u32, EndBuffer>,
}

/// The buffer of one end of a connection.
#[derive(Debug)]
struct EndBuffer {
    buffer: ReorderBuffer<ReorderedPiece>,
    /// The time of the event that the queue has for it; [`Time::MAX`] if it has none.
    armed: Time,
}

/// The packets of a piece that receive offload has made, or a single packet, and since when they are held.
#[derive(Debug)]
struct ReorderedPiece {
    packets: Vec<Packet>,
    since: Time,
}

impl ReorderBuffers {
    /// Builds the buffers, all empty.
    pub(super) fn new(params: ReorderBufferParams) -> ReorderBuffers {
        ReorderBuffers { params, ends: BTreeMap::new() }
    }
}
