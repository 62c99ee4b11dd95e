//! Datagrams that the kernel steers: every key's datagram comes to the thread that owns its partition, by the same hash
//! in the kernel as in [`KeyHash`]. Needs clang at build time and root; skips with the reason elsewhere.
#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use plimsoll_chronos::{
    Balancing, Config, DatagramSteering, KeyHash, Listen, Now, PartitionId, Running, Runtime, Service,
    StartError, Step, Transport,
};
use plimsoll_mechanisms::partition_balancer::Balance;

/// Answers each request, ASCII or binary, with its key's partition.
struct Keys {
    hash: KeyHash,
    partitions: u32,
    by_vbucket: bool,
}

impl Service for Keys {
    type Partition = ();
    type Session = ();
    type Request<'a> = u32;

    fn partition(&self, _id: PartitionId) {}

    fn open(&self, _transport: Transport) {}

    fn parse(&self, _: &mut (), _: Now, input: &[u8], _: &mut Vec<u8>) -> Step<u32> {
        if input.is_empty() {
            return Step::Incomplete { total: 1 };
        }
        let key = if input[0] == 0x80 {
            let length = usize::from(u16::from_be_bytes([input[2], input[3]]));
            &input[24 + usize::from(input[4])..][..length]
        } else {
            let start = input.iter().position(|&byte| byte == b' ').unwrap() + 1;
            let length = input[start..].iter().position(|&byte| byte <= b' ').unwrap();
            &input[start..start + length]
        };
        let partition = if self.by_vbucket && input[0] == 0x80 {
            PartitionId(u32::from(u16::from_be_bytes([input[6], input[7]])) % self.partitions)
        } else {
            KeyHash::partition(self.hash.hash(key), self.partitions)
        };
        Step::Run { consumed: input.len(), partition, request: partition.0 }
    }

    fn execute(&self, (): &mut (), request: &u32, _: Now, reply: &mut Vec<u8>) {
        reply.extend_from_slice(&request.to_le_bytes());
    }

    fn encode(&self, request: &u32, message: &mut Vec<u8>) {
        message.extend_from_slice(&request.to_le_bytes());
    }

    fn decode(&self, message: &[u8]) -> u32 {
        u32::from_le_bytes(message.try_into().unwrap())
    }

    fn merge(&self, _: &mut (), _: &u32, _: &[Vec<u8>], _: Now, _: &mut Vec<u8>) {}

    fn unseal<'a>(&self, datagram: &'a [u8]) -> Option<(u64, &'a [u8])> {
        Some((0, datagram.get(8..)?))
    }

    fn seal(&self, _envelope: u64, reply: &[u8], send: &mut dyn FnMut(&[u8])) {
        send(reply);
    }
}

/// Turns every owner to the next thread, once.
struct TurnOnce(bool);

impl Balance for TurnOnce {
    fn balance(&mut self, _load: &[u64], _requests: u64, threads: u32, owner: &mut [u32]) {
        if !std::mem::replace(&mut self.0, true) {
            owner.iter_mut().for_each(|owner| *owner = (*owner + 1) % threads);
        }
    }
}

const THREADS: u32 = 3;
const PARTITIONS: u32 = 37;

fn start(by_vbucket: bool, balancing: Option<Balancing>) -> Option<Running> {
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
    match Runtime::start_with(service, &config, Box::new(TurnOnce(false))) {
        Err(StartError::Steering { reason }) if reason.starts_with("eBPF is not available") => {
            plimsoll_testing::skipped!("{reason}");
            None
        }
        result => Some(result.unwrap()),
    }
}

fn client(server: &Running) -> UdpSocket {
    let [Listen::Udp(address)] = server.bound() else { panic!("one UDP address") };
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket
}

fn ask(socket: &UdpSocket, request: &[u8]) {
    socket.send(&[&[0, 1, 0, 0, 0, 1, 0, 0], request].concat()).unwrap();
    assert_eq!(socket.recv(&mut [0; 64]).unwrap(), 4);
}

fn binary(key: &[u8], extras: u8, vbucket: u16) -> Vec<u8> {
    let mut request = vec![0; 24];
    request[0] = 0x80;
    request[2..4].copy_from_slice(&(key.len() as u16).to_be_bytes());
    request[4] = extras;
    request[6..8].copy_from_slice(&vbucket.to_be_bytes());
    [request, vec![7; usize::from(extras)], key.to_vec()].concat()
}

/// Requests with keys of every length, in every protocol.
fn requests() -> Vec<Vec<u8>> {
    let mut requests = Vec::new();
    for length in 1..=250_usize {
        let key: Vec<u8> = (0..length).map(|index| b'!' + ((index * 31 + length) % 90) as u8).collect();
        for (before, after) in [("get ", "\r\n"), ("mg ", " v t\r\n"), ("replace ", " 0 0 1\r\nx\r\n")] {
            requests.push([before.as_bytes(), &key, after.as_bytes()].concat());
        }
        requests.push(binary(&key, [0, 8, 20][length % 3], 0));
    }
    requests
}

#[test]
fn datagrams_come_to_the_thread_that_owns_their_key() {
    let Some(server) = start(false, None) else { return };
    let socket = client(&server);
    let requests = requests();
    requests.iter().for_each(|request| ask(&socket, request));
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
    (0..100).for_each(|vbucket| ask(&socket, &binary(b"key", 8, vbucket)));
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
    requests.iter().for_each(|request| ask(&socket, request));
    assert_eq!(server.stats().total().foreign, before.foreign);
    assert_eq!(server.stats().total().own, before.own + requests.len() as u64);
    server.stop().unwrap();
}
