//! [`HeadPacer`]: the pacer between a NIC queue and its link, with the random stream that it draws
//! from.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_mechanisms::pacer::{AssociationCounts, FlowState, LinkPacer, PacerParams, Release};
use plimsoll_units::{Span, Time};
use rand::Rng;
use rand_pcg::Pcg64;

use crate::net::Packet;

/// HULL's pacer in the form of the reproduction's source.
///
/// It decides on the packets in the order in which they leave the queue, and later events do not change the departure
/// of a packet that it holds. So a departure is as certain with a pacer as without, and both port engines can have one.
#[derive(Debug)]
pub struct HeadPacer {
    pacer: LinkPacer,
    stream: Pcg64,
    /// The time for which each waiting packet of an express port will be held between queue and link.
    holds: VecDeque<Span>,
    /// Draws that an express port has foreseen: the time, the flow, and the flow's state before the draw.
    foreseen: VecDeque<(Time, u64, Option<FlowState>)>,
}

impl HeadPacer {
    /// Builds a pacer that has seen no packet.
    pub fn new(params: &PacerParams, stream: Pcg64) -> HeadPacer {
        HeadPacer { pacer: LinkPacer::new(params), stream, holds: VecDeque::new(), foreseen: VecDeque::new() }
    }

    /// An acknowledgement with ECE arrived for connection `flow`.
    pub fn on_ece(&mut self, flow: u32) {
        self.pacer.on_ece(u64::from(flow));
    }

    /// Returns how often each connection was associated up to `end`, in order of connection.
    pub fn counts(&self, end: Time) -> BTreeMap<u64, AssociationCounts> {
        let mut counts: BTreeMap<_, _> = self.pacer.flows().counts(end).collect();
        // The first draw after the end holds the state at the end.
        for (_, flow, before) in self.foreseen.iter().rev().filter(|(leaves, ..)| *leaves > end) {
            counts.insert(*flow, before.map_or_else(AssociationCounts::default, |state| state.counts(end)));
        }
        counts
    }

    /// A packet enters the queue. Returns whether it draws when it leaves the queue.
    pub(super) fn on_enqueue(&mut self, packet: &Packet) -> bool {
        packet.len > 0 && self.pacer.on_data_sent(u64::from(packet.flow))
    }

    /// A packet leaves the queue at `now`, while the link is free. Returns when it may start.
    pub(super) fn release(&mut self, now: Time, packet: &Packet, draws: bool) -> Time {
        let stream = &mut self.stream;
        let (flow, size) = (u64::from(packet.flow), u64::from(packet.size));
        match self.pacer.on_head(now, flow, size, draws, || stream.next_u64()) {
            Release::Now => now,
            Release::At(later) => later,
        }
    }

    /// [`HeadPacer::release`], for a packet that arrives at `now` and leaves the queue at `leaves`.
    pub(super) fn foresee(&mut self, now: Time, leaves: Time, packet: &Packet, draws: bool) -> Time {
        if draws && leaves > now {
            while self.foreseen.pop_front_if(|(left, ..)| *left <= now).is_some() {}
            let flow = u64::from(packet.flow);
            self.foreseen.push_back((leaves, flow, self.pacer.flows().state_of(flow)));
        }
        let start = self.release(leaves, packet, draws);
        if leaves > now {
            self.holds.push_back(start - leaves);
        }
        start
    }

    /// Removes the hold of the first packet that waits, which leaves the queue now.
    pub(super) fn take_hold(&mut self) -> Span {
        self.holds.pop_front().unwrap_or(Span::ZERO)
    }
}
