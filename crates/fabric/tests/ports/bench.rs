//! A port on a bench: packets go in at given times, and the port's calls to its sink are recorded.

use std::sync::Arc;

use plimsoll_fabric::net::port::{BufferLimit, Discipline, PortConfig, PortRules};
use plimsoll_fabric::net::{HostId, Notes, Packet, Port, PortId, Sink, Slot, WaitPlace};
use plimsoll_mechanisms::shared_buffer::SharedBuffer;
use plimsoll_units::{Rate, Span, Time};

/// Records the packets that a port sends, marks and drops.
#[derive(Default)]
pub struct Recorder {
    /// Each packet, with the time at which its last bit reaches the far end.
    pub sent: Vec<(Time, Packet)>,
    /// Sequence numbers of packets marked and of packets dropped.
    pub marked: Vec<u32>,
    pub dropped: Vec<(Time, u32)>,
    pub room: usize,
    /// Sequence numbers of packets that were sent back.
    pub bounced: Vec<u32>,
    /// Sequence numbers of packets that were counted when they entered the queue, and when they left it.
    pub accounted: Vec<(bool, u32)>,
    /// The buffer that the port shares.
    pub pool: Option<SharedBuffer>,
    packets: Vec<Packet>,
    notes: Notes,
    due: Vec<Time>,
}

impl Sink for Recorder {
    fn hold(&mut self, packet: Packet) -> Slot {
        self.packets.push(packet);
        self.notes.add();
        Slot::new(self.packets.len() as u32 - 1)
    }
    fn packet(&self, slot: Slot) -> &Packet {
        &self.packets[slot.number() as usize]
    }
    fn packet_mut(&mut self, slot: Slot) -> &mut Packet {
        &mut self.packets[slot.number() as usize]
    }
    fn notes(&self) -> &Notes {
        &self.notes
    }
    fn notes_mut(&mut self) -> &mut Notes {
        &mut self.notes
    }
    fn transmit(&mut self, _: PortId, arrives: Time, slot: Slot) {
        assert!(self.sent.last().is_none_or(|(last, _)| *last <= arrives), "a link keeps its order");
        self.sent.push((arrives, *self.packet(slot)));
    }
    fn call_at(&mut self, _: PortId, at: Time) {
        self.due.push(at);
    }
    fn marked(&mut self, _: PortId, slot: Slot) {
        self.marked.push(self.packet(slot).seq);
    }
    fn bounced(&mut self, _: PortId, slot: Slot) {
        self.bounced.push(self.packet(slot).seq);
    }
    fn dropped(&mut self, now: Time, _: PortId, slot: Slot) {
        self.dropped.push((now, self.packet(slot).seq));
    }
    fn room(&mut self, _: PortId) {
        self.room += 1;
    }
    fn entered(&mut self, _: Time, _: PortId, slot: Slot) {
        self.accounted.push((true, self.packet(slot).seq));
    }
    fn left(&mut self, _: PortId, slot: Slot) {
        self.accounted.push((false, self.packet(slot).seq));
    }
    fn pool(&mut self, _: u32) -> &mut SharedBuffer {
        self.pool.as_mut().unwrap()
    }
}

/// The order of a call and an arrival at the same instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ties {
    CallFirst,
    ArrivalFirst,
}

impl Recorder {
    /// Calls `port` at the times that it requested, up to `now`; at `now` itself only if `including`.
    pub fn call(&mut self, port: &mut Port, now: Time, including: bool) {
        while let Some(next) =
            self.due.iter().copied().min().filter(|at| *at < now || including && *at == now)
        {
            let index = self.due.iter().position(|at| *at == next).unwrap();
            self.due.swap_remove(index);
            port.on_due(PortId(0), next, self);
        }
    }

    /// A packet arrives at the port.
    pub fn offer(&mut self, port: &mut Port, now: Time, packet: Packet) {
        let slot = self.hold(packet);
        port.on_arrival(PortId(0), now, slot, self);
    }

    /// Offers `packets` at their times; `before` sees each packet and the port first.
    pub fn drive(
        &mut self,
        port: &mut Port,
        packets: &[(Time, Packet)],
        ties: Ties,
        mut before: impl FnMut(&mut Port, &Packet),
    ) {
        for &(at, packet) in packets {
            self.call(port, at, ties == Ties::CallFirst);
            before(port, &packet);
            self.offer(port, at, packet);
        }
        self.call(port, Time::MAX, true);
    }
}

/// A link of 10 Gb/s and 1 us behind a queue without limit.
pub fn rules() -> PortRules {
    PortRules {
        byte_time: RATE.byte_time(),
        rate: RATE,
        propagation: Span::from_us(1),
        wait: WaitPlace::Tier0,
        limit: BufferLimit::UNLIMITED,
        ecn: None,
    }
}

/// A first-come-first-served port of 10 Gb/s that never drops or marks.
pub fn plain() -> PortConfig {
    PortConfig {
        rules: Arc::new(rules()),
        marker: None,
        shared: None,
        trimmer: None,
        stamper: None,
        phantom_queue: None,
        meter: None,
        discipline: Discipline::fifo(),
        pacer: None,
        announces_room: false,
        accounts: false,
        counts_drain_bytes: false,
        changes: false,
        general: false,
        settles: false,
    }
}

pub const RATE: Rate = Rate::from_gbps(10);

/// Packet number `seq` of connection `flow`; all of its bytes except 40 are payload.
pub fn packet(flow: u32, seq: u32, size: u16) -> Packet {
    let mut packet = Packet::new(HostId(0), HostId(1), flow, size);
    packet.seq = seq;
    packet.len = size.saturating_sub(40);
    packet.ecn = plimsoll_fabric::net::EcnField::Ect;
    packet
}
