//! The gate of circuits: which packets take the other device, and until when.

use plimsoll_bpf::shared::ACTION_PASS;
use plimsoll_bpf::{CircuitGate, Inputs, Packet};

use crate::{frames, loaded};

/// TC_ACT_REDIRECT (linux/pkt_cls.h).
const REDIRECT: u64 = 7;
const LOOPBACK: i32 = 1;

#[test]
fn packets_with_a_lease_take_the_circuit_until_it_ends() {
    let Some(gate) = loaded(CircuitGate::load(LOOPBACK, Inputs::Packet)) else { return };
    let to = |place: &str| {
        frames::tcp("192.0.2.9:1".parse().unwrap(), format!("{place}:80").parse().unwrap(), 0, 100)
    };
    let [ours, other] = ["192.0.2.1", "192.0.2.2"].map(to);
    let run =
        |frame: &[u8], now_ns| gate.program().test_run(&Packet { now_ns, ..Packet::new(frame) }).unwrap();
    assert_eq!(run(&ours, 5).action, ACTION_PASS, "no lease");

    let hardware = [2, 3, 4, 5, 6, 7];
    gate.open("192.0.2.1".parse().unwrap(), hardware, 1_000).unwrap();
    let taken = run(&ours, 999);
    assert_eq!(taken.action, REDIRECT);
    assert_eq!((&taken.frame[..6], &taken.frame[6..]), (&hardware[..], &ours[6..]));
    let late = run(&ours, 1_000);
    assert_eq!((late.action, late.frame), (ACTION_PASS, ours.clone()), "the lease has ended");
    assert_eq!(run(&other, 5).action, ACTION_PASS, "another receiver");
    let mut six = other.clone();
    six[12..14].copy_from_slice(&[0x86, 0xdd]);
    assert_eq!(run(&six, 5).action, ACTION_PASS, "not IPv4");

    // A lease is renewed, and closed twice without harm.
    gate.open("192.0.2.1".parse().unwrap(), hardware, 2_000).unwrap();
    assert_eq!(run(&ours, 1_500).action, REDIRECT);
    gate.close("192.0.2.1".parse().unwrap()).unwrap();
    gate.close("192.0.2.1".parse().unwrap()).unwrap();
    assert_eq!(run(&ours, 1_500).action, ACTION_PASS, "closed");
    let counts = gate.counts().unwrap();
    assert_eq!((counts.packets, counts.bytes, counts.late), (2, 2 * ours.len() as u64, 1));
}
