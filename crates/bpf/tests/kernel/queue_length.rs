//! The marker by queue length: decisions as in Rust.

use plimsoll_bpf::{Error, Inputs, Packet, QueueLength};
use plimsoll_mechanisms::Depth;
use plimsoll_mechanisms::ecn::{Compare, Ecn, EcnParams, MarkAt};
use plimsoll_units::Bytes;

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

#[test]
fn marking_at_dequeue_is_an_error() {
    let params = EcnParams { at: MarkAt::Dequeue, ..Default::default() };
    let error = QueueLength::load(&params, Inputs::Kernel).unwrap_err();
    assert!(matches!(error, Error::Param(_)), "{error}");
}
