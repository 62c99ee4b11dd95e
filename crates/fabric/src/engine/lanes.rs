//! [`Lanes`]: the packets in flight, one first-in first-out lane per link.

use std::collections::VecDeque;

use plimsoll_units::Time;

use super::{EventQueue, Owner, OwnerKind};
use crate::net::{Packet, PortId};

#[derive(Clone, Copy, Debug)]
struct InFlight {
    arrives: Time,
    packet: Packet,
}

/// Packets on their way to the far end of a link, in order of arrival.
#[derive(Debug)]
pub struct Lanes {
    lanes: Vec<VecDeque<InFlight>>,
    in_flight: usize,
}

impl Lanes {
    /// Empty lanes for `ports` links.
    pub fn new(ports: usize) -> Lanes {
        Lanes { lanes: (0..ports).map(|_| VecDeque::new()).collect(), in_flight: 0 }
    }

    /// Puts `packet` behind what `port` has sent before; the first of a lane becomes an event.
    #[inline]
    pub fn push(&mut self, port: PortId, arrives: Time, packet: Packet, events: &mut EventQueue) {
        let lane = &mut self.lanes[port.0 as usize];
        debug_assert!(lane.back().is_none_or(|last| last.arrives <= arrives), "a link keeps its order");
        if lane.is_empty() {
            events.push(arrives, Owner::new(OwnerKind::Link, port.0));
        }
        lane.push_back(InFlight { arrives, packet });
        self.in_flight += 1;
    }

    /// Takes the packet whose event has come, and makes the next one an event.
    #[inline]
    pub fn pop(&mut self, port: PortId, events: &mut EventQueue) -> Packet {
        let lane = &mut self.lanes[port.0 as usize];
        let InFlight { packet, .. } = lane.pop_front().expect("a lane with an event has a packet");
        if let Some(next) = lane.front() {
            events.push(next.arrives, Owner::new(OwnerKind::Link, port.0));
        }
        self.in_flight -= 1;
        packet
    }

    /// Packets on all links, including those admitted by express ports and not yet sent.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }
}
