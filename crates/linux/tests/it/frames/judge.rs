//! Properties of the edge of a fabric for any frames of hosts: none panics, none is lost without being counted, and a
//! replay of the arrivals gives the same digest.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use plimsoll_fabric::net::HostId;
use plimsoll_linux::edge::{Devices, Edge};
use plimsoll_linux::live::{LiveFabric, replay};
use plimsoll_scenario::Scenario;
use plimsoll_scenario::model::Model;
use plimsoll_units::{Span, Time};

/// Hosts of every fabric.
pub const HOSTS: u32 = 4;

/// Bytes of the longest packet.
const MTU: u32 = 1500;

/// A network's topology and the rest of its scenario.
pub type Fabric = (&'static str, &'static str);

/// One of every kind of queue, pacer, choice of path and fault.
pub const FABRICS: [Fabric; 9] = [
    (RACK, ""),
    (RACK, "[port.switch]\nbuffer = '8 packets'\n[port.switch.phantom_queue]\n"),
    (RACK, "[host]\nloss = 0.05\ntdma = { day = '200us', night = '100us' }\n"),
    (RACK, "[port.switch]\norder = 'priorities'\nbuffer = '20KB'\n"),
    (RACK, "[port.switch]\nbuffer = '200KB'\npfc = {}\n[host]\nbackpressure = true\n"),
    (RACK, "[host.pacer]\nform = 'paper'\nassociation_probability = 1.0\ninitial_rate = '100Mbps'\n"),
    (LEAF_SPINE, "[host.pacer]\nform = 'source'\n[paths.spray]\n"),
    (
        LEAF_SPINE,
        "[paths]\nconvergence_delay = '40us'\n\
         [[fault]]\nfrom = 'leaf0'\nto = 'spine0'\ndown = true\nat = '30us'\nuntil = '90us'\n\
         [[fault]]\nfrom = 'leaf1'\nto = 'spine1'\nrate = '100Mbps'\nat = '50us'\n",
    ),
    (
        LEAF_SPINE,
        "[port.switch]\nbuffer = '60KB'\npfc = {}\n[host]\nbackpressure = true\n\
         [[fault]]\nfrom = 'leaf1'\nto = 'spine0'\ndown = true\nat = '20us'\nuntil = '100us'\n",
    ),
];

const RACK: &str = "kind = 'rack'\nhosts = 4";
const LEAF_SPINE: &str = "kind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 2";

/// The model of a fabric, whose links have 1 Gb/s.
pub fn model((topology, more): Fabric) -> Model {
    let text = format!(
        "version = 1\ntitle = 'frames'\n\
         [topology]\n{topology}\nrate = '1Gbps'\ndelay = '1us'\n{more}\
         [workload.all]\nkind = 'all-to-all'\nsize = '1KB'\nload = 0.1\ncount = 1\n"
    );
    Scenario::parse("frames", &text, Path::new(".")).unwrap().points()[0].model.clone()
}

/// Hosts that send given frames, 1 us apart, and record the frames that they receive.
struct Script {
    now: Time,
    frames: VecDeque<(HostId, Vec<u8>)>,
    got: usize,
}

impl Devices for &mut Script {
    fn now(&mut self) -> Time {
        self.now
    }

    fn wait(&mut self, timeout: Span, ready: &mut Vec<HostId>) -> io::Result<()> {
        let next = Span::from_us(1);
        self.now += if self.frames.is_empty() { timeout.max(next) } else { next };
        ready.extend(self.frames.front().map(|(from, _)| *from));
        Ok(())
    }

    fn receive(&mut self, from: HostId, room: &mut [u8]) -> io::Result<usize> {
        if self.frames.front().is_none_or(|(next, _)| *next != from) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let (_, frame) = self.frames.pop_front().unwrap();
        let bytes = frame.len().min(room.len());
        room[..bytes].copy_from_slice(&frame[..bytes]);
        Ok(bytes)
    }

    fn send(&mut self, _: HostId, frame: &[u8]) -> io::Result<()> {
        assert!(frame.len() <= MTU as usize + 22, "{} bytes", frame.len());
        self.got += 1;
        Ok(())
    }
}

/// Checks the properties that must hold for any frames of hosts.
pub fn judge(model: &Model, frames: Vec<(HostId, Vec<u8>)>) {
    let sent = frames.len();
    let mut script = Script { now: Time::ZERO, frames: frames.into(), got: 0 };
    let mut edge = Edge::new(LiveFabric::new(model).unwrap(), &mut script, MTU, Span::from_us(10));
    edge.keep_log();
    // 1500 B take 12 us a link, and ten times as long where a pacer or a fault has slowed it.
    let end = edge.run(|now| now > Time::ZERO + Span::from_us(500) * (sent as u64 + 10)).unwrap();
    let (fabric, seen) = edge.finish();
    let counters = fabric.counters();
    let log = seen.log.unwrap();
    assert!(script.frames.is_empty());
    assert_eq!(log.len() as u64, counters.packets_sent);
    assert_eq!(counters.packets_sent, counters.packets_accounted_for());
    assert_eq!(counters.packets_in_flight, 0);
    let answered = script.got as u64 - counters.packets_delivered;
    assert_eq!(sent as u64, counters.packets_sent + seen.foreign + answered);
    assert_eq!(replay(LiveFabric::new(model).unwrap(), &log, end), fabric.digest());
}
