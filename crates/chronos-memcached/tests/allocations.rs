//! Requests take no memory of the process's allocator: once a connection's buffers have grown, gets and sets of small
//! items are received, run and answered without a call of it, by every protocol and both I/O backends.
//!
//! The allocator of this program counts, for all threads together; so there is one test, and its client allocates
//! nothing itself. The remaining calls are housekeeping: once a second it lists the items of a page.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plimsoll_chronos::{Config, IoBackend, Listen, Runtime};
use plimsoll_chronos_memcached::{Memcached, MemcachedSettings};

/// Calls of the allocator that take memory.
static TAKEN: AtomicU64 = AtomicU64::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[expect(unsafe_code, reason = "an allocator")]
// SAFETY: it is the system's allocator, with a count beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TAKEN.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        TAKEN.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}

/// A request, and its answer.
struct Exchange {
    request: Vec<u8>,
    answer: Vec<u8>,
}

/// Sets and gets of one key, by a protocol.
fn exchanges(protocol: &str) -> Vec<Exchange> {
    let value = [b'v'; 1000];
    let exchange =
        |request: &[&[u8]], answer: &[&[u8]]| Exchange { request: request.concat(), answer: answer.concat() };
    match protocol {
        "text" => vec![
            exchange(&[b"set key 5 0 1000\r\n", &value, b"\r\n"], &[b"STORED\r\n"]),
            exchange(&[b"get key\r\n"], &[b"VALUE key 5 1000\r\n", &value, b"\r\nEND\r\n"]),
            exchange(&[b"get key none\r\n"], &[b"VALUE key 5 1000\r\n", &value, b"\r\nEND\r\n"]),
        ],
        "meta" => vec![
            exchange(&[b"ms key 1000\r\n", &value, b"\r\n"], &[b"HD\r\n"]),
            exchange(&[b"mg key v\r\n"], &[b"VA 1000\r\n", &value, b"\r\n"]),
            exchange(&[b"mg key k s Oabc v\r\n"], &[b"VA 1000 kkey s1000 Oabc\r\n", &value, b"\r\n"]),
        ],
        _ => {
            let header = |magic: u8, code: u8, key: u8, extras: u8, body: u32| {
                let mut header = vec![magic, code, 0, key, extras, 0, 0, 0];
                header.extend(body.to_be_bytes());
                header.extend([7; 4]);
                header.extend([0; 8]);
                header
            };
            // Without CAS (-C), so that answers are alike.
            vec![
                exchange(
                    &[&header(0x80, 1, 3, 8, 1011), &[0, 0, 0, 5, 0, 0, 0, 0], b"key", &value],
                    &[&header(0x81, 1, 0, 0, 0)],
                ),
                exchange(
                    &[&header(0x80, 0, 3, 0, 3), b"key"],
                    &[&header(0x81, 0, 0, 4, 1004), &[0, 0, 0, 5], &value],
                ),
            ]
        }
    }
}

/// Sends the exchanges `rounds` times, and returns the number of calls of the allocator meanwhile.
fn play(
    rounds: usize,
    exchanges: &[Exchange],
    place: &mut [u8],
    mut ask: impl FnMut(&[u8], &mut [u8]),
) -> u64 {
    let before = TAKEN.load(Ordering::Relaxed);
    for _ in 0..rounds {
        for Exchange { request, answer } in exchanges {
            let place = &mut place[..answer.len()];
            ask(request, place);
            assert!(*place == **answer, "another answer");
        }
    }
    TAKEN.load(Ordering::Relaxed) - before
}

/// Returns the number of seconds begun.
fn seconds(begin: Instant) -> u64 {
    begin.elapsed().as_secs() + 1
}

#[test]
fn requests_call_no_allocator() {
    const ROUNDS: usize = 2000;
    let mut place = vec![0; 1 << 16];
    for io in [IoBackend::Epoll, IoBackend::Fastest] {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let config =
            Config { threads: 1, io, listen: vec![Listen::Tcp(any), Listen::Udp(any)], ..Config::default() };
        let settings =
            MemcachedSettings { partitions: config.partitions(), cas: false, ..MemcachedSettings::default() };
        let server =
            Runtime::start(Memcached::new(settings).expect("good settings"), &config).expect("it starts");
        let [Listen::Tcp(tcp), Listen::Udp(udp)] = server.bound() else { panic!("{:?}", server.bound()) };
        for protocol in ["text", "meta", "binary"] {
            let mut exchanges = exchanges(protocol);
            let mut stream = TcpStream::connect(tcp).expect("it listens");
            stream.set_nodelay(true).expect("an option");
            stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
            let mut over_tcp = |request: &[u8], answer: &mut [u8]| {
                stream.write_all(request).expect("it takes requests");
                stream.read_exact(answer).expect("it answers");
            };
            play(200, &exchanges, &mut place, &mut over_tcp);
            let begin = Instant::now();
            let taken = play(ROUNDS, &exchanges, &mut place, &mut over_tcp);
            assert!(taken <= seconds(begin), "{taken} times, {protocol} over TCP, {io:?}");

            let socket = UdpSocket::bind(any).expect("a socket");
            socket.connect(udp).expect("it listens");
            socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
            for Exchange { request, answer } in &mut exchanges {
                for text in [request, answer] {
                    text.splice(0..0, [0, 1, 0, 0, 0, 1, 0, 0]);
                }
            }
            let mut over_udp = |request: &[u8], answer: &mut [u8]| {
                socket.send(request).expect("it takes requests");
                assert_eq!(socket.recv(answer).expect("it answers"), answer.len());
            };
            play(200, &exchanges, &mut place, &mut over_udp);
            let begin = Instant::now();
            let taken = play(ROUNDS, &exchanges, &mut place, &mut over_udp);
            assert!(taken <= seconds(begin), "{taken} times, {protocol} over UDP, {io:?}");
        }
        server.stop().expect("it stops");
    }
}
