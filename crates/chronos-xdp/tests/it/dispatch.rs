//! Chronos's dispatch: the XDP program reads the key of a datagram and hands it to the socket of the thread that owns
//! its partition. Vectors compare the program with [`KeyHash`]; servers over a veth pair show that no request crosses
//! threads, and that none is lost while partitions move. The tests need clang at build time and root, and skip with the
//! reason elsewhere.

#[allow(dead_code, reason = "the runtime's tests use all of it")]
#[path = "../../../chronos/tests/it/keys.rs"]
mod keys;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use plimsoll_bpf::shared::NO_SOCKET;
use plimsoll_bpf::{DatagramRedirect, DispatchOptions, Error, RedirectOptions, SteeringOptions};
use plimsoll_chronos::{
    Balancing, Config, DatagramSteering, IoBackend, KeyHash, Listen, Poll, RunningServer, Runtime, StartError,
};
use plimsoll_chronos_xdp::XdpDevice;

use crate::pair::{DEVICE, Pair, SERVER_HARDWARE};
use keys::{FRAME_HEADER, Keys, Turn, ask, binary, requests};

const HASH: KeyHash = KeyHash::new(0x1234_5678_9abc_def1);
const THREADS: u32 = 3;
const PARTITIONS: u32 = 37;
const PORT: u16 = 11_211;
const PLACES: [&str; 2] = ["192.0.2.1:11211", "[2001:db8::1]:11211"];

/// Creates a program that returns the number of the socket for a frame; partition p belongs to thread p, modulo their
/// number.
fn program(by_vbucket: bool) -> Option<DatagramRedirect> {
    let places = PLACES.map(|place| place.parse().unwrap()).to_vec();
    let mut options = RedirectOptions::new(SERVER_HARDWARE, places, 1);
    let steering = SteeringOptions { seed: HASH.seed, factor: HASH.factor(), by_vbucket };
    let owners = (0..PARTITIONS).map(|partition| partition % THREADS).collect();
    options.dispatch = Some(DispatchOptions { steering, threads: THREADS, owners });
    match DatagramRedirect::load_for_numbers(&options) {
        Err(Error::Unsupported(reason)) => {
            plimsoll_testing::skipped!("{reason}");
            None
        }
        result => Some(result.unwrap()),
    }
}

/// A frame to a place of the server; the program does not look at checksums.
fn frame(place: &str, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let mut frame = [&SERVER_HARDWARE[..], &[2, 0, 0, 0, 0, 2]].concat();
    match place.parse().unwrap() {
        SocketAddr::V4(to) => {
            frame.extend([8, 0, 0x45, 0]);
            frame.extend((20 + length).to_be_bytes());
            frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 2]);
            frame.extend(to.ip().octets());
        }
        SocketAddr::V6(to) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(length.to_be_bytes());
            frame.extend([17, 64]);
            frame.extend([0x20; 16]);
            frame.extend(to.ip().octets());
        }
    }
    for number in [4242, PORT, length, 0] {
        frame.extend(number.to_be_bytes());
    }
    [frame, payload.to_vec()].concat()
}

fn datagram(place: &str, request: &[u8]) -> Vec<u8> {
    frame(place, &[&FRAME_HEADER[..], request].concat())
}

#[test]
fn the_program_finds_the_partition_that_rust_finds() {
    for by_vbucket in [false, true] {
        let Some(redirect) = program(by_vbucket) else { return };
        let keys = Keys { hash: HASH, partitions: PARTITIONS, by_vbucket };
        let mut found = [0; THREADS as usize];
        for request in requests() {
            let thread = keys.partition_of(&request) % THREADS;
            for place in PLACES {
                let number = redirect.program().test_frame(&datagram(place, &request)).unwrap();
                assert_eq!(number, u64::from(thread), "{place}: {}", request.escape_ascii());
            }
            found[thread as usize] += 1;
        }
        assert!(found.iter().all(|&count| count > 200), "{found:?}");
    }
}

#[test]
fn a_partition_that_moves_takes_its_datagrams_along() {
    let Some(redirect) = program(false) else { return };
    let keys = Keys { hash: HASH, partitions: PARTITIONS, by_vbucket: false };
    let (request, other) = (&b"get hot\r\n"[..], &b"get cold\r\n"[..]);
    let [hot, cold] = [request, other].map(|request| keys.partition_of(request));
    assert_ne!(hot, cold);
    for thread in [2, 0, 1] {
        redirect.set_owner(hot, thread).unwrap();
        let at = |request| redirect.program().test_frame(&datagram(PLACES[0], request)).unwrap();
        assert_eq!((at(request), at(other)), (u64::from(thread), u64::from(cold % THREADS)));
    }
    assert!(redirect.set_owner(PARTITIONS, 0).is_err(), "there is no such partition");
}

#[test]
fn what_has_no_key_comes_to_the_queues_own_thread_and_the_rest_stays_with_the_kernel() {
    let Some(redirect) = program(true) else { return };
    // None of these partitions belongs to the queue's own thread, 0.
    (0..PARTITIONS).for_each(|partition| redirect.set_owner(partition, 1).unwrap());
    let at = |frame: &[u8]| redirect.program().test_frame(frame).unwrap();
    let long = [&b"get "[..], &[b'k'; 300], b"\r\n"].concat();
    for (request, expected) in [
        (&b"version\r\n"[..], 0),
        (b"mn\r\n", 0),
        (b"get \r\n", 0),
        (b"g", 0),
        (b"", 0),
        // The vBucket of a header that is cut off is a guess, and its thread rejects the request.
        (&[0x80; 7], 1),
        (&binary(b"", 0, 0)[..2], 1),
        (b"get k", 1),
        (b"get k\r\n", 1),
        // Too long for a key: the thread that gets it answers with the error.
        (&long, 1),
        (&binary(b"k", 0, 7), 1),
        // The body of a binary request may be shorter than its header says.
        (&binary(b"key", 255, 7)[..26], 1),
    ] {
        for place in PLACES {
            assert_eq!(at(&datagram(place, request)), expected, "{place}: {}", request.escape_ascii());
        }
    }
    for bytes in 0..=8 {
        assert_eq!(at(&frame(PLACES[0], &[0; 8][..bytes])), 0, "a header of {bytes} bytes");
    }
    assert_eq!(at(&datagram("192.0.2.2:11211", b"get k\r\n")), NO_SOCKET);
}

