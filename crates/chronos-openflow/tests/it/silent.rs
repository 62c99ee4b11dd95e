//! Thousands of packets that are not answered, to controllers of every mode: the answers that are due arrive, and
//! switches that leave in the middle leave no descriptor. The only test of its process, whose descriptors it counts.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::support::{Wire, features, frame, hello, message, packet_in};
use plimsoll_chronos::{Config, IoBackend, Listen, Poll, Runtime};
use plimsoll_chronos_openflow::{NO_BUFFER, OpenFlow, OpenFlowSettings};

/// The longest wait for an event that must occur.
const PATIENCE: Duration = Duration::from_secs(60);
const LENGTHS: [usize; 6] = [1, 64, 65, 200, 1000, 5000];

fn modes() -> Vec<Config> {
    let mut modes = Vec::new();
    for io in [IoBackend::Epoll, IoBackend::Fastest] {
        for threads in [1, 2, 4] {
            for poll in [Poll::Block, Poll::Spin] {
                let listen = vec![Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)))];
                modes.push(Config { io, threads, poll, listen, ..Config::default() });
            }
        }
    }
    modes
}

/// Returns a switch's whole conversation: `length` packets for the bridge itself, which are dropped, with a broadcast
/// and an echo request among them now and then, and an echo request at the end.
fn conversation(version: u8, datapath: u64, length: usize) -> Vec<u8> {
    let mut to_bridge = frame(1, 2);
    to_bridge[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, 0xe]);
    let mut input = [hello(version), features(version, datapath)].concat();
    for number in 0..length {
        match number % 500 {
            250 => input.extend(packet_in(version, 7, NO_BUFFER, 1, &frame(3, 0xff))),
            350 => input.extend(message(version, 2, 8, b"amid")),
            _ => input.extend(packet_in(version, 6, NO_BUFFER, 1, &to_bridge)),
        }
    }
    input.extend(message(version, 2, 9, b"last"));
    input
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn packets_without_an_answer_hold_up_nothing() {
    for config in modes() {
        let controller = OpenFlow::new(OpenFlowSettings::default(), config.partitions(), 7);
        let server = Runtime::start(controller, &config).unwrap();
        let [Listen::Tcp(address)] = server.bound() else { panic!("{:?}", server.bound()) };
        let before = descriptors();
        for (datapath, length) in (1..).zip(LENGTHS.repeat(2)) {
            let input = conversation([1, 4][datapath as usize % 2], datapath, length);
            let expected = Wire::new(OpenFlowSettings::default()).send(&input);
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(&input).unwrap();
            let mut answer = vec![0; expected.len()];
            stream.read_exact(&mut answer).unwrap_or_else(|error| panic!("{length}, {config:?}: {error}"));
            assert!(answer == expected, "{length}, {config:?}");
        }
        for switch in 0..60 {
            let input = conversation(4, switch as u64, LENGTHS[switch % LENGTHS.len()]);
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(&input[..input.len() - switch % 12]).unwrap();
        }
        let begin = Instant::now();
        while descriptors() != before || server.stats().total().connections > 0 {
            assert!(begin.elapsed() < PATIENCE, "{} of {before}, {config:?}", descriptors());
            std::thread::yield_now();
        }
        server.stop().unwrap();
    }
}
