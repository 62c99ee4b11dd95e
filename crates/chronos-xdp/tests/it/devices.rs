//! Requests in datagrams that bypass the kernel's stack, over a veth pair. The tests need clang at build time and root,
//! and skip with the reason elsewhere.
#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::print_stderr, reason = "a test; its runner shows it where it fails")]

#[allow(dead_code, reason = "the runtime's tests use all of it")]
#[path = "../../../chronos/tests/it/runtime/client.rs"]
mod client;
#[allow(dead_code, reason = "the runtime's tests use all of it")]
#[path = "../../../chronos/tests/it/runtime/service.rs"]
mod service;

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_chronos::{Config, Listen, RunningServer, Runtime, StartError};

use plimsoll_chronos_xdp::XdpDevice;

use crate::pair::{CLIENT_HARDWARE, DEVICE, Pair, SERVER_HARDWARE, SERVER_V4, SERVER_V6};
use client::{all_modes, ask, config};
use service::Logs;

const PORT: u16 = 7777;

/// The device, and no socket.
fn device() -> Listen {
    at(DEVICE, SocketAddr::from(([0; 16], PORT)))
}

fn at(device: &str, place: SocketAddr) -> Listen {
    Listen::Device { device: Arc::new(XdpDevice::new(device)), places: vec![place] }
}

/// Starts a server at the pair's near end, and returns its count of puts that ran out of order; None, with the reason
/// on standard error, if this machine cannot.
fn start(pair: &Pair, config: &Config) -> Option<(RunningServer, Arc<AtomicU64>)> {
    let logs = Logs::default();
    let disorder = logs.disorder.clone();
    match pair.at_server(|| Runtime::start(logs, config)) {
        Err(StartError::Device { reason, .. }) if reason.starts_with("eBPF is not available") => {
            plimsoll_testing::skipped!("{reason}");
            None
        }
        result => Some((result.unwrap(), disorder)),
    }
}

fn refusal(pair: &Pair, config: &Config) -> String {
    pair.at_server(|| Runtime::start(Logs::default(), config)).unwrap_err().to_string()
}

/// Repeats requests until the server's counts satisfy `is_so`.
#[track_caller]
fn until(server: &RunningServer, what: &str, is_so: impl Fn(plimsoll_chronos::ThreadStats) -> bool) {
    let begin = std::time::Instant::now();
    while !is_so(server.stats().total()) {
        let stats = server.stats().total();
        assert!(begin.elapsed().as_secs() < 30, "{what}: {stats:?}");
        std::thread::yield_now();
    }
}

fn connect(pair: &Pair, address: IpAddr) -> UdpSocket {
    pair.connect(SocketAddr::new(address, PORT))
}

#[test]
fn every_mode_answers_a_devices_datagrams_alike() {
    let Some(pair) = Pair::new(2) else { return };
    for config in all_modes() {
        let config = Config { listen: vec![device()], ..config };
        let Some((server, disorder)) = start(&pair, &config) else { return };
        // The device chooses a queue by the client's port: several clients reach them all.
        for number in 0..16_u8 {
            for address in pair.addresses() {
                let client = 2 * number + u8::from(address.is_ipv6());
                let socket = connect(&pair, address);
                let puts = format!("put 0 {client} 0\nput 1 {client} 0\nhello\n");
                assert_eq!(
                    ask(&socket, client, puts.as_bytes(), 1),
                    b"ok 0 0\nok 1 0\nhello\n",
                    "{config:?}"
                );
                let blobs = ask(&socket, client, b"blob 0 30000\nblob 1 30000\n", 60);
                assert!(blobs.len() == 60_000 && blobs.iter().all(|&byte| byte == b'b'));
                let echo = [b"echo 1 1400\n".to_vec(), vec![b'e'; 1400]].concat();
                assert_eq!(ask(&socket, client, &echo, 2), echo[12..]);
            }
        }
        let puts = 32 * pair.addresses().len();
        let sum = ask(&connect(&pair, pair.addresses()[0]), 1, b"sum\n", 1);
        assert_eq!(sum, format!("{puts}\n").into_bytes());
        assert_eq!(disorder.load(Ordering::Relaxed), 0);
        let total = server.stats().total();
        assert_eq!(total.datagrams, 48 * pair.addresses().len() as u64 + 1);
        assert_eq!((total.dropped, total.bad_checksums, total.malformed), (0, 0, 0));
        let threads = server.stats().threads();
        assert!(threads.iter().take(pair.queues as usize).all(|thread| thread.datagrams > 0), "{config:?}");
        server.stop().unwrap();
    }
    pair.loses_its_program();
}

