//! [`PacketTypes`]: the packets of NICs' transports by type, counted at both ends.

use std::ops::AddAssign;

/// Packets of one type, as both ends count them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AtBothEnds {
    /// Packets that the ends have sent.
    pub sent: u64,
    /// Packets that reached an end. As many as were sent, unless some were lost or are still in flight.
    pub received: u64,
}

/// The packets of queue pairs of RoCE, of packet delivery contexts, and of Homa, by type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketTypes {
    /// Packets with payload.
    pub data: AtBothEnds,
    /// Acknowledgements without data.
    pub acks: AtBothEnds,
    /// Negative acknowledgements, which ask for data again; RESENDs of Homa.
    pub naks: AtBothEnds,
    /// Congestion notification packets.
    pub cnps: AtBothEnds,
    /// Grants of credit, or of packets.
    pub pulls: AtBothEnds,
    /// Requests for credit; probes of Homa.
    pub requests: AtBothEnds,
}

impl AddAssign for PacketTypes {
    fn add_assign(&mut self, other: PacketTypes) {
        let PacketTypes { data, acks, naks, cnps, pulls, requests } = other;
        let of_other = [data, acks, naks, cnps, pulls, requests];
        let PacketTypes { data, acks, naks, cnps, pulls, requests } = self;
        for (own, other) in [data, acks, naks, cnps, pulls, requests].into_iter().zip(of_other) {
            own.sent += other.sent;
            own.received += other.received;
        }
    }
}
