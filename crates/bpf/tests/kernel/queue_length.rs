//! Compares the decisions of the marker by queue length with Rust.

use std::net::UdpSocket;

use plimsoll_bpf::{Error, HookDirection, Inputs, Packet, QueueLength};
use plimsoll_mechanisms::Depth;
use plimsoll_mechanisms::ecn::{Compare, Ecn, EcnParams, MarkAt};
use plimsoll_units::Bytes;

use crate::namespace::Namespace;
use crate::{Draw, frames, loaded};

#[test]
fn every_mark_is_that_of_rust() {
    let all = frames::all_classes();
    let (mut over, mut under) = (0u64, 0u64);
    for seed in 0..100 {
        let mut draw = Draw::new(seed);
        let threshold = 1 + draw.magnitude(31);
        let params = EcnParams {
            threshold: draw.one_of(&[Depth::Bytes(Bytes::new(threshold)), Depth::Packets(threshold)]),
            at: MarkAt::Enqueue,
            compare: draw.one_of(&[Compare::More, Compare::AtLeast]),
        };
        let Some(marker) = loaded(QueueLength::load(&params, Inputs::Packet)) else { return };
        let (twin, mut longest) = (Ecn::new(&params), 0);
        for index in 0..500 {
            let mut near = || match draw.below(5) {
                0 => threshold - 1,
                1 => threshold,
                2 => (threshold + 1).min(u64::from(u32::MAX)),
                _ => draw.magnitude(32),
            };
            let waiting = (near() as u32, near() as u32);
            let frame = &all[draw.below(all.len() as u64) as usize];
            let marks = twin.on_enqueue(u64::from(waiting.0), u64::from(waiting.1));
            let expected = if marks { frames::marked(frame) } else { frame.clone() };
            let run = marker.program().test_run(&Packet { waiting, ..Packet::new(frame) }).unwrap();
            assert_eq!(run.frame, expected, "seed {seed}, packet {index}: {waiting:?} of {params:?}");
            longest = longest.max(params.threshold.pick(u64::from(waiting.0), u64::from(waiting.1)));
            if marks { over += 1 } else { under += 1 }
        }
        let counts = marker.counts().unwrap();
        assert_eq!(counts.longest, longest, "seed {seed}");
    }
    assert!(over > 5_000 && under > 5_000, "vectors that show little: {over} over, {under} under");
}

/// The token bucket filter sends almost nothing while the test observes it.
#[test]
fn the_backlog_is_that_of_the_devices_queue() {
    let Some(marker) = loaded(QueueLength::load(&three_packets(), Inputs::Kernel)) else { return };
    let Some(link) = Namespace::new("ql", 2) else { return };
    // Without ARP, a packet joins the queue without an answer from the other end.
    assert!(link.run("ip", "link set {device} arp off"));
    if !link.run("tc", "qdisc add dev {device} root tbf rate 8kbit burst 1600 limit 100000") {
        plimsoll_testing::skipped!("this kernel has no tbf");
        return;
    }
    let _attached = marker.program().attach(link.near_ifindex(), HookDirection::Egress).unwrap();
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    for sent in 0..20u64 {
        socket.send_to(&[0; 1_400], (link.address(), 9)).unwrap();
        let counts = marker.counts().unwrap();
        // One packet may be in transmission, and the kernel may queue its own: neighbour discovery.
        assert!(counts.longest + 4 >= sent && counts.longest <= sent + 4, "{sent} sent: {counts:?}");
    }
    let counts = marker.counts().unwrap();
    // These packets are over the threshold and cannot be marked.
    assert!(counts.marked == 0 && (10..=20).contains(&counts.not_capable), "{counts:?}");
    let capable = frames::ipv4(0b10, 0, 0);
    let waiting = Packet { ifindex: link.near_ifindex() as u32, ..Packet::new(&capable) };
    let run = marker.program().test_run(&waiting).unwrap();
    assert_eq!(run.frame, frames::marked(&capable));
}

fn three_packets() -> EcnParams {
    EcnParams { threshold: Depth::Packets(3), at: MarkAt::Enqueue, compare: Compare::AtLeast }
}

#[test]
fn marking_at_dequeue_is_an_error() {
    let params = EcnParams { at: MarkAt::Dequeue, ..Default::default() };
    let error = QueueLength::load(&params, Inputs::Kernel).unwrap_err();
    assert!(matches!(error, Error::Param(_)), "{error}");
}
