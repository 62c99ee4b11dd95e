//! [`Telemetry`]: the stamps of packets, which ports write and acknowledgements return.
//!
//! ```text
//! port ── stamp ──> stamps of the packet's slot ── on_delivered ──> the last ones of its flow
//!                                                                        │ on_sent: the acknowledgement takes them
//!        returned to the host, by number <── on_delivered <── stamps of its slot <┘
//!                   │
//!                   └──> Fabric::take_returned_stamps, when the host handles the acknowledgement
//! ```
//!
//! A packet stays one cache line: its stamps are beside it, by slot, and only in a run whose ports write some. A host
//! may handle an acknowledgement after the next one has arrived, so the arrived packet has the number of its stamps.

use std::collections::BTreeMap;

use plimsoll_mechanisms::telemetry::{IntParams, Stamp, Stamps};

use crate::net::{Flags, Packet, Slot};

/// The stamps of all packets in a network, and the ones that receivers have not returned yet.
#[derive(Debug, Default)]
pub(crate) struct Telemetry {
    /// The stamps by slot; empty ones in free slots.
    by_slot: Vec<Stamps>,
    /// The stamps of the last data packet that a host has received, by flow and host, until it sends on that flow. Only
    /// transports that acknowledge have some: a receiver of datagrams would never send.
    unreturned: BTreeMap<(u32, u32), Stamps>,
    /// The stamps of acknowledgements that their host has not handled yet, by host and number.
    returned: BTreeMap<(u32, u16), Stamps>,
    /// The number that the stamps of an acknowledgement got last, by host.
    last_numbers: BTreeMap<u32, u16>,
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

    /// `packet`, which was in `slot`, has reached its host. Its field for the ingress, which no host reads, gets the
    /// number of the stamps that it returns, or 0.
    pub(crate) fn on_delivered(&mut self, slot: Slot, packet: &mut Packet) {
        packet.ingress = 0;
        let Some(stamps) = self.take(slot) else { return };
        if packet.len == 0 {
            // Numbers repeat after 65,535 acknowledgements of a host, which has handled this one long before.
            let number = self.last_numbers.entry(packet.dst.0).or_default();
            *number = number.checked_add(1).unwrap_or(1);
            packet.ingress = *number;
            self.returned.insert((packet.dst.0, packet.ingress), stamps);
        } else if packet.flags.has(Flags::ACK) {
            self.unreturned.insert((packet.flow, packet.dst.0), stamps);
        }
    }

    /// Removes the stamps that `packet`, as it was delivered, has returned to its host.
    pub(crate) fn take_returned(&mut self, packet: &Packet) -> Option<Stamps> {
        let is_acknowledgement = packet.len == 0 && packet.ingress != 0;
        is_acknowledgement.then(|| self.returned.remove(&(packet.dst.0, packet.ingress))).flatten()
    }

    fn of_slot(&mut self, slot: Slot) -> &mut Stamps {
        let place = slot.number() as usize;
        if place >= self.by_slot.len() {
            self.by_slot.resize(place + 1, Stamps::default());
        }
        &mut self.by_slot[place]
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_units::{Rate, Span, Time};

    use super::*;
    use crate::net::HostId;

    /// A packet of `flow` with `len` bytes of payload, which has arrived from slot 0 with one stamp of `queue_bytes`.
    fn arrive(telemetry: &mut Telemetry, flow: u32, len: u16, flags: Flags, queue_bytes: u64) -> Packet {
        let mut packet = Packet::new(HostId(0), HostId(1), flow, len + 40);
        (packet.len, packet.flags) = (len, flags);
        let (rate, waited) = (Rate::from_gbps(1), Span::ZERO);
        let stamp = Stamp { queue_bytes, sent_bytes: 0, at: Time::ZERO, rate, waited };
        telemetry.stamp(Slot::new(0), &mut packet, stamp, &IntParams::default());
        telemetry.on_delivered(Slot::new(0), &mut packet);
        packet
    }

    #[test]
    fn only_flows_whose_receiver_acknowledges_keep_stamps() {
        let mut telemetry = Telemetry::default();
        for flow in 0..100 {
            arrive(&mut telemetry, flow, 1_000, Flags::NONE, 0);
            arrive(&mut telemetry, 7, 1_000, Flags::ACK, 0);
        }
        assert_eq!((telemetry.unreturned.len(), telemetry.returned.len()), (1, 0));
    }

    #[test]
    fn an_acknowledgement_keeps_its_stamps_until_it_is_handled() {
        let mut telemetry = Telemetry::default();
        let [first, second] = [10, 20].map(|bytes| arrive(&mut telemetry, 7, 0, Flags::ACK, bytes));
        let mut queue_of = |packet| telemetry.take_returned(packet).map(|stamps| stamps.queue_bytes());
        assert_eq!([queue_of(&first), queue_of(&second), queue_of(&first)], [Some(10), Some(20), None]);
        assert!(telemetry.returned.is_empty());
        telemetry.last_numbers.insert(1, u16::MAX);
        assert_eq!(arrive(&mut telemetry, 7, 0, Flags::ACK, 0).ingress, 1);
    }
}
