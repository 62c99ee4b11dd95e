//! Decides whether an arriving packet is marked, or dropped before the queue is full.
//!
//! A port compares its queue with a threshold ([`PortRules`]), or has a [`Marker`] in its place. A new rule for
//! arrivals is a variant of [`MarkingRule`], made in [`Marker::of`]; no other file of the fabric distinguishes the
//! rules.

use plimsoll_mechanisms::PortMechanisms;
use plimsoll_mechanisms::red::Red;
pub(super) use plimsoll_mechanisms::red::Verdict;
use plimsoll_mechanisms::wred::Wred;
use plimsoll_units::{Rate, Time};
use rand::Rng;
use rand_pcg::Pcg64;

use super::PortRules;
use crate::net::{EcnField, Packet};

/// The mechanism that decides on arriving packets in place of the threshold, with its random stream.
#[derive(Debug)]
pub struct Marker {
    rule: MarkingRule,
    stream: Pcg64,
}

#[derive(Debug)]
enum MarkingRule {
    /// Random early detection, which averages the queue of the port.
    Red(Red),
    /// Random early detection by priority, which counts the waiting packets of each.
    Wred(Wred),
}

impl Marker {
    /// Makes the marker of a port of rate `link`, which may lead to a host, if one of its mechanisms needs one.
    /// `stream` returns the random stream of a name.
    pub fn of(
        mechanisms: &PortMechanisms,
        link: Rate,
        leads_to_host: bool,
        stream: impl FnOnce(&'static str) -> Pcg64,
    ) -> Option<Marker> {
        let (rule, name) = match (&mechanisms.red, &mechanisms.wred) {
            (Some(params), _) if leads_to_host && !params.towards_hosts => return None,
            (Some(params), _) => (MarkingRule::Red(Red::new(params, link)), "red"),
            (None, Some(params)) => (MarkingRule::Wred(Wred::new(params, link)), "wred"),
            (None, None) => return None,
        };
        Some(Marker { rule, stream: stream(name) })
    }

    /// Returns whether it must be called for each packet that joins and leaves the queue, which takes the general
    /// engine.
    pub(super) fn counts_waiting(&self) -> bool {
        match &self.rule {
            MarkingRule::Red(red) => red.marks_at_dequeue(),
            MarkingRule::Wred(_) => true,
        }
    }

    /// Returns whether each decision depends on the queue of that moment alone: packets that find the port idle, or no
    /// room, need not be shown to the marker.
    pub(super) fn has_no_memory(&self) -> bool {
        match &self.rule {
            MarkingRule::Red(red) => red.has_no_memory(),
            MarkingRule::Wred(_) => false,
        }
    }

    /// Decides on a packet that finds `bytes` waiting, and room.
    pub(super) fn on_enqueue(&mut self, now: Time, bytes: u64, packet: &Packet) -> Verdict {
        let stream = &mut self.stream;
        let (size, ect) = (u64::from(packet.size), packet.ecn != EcnField::NotEct);
        match &mut self.rule {
            MarkingRule::Red(red) => red.on_enqueue(now, bytes, size, ect, || stream.next_u64()),
            MarkingRule::Wred(wred) => {
                wred.on_enqueue(now, packet.priority & 7, size, ect, || stream.next_u64())
            }
        }
    }

    /// Returns whether a packet that leaves `bytes` behind is marked.
    pub(super) fn on_dequeue(&mut self, bytes: u64) -> bool {
        match &mut self.rule {
            MarkingRule::Red(red) if red.marks_at_dequeue() => {
                red.on_dequeue(bytes, || self.stream.next_u64())
            }
            MarkingRule::Red(_) | MarkingRule::Wred(_) => false,
        }
    }

    /// The queue drops a packet for lack of room; an average still counts its arrival.
    #[cold]
    pub(super) fn on_overflow(&mut self, now: Time, bytes: u64, packet: &Packet) {
        let size = u64::from(packet.size);
        match &mut self.rule {
            MarkingRule::Red(red) => {
                red.on_enqueue(now, bytes, size, false, || 0);
                red.on_overflow();
            }
            MarkingRule::Wred(wred) => {
                wred.on_enqueue(now, packet.priority & 7, size, false, || 0);
                wred.on_overflow(packet.priority & 7);
            }
        }
    }

    /// The queue and the link have been idle since `since`.
    pub(super) fn on_idle(&mut self, since: Time) {
        match &mut self.rule {
            MarkingRule::Red(red) => red.on_idle(since),
            // It stores the time of the last transmission of each priority.
            MarkingRule::Wred(_) => {}
        }
    }

    /// `packet` has joined the queue.
    pub(super) fn on_entered(&mut self, packet: &Packet) {
        if let MarkingRule::Wred(wred) = &mut self.rule {
            wred.on_entered(packet.priority & 7, u64::from(packet.size));
        }
    }

    /// `packet` has left the queue.
    pub(super) fn on_left(&mut self, packet: &Packet) {
        if let MarkingRule::Wred(wred) = &mut self.rule {
            wred.on_left(packet.priority & 7, u64::from(packet.size));
        }
    }

    /// `packet` is being sent until `until`.
    pub(super) fn on_transmit(&mut self, packet: &Packet, until: Time) {
        if let MarkingRule::Wred(wred) = &mut self.rule {
            wred.on_transmit(packet.priority & 7, until);
        }
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
