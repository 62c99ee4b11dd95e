//! Ports that share a buffer, without a network: packets are offered faster than they leave.

use std::sync::Arc;

use plimsoll_mechanisms::PortMechanisms;
use plimsoll_mechanisms::red::RedParams;
use plimsoll_mechanisms::shared_buffer::{SharedBuffer, SharedBufferParams};
use plimsoll_units::{Bytes, Rate, Span, Time};
use rand::SeedableRng;

use super::*;
use crate::net::{HostId, Notes, WaitPlace};

const SIZE: u64 = 1_000;

/// One switch: a pool, and the actions of its ports.
pub(super) struct Switch {
    pool: SharedBuffer,
    pub(super) calls: Vec<(Time, PortId)>,
    pub(super) sent: usize,
    packets: Vec<Packet>,
    notes: Notes,
    dropped: Vec<u32>,
}

impl Sink for Switch {
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
    fn transmit(&mut self, _: PortId, _: Time, _: Slot) {
        self.sent += 1;
    }
    fn call_at(&mut self, port: PortId, at: Time) {
        self.calls.push((at, port));
    }
    fn marked(&mut self, _: PortId, _: Slot) {}
    fn dropped(&mut self, _: Time, port: PortId, _: Slot) {
        self.dropped[port.0 as usize] += 1;
    }
    fn room(&mut self, _: PortId) {}
    fn pool(&mut self, pool: u32) -> &mut SharedBuffer {
        assert_eq!(pool, 7);
        &mut self.pool
    }
}

pub(super) fn switch(alpha: f64, ports: usize) -> Switch {
    let params = SharedBufferParams { total: Bytes::new(1_000_000), alpha, reserved: Bytes::ZERO };
    Switch {
        pool: SharedBuffer::new(&params, ports),
        calls: Vec::new(),
        sent: 0,
        packets: Vec::new(),
        notes: Notes::default(),
        dropped: vec![0; ports],
    }
}

fn port(number: u32, limit: BufferLimit, marker: Option<Marker>) -> Port {
    Port::new(config(number, limit, marker))
}

/// Returns the configuration of a port of 1 Gb/s that shares its switch's memory with others.
pub(super) fn config(number: u32, limit: BufferLimit, marker: Option<Marker>) -> PortConfig {
    PortConfig {
        rules: Arc::new(PortRules {
            byte_time: Rate::from_gbps(1).byte_time(),
            rate: Rate::from_gbps(1),
            propagation: Span::ZERO,
            wait: WaitPlace::Tier0,
            limit,
            ecn: None,
        }),
        marker,
        shared: Some(SharedRoom { pool: 7, port: number as usize }),
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

fn plain(number: u32) -> Port {
    port(number, BufferLimit::UNLIMITED, None)
}

/// Offers a packet to each port in turn until none takes any more, all at one instant.
fn congest(ports: &mut [Port], switch: &mut Switch) {
    for _ in 0..1_200 {
        for (number, port) in ports.iter_mut().enumerate() {
            let slot = switch.hold(Packet::new(HostId(9), HostId(number as u32), 0, SIZE as u16));
            port.on_arrival(PortId(number as u32), Time::ZERO, slot, switch);
        }
    }
}

/// Lets everything leave.
fn drain(ports: &mut [Port], switch: &mut Switch) {
    while let Some((at, port)) = switch.calls.pop() {
        ports[port.0 as usize].on_due(port, at, switch);
    }
}

#[test]
fn congested_ports_share_by_the_dynamic_threshold() {
    for (alpha, congested) in [(1.0, 1), (1.0, 2), (1.0, 8), (0.5, 1), (0.5, 3), (4.0, 1), (4.0, 3)] {
        let mut switch = switch(alpha, 8);
        let mut ports: Vec<Port> = (0..congested).map(plain).collect();
        congest(&mut ports, &mut switch);
        let share = alpha / (1.0 + f64::from(congested) * alpha) * 1_000_000.0;
        for number in 0..congested as usize {
            let held = switch.pool.port_bytes(number) as f64;
            assert!((held - share).abs() <= SIZE as f64, "alpha {alpha}, {congested} ports: {held}, {share}");
            assert!(switch.dropped[number] > 0);
        }
    }
}

#[test]
fn everything_is_given_back() {
    for counts_in_service in [false, true] {
        let limit = BufferLimit { counts_in_service, ..BufferLimit::UNLIMITED };
        let mut switch = switch(1.0, 2);
        let mut ports = [port(0, limit, None), port(1, limit, None)];
        congest(&mut ports, &mut switch);
        let held = switch.pool.total_bytes();
        // Both ports have one packet in service, which the pool holds if the limit counts it.
        let waiting = ports.iter().map(Port::held).sum::<usize>() as u64 * SIZE;
        assert_eq!(held, waiting + if counts_in_service { 2 * SIZE } else { 0 });
        drain(&mut ports, &mut switch);
        assert_eq!(switch.pool.total_bytes(), 0);
        let dropped: u32 = switch.dropped.iter().sum();
        assert_eq!(switch.sent + dropped as usize, 2_400);
    }
}

#[test]
fn a_packet_dropped_for_another_reason_takes_nothing() {
    let params =
        RedParams { min: Bytes::new(5_000), max: Bytes::new(5_000), ecn: false, ..RedParams::default() };
    let mechanisms = PortMechanisms { red: Some(params), ..PortMechanisms::default() };
    let marker = Marker::of(&mechanisms, Rate::from_gbps(1), false, |_| rand_pcg::Pcg64::seed_from_u64(1));
    let mut switch = switch(1.0, 1);
    let mut ports = [port(0, BufferLimit::UNLIMITED, marker)];
    congest(&mut ports, &mut switch);
    assert!(switch.dropped[0] > 0);
    assert_eq!(switch.pool.total_bytes(), ports[0].held() as u64 * SIZE);
    drain(&mut ports, &mut switch);
    assert_eq!(switch.pool.total_bytes(), 0);
}
