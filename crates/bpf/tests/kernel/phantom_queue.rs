//! Compares the phantom queue with Rust in thousands of sequences on frames of every kind: each mark and each level.

use plimsoll_bpf::{Error, Inputs, Packet, PhantomQueueProgram};
use plimsoll_mechanisms::phantom_queue::{self as mechanism, PhantomQueueParams};
use plimsoll_units::{Bytes, Rate, Time};

use crate::{Draw, frames, loaded};

const SETTINGS: u64 = 60;
const SEQUENCES: u64 = 50;
const PACKETS: u64 = 60;

#[test]
fn every_mark_and_level_is_that_of_rust() {
    let all = frames::all_classes();
    let (mut over, mut under) = (0u64, 0u64);
    for seed in 0..SETTINGS {
        let mut draw = Draw::new(seed);
        let (params, link) = port(&mut draw);
        let Some(queue) = loaded(PhantomQueueProgram::load(&params, link, Inputs::Packet)) else { return };
        for sequence in 0..SEQUENCES {
            queue.reset().unwrap();
            let mut twin = mechanism::PhantomQueue::new(&params, link);
            let mut now_ns = draw.magnitude(53);
            for index in 0..PACKETS {
                let frame = &all[draw.below(all.len() as u64) as usize];
                let wire_len = frame.len() as u32 + draw.magnitude(15) as u32;
                now_ns = next(&mut draw, now_ns, u64::from(wire_len), link);
                let packet = Packet { wire_len, now_ns, ..Packet::new(frame) };
                let at = format!(
                    "seed {seed}, sequence {sequence}, packet {index} of {wire_len} B at {now_ns} ns"
                );
                let marks = twin.on_transmit(Time::from_ps(now_ns * 1_000), u64::from(wire_len));
                let expected = if marks { frames::marked(frame) } else { frame.clone() };
                assert_eq!(queue.program().test_run(&packet).unwrap().frame, expected, "{at}");
                let state = queue.state().unwrap();
                let (level, last) = twin.state();
                assert_eq!((state.level, state.last_ns * 1_000), (level, last.as_ps()), "{at}");
                if marks { over += 1 } else { under += 1 }
            }
        }
    }
    assert!(over > 10_000 && under > 10_000, "vectors that show little: {over} over, {under} under");
}

/// Replays the vectors of the mechanism's own test, in ns.
#[test]
fn fixed_vectors() {
    let (params, link) = (PhantomQueueParams::default(), Rate::from_gbps(1));
    let Some(queue) = loaded(PhantomQueueProgram::load(&params, link, Inputs::Packet)) else { return };
    let frame = frames::ipv4(0b10, 0, 0);
    for (now_ns, wire_len, level) in [
        (0, 990, 546_363_283_950),
        (7_920, 990, 573_681_447_900),
        (7_920, 40, 595_756_732_100),
        (17_000, 64, 36_010_306_820),
        (1_000_000, 1_500, 827_823_157_500u64),
    ] {
        queue.program().test_run(&Packet { now_ns, wire_len, ..Packet::new(&frame) }).unwrap();
        assert_eq!(queue.state().unwrap().level, level, "at {now_ns} ns");
    }
}

#[test]
fn the_level_saturates() {
    let (params, link) = (PhantomQueueParams { drain: 1.0, ..Default::default() }, Rate::from_bps(1));
    let Some(queue) = loaded(PhantomQueueProgram::load(&params, link, Inputs::Packet)) else { return };
    let mut twin = mechanism::PhantomQueue::new(&params, link);
    let frame = frames::ipv4(0b01, 0, 0);
    for index in 0..300 {
        queue.program().test_run(&Packet { wire_len: 65_536, ..Packet::new(&frame) }).unwrap();
        twin.on_transmit(Time::ZERO, 65_536);
        assert_eq!(queue.state().unwrap().level, twin.state().0, "packet {index}");
    }
    assert_eq!(twin.state().0, u64::MAX);
}

#[test]
fn counts_what_was_marked_and_what_could_not_be() {
    let (params, link) = (PhantomQueueParams::default(), Rate::from_gbps(1));
    let Some(queue) = loaded(PhantomQueueProgram::load(&params, link, Inputs::Packet)) else { return };
    for (ecn, marked, not_capable) in [(0b10, 1, 0), (0b00, 1, 1), (0b01, 2, 1), (0b11, 3, 1)] {
        let frame = frames::ipv4(ecn, 0, 1_400);
        queue.program().test_run(&Packet::new(&frame)).unwrap();
        let state = queue.state().unwrap();
        assert_eq!((state.marked, state.not_capable), (marked, not_capable), "ECN {ecn:02b}");
    }
}

#[test]
fn parameters_out_of_range_are_an_error() {
    let params = PhantomQueueParams { drain: 1.5, ..Default::default() };
    let error = PhantomQueueProgram::load(&params, Rate::from_gbps(1), Inputs::Packet).unwrap_err();
    assert!(matches!(error, Error::Param(_)), "{error}");
}

fn port(draw: &mut Draw) -> (PhantomQueueParams, Rate) {
    let link = Rate::from_bps(draw.one_of(&[
        1_000,
        480_000,
        50_000_000,
        1_000_000_000,
        10_000_000_000,
        400_000_000_000,
    ]));
    let params = PhantomQueueParams {
        drain: (1 + draw.below(1_000)) as f64 / 1_000.0,
        threshold: Bytes::new(draw.one_of(&[0, 1_000, 6_000, 100_000, 16_000_000])),
    };
    (params, link)
}

/// Draws the next time: at once, about as fast as the link sends, after a long time, or back.
fn next(draw: &mut Draw, now_ns: u64, bytes: u64, link: Rate) -> u64 {
    let serialisation_ns = (Bytes::new(bytes).time_at(link).as_ps() / 1_000).min(1 << 40);
    match draw.below(8) {
        0 | 1 => now_ns,
        2..=4 => now_ns + draw.below(2 * serialisation_ns + 1),
        5 => now_ns + draw.magnitude(30),
        6 => now_ns + draw.magnitude(50),
        _ => now_ns.saturating_sub(draw.magnitude(30)),
    }
}
