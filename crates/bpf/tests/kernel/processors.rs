//! Several processors on one state: nothing is counted twice, and nothing is lost.

use std::thread;

use plimsoll_bpf::{Inputs, Limiter, Packet, PhantomQueue, Program};
use plimsoll_mechanisms::phantom_queue::PhantomQueueParams;
use plimsoll_mechanisms::qjump::{Excess, Level, Levels};
use plimsoll_units::{Bytes, Rate, Span};

use crate::{frames, loaded};

const THREADS: u64 = 2;
const RUNS: u32 = 3_000_000;
const BYTES: u64 = 64;

/// One after the other, so that each has the processors to itself.
#[test]
fn shared_state_counts_every_packet_once() {
    a_bucket_is_spent_once();
    a_phantom_queue_counts_every_packet();
}

fn a_bucket_is_spent_once() {
    let full = 4_000_000 * BYTES;
    let level = Level { bucket: Bytes::new(full), rate: Rate::from_gbps(10), latency_bound: None };
    let levels = Levels { epoch: Span::from_secs(1_000), levels: vec![level] };
    let Some(limiter) = loaded(Limiter::load(&levels, Excess::Refuse, false, Inputs::Packet)) else { return };
    // The first packet refills; from then on the bucket is only spent.
    send_at_once(limiter.program());
    let bucket = limiter.bucket(0).unwrap();
    let sent = THREADS * u64::from(RUNS) - bucket.excess;
    assert_eq!(sent * BYTES + bucket.bytes, full, "{bucket:?}");
    assert_eq!(bucket.bytes, 0, "more was asked for than there was");
}

fn a_phantom_queue_counts_every_packet() {
    let params = PhantomQueueParams::default();
    let Some(queue) = loaded(PhantomQueue::load(&params, Rate::from_gbps(100), Inputs::Packet)) else {
        return;
    };
    let twin = plimsoll_mechanisms::phantom_queue::PhantomQueue::new(&params, Rate::from_gbps(100));
    // At time 0 nothing drains.
    send_at_once(queue.program());
    let counted = queue.state().unwrap().level / (BYTES * twin.byte_cost());
    let sent = THREADS * u64::from(RUNS);
    // Who loses the race for the level eight times in a row is not counted.
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
