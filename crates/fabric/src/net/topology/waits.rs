//! Accounts of a packet that say at which of its ports it waited.
//!
//! A packet has one account for each tier of switches, and passes the first tier twice: upwards and downwards. In a
//! network without pacers their account is free, so there the ports that lead upwards from the first tier add to it.

use plimsoll_units::Span;

use super::{Link, Network, Node};
use crate::net::{Packet, PortId, WaitPlace};

impl Network {
    /// Returns the same network, in which no pacer holds packets.
    pub(crate) fn without_pacers(mut self) -> Network {
        self.upward_is_apart = self.hybrid().is_none();
        self
    }

    /// Returns the account to which a packet's waiting time at the port of `link` is added.
    pub fn wait_of(&self, link: &Link) -> WaitPlace {
        let tier = usize::from(link.tier);
        match link.from {
            Node::Host(_) => WaitPlace::Nic,
            Node::Switch(_) if self.leads_upwards(link) => WaitPlace::Pacer,
            Node::Switch(_) if self.hybrid().is_none() || tier == 0 => WaitPlace::TIERS[tier],
            Node::Switch(_) if tier + 1 == self.tiers.len() => WaitPlace::CIRCUIT,
            Node::Switch(_) => WaitPlace::Tier1,
        }
    }

    /// Returns the account of ports that lead upwards from the first tier, where they have one of their own.
    pub fn upward_account(&self) -> Option<WaitPlace> {
        self.upward_is_apart.then_some(WaitPlace::Pacer)
    }

    /// Returns whether the port of `link` leads from the first tier to another switch and has an account for that.
    fn leads_upwards(&self, link: &Link) -> bool {
        self.upward_is_apart
            && matches!((link.from, link.to), (Node::Switch(_), Node::Switch(_)))
            && link.tier == 0
    }

    /// Returns how long its host's pacer has held a packet.
    pub fn paced(&self, packet: &Packet) -> Span {
        if self.upward_is_apart { Span::ZERO } else { packet.wait(WaitPlace::Pacer) }
    }

    /// Returns how long a packet has waited in each tier of switches.
    pub fn waited_in_tiers(&self, packet: &Packet) -> [Span; 3] {
        let mut tiers = WaitPlace::TIERS.map(|tier| packet.wait(tier));
        tiers[0] += self.upward_account().map_or(Span::ZERO, |account| packet.wait(account));
        tiers
    }

    /// Returns the ports of a packet's path that add to one of its accounts.
    pub fn ports_of(&self, packet: &Packet, account: WaitPlace) -> impl Iterator<Item = PortId> + '_ {
        self.path(packet).filter(move |port| self.wait_of(self.link(*port)) == account)
    }
}