fn start(pair: &Pair, config: Config, policy: Turn, by_vbucket: bool) -> Option<RunningServer> {
    let places = vec![SocketAddr::from(([0; 16], PORT))];
    let config = Config {
        threads: THREADS,
        partitions: Some(PARTITIONS),
        listen: vec![Listen::Device { device: Arc::new(XdpDevice::new(DEVICE)), places }],
        datagram_steering: Some(DatagramSteering { hash: HASH, by_vbucket }),
        ..config
    };
    let service = Keys { hash: HASH, partitions: PARTITIONS, by_vbucket };
    match pair.at_server(|| Runtime::start_with(service, &config, Box::new(policy))) {
        Err(StartError::Device { reason, .. }) if reason.starts_with("eBPF is not available") => {
            plimsoll_testing::skipped!("{reason}");
            None
        }
        result => Some(result.unwrap()),
    }
}

fn place(address: IpAddr) -> SocketAddr {
    SocketAddr::new(address, PORT)
}

#[test]
fn no_request_crosses_threads() {
    for queues in [1, 2] {
        let Some(pair) = Pair::new(queues) else { return };
        for (io, poll) in [
            (IoBackend::Epoll, Poll::Block),
            (IoBackend::Epoll, Poll::Spin),
            (IoBackend::Fastest, Poll::Block),
        ] {
            for by_vbucket in [false, true] {
                let config = Config { io, poll, balancing: None, ..Config::default() };
                let Some(server) = start(&pair, config, Turn::new(true), by_vbucket) else { return };
                let keys = Keys { hash: HASH, partitions: PARTITIONS, by_vbucket };
                let requests = requests();
                let mut counts = [0; PARTITIONS as usize];
                for (number, request) in requests.iter().enumerate() {
                    // Several clients reach all queues.
                    let addresses = pair.addresses();
                    let socket = pair.connect(place(addresses[number % addresses.len()]));
                    let partition = keys.partition_of(request);
                    counts[partition as usize] += 1;
                    assert_eq!(ask(&socket, request), (partition, counts[partition as usize]));
                }
                let total = server.stats().total();
                assert_eq!((total.own, total.foreign), (requests.len() as u64, 0), "{queues} queues");
                assert_eq!((total.dropped, total.overruns, total.malformed), (0, 0, 0));
                assert!(server.stats().threads().iter().all(|thread| thread.datagrams > 100));
                let [device] = server.stats().devices() else { panic!("one device") };
                assert!(device.mode.ends_with("dispatched by key to 3 threads"), "{device}");
                server.stop().unwrap();
                pair.loses_its_program();
            }
        }
    }
}

/// Every partition moves again and again while clients ask: each request is answered once, by its partition's state.
#[test]
fn no_request_is_lost_while_partitions_move() {
    const CLIENTS: usize = 4;
    let Some(pair) = Pair::new(2) else { return };
    let balancing = Balancing { load_min: 200, ..Balancing::default() };
    let config = Config { balancing: Some(balancing), ..Config::default() };
    let Some(server) = start(&pair, config, Turn::new(false), false) else { return };
    let keys = Keys { hash: HASH, partitions: PARTITIONS, by_vbucket: false };
    let requests = requests();
    let all: Vec<Vec<(u32, u32)>> = std::thread::scope(|scope| {
        let client = |client: usize| {
            let addresses = pair.addresses();
            let socket = pair.connect(place(addresses[client % addresses.len()]));
            let (keys, requests) = (&keys, &requests);
            scope.spawn(move || {
                // Each client begins at another place.
                let (before, after) = requests.split_at(client * requests.len() / CLIENTS);
                let check = |request: &Vec<u8>| {
                    let answer = ask(&socket, request);
                    assert_eq!(answer.0, keys.partition_of(request), "the state of another partition");
                    answer
                };
                (0..5).flat_map(|_| after.iter().chain(before)).map(check).collect()
            })
        };
        let clients: Vec<_> = (0..CLIENTS).map(client).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    // Each partition has counted each of its requests once.
    let mut answers: Vec<(u32, u32)> = all.concat();
    answers.sort_unstable();
    for answers in answers.chunk_by(|one, other| one.0 == other.0) {
        let counts: Vec<u32> = answers.iter().map(|&(_, count)| count).collect();
        assert_eq!(counts, (1..=answers.len() as u32).collect::<Vec<u32>>());
    }
    let total = server.stats().total();
    assert_eq!(answers.len(), CLIENTS * 5 * requests.len());
    assert_eq!(total.datagrams, answers.len() as u64);
    assert!(total.adopted > 5 * u64::from(PARTITIONS), "{total:?}");
    assert!(total.foreign < total.own / 2, "most requests come to their owner: {total:?}");
    assert_eq!((total.dropped, total.overruns), (0, 0));
    server.stop().unwrap();
}
