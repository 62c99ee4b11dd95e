//! [`PortRules`]: what is the same for many ports and is kept once for all of them.

use plimsoll_mechanisms::ecn::Ecn;
use plimsoll_units::{ByteTime, Span};

use crate::net::Wait;

/// Link, room and threshold of a port. Ports with the same rules share them: in a large network a port is
/// then one cache line, and its rules are in the cache already.
#[derive(Clone, PartialEq, Debug)]
pub struct PortRules {
    /// Time a byte takes on the link.
    pub byte_time: ByteTime,
    /// One-way propagation.
    pub propagation: Span,
    /// The account that waiting here goes to.
    pub wait: Wait,
    /// Most that may wait.
    pub limit: BufferLimit,
    /// Above which queue packets are marked, if any.
    pub ecn: Option<Ecn>,
}

/// Most that a queue may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferLimit {
    /// Most packets.
    pub packets: u64,
    /// Most bytes.
    pub bytes: u64,
    /// Whether the packet in service counts.
    pub counts_in_service: bool,
}

impl BufferLimit {
    /// Always room.
    pub const UNLIMITED: BufferLimit =
        BufferLimit { packets: u64::MAX, bytes: u64::MAX, counts_in_service: false };

    /// Never room, not even to be sent at once.
    pub const NOTHING: BufferLimit = BufferLimit { packets: 0, bytes: 0, counts_in_service: true };

    /// Whether a packet of `size` bytes may join `packets` of `bytes` that wait and `in_service` bytes that
    /// are being sent.
    #[inline]
    pub(super) fn has_room(&self, packets: usize, bytes: u64, in_service: u64, size: u64) -> bool {
        if packets == 0 && in_service == 0 && !self.counts_in_service {
            // It will not wait, so no limit on what waits concerns it.
            return true;
        }
        let (mut packets, mut bytes) = (packets as u64, bytes);
        if self.counts_in_service && in_service > 0 {
            packets += 1;
            bytes += in_service;
        }
        packets < self.packets && bytes.saturating_add(size) <= self.bytes
    }
}
