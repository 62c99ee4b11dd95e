//! [`ScheduledPacer`]: the paper's pacer in a host, between the transport and the NIC queue.

use plimsoll_mechanisms::pacer::{self, Admission, FlowAssociations, PacerForm, PacerParams};
use plimsoll_units::{Stream, Streams, Time};
use rand::Rng;

use crate::net::{HostId, Packet, Port, PortId, Sink, WaitPlace};
use crate::spec::FabricSpec;

/// Builds the pacers of all hosts; none where `spec` has not the paper's form.
pub fn host_pacers(spec: &FabricSpec, streams: &Streams) -> Vec<ScheduledPacer> {
    let paper = spec.pacer.as_ref().filter(|params| params.form == PacerForm::Paper);
    let room_bytes = (spec.backpressure && spec.pacers_wait).then_some(spec.full_size);
    paper.map_or_else(Vec::new, |params| {
        let pacer = |host| {
            let stream = streams.stream(&format!("host/{host}/pacer"));
            ScheduledPacer::new(params, HostId(host), stream, room_bytes)
        };
        (0..spec.network.hosts()).map(pacer).collect()
    })
}

/// A pacer with its random stream and its requested event.
///
/// Calls that hand packets over return the time at which [`ScheduledPacer::on_due`] is to be called, where there is a
/// new one.
#[derive(Debug)]
pub struct ScheduledPacer {
    host: HostId,
    pacer: pacer::HostPacer<PacedPacketAt>,
    stream: Stream,
    armed: Time,
    /// The room in bytes that a packet waits for in the NIC queue; `None` if packets do not wait for room.
    room_bytes: Option<u64>,
}

/// A packet in the pacer, and since when.
#[derive(Clone, Copy, Debug)]
struct PacedPacketAt {
    packet: Packet,
    since: Time,
}

impl ScheduledPacer {
    /// Builds the pacer of `host`. `room_bytes` is the room that a packet waits for in the NIC queue, if it does.
    pub fn new(
        params: &PacerParams,
        host: HostId,
        stream: Stream,
        room_bytes: Option<u64>,
    ) -> ScheduledPacer {
        ScheduledPacer { host, pacer: pacer::HostPacer::new(params), stream, armed: Time::MAX, room_bytes }
    }

    /// Handles a packet from the transport. Returns the time of the next event, if it is a new one.
    #[must_use]
    pub fn on_packet(
        &mut self,
        now: Time,
        packet: Packet,
        nic: &mut Port,
        sink: &mut impl Sink,
    ) -> Option<Time> {
        let (flow, size) = (u64::from(packet.flow), u64::from(packet.size));
        match self.pacer.on_packet(now, flow, size, PacedPacketAt { packet, since: now }) {
            Admission::Bypass(held) => {
                let slot = sink.hold(held.packet);
                nic.on_arrival(PortId(self.host.0), now, slot, sink);
                None
            }
            Admission::Queued => self.release(now, nic, sink),
        }
    }

    /// An acknowledgement with ECE arrived for connection `flow`.
    pub fn on_ece(&mut self, now: Time, flow: u32) {
        let stream = &mut self.stream;
        self.pacer.on_ece(now, u64::from(flow), || stream.next_u64());
    }

    /// The event of the pacer has come. Returns the time of the next one, if it is new.
    #[must_use]
    pub fn on_due(&mut self, now: Time, nic: &mut Port, sink: &mut impl Sink) -> Option<Time> {
        if self.armed != now {
            return None;
        }
        self.armed = Time::MAX;
        self.release(now, nic, sink)
    }

    /// Returns the number of packets held.
    pub fn held(&self) -> usize {
        self.pacer.backlog_packets()
    }

    /// Returns which connections are associated, and how often.
    pub fn flows(&self) -> &FlowAssociations {
        self.pacer.flows()
    }

    /// Sends the packets that may leave now. A pacer that finds no room is called again when there is some.
    #[must_use]
    pub fn release(&mut self, now: Time, nic: &mut Port, sink: &mut impl Sink) -> Option<Time> {
        loop {
            if self.room_bytes.is_some_and(|size| !nic.has_room(now, size)) {
                return None;
            }
            let Some(PacedPacketAt { mut packet, since }) = self.pacer.poll(now) else { break };
            packet.add_wait(WaitPlace::Pacer, now - since);
            let slot = sink.hold(packet);
            nic.on_arrival(PortId(self.host.0), now, slot, sink);
        }
        let due = self.pacer.next_due().filter(|due| *due < self.armed)?;
        self.armed = due;
        Some(due)
    }
}
