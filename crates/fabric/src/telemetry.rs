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
use std::num::NonZeroU32;

use plimsoll_mechanisms::telemetry::{IntParams, Stamps, Written};
use plimsoll_memory::prefetch_for_later;

use crate::net::{Flags, Packet, Slot};

/// The stamps of all packets in a network, and the ones that receivers have not returned yet.
///
/// Stamps of one packet are longer than a packet, so they stay where they are, and their place goes from the slot of
/// the data to that of its acknowledgement.
#[derive(Debug, Default)]
pub(crate) struct Telemetry {
    places: Places,
    /// The place of the stamps of each slot's packet, if it has some.
    by_slot: Vec<Option<Place>>,
    /// The stamps of the last data packet that a host has received, by flow and host, until it sends on that flow. Only
    /// transports that acknowledge have some: a receiver of datagrams would never send.
    unreturned: BTreeMap<(u32, u32), Place>,
    /// The stamps that acknowledgements have returned, by host.
    returned: Vec<ReturnedStamps>,
}

/// The stamps of acknowledgements that their host has not handled yet.
#[derive(Clone, Debug, Default)]
struct ReturnedStamps {
    /// The number that the stamps of an acknowledgement got last.
    last_number: u16,
    /// Their numbers and places; one alone unless the host handles acknowledgements late.
    waiting: Vec<(u16, Place)>,
}

impl ReturnedStamps {
    /// Keeps the stamps at `place`, and returns their number.
    fn put(&mut self, place: Place) -> u16 {
        // Numbers repeat after 65,535 acknowledgements of a host, which has handled this one long before.
        self.last_number = self.last_number.checked_add(1).unwrap_or(1);
        self.waiting.push((self.last_number, place));
        self.last_number
    }

    /// Removes the stamps of this number.
    fn take(&mut self, number: u16) -> Option<Place> {
        let at = self.waiting.iter().position(|(waiting, _)| *waiting == number)?;
        Some(self.waiting.swap_remove(at).1)
    }
}

/// Where stamps are: one more than their index.
type Place = NonZeroU32;

/// Memory for the stamps of packets; the place that was left last is taken first.
#[derive(Debug, Default)]
struct Places {
    stamps: Vec<Stamps>,
    free: Vec<Place>,
}

impl Places {
    fn take(&mut self) -> Place {
        self.free.pop().unwrap_or_else(|| {
            self.stamps.push(Stamps::default());
            Place::new(self.stamps.len() as u32).expect("one was added")
        })
    }

    fn give(&mut self, place: Place) {
        self.get_mut(place).clear();
        self.free.push(place);
    }

    fn get(&self, place: Place) -> &Stamps {
        &self.stamps[place.get() as usize - 1]
    }

    fn get_mut(&mut self, place: Place) -> &mut Stamps {
        &mut self.stamps[place.get() as usize - 1]
    }
}

impl Telemetry {
    /// Adds what a port has written to the packet in `slot`, which grows on the wire.
    pub(crate) fn stamp(&mut self, slot: Slot, packet: &mut Packet, written: Written, params: &IntParams) {
        let added = self.of_slot(slot).push(written, params);
        packet.size = packet.size.saturating_add(added);
    }

    /// Takes the stamps of the packet in `slot`, which leaves the process; `None` if it has none.
    pub(crate) fn take(&mut self, slot: Slot) -> Option<Stamps> {
        let place = self.leave(slot)?;
        let stamps = *self.places.get(place);
        self.places.give(place);
        Some(stamps)
    }

    /// Forgets the stamps of the packet in `slot`.
    pub(crate) fn forget(&mut self, slot: Slot) {
        if let Some(place) = self.leave(slot) {
            self.places.give(place);
        }
    }

    /// Gives the packet in `slot` stamps that it does not have yet.
    pub(crate) fn put(&mut self, slot: Slot, stamps: Stamps) {
        *self.of_slot(slot) = stamps;
    }

    /// A host sends the packet in `slot`. One without data returns the stamps of the last data packet that the host has
    /// received on the flow, and grows by their bytes; one with data supersedes them. A READ request answers no data,
    /// and leaves them to the acknowledgement.
    pub(crate) fn on_sent(&mut self, slot: Slot, packet: &mut Packet) {
        if packet.is_read_request() {
            return;
        }
        let Some(place) = self.unreturned.remove(&(packet.flow, packet.src.0)) else { return };
        if packet.len == 0 {
            packet.size = packet.size.saturating_add(self.places.get(place).bytes());
            *self.entry(slot) = Some(place);
        } else {
            self.places.give(place);
        }
    }

