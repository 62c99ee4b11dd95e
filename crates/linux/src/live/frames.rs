//! What goes into a [`LiveFabric`](super::LiveFabric), and what becomes of it.

use plimsoll_fabric::net::HostId;
use plimsoll_units::{Span, Time};

use crate::frame::Header;

/// A frame that came in, as far as the fabric is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ingress {
    /// Its time.
    pub at: Time,
    /// The host that sent it.
    pub from: HostId,
    /// What it says.
    pub header: Header,
    /// Its bytes, Ethernet header included.
    pub size: u16,
}

/// A packet that has reached its host.
#[derive(Clone, Copy, Debug)]
pub struct Egress {
    /// When it should leave the fabric.
    pub at: Time,
    /// The host that it is for.
    pub to: HostId,
    /// What the caller gave it as its frame.
    pub frame: u32,
    /// Whether the fabric has marked it.
    pub marked: bool,
    /// How long it waited in queues and pacers.
    pub waited: Span,
}

/// 64 bits over everything that left or was dropped, in its order. Not cryptographic.
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

/// What becomes of frames.
pub trait Out {
    /// A frame has reached its host.
    fn delivered(&mut self, egress: Egress);
    /// The fabric has lost a frame.
    fn dropped(&mut self, frame: u32);
}

/// Nobody wants the frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nowhere;

impl Out for Nowhere {
    fn delivered(&mut self, _: Egress) {}
    fn dropped(&mut self, _: u32) {}
}
