//! [`Boundary`]: the links by which packets leave a logical process of a parallel run.
//!
//! The fabric puts what crosses the boundary into an outbox; the caller drains it and hands each packet to the
//! fabric that the link leads to.

use plimsoll_units::Time;

use crate::net::{Packet, PortId};

/// A packet on a link that leaves the logical process.
#[derive(Clone, Copy, Debug)]
pub struct Crossing {
    /// The port that sends on the link.
    pub port: PortId,
    /// When the packet reaches the far end.
    pub arrives: Time,
    /// The packet as it left.
    pub packet: Packet,
}

/// The links that leave a logical process, and the packets that have just left by them.
#[derive(Debug)]
pub(crate) struct Boundary {
    /// By link: whether it leaves.
    leaves: Vec<bool>,
    outbox: Vec<Crossing>,
}

impl Boundary {
    pub(crate) fn new(leaves: Vec<bool>) -> Boundary {
        Boundary { leaves, outbox: Vec::new() }
    }

    /// Whether the link of `port` leaves the logical process.
    #[inline]
    pub(crate) fn is_crossed_by(&self, port: PortId) -> bool {
        self.leaves[port.0 as usize]
    }

    /// Puts a packet into the outbox, and returns it where it lies now.
    #[inline(never)]
    pub(crate) fn transmit(&mut self, port: PortId, arrives: Time, packet: Packet) -> &mut Packet {
        let place = self.outbox.len();
        self.outbox.push(Crossing { port, arrives, packet });
        &mut self.outbox[place].packet
    }

    /// Removes all packets from the outbox, in the order in which they left.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Crossing> + '_ {
        self.outbox.drain(..)
    }
}
