//! [`PacketTypes`]: the packets of queue pairs by type, counted at both ends.

use std::ops::AddAssign;

/// Packets of one type, as both ends count them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AtBothEnds {
    /// Packets that queue pairs have sent.
    pub sent: u64,
    /// Packets that reached a queue pair. As many as were sent, unless some were lost or are still in flight.
    pub received: u64,
}

/// The packets of queue pairs of RoCE by type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketTypes {
    /// Packets with payload.
    pub data: AtBothEnds,
    /// Acknowledgements without data.
    pub acks: AtBothEnds,
    /// Negative acknowledgements, which ask for data again.
    pub naks: AtBothEnds,
    /// Congestion notification packets.
    pub cnps: AtBothEnds,
    /// READ requests.
    pub read_requests: AtBothEnds,
}

impl AddAssign for PacketTypes {
    fn add_assign(&mut self, other: PacketTypes) {
        let PacketTypes { data, acks, naks, cnps, read_requests } = other;
        for (own, other) in [
            (&mut self.data, data),
            (&mut self.acks, acks),
            (&mut self.naks, naks),
            (&mut self.cnps, cnps),
            (&mut self.read_requests, read_requests),
        ] {
            own.sent += other.sent;
            own.received += other.received;
        }
    }
}
