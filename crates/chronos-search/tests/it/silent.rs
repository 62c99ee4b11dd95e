//! Long pipelines of commands that are not answered, to servers of every mode: each is answered as one without threads
//! answers it, and clients that leave in the middle leave no descriptor. Other tests of this process have descriptors,
//! too: descriptors that they close meanwhile do not matter.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::support::{SECRET, Wire};
use plimsoll_chronos::{Config, IoBackend, Listen, Poll, Runtime};
use plimsoll_chronos_search::{SearchService, SearchSettings, Sets};

/// The longest wait for an event that must occur.
const PATIENCE: Duration = Duration::from_secs(60);
const PARTITIONS: u32 = 16;
const LENGTHS: [u32; 6] = [1, 64, 65, 200, 1000, 5000];
const SETTINGS: SearchSettings = SearchSettings {
    sets: Sets::Postings,
    document_bytes_max: 1000,
    memory_max: None,
    snapshots: false,
    head_seconds: 60,
};

fn modes() -> Vec<Config> {
    let mut modes = Vec::new();
    for io in [IoBackend::Epoll, IoBackend::Fastest] {
        for threads in [1, 2, 4] {
            for poll in [Poll::Block, Poll::Spin] {
                let listen = vec![Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)))];
                let partitions = Some(PARTITIONS);
                modes.push(Config { io, threads, poll, partitions, listen, ..Config::default() });
            }
        }
    }
    modes
}

/// Returns commands about words of this client's own, few of which are answered.
fn pipeline(client: u32, length: u32) -> String {
    let command = |number: u32| match number.wrapping_mul(2_654_435_769) >> 25 {
        0..90 => format!("set c{client}w{} 0 0 3 noreply\r\nabc\r\n", number % 50),
        90..115 => format!("delete c{client}w{} noreply\r\n", number % 50),
        115..118 => format!("get{}\r\n", (0..100).map(|word| format!(" none{word}")).collect::<String>()),
        118..120 => format!("get c{client}w{}\r\n", number % 50),
        _ => format!("delete none{number} noreply\r\n"),
    };
    (0..length).map(command).collect::<String>() + "version\r\n"
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn long_silent_pipelines_end_in_an_answer() {
    for config in modes() {
        let server = Runtime::start(SearchService::new(SETTINGS, PARTITIONS, SECRET), &config).unwrap();
        let [Listen::Tcp(address)] = server.bound() else { panic!("{:?}", server.bound()) };
        let before = descriptors();
        for (client, length) in (0..).zip(LENGTHS.repeat(2)) {
            let requests = pipeline(client, length);
            let expected = Wire::new(SETTINGS, PARTITIONS).send(requests.as_bytes());
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(requests.as_bytes()).unwrap();
            let mut answer = vec![0; expected.len()];
            stream.read_exact(&mut answer).unwrap_or_else(|error| panic!("{length}, {config:?}: {error}"));
            assert_eq!(String::from_utf8(answer).unwrap(), expected, "{length}, {config:?}");
        }
        for client in 0..60 {
            let requests = pipeline(client, LENGTHS[client as usize % LENGTHS.len()]);
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(&requests.as_bytes()[..requests.len() - client as usize % 12]).unwrap();
        }
        let begin = Instant::now();
        while descriptors() > before || server.stats().total().connections > 0 {
            assert!(begin.elapsed() < PATIENCE, "{} of {before}, {config:?}", descriptors());
            std::thread::yield_now();
        }
        server.stop().unwrap();
    }
}
