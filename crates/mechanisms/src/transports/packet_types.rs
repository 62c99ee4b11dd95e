//! [`PacketTypes`]: the packets of NICs' transports by type, counted at both ends and where they are lost.

use std::ops::AddAssign;

use crate::tcp::Flags;

/// Packets of one type: `sent` is `received`, `lost`, and those that are still in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TypeCounts {
    /// Packets that the ends have sent.
    pub sent: u64,
    /// Packets that reached an end, whole or trimmed.
    pub received: u64,
    /// Packets that were dropped or lost between the two. Queue pairs do not count them: the network does.
    pub lost: u64,
}

/// The packets of queue pairs of RoCE, of packet delivery contexts, and of Homa, by type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketTypes {
    /// Packets with payload.
    pub data: TypeCounts,
    /// Acknowledgements without data.
    pub acks: TypeCounts,
    /// Negative acknowledgements, which ask for data again; RESENDs of Homa.
    pub naks: TypeCounts,
    /// Congestion notification packets.
    pub cnps: TypeCounts,
    /// Grants of credit, or of packets.
    pub pulls: TypeCounts,
    /// Requests: READs, or for credit; probes of Homa.
    pub requests: TypeCounts,
}

impl PacketTypes {
    /// Returns the counts of packets like one with `len` bytes of payload and `flags`.
    pub fn of(&mut self, len: u32, flags: Flags) -> &mut TypeCounts {
        match (len, flags.has(Flags::ACK)) {
            (1.., _) => &mut self.data,
            (0, true) if flags.has(Flags::CWR) => &mut self.naks,
            (0, true) => &mut self.acks,
            (0, false) if flags.has(Flags::CWR) => &mut self.requests,
            (0, false) if flags.has(Flags::ECE) => &mut self.cnps,
            (0, false) => &mut self.pulls,
        }
    }
}

impl AddAssign for PacketTypes {
    fn add_assign(&mut self, other: PacketTypes) {
        let PacketTypes { data, acks, naks, cnps, pulls, requests } = other;
        let of_other = [data, acks, naks, cnps, pulls, requests];
        let PacketTypes { data, acks, naks, cnps, pulls, requests } = self;
        for (own, other) in [data, acks, naks, cnps, pulls, requests].into_iter().zip(of_other) {
            own.sent += other.sent;
            own.received += other.received;
            own.lost += other.lost;
        }
    }
}
