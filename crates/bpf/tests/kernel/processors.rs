//! Several processors change one state: no packet is counted twice, and none is lost.

use std::os::fd::AsFd as _;
use std::sync::Barrier;
use std::thread;

use plimsoll_bpf::{
    Inputs, LimiterProgram, PacerFeedback, PacerProgram, Packet, PhantomQueueProgram, Program, flow_number,
};
use plimsoll_mechanisms::pacer::{EarliestDeparture, PacerParams};
use plimsoll_mechanisms::phantom_queue::PhantomQueueParams;
use plimsoll_mechanisms::qjump::{Excess, Level, Levels};
use plimsoll_units::{Bytes, Rate, Span};

use crate::{frames, loaded};

const THREADS: u64 = 2;
const RUNS: u32 = 3_000_000;
const BYTES: u64 = 64;

/// The cases run one after the other, so that each has the processors to itself.
#[test]
fn shared_state_counts_every_packet_once() {
    a_bucket_is_spent_once();
    a_phantom_queue_counts_every_packet();
    a_pacer_is_paid_for_every_packet();
    a_pacer_keeps_its_rate();
}

fn a_bucket_is_spent_once() {
    let full = 4_000_000 * BYTES;
    let level = Level { bucket: Bytes::new(full), rate: Rate::from_gbps(10), latency_bound: None };
    let levels = Levels { epoch: Span::from_secs(1_000), levels: vec![level] };
    let Some(limiter) = loaded(LimiterProgram::load(&levels, Excess::Refuse, false, Inputs::Packet)) else {
        return;
    };
    // The first packet refills the bucket; the others only spend it.
    send_at_once(limiter.program());
    let bucket = limiter.bucket(0).unwrap();
    let sent = THREADS * u64::from(RUNS) - bucket.excess;
    assert_eq!(sent * BYTES + bucket.bytes, full, "{bucket:?}");
    assert_eq!(bucket.bytes, 0, "more was asked for than there was");
}

fn a_phantom_queue_counts_every_packet() {
    let params = PhantomQueueParams::default();
    let Some(queue) = loaded(PhantomQueueProgram::load(&params, Rate::from_gbps(100), Inputs::Packet)) else {
        return;
    };
    let twin = plimsoll_mechanisms::phantom_queue::PhantomQueue::new(&params, Rate::from_gbps(100));
    // At time 0 nothing drains.
    send_at_once(queue.program());
    let counted = queue.state().unwrap().level / (BYTES * twin.byte_cost());
    let sent = THREADS * u64::from(RUNS);
    // A packet that loses the race for the level eight times in a row is not counted.
    assert!(counted <= sent && counted * 100 >= sent * 99, "{counted} of {sent}");
}

fn send_at_once(program: &Program) {
    let frame = frames::ipv4(0, 0, BYTES as usize - 34);
    thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| program.time(&Packet::new(&frame), RUNS).unwrap());
        }
    });
}

/// Returns a pacer whose rate is constant during a test, and one connection that is associated with it.
fn pacer_of(rate: Rate) -> Option<(PacerProgram, PacerFeedback, PacerParams, Vec<u8>, u64)> {
    let params = PacerParams {
        association_probability: 1.0,
        association_timeout: Span::from_secs(4),
        // Arrivals have the least weight over the longest interval, and the backlog has none.
        eta: 0.001,
        beta: 0.0,
        interval: Span::from_us(999_999),
        initial_rate: rate,
        min_rate: Some(rate),
        ..PacerParams::default()
    };
    let pacer = loaded(PacerProgram::load(&params, &[], Inputs::Packet))?;
    let feedback = PacerFeedback::load(&params, pacer.flows().unwrap().as_fd(), Inputs::Packet).unwrap();
    let (local, remote) = ("10.0.0.1:40000".parse().unwrap(), "10.0.0.2:443".parse().unwrap());
    let acknowledgement = frames::tcp(remote, local, 0x50, 0);
    feedback.program().test_run(&Packet { now_ns: START_NS, ..Packet::new(&acknowledgement) }).unwrap();
    let number = flow_number(local, remote);
    assert!(pacer.flow(number).unwrap().is_some(), "the connection is associated");
    Some((pacer, feedback, params, frames::tcp(local, remote, 0x10, 0), number))
}

const START_NS: u64 = 1_000_000_000;
const PACER_THREADS: u64 = 4;

/// Equal packets at one instant lead to the same state in any order, the same as in the sequential Rust implementation,
/// unless an update was lost.
fn a_pacer_is_paid_for_every_packet() {
    const RUNS: u32 = 400_000;
    let Some((pacer, _feedback, params, frame, number)) = pacer_of(Rate::from_gbps(100)) else { return };
    let packet = Packet { now_ns: START_NS, wire_len: BYTES as u32, ..Packet::new(&frame) };
    thread::scope(|threads| {
        for _ in 0..PACER_THREADS {
            threads.spawn(|| pacer.program().time(&packet, RUNS).unwrap());
        }
    });
    let mut twin = EarliestDeparture::new(&params).unwrap();
    twin.on_ece(START_NS, number, 0);
    let sent = PACER_THREADS * u64::from(RUNS);
    let leaves = (0..sent).map(|_| twin.on_packet(START_NS, number, BYTES).unwrap());
    let held: u64 = leaves.map(|leaves| leaves - START_NS).sum();
    let (found, expected) = (pacer.state().unwrap(), twin.state());
    assert_eq!(
        (found.rate, found.received, found.tokens, found.free_ns, found.backlog),
        (expected.rate, expected.received, expected.tokens, expected.free_ns, expected.backlog),
        "after {sent} packets"
    );
    let counts = pacer.counts().unwrap();
    assert_eq!((counts.paced, counts.bypassed, counts.held_ns), (sent, 0, held));
}

/// Several threads send packets at half again the rate each: departures up to any time are within the bucket and the
/// rate, and no packet is forgotten.
fn a_pacer_keeps_its_rate() {
    const PACKETS: u64 = 5_000;
    const BITS: u64 = 8 * 1_500;
    let rate = Rate::from_gbps(1);
    let Some((pacer, _feedback, params, frame, _)) = pacer_of(rate) else { return };
    // At the rate a packet takes 12 us.
    let gap_ns = 8_000;
    let together = Barrier::new(PACER_THREADS as usize);
    let send = || {
        together.wait();
        let leaves = (0..PACKETS).map(|index| {
            let now_ns = START_NS + index * gap_ns;
            let packet = Packet { now_ns, wire_len: 1_500, ..Packet::new(&frame) };
            pacer.program().test_run(&packet).unwrap().leaves_ns
        });
        leaves.collect::<Vec<u64>>()
    };
    let mut leaves: Vec<u64> = thread::scope(|threads| {
        let senders: Vec<_> = (0..PACER_THREADS).map(|_| threads.spawn(send)).collect();
        senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect()
    });
    leaves.sort_unstable();
    let bucket = 8 * params.bucket.get();
    let allowed = |at_ns: u64| bucket + (at_ns - START_NS) * rate.as_bps() / 1_000_000_000;
    for (number, at_ns) in (1..).zip(&leaves) {
        assert!(number * BITS <= allowed(*at_ns), "{number} packets by {at_ns} ns");
    }
    // Each packet's waiting time is rounded up by less than a nanosecond.
    let sent = PACER_THREADS * PACKETS;
    let last = *leaves.last().unwrap();
    assert!(allowed(last - sent) <= sent * BITS + BITS, "{sent} packets took until {last} ns");
    assert_eq!(pacer.counts().unwrap().paced, sent);
}
