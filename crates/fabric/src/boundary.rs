//! [`Boundary`]: the links by which packets and pauses leave a logical process of a parallel run.
//!
//! The fabric puts what crosses the boundary into the outbox of the process that the link leads to; the caller takes
//! each outbox as a whole and hands its content to that process's fabric.

use plimsoll_mechanisms::telemetry::Stamps;
use plimsoll_units::Time;

use crate::flow_control::SentSignal;
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
    /// The packet carries telemetry.
    pub has_stamps: bool,
}

/// Packets and signals that have left a logical process for another one, in the order in which they left.
#[derive(Debug, Default)]
pub struct Outbox {
    /// The packets whose service on a link has begun.
    pub packets: Vec<Crossing>,
    /// The telemetry of those that have some, in their order. An allocation for each would be freed by the other
    /// thread, and such threads wait for each other in the allocator.
    pub stamps: Vec<Stamps>,
    /// The signals of flow control.
    pub signals: Vec<SentSignal>,
}

/// The links that leave a logical process, and the packets and signals that have just left by them.
#[derive(Debug)]
pub(crate) struct Boundary {
    here: u8,
    /// The process at the far end of each link, by link.
    ends_in: Vec<u8>,
    /// The packets and signals for each process, by process.
    outboxes: Vec<Outbox>,
}

impl Boundary {
    pub(crate) fn new(here: u8, ends_in: Vec<u8>) -> Boundary {
        let processes = ends_in.iter().max().map_or(0, |&last| usize::from(last) + 1);
        let outboxes = (0..processes).map(|_| Outbox::default()).collect();
        Boundary { here, ends_in, outboxes }
    }

    /// Returns whether the link of `port` leaves the logical process.
    #[inline]
    pub(crate) fn is_crossed_by(&self, port: PortId) -> bool {
        self.ends_in[port.0 as usize] != self.here
    }

    /// Puts a packet that reaches the far end of the link of `port` at `arrives` into the outbox of the process there.
    #[inline]
    pub(crate) fn transmit(&mut self, port: PortId, arrives: Time, packet: Packet, stamps: Option<Stamps>) {
        let outbox = self.outbox_of(port);
        outbox.packets.push(Crossing { port, arrives, packet, has_stamps: stamps.is_some() });
        outbox.stamps.extend(stamps);
    }

    /// Puts a signal into the outbox of the process at the far end of the link of `port`, which pauses that process.
    pub(crate) fn signal(&mut self, port: PortId, sent: SentSignal) {
        self.outbox_of(port).signals.push(sent);
    }

    #[inline]
    fn outbox_of(&mut self, port: PortId) -> &mut Outbox {
        &mut self.outboxes[usize::from(self.ends_in[port.0 as usize])]
    }

    /// Returns the packets and signals for a process; `None` if no link leads to it.
    pub(crate) fn outbox(&mut self, process: u8) -> Option<&mut Outbox> {
        self.outboxes.get_mut(usize::from(process))
    }
}
