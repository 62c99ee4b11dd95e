//! [`PacketLists`]: the memory of lists of packets, to be used again.

use plimsoll_fabric::net::Packet;

/// Empty lists of packets. A host with offloads makes one for each piece that it sends or receives; the memory of the
/// last that was given back is the likeliest to be in the cache.
#[derive(Debug, Default)]
pub(super) struct PacketLists(Vec<Vec<Packet>>);

impl PacketLists {
    /// Returns an empty list, with the memory of the last that was given back.
    pub(super) fn take(&mut self) -> Vec<Packet> {
        self.0.pop().unwrap_or_default()
    }

    /// Takes back a list that has been read.
    pub(super) fn give_back(&mut self, mut packets: Vec<Packet>) {
        packets.clear();
        self.0.push(packets);
    }
}
