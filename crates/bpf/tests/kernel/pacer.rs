//! Compares the pacer with Rust in thousands of sequences of acknowledgements and packets: each association, each
//! departure and the whole state.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;

use plimsoll_bpf::{Error, Inputs, PacerFeedback, PacerProgram, Packet, flow_number};
use plimsoll_mechanisms::pacer::{EarliestDeparture, PacerParams};
use plimsoll_units::{Bytes, Rate, Span};

use crate::{Draw, frames, loaded};

const SETTINGS: u64 = 60;
const SEQUENCES: u64 = 50;
const PACKETS: u64 = 60;

const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
const SYN: u8 = 0x02;

#[test]
fn every_association_and_departure_is_that_of_rust() {
    let connections: Vec<Connection> = (0..4).map(Connection::new).collect();
    let mut seen = Seen::default();
    for seed in 0..SETTINGS {
        let mut draw = Draw::new(seed);
        let params = params(&mut draw);
        let Some((pacer, feedback)) = both(&params) else { return };
        // Flows outlive a sequence in both implementations.
        let mut now_ns = draw.magnitude(50);
        for sequence in 0..SEQUENCES {
            pacer.reset().unwrap();
            let mut twin = EarliestDeparture::new(&params).unwrap();
            // By now the associations of the last sequence have ended.
            now_ns += 1 << 36;
            for index in 0..PACKETS {
                let connection = &connections[draw.below(4) as usize];
                now_ns = next(&mut draw, now_ns, &params);
                let at =
                    format!("seed {seed}, sequence {sequence}, packet {index} at {now_ns} ns: {params:?}");
                if draw.below(3) == 0 {
                    let value = draw.magnitude(32) as u32;
                    let packet =
                        Packet { now_ns, waiting: (value, 0), ..Packet::new(&connection.acknowledgement) };
                    let before = feedback.counts().unwrap().associations;
                    feedback.program().test_run(&packet).unwrap();
                    let hit = twin.on_ece(now_ns, connection.number, value);
                    assert_eq!(feedback.counts().unwrap().associations - before, u64::from(hit), "{at}");
                    if hit { seen.hits += 1 } else { seen.misses += 1 }
                } else {
                    let frame = &connection.data;
                    let wire_len = (frame.len() as u32 + draw.magnitude(16) as u32).min(65_536);
                    let run =
                        pacer.program().test_run(&Packet { wire_len, now_ns, ..Packet::new(frame) }).unwrap();
                    let leaves = twin.on_packet(now_ns, connection.number, u64::from(wire_len));
                    assert_eq!(run.leaves_ns, leaves.unwrap_or(0), "{at}");
                    assert_eq!(run.frame, *frame, "{at}");
                    seen.count(now_ns, leaves);
                }
                assert_same(&pacer, &twin, connection.number, &at);
            }
        }
    }
    assert!(seen.are_many(), "vectors that show little: {seen:?}");
}

#[track_caller]
fn assert_same(pacer: &PacerProgram, twin: &EarliestDeparture, number: u64, at: &str) {
    let (found, expected) = (pacer.state().unwrap(), twin.state());
    assert_eq!(
        (found.rate, found.tick_ns, found.received, found.tokens),
        (expected.rate, expected.tick_ns, expected.received, expected.tokens),
        "{at}"
    );
    assert_eq!(
        (found.free_ns, found.backlog, found.backlog_ns),
        (expected.free_ns, expected.backlog, expected.backlog_ns),
        "{at}"
    );
    // A flow of an earlier sequence counts as not associated in this one.
    if let Some(flow) = twin.flow(number) {
        let found = pacer.flow(number).unwrap().unwrap();
        assert_eq!(found.until_ns, flow.until_ns, "{at}");
        assert!(found.leaves_ns == flow.leaves_ns || flow.leaves_ns == 0, "{at}: {found:?}");
    }
}

#[derive(Default, Debug)]
struct Seen {
    hits: u64,
    misses: u64,
    bypassed: u64,
    at_once: u64,
    held: u64,
}

impl Seen {
    fn count(&mut self, now_ns: u64, leaves: Option<u64>) {
        match leaves {
            None => self.bypassed += 1,
            Some(leaves) if leaves == now_ns => self.at_once += 1,
            Some(_) => self.held += 1,
        }
    }

    fn are_many(&self) -> bool {
        let Seen { hits, misses, bypassed, at_once, held } = self;
        [hits, misses, bypassed, at_once, held].iter().all(|count| **count > 5_000)
    }
}

#[test]
fn only_acknowledgements_with_ece_associate_and_only_their_connection() {
    let params = PacerParams { association_probability: 1.0, ..with_floor() };
    let Some((pacer, feedback)) = both(&params) else { return };
    let connections: Vec<Connection> = (0..4).map(Connection::new).collect();
    for connection in &connections {
        for flags in [0, ACK, SYN | ACK | ECE, ECE] {
            feedback.program().test_run(&Packet::new(&connection.arriving(flags))).unwrap();
        }
        // A packet that leaves does not count as feedback.
        feedback.program().test_run(&Packet::new(&connection.data)).unwrap();
    }
    feedback.program().test_run(&Packet::new(&frames::ipv4(0, 0, 40))).unwrap();
    assert_eq!(feedback.counts().unwrap().draws, 0);
    for (index, connection) in connections.iter().enumerate() {
        feedback.program().test_run(&Packet::new(&connection.acknowledgement)).unwrap();
        assert_eq!(feedback.counts().unwrap().draws, 1 + index as u64);
        for (other, connection) in connections.iter().enumerate() {
            let known = pacer.flow(connection.number).unwrap().is_some();
            assert_eq!(known, other <= index, "connection {other} after {index}");
        }
    }
}