    /// `packet`, which was in `slot`, has reached its host. Its field for the ingress, which no host reads, gets the
    /// number of the stamps that it returns, or 0.
    pub(crate) fn on_delivered(&mut self, slot: Slot, packet: &mut Packet) {
        packet.ingress = 0;
        let Some(place) = self.leave(slot) else { return };
        let replaced = if packet.len == 0 {
            let host = packet.dst.0 as usize;
            if host >= self.returned.len() {
                self.returned.resize(host + 1, ReturnedStamps::default());
            }
            packet.ingress = self.returned[host].put(place);
            None
        } else if packet.flags.has(Flags::ACK) {
            self.unreturned.insert((packet.flow, packet.dst.0), place)
        } else {
            Some(place)
        };
        if let Some(place) = replaced {
            self.places.give(place);
        }
    }

    /// Removes the stamps that `packet`, as it was delivered, has returned to its host.
    pub(crate) fn take_returned(&mut self, packet: &Packet) -> Option<Stamps> {
        let is_acknowledgement = packet.len == 0 && packet.ingress != 0;
        let place = is_acknowledgement
            .then(|| self.returned.get_mut(packet.dst.0 as usize)?.take(packet.ingress))
            .flatten()?;
        let stamps = *self.places.get(place);
        self.places.give(place);
        Some(stamps)
    }

    /// Prefetches the stamps of the packet in `slot`.
    pub(crate) fn prefetch(&self, slot: Slot) {
        if let Some(place) = self.by_slot.get(slot.number() as usize).copied().flatten() {
            prefetch_for_later(self.places.get(place));
        }
    }

    /// The stamps of the packet in `slot`, which has some from now on.
    fn of_slot(&mut self, slot: Slot) -> &mut Stamps {
        let place = match *self.entry(slot) {
            Some(place) => place,
            None => {
                let place = self.places.take();
                *self.entry(slot) = Some(place);
                place
            }
        };
        self.places.get_mut(place)
    }

    /// Returns the place of the stamps in `slot`, which has none afterwards.
    fn leave(&mut self, slot: Slot) -> Option<Place> {
        self.by_slot.get_mut(slot.number() as usize)?.take()
    }

    fn entry(&mut self, slot: Slot) -> &mut Option<Place> {
        let index = slot.number() as usize;
        if index >= self.by_slot.len() {
            self.by_slot.resize(index + 1, None);
        }
        &mut self.by_slot[index]
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_mechanisms::telemetry::Stamp;
    use plimsoll_units::{Rate, Span, Time};

    use super::*;
    use crate::net::HostId;

    /// A packet of `flow` with `len` bytes of payload, which has arrived from slot 0 with one stamp of `queue_bytes`.
    fn arrive(telemetry: &mut Telemetry, flow: u32, len: u16, flags: Flags, queue_bytes: u64) -> Packet {
        let mut packet = Packet::new(HostId(0), HostId(1), flow, len + 40);
        (packet.len, packet.flags) = (len, flags);
        let (rate, waited) = (Rate::from_gbps(1), Span::ZERO);
        let stamp = Stamp { queue_bytes, sent_bytes: 0, at: Time::ZERO, rate, waited };
        telemetry.stamp(Slot::new(0), &mut packet, Written::Stamp(stamp), &IntParams::default());
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
        assert_eq!(
            (telemetry.unreturned.len(), telemetry.returned.len()),
            (1, 0),
            "no acknowledgement has come"
        );
    }

    #[test]
    fn an_acknowledgement_keeps_its_stamps_until_it_is_handled() {
        let mut telemetry = Telemetry::default();
        let [first, second] = [10, 20].map(|bytes| arrive(&mut telemetry, 7, 0, Flags::ACK, bytes));
        let mut queue_of = |packet| telemetry.take_returned(packet).map(|stamps| stamps.queue_bytes());
        assert_eq!([queue_of(&first), queue_of(&second), queue_of(&first)], [Some(10), Some(20), None]);
        assert!(telemetry.returned.iter().all(|host| host.waiting.is_empty()));
        telemetry.returned[1].last_number = u16::MAX;
        assert_eq!(arrive(&mut telemetry, 7, 0, Flags::ACK, 0).ingress, 1);
    }
}
