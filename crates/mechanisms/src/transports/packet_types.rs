//! [`PacketTypes`]: the packets of queue pairs by type, counted at both ends and where they are lost.

use std::ops::AddAssign;

use crate::tcp::Flags;

/// Packets of one type: `sent` is `received`, `lost`, and those that are still in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TypeCounts {
    /// Packets that queue pairs have sent.
    pub sent: u64,
    /// Packets that reached a queue pair.
    pub received: u64,
    /// Packets that were dropped or lost between the two. Queue pairs do not count them: the network does.
    pub lost: u64,
}

/// The packets of queue pairs of RoCE by type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketTypes {
    /// Packets with payload.
    pub data: TypeCounts,
    /// Acknowledgements without data.
    pub acks: TypeCounts,
    /// Negative acknowledgements, which ask for data again.
    pub naks: TypeCounts,
    /// Congestion notification packets.
    pub cnps: TypeCounts,
}

impl PacketTypes {
    /// Returns the counts of packets like one with `len` bytes of payload and `flags`.
    pub fn of(&mut self, len: u32, flags: Flags) -> &mut TypeCounts {
        match len {
            1.. => &mut self.data,
            0 if !flags.has(Flags::ACK) => &mut self.cnps,
            0 if flags.has(Flags::CWR) => &mut self.naks,
            0 => &mut self.acks,
        }
    }
}

impl AddAssign for PacketTypes {
    fn add_assign(&mut self, other: PacketTypes) {
        let of_other = [other.data, other.acks, other.naks, other.cnps];
        for (own, other) in
            [&mut self.data, &mut self.acks, &mut self.naks, &mut self.cnps].into_iter().zip(of_other)
        {
            own.sent += other.sent;
            own.received += other.received;
            own.lost += other.lost;
        }
    }
}