/// A lower rate of TCP's own pacing is kept.
#[test]
fn a_packet_never_leaves_before_its_own_time() {
    let params = PacerParams { association_probability: 1.0, ..with_floor() };
    let Some((pacer, feedback)) = both(&params) else { return };
    let connection = Connection::new(0);
    feedback.program().test_run(&Packet::new(&connection.acknowledgement)).unwrap();
    for (own, wire_len, leaves) in [(0, 3_000, 0), (50, 1_250, 100_000), (900_000, 200, 900_000)] {
        let packet = Packet { wire_len, leaves_ns: own, ..Packet::new(&connection.data) };
        let run = pacer.program().test_run(&packet).unwrap();
        // A packet of 1,250 B takes 100 us at 100 Mb/s.
        assert!(run.leaves_ns >= own && run.leaves_ns <= leaves, "{run:?}");
    }
    let counts = pacer.counts().unwrap();
    assert_eq!((counts.paced, counts.bypassed), (3, 0));
    assert!(counts.held_ns > 0);
}

/// With a class, a paced packet is put there and keeps its time; a packet that is not paced keeps its priority.
#[test]
fn with_a_class_packets_are_put_there() {
    let params = PacerParams { association_probability: 1.0, ..with_floor() };
    let Some(pacer) = loaded(PacerProgram::load_for(&params, &[], Some((0x4855, 2)), Inputs::Packet)) else {
        return;
    };
    let feedback = PacerFeedback::load(&params, pacer.flows().unwrap().as_fd(), Inputs::Packet).unwrap();
    let connection = Connection::new(0);
    let packet = Packet { priority: 5, ..Packet::new(&connection.data) };
    let before = pacer.program().test_run(&packet).unwrap();
    feedback.program().test_run(&Packet::new(&connection.acknowledgement)).unwrap();
    let after = pacer.program().test_run(&packet).unwrap();
    assert_eq!((before.priority, before.leaves_ns), (5, 0));
    assert_eq!((after.priority, after.leaves_ns), (0x4855_0002, 0));
}

#[test]
fn a_rate_that_can_reach_zero_is_an_error() {
    let error = PacerProgram::load(&PacerParams::default(), &[], Inputs::Packet).unwrap_err();
    assert!(matches!(&error, Error::Param(invalid) if invalid.key == "min_rate"), "{error}");
}

fn both(params: &PacerParams) -> Option<(PacerProgram, PacerFeedback)> {
    let pacer = loaded(PacerProgram::load(params, &[], Inputs::Packet))?;
    let flows = pacer.flows().unwrap();
    let feedback = PacerFeedback::load(params, flows.as_fd(), Inputs::Packet).unwrap();
    Some((pacer, feedback))
}

fn with_floor() -> PacerParams {
    PacerParams { min_rate: Some(Rate::from_mbps(10)), ..Default::default() }
}

fn params(draw: &mut Draw) -> PacerParams {
    let rate = |draw: &mut Draw| Rate::from_bps(1_000 + draw.magnitude(39));
    PacerParams {
        bucket: Bytes::new(1 + draw.magnitude(29)).min(Bytes::new(1_000_000_000)),
        eta: (1 + draw.below(1_000)) as f64 / 1_000.0,
        beta: draw.one_of(&[0.0, 0.3, 16.0, 3_000.0, 1e9]),
        association_probability: draw.one_of(&[0.125, 0.125, 0.0, 1.0, 0.7]),
        association_timeout: Span::from_us(1 + draw.magnitude(16)),
        interval: Span::from_us(1 + draw.one_of(&[7, 31, 63, 100_000, 999_999])),
        initial_rate: rate(draw),
        min_rate: Some(rate(draw)),
        ..Default::default()
    }
}

/// Draws the next time: at once, within some intervals, after a long time, or back.
fn next(draw: &mut Draw, now_ns: u64, params: &PacerParams) -> u64 {
    let interval_ns = params.interval.as_ps() / 1_000;
    match draw.below(8) {
        0..=2 => now_ns,
        3 => now_ns + draw.below(interval_ns),
        4 => now_ns + interval_ns * draw.below(20),
        5 => now_ns + draw.magnitude(24),
        6 => now_ns + if draw.below(8) == 0 { draw.magnitude(45) } else { draw.magnitude(12) },
        _ => now_ns.saturating_sub(draw.magnitude(16)),
    }
}

/// A TCP connection of this host, of IPv4 or IPv6.
struct Connection {
    local: SocketAddr,
    remote: SocketAddr,
    number: u64,
    data: Vec<u8>,
    acknowledgement: Vec<u8>,
}

impl Connection {
    fn new(index: u16) -> Connection {
        let addresses: [IpAddr; 2] = match index % 2 {
            0 => ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap()),
            _ => ["fd00::1", "fd00::2:0:0:2"].map(|address| address.parse().unwrap()),
        };
        let (local, remote) = ((addresses[0], 40_000 + index).into(), (addresses[1], 443).into());
        let data = frames::tcp(local, remote, ACK, 100);
        let acknowledgement = frames::tcp(remote, local, ACK | ECE, 0);
        Connection { local, remote, number: flow_number(local, remote), data, acknowledgement }
    }

    fn arriving(&self, flags: u8) -> Vec<u8> {
        frames::tcp(self.remote, self.local, flags, 0)
    }
}
