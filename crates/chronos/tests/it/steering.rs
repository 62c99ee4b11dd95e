//! Datagrams that the kernel steers: every key's datagram is received by the thread that owns its partition, by the
//! same hash in the kernel as in [`KeyHash`]. Needs clang at build time and root; skips with the reason elsewhere.
#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use plimsoll_chronos::{
    Balancing, Config, DatagramSteering, KeyHash, Listen, RunningServer, Runtime, StartError,
};

use crate::keys::{Keys, Turn, ask, binary, requests};

const THREADS: u32 = 3;
const PARTITIONS: u32 = 37;

fn start(by_vbucket: bool, balancing: Option<Balancing>) -> Option<RunningServer> {
    let hash = KeyHash::new(0x1234_5678_9abc_def1);
    let config = Config {
        threads: THREADS,
        partitions: Some(PARTITIONS),
        listen: vec![Listen::Udp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))],
        datagram_steering: Some(DatagramSteering { hash, by_vbucket }),
        balancing,
        ..Config::default()
    };
    let service = Keys { hash, partitions: PARTITIONS, by_vbucket };
    match Runtime::start_with(service, &config, Box::new(Turn::new(true))) {
        Err(StartError::Steering { reason }) if reason.starts_with("eBPF is not available") => {
            plimsoll_testing::skipped!("{reason}");
            None
        }
        result => Some(result.unwrap()),
    }
}

fn client(server: &RunningServer) -> UdpSocket {
    let [Listen::Udp(address)] = server.bound() else { panic!("one UDP address") };
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket
}

#[test]
fn datagrams_come_to_the_thread_that_owns_their_key() {
    let Some(server) = start(false, None) else { return };
    let socket = client(&server);
    let requests = requests();
    for request in &requests {
        ask(&socket, request);
    }
    let threads = server.stats().threads();
    assert!(threads.iter().all(|thread| thread.own > 0), "{threads:?}");
    assert_eq!(server.stats().total().own, requests.len() as u64);
    assert_eq!(server.stats().total().foreign, 0, "none came to another thread");
    server.stop().unwrap();
}

#[test]
fn binary_requests_go_by_their_vbucket_where_that_is_the_partition() {
    let Some(server) = start(true, None) else { return };
    let socket = client(&server);
    for vbucket in 0..100 {
        ask(&socket, &binary(b"key", 8, vbucket));
    }
    assert_eq!((server.stats().total().own, server.stats().total().foreign), (100, 0));
    server.stop().unwrap();
}

#[test]
fn the_kernel_follows_moves() {
    let balancing = Balancing { load_min: 1, ..Balancing::default() };
    let Some(server) = start(false, Some(balancing)) else { return };
    let socket = client(&server);
    while server.stats().total().adopted < u64::from(PARTITIONS) {
        ask(&socket, b"get key\r\n");
    }
    let before = server.stats().total();
    let requests = requests();
    for request in &requests {
        ask(&socket, request);
    }
    assert_eq!(server.stats().total().foreign, before.foreign);
    assert_eq!(server.stats().total().own, before.own + requests.len() as u64);
    server.stop().unwrap();
}