#[test]
fn what_is_not_ours_stays_with_the_kernel() {
    let Some(pair) = Pair::new(1) else { return };
    let udp = Listen::Udp(SocketAddr::from(([192, 0, 2, 1], PORT)));
    let Some((server, _)) = start(&pair, &Config { listen: vec![udp, device()], ..config(1) }) else {
        return;
    };
    assert!(pair.has_program());
    let [device] = server.stats().devices() else { panic!("one device") };
    eprintln!("{device}");
    assert_eq!(device.queues, 1);
    assert!(device.places.contains(&SocketAddr::from(([192, 0, 2, 1], PORT))));
    // ARP and neighbour discovery go to the kernel, or no datagram would have arrived; so do pings, and other ports.
    assert!(pair.ping(SERVER_V4));
    assert!(pair.addresses().len() < 2 || pair.ping(SERVER_V6));
    let other = pair.at_server(|| UdpSocket::bind((SERVER_V4, PORT + 1)).unwrap());
    let socket = pair.connect(SocketAddr::from(([192, 0, 2, 1], PORT + 1)));
    socket.send(b"to another").unwrap();
    assert_eq!(other.recv(&mut [0; 64]).unwrap(), 10);
    // A request in fragments is delivered to the kernel's socket, and its thread answers it there.
    let socket = connect(&pair, pair.addresses()[0]);
    let big = [b"echo 1 20000\n".to_vec(), vec![b'e'; 20_000]].concat();
    assert_eq!(ask(&socket, 1, &big, 20), big[13..]);
    assert_eq!(ask(&socket, 2, b"hello\n", 1), b"hello\n");
    assert_eq!(server.stats().total().datagrams, 2);
    server.stop().unwrap();
}

#[test]
fn one_thread_serves_every_queue_and_a_thread_may_have_none() {
    let Some(pair) = Pair::new(2) else { return };
    for threads in [1, 3] {
        let config = Config { listen: vec![device()], ..config(threads) };
        let Some((server, _)) = start(&pair, &config) else { return };
        for number in 0..16 {
            let socket = connect(&pair, pair.addresses()[0]);
            let request = format!("put 0 {number} 0\nput 1 {number} 0\nput 2 {number} 0\n");
            assert_eq!(ask(&socket, number, request.as_bytes(), 1), b"ok 0 0\nok 1 0\nok 2 0\n");
        }
        let received: Vec<u64> = server.stats().threads().iter().map(|thread| thread.datagrams).collect();
        assert_eq!(received.iter().sum::<u64>(), 16);
        let served = received.len().min(pair.queues as usize);
        assert!(received[..served].iter().all(|&count| count > 0), "{received:?}");
        assert!(
            received[served..].iter().all(|&count| count == 0),
            "no queue is left for them: {received:?}"
        );
        server.stop().unwrap();
    }
}

#[test]
fn where_the_driver_cannot_the_kernel_runs_the_program() {
    // veth runs no native program if the other end sends by more queues than it receives by.
    let Some(pair) = Pair::with_queues(1, 2) else { return };
    for io in client::backends() {
        let config = Config { listen: vec![device()], io, ..config(1) };
        let Some((server, _)) = start(&pair, &config) else { return };
        let [device] = server.stats().devices() else { panic!("one device") };
        assert!(device.mode.starts_with("generic XDP, copied, "), "{device}");
        for address in pair.addresses() {
            let socket = connect(&pair, address);
            assert_eq!(ask(&socket, 1, b"hello\n", 1), b"hello\n");
            assert_eq!(ask(&socket, 2, b"blob 0 30000\n", 30).len(), 30_000);
        }
        assert_eq!(server.stats().total().bad_checksums, 0);
        server.stop().unwrap();
        pair.loses_its_program();
    }
}

/// An IPv4 frame from the client to the server, without UDP's checksum, unless `spoil` changes it; then the checksum of
/// its header is made right again.
fn frame(spoil: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let payload = b"\x09hello\n";
    let total = 28 + payload.len() as u8;
    let mut frame = [SERVER_HARDWARE, CLIENT_HARDWARE].concat();
    frame.extend([8, 0, 0x45, 0, 0, total, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 2, 192, 0, 2, 1]);
    frame.extend(4242_u16.to_be_bytes());
    frame.extend(PORT.to_be_bytes());
    frame.extend([0, total - 20, 0, 0]);
    frame.extend(payload);
    spoil(&mut frame);
    let sum: u32 =
        frame[14..34].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame
}

