//! [`Boundary`]: the links by which packets leave a logical process of a parallel run.
//!
//! The fabric puts a packet that crosses the boundary into the outbox of the process that the link leads to; the caller
//! takes each outbox as a whole and hands its packets to that process's fabric.

use plimsoll_mechanisms::telemetry::Stamps;
use plimsoll_units::Time;

use crate::net::{Packet, PortId};

/// A packet on a link that leaves the logical process.
#[derive(Clone, Debug)]
pub struct Crossing {
    /// The port that sends on the link.
    pub port: PortId,
    /// When the packet reaches the far end.
    pub arrives: Time,
    /// The packet as it left.
    pub packet: Packet,
    /// The telemetry that the packet carries, if any.
    pub stamps: Option<Box<Stamps>>,
}

/// The links that leave a logical process, and the packets that have just left by them.
#[derive(Debug)]
pub(crate) struct Boundary {
    here: u8,
    /// The process at the far end of each link, by link.
    ends_in: Vec<u8>,
    /// The packets that have left for each process, by process, in the order in which they left.
    outboxes: Vec<Vec<Crossing>>,
}

impl Boundary {
    pub(crate) fn new(here: u8, ends_in: Vec<u8>) -> Boundary {
        let processes = ends_in.iter().max().map_or(0, |&last| usize::from(last) + 1);
        Boundary { here, ends_in, outboxes: vec![Vec::new(); processes] }
    }

    /// Returns whether the link of `port` leaves the logical process.
    #[inline]
    pub(crate) fn is_crossed_by(&self, port: PortId) -> bool {
        self.ends_in[port.0 as usize] != self.here
    }

    /// Puts a packet into the outbox of the process at the link's far end.
    #[inline]
    pub(crate) fn transmit(&mut self, crossing: Crossing) {
        self.outboxes[usize::from(self.ends_in[crossing.port.0 as usize])].push(crossing);
    }

    /// Returns the packets that have left for a process; `None` if no link leads to it.
    pub(crate) fn outbox(&mut self, process: u8) -> Option<&mut Vec<Crossing>> {
        self.outboxes.get_mut(usize::from(process))
    }
}
