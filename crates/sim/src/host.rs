//! [`HostPacer`]: the paper's pacer in a simulated host, between the transport and the NIC queue.

use plimsoll_fabric::engine::{Owner, OwnerKind, Stream};
use plimsoll_fabric::net::{HostId, Packet, Port, PortId, Wait};
use plimsoll_mechanisms::pacer::{self, Admission, FlowAssociations, PacerParams};
use plimsoll_units::Time;
use rand::Rng;

use crate::wires::Wires;

/// A pacer with its random stream and the event that it asked for.
#[derive(Debug)]
pub(crate) struct HostPacer {
    host: HostId,
    pacer: pacer::HostPacer<Held>,
    stream: Stream,
    armed: Time,
    /// Where a packet waits for room in the NIC queue: the room, in bytes, that each needs.
    room_bytes: Option<u64>,
}

/// A packet in the pacer, and since when.
#[derive(Clone, Copy, Debug)]
struct Held {
    packet: Packet,
    since: Time,
}

impl HostPacer {
    pub(crate) fn new(
        params: &PacerParams,
        host: HostId,
        stream: Stream,
        room_bytes: Option<u64>,
    ) -> HostPacer {
        HostPacer { host, pacer: pacer::HostPacer::new(params), stream, armed: Time::MAX, room_bytes }
    }

    /// The transport hands over a packet.
    pub(crate) fn on_packet(&mut self, now: Time, packet: Packet, nic: &mut Port, wires: &mut Wires) {
        let (flow, size) = (u64::from(packet.flow), u64::from(packet.size));
        match self.pacer.on_packet(now, flow, size, Held { packet, since: now }) {
            Admission::Bypass(held) => nic.on_arrival(PortId(self.host.0), now, held.packet, wires),
            Admission::Queued => self.release(now, nic, wires),
        }
    }

    /// An acknowledgement with ECE arrived for connection `flow`.
    pub(crate) fn on_ece(&mut self, now: Time, flow: u32) {
        let stream = &mut self.stream;
        self.pacer.on_ece(now, u64::from(flow), || stream.next_u64());
    }

    /// The time asked for has come, or an earlier one.
    pub(crate) fn on_due(&mut self, now: Time, nic: &mut Port, wires: &mut Wires) {
        if self.armed == now {
            self.armed = Time::MAX;
            self.release(now, nic, wires);
        }
    }

    /// Packets held.
    pub(crate) fn held(&self) -> usize {
        self.pacer.backlog_packets()
    }

    /// Which connections are associated, and how often.
    pub(crate) fn flows(&self) -> &FlowAssociations {
        self.pacer.flows()
    }

    /// Hands over what may go now. Who finds no room is called again when there is some.
    pub(crate) fn release(&mut self, now: Time, nic: &mut Port, wires: &mut Wires) {
        loop {
            if self.room_bytes.is_some_and(|size| !nic.has_room(now, size)) {
                return;
            }
            let Some(Held { mut packet, since }) = self.pacer.poll(now) else { break };
            packet.add_wait(Wait::Pacer, now - since);
            nic.on_arrival(PortId(self.host.0), now, packet, wires);
        }
        if let Some(due) = self.pacer.next_due()
            && due < self.armed
        {
            self.armed = due;
            wires.events.push(due, Owner::new(OwnerKind::Pacer, self.host.0));
        }
    }
}
