//! Whether an arriving packet is marked, or dropped before the queue is full.

use plimsoll_mechanisms::red::Red;
pub(super) use plimsoll_mechanisms::red::Verdict;
use plimsoll_mechanisms::wred::Wred;
use plimsoll_units::Time;
use rand::Rng;
use rand_pcg::Pcg64;

use super::PortRules;
use crate::net::{Ecn, Packet};

/// Random early detection, with the stream that it draws from.
#[derive(Debug)]
pub struct RedMarker {
    red: Red,
    stream: Pcg64,
}

impl RedMarker {
    /// Makes a marker of `red` that draws from `stream`.
    pub fn new(red: Red, stream: Pcg64) -> RedMarker {
        RedMarker { red, stream }
    }

    /// Decides on a packet that finds `bytes` waiting, and room.
    pub(super) fn on_enqueue(&mut self, now: Time, bytes: u64, packet: &Packet) -> Verdict {
        let stream = &mut self.stream;
        let ect = packet.ecn != Ecn::NotEct;
        self.red.on_enqueue(now, bytes, u64::from(packet.size), ect, || stream.next_u64())
    }

    /// The queue drops a packet for lack of room; an average still counts its arrival.
    #[cold]
    pub(super) fn on_overflow(&mut self, now: Time, bytes: u64, packet: &Packet) {
        self.red.on_enqueue(now, bytes, u64::from(packet.size), false, || 0);
        self.red.on_overflow();
    }

    /// The queue and the link have been idle since `since`.
    pub(super) fn on_idle(&mut self, since: Time) {
        self.red.on_idle(since);
    }
}

/// Random early detection by priority, with the stream that it draws from.
#[derive(Debug)]
pub struct WredMarker {
    wred: Wred,
    stream: Pcg64,
}

impl WredMarker {
    /// Makes a marker of `wred` that draws from `stream`.
    pub fn new(wred: Wred, stream: Pcg64) -> WredMarker {
        WredMarker { wred, stream }
    }

    /// Decides on a packet that finds room.
    pub(super) fn on_enqueue(&mut self, now: Time, packet: &Packet) -> Verdict {
        let stream = &mut self.stream;
        let ect = packet.ecn != Ecn::NotEct;
        self.wred.on_enqueue(now, packet.priority & 7, u64::from(packet.size), ect, || stream.next_u64())
    }

    /// The queue drops a packet for lack of room; an average still counts its arrival.
    #[cold]
    pub(super) fn on_overflow(&mut self, now: Time, packet: &Packet) {
        self.wred.on_enqueue(now, packet.priority & 7, u64::from(packet.size), false, || 0);
        self.wred.on_overflow(packet.priority & 7);
    }

    /// `packet` has joined the queue.
    pub(super) fn on_entered(&mut self, packet: &Packet) {
        self.wred.on_entered(packet.priority & 7, u64::from(packet.size));
    }

    /// `packet` has left the queue.
    pub(super) fn on_left(&mut self, packet: &Packet) {
        self.wred.on_left(packet.priority & 7, u64::from(packet.size));
    }

    /// `packet` is being sent until `until`.
    pub(super) fn on_transmit(&mut self, packet: &Packet, until: Time) {
        self.wred.on_transmit(packet.priority & 7, until);
    }
}

impl PortRules {
    /// Applies the threshold to a packet that finds `packets` and `bytes` waiting, and room.
    #[inline]
    pub(super) fn on_enqueue(&self, packets: usize, bytes: u64) -> Verdict {
        match &self.ecn {
            Some(ecn) if ecn.on_enqueue(bytes, packets as u64) => Verdict::Mark,
            _ => Verdict::Pass,
        }
    }

    /// Returns whether a packet that leaves `packets` and `bytes` behind is marked.
    #[inline]
    pub(super) fn on_dequeue(&self, packets: usize, bytes: u64) -> bool {
        self.ecn.as_ref().is_some_and(|ecn| ecn.on_dequeue(bytes, packets as u64))
    }
}
