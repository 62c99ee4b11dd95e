//! Compares DCTCP's arithmetic with Rust, and sends a transfer over a link that marks.
#![allow(clippy::print_stderr, reason = "a test; its runner shows it where it fails")]

use std::io::{BufRead, BufReader, Write};

use plimsoll_bpf::shared::DctcpVector;
use plimsoll_bpf::{
    DCTCP_NAME, DctcpArithmetic, HookDirection, Inputs, KernelDctcp, PhantomQueueProgram, ProgramSize,
};
use plimsoll_mechanisms::phantom_queue::PhantomQueueParams;
use plimsoll_mechanisms::tcp::TransportParams;
use plimsoll_mechanisms::tcp::controller::{reduced_window, updated_alpha};
use plimsoll_units::{Bytes, Rate};

use crate::namespace::{Namespace, python, python_is_here};
use crate::sizes::assert_near;
use crate::{Draw, loaded};

#[test]
fn the_arithmetic_is_that_of_rust() {
    let Some(program) = loaded(DctcpArithmetic::load()) else { return };
    let mut draw = Draw::new(1);
    for index in 0..20_000 {
        let acked = draw.magnitude(34);
        let asked = DctcpVector {
            alpha: match draw.below(4) {
                0 => 1 << 30,
                _ => draw.magnitude(30),
            },
            gain: match draw.below(4) {
                0 => 1 << 32,
                1 => 1 << 28,
                _ => draw.magnitude(32),
            },
            acked,
            marked: draw.one_of(&[0, acked, acked / 2, acked / 7]),
            window: draw.magnitude(32),
            shadow: 1 << 31,
            ..Default::default()
        };
        let answer = program.answer(&asked).unwrap();
        let alpha = asked.alpha as u32;
        assert_eq!(
            answer,
            DctcpVector {
                updated: u64::from(updated_alpha(alpha, asked.marked, asked.acked, asked.gain)),
                reduced: reduced_window(asked.window, alpha),
                guarded: asked.window,
                ..asked
            },
            "vector {index}"
        );
    }
}

/// The guard leaves windows that ACKs can explain, and otherwise restores the last recorded window, cut once.
#[test]
fn the_guard_puts_a_window_back() {
    let Some(program) = loaded(DctcpArithmetic::load()) else { return };
    for (shadow, alpha, window, guarded) in [
        (10, 1 << 30, 1_044, 1_044),
        (10, 1 << 30, 1_045, 5),
        (10, 0, 4_000_000_000, 10),
        (3, 1 << 30, 4_000_000_000, 2),
        (4_000_000_000, 1 << 29, 4_294_967_295, 4_294_967_295u64),
    ] {
        let asked = DctcpVector { shadow, alpha, window, ..Default::default() };
        assert_eq!(program.answer(&asked).unwrap().guarded, guarded, "{asked:?}");
    }
}

/// Sends on one connection while nothing is marked, then every packet, then nothing again; 40 MB each are some tens of
/// windows.
#[test]
fn alpha_follows_the_marks_of_a_link() {
    let config = TransportParams::default().resolve().unwrap();
    let Some(dctcp) = loaded(KernelDctcp::register(&config)) else { return };
    assert_near("all callbacks", dctcp.size().unwrap(), ProgramSize { verified: 452, translated: 328 });
    let Some(far) = Namespace::new("dct", 1).filter(|_| python_is_here()) else { return };
    let marker = PhantomQueueParams { threshold: Bytes::ZERO, ..Default::default() };
    let marker = PhantomQueueProgram::load(&marker, Rate::from_gbps(1), Inputs::Kernel).unwrap();

    let mut receiver = far.python(&RECEIVER.replace("CONTROL", DCTCP_NAME));
    let mut progress = BufReader::new(receiver.stdout.take().unwrap()).lines();
    assert_eq!(progress.next().unwrap().unwrap(), "ready");
    let sender = SENDER.replace("CONTROL", DCTCP_NAME).replace("ADDRESS", &far.address());
    let mut sender = python("python3", &[], &sender);
    let mut alpha_after_a_transfer = || {
        writeln!(sender.stdin.as_mut().unwrap(), "go").unwrap();
        assert_eq!(progress.next().unwrap().unwrap(), "received");
        dctcp.counts().unwrap().last_alpha as f64 / f64::from(1 << 30)
    };

    let unmarked = alpha_after_a_transfer();
    let attached = marker.program().attach(far.near_ifindex(), HookDirection::Egress).unwrap();
    let marked = alpha_after_a_transfer();
    drop(attached);
    let unmarked_again = alpha_after_a_transfer();
    drop(sender.stdin.take()); // The end of the sender's input is the end of the connection.
    assert!(sender.wait().unwrap().success() && receiver.wait().unwrap().success());

    let counts = dctcp.counts().unwrap();
    let seen = format!("alpha {unmarked}, {marked}, {unmarked_again}; {counts:?}");
    eprintln!("{seen}");
    assert!(unmarked < 0.5 && marked > 0.9 && unmarked_again < 0.5, "{seen}");
    assert_eq!(counts.connections, 2, "both ends: {seen}");
    assert!(counts.cuts > 10 && counts.ce_changes > 0, "{seen}");
    assert!(marker.state().unwrap().marked > 1_000, "{:?}", marker.state());
}

const RECEIVER: &str = r#"
import socket
listener = socket.socket()
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"CONTROL")
listener.bind(("", 7000))
listener.listen()
print("ready", flush=True)
connection, _ = listener.accept()
received = 0
while data := connection.recv(1 << 20):
    received += len(data)
    if received % (40 << 20) == 0:
        print("received", flush=True)
"#;

const SENDER: &str = r#"
import socket, sys
connection = socket.socket()
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"CONTROL")
connection.connect(("ADDRESS", 7000))
for _ in sys.stdin:
    for _ in range(40):
        connection.sendall(bytes(1 << 20))
"#;
