//! Inputs and outputs of a [`LiveFabric`](super::LiveFabric).

use plimsoll_circuits::Demand;
use plimsoll_fabric::net::HostId;
use plimsoll_units::{Span, Time};

use crate::edge::frame::Header;

/// An input from the hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FrameEntry {
    /// A frame that a host sent.
    Frame(Ingress),
    /// The bytes that wait in the hosts' sockets.
    SocketDemand {
        /// The time from which on it counts.
        at: Time,
        /// The bytes that wait, from each host to each other.
        demand: Demand,
    },
}

/// An arrived frame: the fields that the fabric uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ingress {
    /// The time with which it was stamped.
    pub at: Time,
    /// The host that sent it.
    pub from: HostId,
    /// The fields of its headers.
    pub header: Header,
    /// Its size in bytes, Ethernet header included.
    pub size: u16,
}

/// A packet that has reached its host.
#[derive(Clone, Copy, Debug)]
pub struct Egress {
    /// The time at which it is to leave the fabric.
    pub at: Time,
    /// The host that it is for.
    pub to: HostId,
    /// The number of the frame, as the caller gave it.
    pub frame: u32,
    /// The fabric has marked it.
    pub marked: bool,
    /// The time that it waited in queues and pacers.
    pub waited: Span,
}

/// 64 bits over everything that left or was lost, in order. The digest is not cryptographic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest64(pub u64);

impl Digest64 {
    pub(super) fn take(&mut self, word: u64) {
        self.0 = (self.0 ^ word.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .rotate_left(29)
            .wrapping_mul(0xbf58_476d_1ce4_e5b9)
            .wrapping_add(1);
    }
}

/// Receives the frames that leave the fabric.
pub trait Out {
    /// A frame has reached its host.
    fn delivered(&mut self, egress: Egress);
    /// The fabric has lost the frame of that number.
    fn dropped(&mut self, frame: u32);
    /// The schedule of a week has circuits for `host` as the sender, or none, unlike that of the week before.
    fn circuits_changed(&mut self, _host: HostId, _has_some: bool) {}
}

/// Discards all frames that leave the fabric.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nowhere;

impl Out for Nowhere {
    fn delivered(&mut self, _: Egress) {}
    fn dropped(&mut self, _: u32) {}
}
