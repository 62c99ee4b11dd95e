//! The edge with devices and a clock made up by the test.

use std::path::Path;

use plimsoll_scenario::Scenario;

use super::*;
use crate::edge::frame::{ipv4, mac};

/// Duration of a read and of a write.
const READ: Span = Span::from_us(2);
const WRITE: Span = Span::from_us(5);

/// Host 0 receives. Host 1 always has another frame to be read; host 2 sends a frame every 100 us.
#[derive(Debug)]
struct Fake {
    now: Time,
    floods: bool,
    /// The time at which the other's next frame can be read.
    next: Time,
    /// For each frame of the other: the times at which it could be read, and at which it was.
    read: Vec<(Time, Time)>,
    flood: u64,
    told: bool,
    got: Vec<usize>,
}

const EVERY: Span = Span::from_us(100);
const FLOOD_BYTES: usize = 60;
const OTHER_BYTES: usize = 600;

fn fake(floods: bool) -> Fake {
    let next = Time::ZERO + EVERY;
    Fake { now: Time::ZERO, floods, next, read: Vec::new(), flood: 0, told: false, got: Vec::new() }
}

fn udp(from: u32, to: u32, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; bytes];
    frame[..6].copy_from_slice(&mac(HostId(to)));
    frame[6..12].copy_from_slice(&mac(HostId(from)));
    frame[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0]);
    frame[23] = 17;
    frame[26..30].copy_from_slice(&ipv4(HostId(from)).octets());
    frame[30..34].copy_from_slice(&ipv4(HostId(to)).octets());
    frame
}

impl Devices for Fake {
    fn now(&mut self) -> Time {
        self.now
    }

    fn wait(&mut self, timeout: Span, ready: &mut Vec<HostId>) -> io::Result<()> {
        self.now += Span::from_us(1).max(timeout.min(self.next.saturating_since(self.now)));
        if self.floods && !std::mem::replace(&mut self.told, true) {
            ready.push(HostId(1));
        }
        if self.now >= self.next {
            ready.push(HostId(2));
        }
        Ok(())
    }

    fn receive(&mut self, from: HostId, room: &mut [u8]) -> io::Result<usize> {
        self.now += READ;
        let frame = match from {
            HostId(1) => {
                self.flood += 1;
                udp(1, 0, FLOOD_BYTES)
            }
            HostId(2) if self.now >= self.next => {
                self.read.push((self.next, self.now));
                self.next += EVERY;
                udp(2, 0, OTHER_BYTES)
            }
            _ => return Err(io::ErrorKind::WouldBlock.into()),
        };
        room[..frame.len()].copy_from_slice(&frame);
        Ok(frame.len())
    }

    fn send(&mut self, _: HostId, frame: &[u8]) -> io::Result<()> {
        self.now += WRITE;
        self.got.push(frame.len());
        Ok(())
    }
}

fn fabric(more: &str) -> LiveFabric {
    let text = format!(
        "version = 1\ntitle = 'edge'\n\
         [topology]\nkind = 'rack'\nhosts = 3\nrate = '10Gbps'\ndelay = '1us'\n{more}\
         [workload.all]\nkind = 'all-to-all'\nsize = '1KB'\nload = 0.1\ncount = 1\n"
    );
    let scenario = Scenario::parse("edge", &text, Path::new(".")).unwrap();
    LiveFabric::new(&scenario.points()[0].model).unwrap()
}

/// For how long the made-up clock runs.
const LENGTH: Span = Span::from_ms(100);

fn run(devices: Fake, more: &str) -> Edge<Fake> {
    let mut edge = Edge::new(fabric(more), devices, 1500, Span::from_us(100));
    edge.run(|now| now > Time::ZERO + LENGTH).unwrap();
    edge
}

/// A host that floods with small frames, more than the machine can carry, delays another's frames by its turn at most,
/// and delays no departure.
#[test]
fn a_flood_delays_others_by_a_turn() {
    let alone = run(fake(false), "");
    let beside = run(fake(true), "");
    let of_other =
        |edge: &Edge<Fake>| edge.exits.devices.got.iter().filter(|&&bytes| bytes == OTHER_BYTES).count();
    assert!(of_other(&alone) >= 998, "{}", of_other(&alone));
    assert!(of_other(&beside) >= 998, "{}", of_other(&beside));
    assert!(beside.exits.devices.flood > 10_000, "{}", beside.exits.devices.flood);
    // Eight frames of the other are read and eight leave, 7 us each; twice, as it may have come early in a turn.
    let longest = Span::from_us(150);
    for (there, read) in &beside.exits.devices.read {
        assert!(read.saturating_since(*there) <= longest, "{there}: {read}");
    }
    assert!(beside.exits.lateness.quantile(1.0) <= longest, "{}", beside.exits.lateness.quantile(1.0));
}

/// The switch delivers the frames of both hosts where it has room; a flood beyond that loses only its own frames.
#[test]
fn a_flood_beyond_its_pace_is_held_by_itself() {
    let backpressure = "[host]\nbackpressure = true\n[port.host]\nbuffer = '2 packets'\n";
    let edge = run(fake(true), backpressure);
    let got = &edge.exits.devices.got;
    assert!(got.iter().filter(|&&bytes| bytes == OTHER_BYTES).count() >= 998);
    assert!(got.len() > 10_000, "{}", got.len());
}

/// A frame longer than hosts may send is not carried on, cut to the bytes that were read.
#[test]
fn giants_are_not_for_the_fabric() {
    struct One(Option<usize>);
    impl Devices for One {
        fn now(&mut self) -> Time {
            Time::ZERO + Span::from_ms(u64::from(self.0.is_none()))
        }
        fn wait(&mut self, _: Span, ready: &mut Vec<HostId>) -> io::Result<()> {
            ready.push(HostId(1));
            Ok(())
        }
        fn receive(&mut self, _: HostId, room: &mut [u8]) -> io::Result<usize> {
            let bytes = self.0.take().ok_or(io::ErrorKind::WouldBlock)?.min(room.len());
            let frame = udp(1, 0, room.len());
            room[..bytes].copy_from_slice(&frame[..bytes]);
            Ok(bytes)
        }
        fn send(&mut self, _: HostId, _: &[u8]) -> io::Result<()> {
            Ok(())
        }
    }
    let longest = 1500 + ETHERNET + 2 * VLAN_TAG;
    for (bytes, foreign) in [(longest, 0), (longest + 1, 1), (9000, 1), (13, 1), (0, 1)] {
        let mut edge = Edge::new(fabric(""), One(Some(bytes)), 1500, Span::ZERO);
        edge.run(|now| now > Time::ZERO).unwrap();
        assert_eq!(edge.foreign, foreign, "{bytes} bytes");
    }
}