#[test]
fn frames_that_are_wrong_are_counted_and_not_answered() {
    let Some(pair) = Pair::new(1) else { return };
    let Some((server, _)) = start(&pair, &Config { listen: vec![device()], ..config(1) }) else { return };
    let bad_header = {
        let mut frame = frame(|_| {});
        frame[25] ^= 1;
        frame
    };
    let frames = [
        // Damaged.
        frame(|frame| frame[40..42].copy_from_slice(&[0x12, 0x34])),
        bad_header,
        // Longer than its packet, and shorter than its header.
        frame(|frame| frame[39] += 1),
        frame(|frame| frame[39] = 7),
        frame(|frame| frame[17] += 1),
        // From port 0, from the broadcast address, from the server itself.
        frame(|frame| frame[34..36].fill(0)),
        frame(|frame| frame[26..30].fill(255)),
        frame(|frame| frame[29] = 1),
        // For the kernel: to another address, with options (too short for them), with a tag, a fragment, cut off.
        frame(|frame| frame[33] = 9),
        frame(|frame| frame[14] = 0x46),
        frame(|frame| drop(frame.splice(12..12, [0x81, 0, 0, 5]))),
        frame(|frame| frame[20] = 0x20),
        frame(|frame| frame[0] = 0xff),
        frame(|frame| frame.truncate(41)),
        // And one that is right.
        frame(|_| {}),
    ];
    pair.send_frames(&frames);
    until(&server, "the last is served", |stats| stats.datagrams == 1 && stats.sent_bytes > 0);
    let total = server.stats().total();
    assert_eq!((total.bad_checksums, total.malformed, total.dropped), (2, 6, 0));
    assert_eq!(total.sent_bytes, 7, "the one that is right is answered");
    let socket = connect(&pair, pair.addresses()[0]);
    assert_eq!(ask(&socket, 2, b"hello\n", 1), b"hello\n");
    server.stop().unwrap();
}

#[test]
fn replies_of_more_frames_than_there_are_and_longer_ones_than_packets() {
    let Some(pair) = Pair::new(1) else { return };
    for io in client::backends() {
        let config = Config { listen: vec![device()], io, ..config(1) };
        let Some((server, _)) = start(&pair, &config) else { return };
        let socket = connect(&pair, pair.addresses()[0]);
        // 3000 datagrams at once; the client may lose some, the server must not.
        socket.send(b"\x01blob 0 3000000\n").unwrap();
        until(&server, "all are sent", |stats| stats.sent_bytes == 3_000_000 + 3000);
        assert_eq!(server.stats().total().dropped, 0);
        server.stop().unwrap();
    }
    assert!(pair.ip(&format!("link set dev {DEVICE} mtu 900")));
    let Some((server, _)) = start(&pair, &Config { listen: vec![device()], ..config(1) }) else { return };
    let socket = connect(&pair, IpAddr::from([192, 0, 2, 1]));
    // 1001 bytes do not fit, 600 do, and so does exactly the size of the device's packet.
    assert_eq!(ask(&socket, 1, b"blob 0 600\n", 1).len(), 600);
    socket.send(b"\x01blob 0 1000\n").unwrap();
    assert_eq!(ask(&socket, 2, b"blob 0 871\n", 1).len(), 871);
    socket.send(b"\x01blob 0 872\n").unwrap();
    assert_eq!(ask(&socket, 2, b"hello\n", 1), b"hello\n");
    until(&server, "both are counted", |stats| stats.dropped == 2);
    server.stop().unwrap();
}

#[test]
fn a_device_that_cannot_be_used_is_named_with_the_reason() {
    let Some(pair) = Pair::new(1) else { return };
    let config = Config { listen: vec![device()], ..config(1) };
    let Some((server, _)) = start(&pair, &config) else { return };
    let error = refusal(&pair, &config);
    assert!(error.starts_with("listen: cannot take datagrams from device near: "), "{error}");
    assert!(error.contains("has an XDP program already, which is not replaced"), "{error}");
    // The first server continues.
    assert_eq!(ask(&connect(&pair, pair.addresses()[0]), 2, b"hello\n", 1), b"hello\n");
    server.stop().unwrap();
    pair.loses_its_program();
    let at = |interface: &str, place: &str| Config {
        listen: vec![at(interface, place.parse().unwrap())],
        ..config.clone()
    };
    for (config, expected) in [
        (at("nothing", "0.0.0.0:7"), "device nothing: there is no such device"),
        (at("lo", "0.0.0.0:7"), "device lo: it is not an Ethernet device"),
        (at(DEVICE, "192.0.2.77:7"), "device near: it has none of the addresses that are listened on"),
    ] {
        let error = refusal(&pair, &config);
        assert!(error.ends_with(expected), "{error}");
    }
    assert!(pair.ip(&format!("link set dev {DEVICE} mtu 9000")));
    let error = refusal(&pair, &config);
    assert!(error.ends_with("its MTU is 9000 bytes; 3826 or less is allowed"), "{error}");
    pair.loses_its_program();
}
