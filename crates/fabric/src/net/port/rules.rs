//! [`PortRules`]: settings that are the same for many ports and are kept once for all of them.

use plimsoll_mechanisms::ecn::Ecn;
use plimsoll_units::{ByteTime, Rate, Span};

use crate::net::WaitPlace;

/// The link, the buffer limit and the ECN threshold of a port. Ports with the same rules share them: in a large
/// network a port is then one cache line, and its rules are in the cache already.
#[derive(Clone, PartialEq, Debug)]
pub struct PortRules {
    /// The time that a byte takes on the link.
    pub byte_time: ByteTime,
    /// The rate of the link, for telemetry.
    pub rate: Rate,
    /// The one-way propagation delay.
    pub propagation: Span,
    /// The component that waiting here counts as.
    pub wait: WaitPlace,
    /// The most that may wait.
    pub limit: BufferLimit,
    /// The threshold above which packets are marked, if there is one.
    pub ecn: Option<Ecn>,
}

/// The most that a queue may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferLimit {
    /// The most packets that the queue may hold.
    pub packets: u64,
    /// The most bytes that the queue may hold.
    pub bytes: u64,
    /// The packet in service counts as well.
    pub counts_in_service: bool,
}

impl BufferLimit {
    /// A limit that always leaves room.
    pub const UNLIMITED: BufferLimit =
        BufferLimit { packets: u64::MAX, bytes: u64::MAX, counts_in_service: false };

    /// A limit without any room, even for a packet that would be sent at once.
    pub const NOTHING: BufferLimit = BufferLimit { packets: 0, bytes: 0, counts_in_service: true };

    /// Returns twice the limit.
    pub(super) fn twice(self) -> BufferLimit {
        let (packets, bytes) = (self.packets.saturating_mul(2), self.bytes.saturating_mul(2));
        BufferLimit { packets, bytes, ..self }
    }

    /// Returns the bytes in service that concern a queue with this limit: `is_of_queue` if the packet came from it. A
    /// limit on waiting packets concerns an arriving one while any is being sent.
    pub(super) fn counted(&self, in_service: u64, is_of_queue: bool) -> u64 {
        if is_of_queue || !self.counts_in_service { in_service } else { 0 }
    }

    /// Returns the size of a packet that finds room in an empty queue while nothing is being sent, as all smaller ones
    /// do; no larger packet need be tried.
    pub(super) fn room_when_idle(&self) -> u16 {
        let largest = u16::try_from(self.bytes).unwrap_or(u16::MAX);
        if self.has_room(0, 0, 0, largest.into()) { largest } else { 0 }
    }

    /// Returns whether a packet of `size` bytes may join `packets` of `bytes` that wait and `in_service` bytes that
    /// are being sent.
    #[inline]
    pub(super) fn has_room(&self, packets: usize, bytes: u64, in_service: u64, size: u64) -> bool {
        if packets == 0 && in_service == 0 && !self.counts_in_service {
            // The packet will not wait, so no limit on waiting packets concerns it.
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
