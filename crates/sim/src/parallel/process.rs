//! [`Process`]: what makes a world one logical process of a parallel run.

use plimsoll_fabric::Crossing;
use plimsoll_fabric::net::HostId;

use crate::connection::End;
use crate::messages::Outgoing;

/// One logical process among the others.
#[derive(Debug)]
pub(crate) struct Process {
    /// The number of this process.
    here: u8,
    /// By host: the process that simulates it.
    hosts: Vec<u8>,
    /// By link: the process at its far end.
    ends_in: Vec<u8>,
    /// By process: what is posted at the end of this stretch of time.
    pub(super) outgoing: Vec<Vec<LpMessage>>,
    /// Messages about connections that are yet to be opened here.
    pub(super) early: Vec<LpMessage>,
}

/// A message from one logical process to another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LpMessage {
    /// A packet is on a link between the two.
    Packet(Crossing),
    /// The last byte of a workload's message is on its way to the end `to` of a connection.
    Announcement { connection: u32, to: End, message: Outgoing },
}

impl Process {
    /// Returns the process `here` of `count`; `hosts` and `ends_in` say which process has each host and each link's
    /// far end.
    pub(super) fn new(here: u8, count: u8, hosts: Vec<u8>, ends_in: Vec<u8>) -> Process {
        let outgoing = (0..count).map(|_| Vec::new()).collect();
        Process { here, hosts, ends_in, outgoing, early: Vec::new() }
    }

    /// Returns whether `host` is simulated here.
    pub(crate) fn has(&self, host: HostId) -> bool {
        self.hosts[host.0 as usize] == self.here
    }

    /// Addresses a packet that has left the fabric to the process at the link's far end.
    pub(super) fn post(&mut self, crossing: Crossing) {
        let to = self.ends_in[crossing.port.0 as usize];
        self.outgoing[usize::from(to)].push(LpMessage::Packet(crossing));
    }

    /// Tells the process of `host`, at the end `to` of `connection`, to expect `message`.
    pub(crate) fn announce(&mut self, host: HostId, connection: u32, to: End, message: Outgoing) {
        let announcement = LpMessage::Announcement { connection, to, message };
        self.outgoing[usize::from(self.hosts[host.0 as usize])].push(announcement);
    }
}
