//! [`Telemetry`]: the stamps of packets, which ports write and acknowledgements return.
//!
//! ```text
//! port ── stamp ──> stamps of the packet's slot ── on_delivered ──> the last ones of its flow
//!                                                                        │ on_sent: the acknowledgement takes them
//!          Fabric::delivered_stamps <── on_delivered <── stamps of its slot <┘
//! ```
//!
//! A packet stays one cache line: its stamps are beside it, by slot, and only in a run whose ports write some.

use std::collections::BTreeMap;

use plimsoll_mechanisms::telemetry::{IntParams, Stamp, Stamps};

use crate::net::{Packet, Slot};
use crate::observed::Counters;

/// The stamps of all packets in a network, and the ones that receivers have not returned yet.
#[derive(Debug, Default)]
pub(crate) struct Telemetry {
    /// The stamps by slot; empty ones in free slots.
    by_slot: Vec<Stamps>,
    /// The stamps of the last data packet that a host has received, by flow and host, until it sends on that flow.
    unreturned: BTreeMap<(u32, u32), Stamps>,
    /// The stamps of the packet that was delivered last.
    delivered: Stamps,
}

impl Telemetry {
    /// Adds a stamp to the packet in `slot`, which grows on the wire.
    pub(crate) fn stamp(&mut self, slot: Slot, packet: &mut Packet, stamp: Stamp, params: &IntParams) {
        let added = self.of_slot(slot).push(stamp, params);
        packet.size = packet.size.saturating_add(added);
    }

    /// Takes the stamps of the packet in `slot`, which leaves it; `None` if it has none.
    pub(crate) fn take(&mut self, slot: Slot) -> Option<Stamps> {
        let stamps = self.by_slot.get_mut(slot.number() as usize).map(std::mem::take);
        stamps.filter(|stamps| !stamps.is_empty())
    }

    /// Gives the packet in `slot` stamps that it does not have yet.
    pub(crate) fn put(&mut self, slot: Slot, stamps: Stamps) {
        *self.of_slot(slot) = stamps;
    }

    /// A host sends the packet in `slot`. One without data returns the stamps of the last data packet that the host has
    /// received on the flow, and grows by their bytes; one with data supersedes them.
    pub(crate) fn on_sent(&mut self, slot: Slot, packet: &mut Packet) {
        if let Some(stamps) = self.unreturned.remove(&(packet.flow, packet.src.0))
            && packet.len == 0
        {
            packet.size = packet.size.saturating_add(stamps.bytes());
            self.put(slot, stamps);
        }
    }

    /// `packet`, which was in `slot`, has reached its host.
    pub(crate) fn on_delivered(&mut self, slot: Slot, packet: &Packet, counters: &mut Counters) {
        let Some(stamps) = self.take(slot) else {
            self.delivered = Stamps::default();
            return;
        };
        self.delivered = stamps;
        if packet.len > 0 {
            self.unreturned.insert((packet.flow, packet.dst.0), stamps);
        } else {
            counters.echoes += 1;
            counters.echoed_stamps += stamps.hops().len() as u64;
            counters.echoed_queue_bytes += stamps.queue_bytes();
            counters.echoed_delay_ns += stamps.queueing_delay().as_ps() / 1_000;
        }
    }

    /// Returns the stamps of the packet that was delivered last, if it had any.
    pub(crate) fn delivered(&self) -> Option<&Stamps> {
        (!self.delivered.is_empty()).then_some(&self.delivered)
    }

    fn of_slot(&mut self, slot: Slot) -> &mut Stamps {
        let place = slot.number() as usize;
        if place >= self.by_slot.len() {
            self.by_slot.resize(place + 1, Stamps::default());
        }
        &mut self.by_slot[place]
    }
}
