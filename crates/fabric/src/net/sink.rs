//! [`Sink`]: the interface of a port to the world around it.

use plimsoll_mechanisms::shared_buffer::SharedBuffer;
use plimsoll_mechanisms::telemetry::{IntParams, Written};
use plimsoll_units::Time;

use super::{Notes, Packet, PortId, Slot};

/// The world as a port sees it. A simulated world turns these calls into events, a live one into
/// frames and timers. Implementations are monomorphised into the ports.
///
/// Packets stay in their slots: a port receives the number of a slot, and has the slot until it hands it over by
/// [`transmit`](Sink::transmit) or [`dropped`](Sink::dropped).
pub trait Sink {
    /// Puts a packet into a slot.
    fn hold(&mut self, packet: Packet) -> Slot;

    /// Returns the packet in a slot.
    fn packet(&self, slot: Slot) -> &Packet;

    /// Returns the packet in a slot, to be changed.
    fn packet_mut(&mut self, slot: Slot) -> &mut Packet;

    /// Returns the notes of the slots.
    fn notes(&self) -> &Notes;

    /// Returns the notes of the slots, for a queue to write to.
    fn notes_mut(&mut self) -> &mut Notes;

    /// The last bit of the packet in `slot` reaches the far end of `port`'s link at `arrives`. One port's packets
    /// are handed over in the order of `arrives`.
    fn transmit(&mut self, port: PortId, arrives: Time, slot: Slot);

    /// `port` requests that its `on_due` is called at `at`.
    fn call_at(&mut self, port: PortId, at: Time);

    /// Packets wait at `port`, which decides its departures late: [`Port::settle`](super::Port::settle) is called when
    /// the last packet on its link has arrived, unless a call of another kind has served them by then.
    fn waits(&mut self, _port: PortId) {
        unreachable!("this world has no port that decides late")
    }

    /// The packet in `slot` was marked CE by `port`.
    fn marked(&mut self, port: PortId, slot: Slot);

    /// A port with telemetry has written into the packet in `slot`, which makes it longer on the wire.
    fn stamp(&mut self, _slot: Slot, _written: Written, _params: &IntParams) {
        unreachable!("this world has no telemetry")
    }

    /// The packet in `slot` loses its payload at `port`; it is still as it was before.
    fn trims(&mut self, _port: PortId, _slot: Slot) {}

    /// The trimmed packet in `slot` found no room at `port`, and is now addressed to its sender: the switch of `port`
    /// is to send it on.
    fn bounced(&mut self, _port: PortId, _slot: Slot) {
        unreachable!("this world sends no packet back")
    }

    /// The packet in `slot` found no room at `port` and is dropped.
    fn dropped(&mut self, now: Time, port: PortId, slot: Slot);

    /// A packet left the queue of a host's NIC whose transport waits for room.
    fn room(&mut self, port: PortId);

    /// A packet has joined the queue of `port` at `now`, which was built to report it.
    fn entered(&mut self, _now: Time, _port: PortId, _slot: Slot) {}

    /// A packet that had [`entered`](Sink::entered) `port` starts to be sent, or was dropped after all.
    fn left(&mut self, _port: PortId, _slot: Slot) {}

    /// A packet of `port`, which was built to report waiting packets, starts to be sent at `now` without having waited:
    /// [`entered`](Sink::entered) and [`left`](Sink::left) in one.
    fn passed(&mut self, now: Time, port: PortId, slot: Slot) {
        self.entered(now, port, slot);
        self.left(port, slot);
    }

    /// Returns the buffer memory of number `pool`, for a port with a [`SharedRoom`](super::port::SharedRoom). A world
    /// without such ports has none.
    fn pool(&mut self, pool: u32) -> &mut SharedBuffer {
        unreachable!("a port shares the buffer {pool}, and this world has none")
    }
}
