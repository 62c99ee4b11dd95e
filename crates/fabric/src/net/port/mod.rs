//! Output ports: room, marking, and when a packet leaves.
//!
//! Two engines give the same result wherever both apply:
//! * [`Express`] serves first come first served at a fixed rate, so a packet's departure is known
//!   the moment it is admitted: one event per hop.
//! * [`General`] keeps the packets and decides at each departure: per-flow fairness, marking at
//!   dequeue, a buffer shared with other ports, a transport that waits for room.

mod admission;
mod express;
mod general;
mod head_pacer;

use plimsoll_mechanisms::phantom_queue::PhantomQueue;
use plimsoll_units::{ByteTime, Span, Time};

pub use admission::{Admission, BufferLimit, Marking, SharedRoom};
pub use express::Express;
pub use general::{Discipline, General};
pub use head_pacer::HeadPacer;

use super::{Packet, PortId, QueueMeter, Sink, Wait};

/// What every port knows about itself and its link.
#[derive(Clone, Copy, Debug)]
pub struct PortLink {
    /// The port.
    pub id: PortId,
    /// Time a byte takes on the link.
    pub byte_time: ByteTime,
    /// One-way propagation.
    pub propagation: Span,
    /// The account that waiting here goes to.
    pub wait: Wait,
}

/// Everything a port is made of.
#[derive(Debug)]
pub struct PortConfig {
    /// The port and its link.
    pub link: PortLink,
    /// Room and marking.
    pub admission: Admission,
    /// HULL's phantom queue, consulted at the start of each transmission.
    pub phantom_queue: Option<PhantomQueue>,
    /// Watches the waiting bytes.
    pub meter: Option<QueueMeter>,
    /// Needs the general engine: how waiting packets are served.
    pub discipline: Discipline,
    /// The pacer between queue and link.
    pub pacer: Option<Box<HeadPacer>>,
    /// Needs the general engine: the owner wants [`Sink::room`] when a packet has left the queue.
    pub announces_room: bool,
    /// Use the general engine even where express applies.
    pub general: bool,
}

/// An output port.
#[derive(Debug)]
pub enum Port {
    /// Departure known at admission.
    Express(Express),
    /// Explicit departures.
    General(Box<General>),
}

impl Port {
    /// The port, on the simplest engine that can do what `config` asks.
    pub fn new(config: PortConfig) -> Port {
        let express = config.discipline.is_fifo()
            && !config.announces_room
            && !config.admission.marks_at_dequeue()
            && config.admission.shared().is_none()
            && !config.general;
        if express {
            Port::Express(Express::new(config))
        } else {
            Port::General(Box::new(General::new(config)))
        }
    }

    /// A packet wants to leave by this port.
    #[inline]
    pub fn on_arrival(&mut self, now: Time, packet: Packet, sink: &mut impl Sink) {
        match self {
            Port::Express(port) => port.on_arrival(now, packet, sink),
            Port::General(port) => port.on_arrival(now, packet, sink),
        }
    }

    /// The time asked for by [`Sink::call_at`] has come.
    pub fn on_due(&mut self, now: Time, sink: &mut impl Sink) {
        match self {
            Port::Express(_) => unreachable!("an express port asks for no call"),
            Port::General(port) => port.on_due(now, sink),
        }
    }

    /// Whether a packet of `size` bytes would find room.
    pub fn has_room(&mut self, now: Time, size: u64) -> bool {
        match self {
            Port::Express(port) => port.has_room(now, size),
            Port::General(port) => port.has_room(now, size),
        }
    }

    /// The pacer behind the queue, where there is one.
    pub fn head_pacer(&mut self) -> Option<&mut HeadPacer> {
        match self {
            Port::Express(port) => port.pacer(),
            Port::General(port) => port.pacer(),
        }
    }

    /// Packets that wait and have not been handed to the sink: all that a general port holds.
    pub fn held(&self) -> usize {
        match self {
            Port::Express(_) => 0,
            Port::General(port) => port.held(),
        }
    }

    /// Stops watching, and gives what was seen up to `end`.
    pub fn take_meter(&mut self, end: Time) -> Option<super::MeterReading> {
        let meter = match self {
            Port::Express(port) => port.take_meter(end),
            Port::General(port) => port.take_meter(),
        };
        meter.map(|meter| meter.read(end))
    }
}

#[cfg(test)]
mod shared_tests;
