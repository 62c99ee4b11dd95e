//! [`Link`]: the nodes and links of a network, and the ports of a switch's shortest paths.

use plimsoll_units::{Rate, Span};

use crate::net::HostId;

/// A node of the network: a host or a switch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Node {
    /// A host, by its number.
    Host(HostId),
    /// A switch, numbered from zero.
    Switch(u32),
}

/// One direction of a link, and the port that sends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The node whose port it is.
    pub from: Node,
    /// The node at the far end.
    pub to: Node,
    /// The transmission rate in bits per second.
    pub rate: Rate,
    /// The propagation delay to the far end.
    pub propagation: Span,
    /// The tier of the sending switch; 0 is next to the hosts. Meaningless for a NIC.
    pub tier: u8,
}

impl Link {
    /// Returns the time from the first bit of a packet of `size` bytes leaving the port to its last one reaching the
    /// far end.
    #[inline]
    pub fn transit(&self, size: u16) -> Span {
        self.rate.byte_time().span(u64::from(size)) + self.propagation
    }
}

/// Rate and propagation of a class of links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkClass {
    /// The transmission rate in bits per second.
    pub rate: Rate,
    /// The propagation delay of one direction.
    pub propagation: Span,
}

impl LinkClass {
    pub(super) fn link(self, from: Node, to: Node, tier: u8) -> Link {
        Link { from, to, rate: self.rate, propagation: self.propagation, tier }
    }
}

/// The ports that lead to a destination on shortest paths, as [`Network::choice`](super::Network::choice) numbers
/// them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choices {
    pub(super) first: u32,
    /// The number of ports, at least one.
    pub count: u32,
    /// The tier of the switches that choose.
    pub(crate) tier: u32,
}

impl Choices {
    #[inline]
    pub(super) fn one(port: u32) -> Choices {
        Choices { first: port, count: 1, tier: 0 }
    }

    /// Returns these choices, of which `count` are possible.
    #[inline]
    pub(crate) fn of_which(self, count: u32) -> Choices {
        Choices { count, ..self }
    }

    /// Returns `count` choices at the first tier, of which only the number matters.
    pub(crate) fn of_first_tier(count: u32) -> Choices {
        Choices { first: 0, count, tier: 0 }
    }
}

/// Returns every host's NIC (ports `0..hosts`), then the ports towards the hosts (`hosts..2 * hosts`).
pub(super) fn host_links(
    hosts: u32,
    class: LinkClass,
    switch_of: impl Fn(u32) -> u32 + Copy,
) -> impl Iterator<Item = Link> {
    let up = (0..hosts).map(move |h| class.link(Node::Host(HostId(h)), Node::Switch(switch_of(h)), 0));
    let down = (0..hosts).map(move |h| class.link(Node::Switch(switch_of(h)), Node::Host(HostId(h)), 0));
    up.chain(down)
}
