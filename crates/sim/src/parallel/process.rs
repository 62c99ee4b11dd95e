//! [`Process`]: what makes a world one logical process of a parallel run.

use plimsoll_fabric::net::HostId;
use plimsoll_fabric::{DemandShare, Outbox};

use crate::hosts::Announcement;

/// One logical process among the others.
#[derive(Debug)]
pub(crate) struct Process {
    /// The number of this process.
    here: u8,
    /// By host: the process that simulates it.
    hosts: Vec<u8>,
    /// By process: the mail that is posted at the end of this stretch of time.
    pub(super) announcements: Vec<Vec<Announcement>>,
    /// Announcements about connections that are yet to be opened here.
    pub(crate) early: Vec<Announcement>,
}

/// What logical processes send each other: packets and pauses on the links between them, what their hosts announce, and
/// their hosts' demand for circuits.
#[derive(Debug, Default)]
pub(super) struct ProcessMail {
    pub(super) crossings: Outbox,
    pub(super) announcements: Vec<Announcement>,
    pub(super) demand: Vec<DemandShare>,
}

impl ProcessMail {
    pub(super) fn len(&self) -> usize {
        let Outbox { packets, signals, .. } = &self.crossings;
        packets.len() + signals.len() + self.announcements.len() + self.demand.len()
    }
}

impl Process {
    /// Returns the process `here` of `count`; `hosts` says which process has each host.
    pub(super) fn new(here: u8, count: u8, hosts: Vec<u8>) -> Process {
        let announcements = vec![Vec::new(); usize::from(count)];
        Process { here, hosts, announcements, early: Vec::new() }
    }

    /// Returns whether `host` is simulated here.
    pub(crate) fn has(&self, host: HostId) -> bool {
        self.hosts[host.0 as usize] == self.here
    }

    /// Has the process of `host` expect a message.
    pub(crate) fn announce(&mut self, host: HostId, announcement: Announcement) {
        let process = usize::from(self.hosts[host.0 as usize]);
        self.announcements[process].push(announcement);
    }
}
