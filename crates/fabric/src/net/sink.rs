//! [`Sink`]: everything that a port asks of the world around it.

use plimsoll_mechanisms::shared_buffer::SharedBuffer;
use plimsoll_units::Time;

use super::{Packet, PortId};

/// The world as a port sees it. A simulated world turns these calls into events, a live one into
/// frames and timers. Implementations are monomorphised into the ports.
pub trait Sink {
    /// The packet's last bit reaches the far end of `port`'s link at `arrives`. One port's packets
    /// are handed over in the order of `arrives`. Gives the packet back where it lies now: what is written
    /// into it there need not be read again soon, while a change just before the move would hold it up.
    fn transmit(&mut self, port: PortId, arrives: Time, packet: Packet) -> &mut Packet;

    /// `port` asks that its `on_due` is called at `at`.
    fn call_at(&mut self, port: PortId, at: Time);

    /// `packet` was marked CE by `port`.
    fn marked(&mut self, port: PortId, packet: &Packet);

    /// `packet` found no room at `port` and is gone.
    fn dropped(&mut self, now: Time, port: PortId, packet: &Packet);

    /// A packet left the queue of a host's NIC whose transport waits for room.
    fn room(&mut self, port: PortId);

    /// A packet has joined the queue of `port`, which was built to report it.
    fn entered(&mut self, _port: PortId, _packet: &Packet) {}

    /// A packet that had [`entered`](Sink::entered) `port` starts to be sent, or was dropped after all.
    fn left(&mut self, _port: PortId, _packet: &Packet) {}

    /// Returns the buffer memory of number `pool`, for a port with a [`SharedRoom`](super::port::SharedRoom). A world
    /// without such ports has none.
    fn pool(&mut self, pool: u32) -> &mut SharedBuffer {
        unreachable!("a port shares the buffer {pool}, and this world has none")
    }
}
