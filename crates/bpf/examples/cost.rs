//! Measures the cost of each program per packet. Run it as root: `cargo run --release -p plimsoll-bpf --features kernel
//! --example cost`.
//!
//! Each figure is the mean of many BPF_PROG_TEST_RUN runs, its median over rounds in which all programs take turns,
//! minus an empty program's, and minus the one of a program that only reads the clock. The kernel reports whole
//! nanoseconds.
#![allow(clippy::unwrap_used, reason = "constants within their ranges")]

use std::os::fd::AsFd as _;

use plimsoll_bpf::{
    Error, Inputs, LimiterProgram, PacerFeedback, PacerProgram, Packet, PacketClassifier,
    PhantomQueueProgram, Program, QueueLength,
};
use plimsoll_mechanisms::ecn::EcnParams;
use plimsoll_mechanisms::pacer::PacerParams;
use plimsoll_mechanisms::phantom_queue::PhantomQueueParams;
use plimsoll_mechanisms::qjump::{Excess, LevelShare, Levels, QjumpParams};
use plimsoll_process::outln;
use plimsoll_units::{Bytes, Rate, Span};

const ROUNDS: usize = 31;
const RUNS: u32 = 200_000;

fn main() -> Result<(), Error> {
    let (empty, clock) = (Program::empty()?, Program::clock()?);
    let line = limiter(LevelShare::Line, false)?;
    let pass = limiter(LevelShare::Bytes(Bytes::new(1 << 40)), false)?;
    let refill = limiter(LevelShare::Bytes(Bytes::new(9_000)), false)?;
    let refuse = limiter(LevelShare::Factor(1.0), false)?;
    let dscp = limiter(LevelShare::Bytes(Bytes::new(1 << 40)), true)?;
    let switch = PacketClassifier::load()?;
    // A test run sends a packet about every 50 ns: less than the first link drains, and more than the second.
    let below = phantom_queue(Rate::from_gbps(400))?;
    let over = phantom_queue(Rate::from_mbps(100))?;
    let backlog = QueueLength::load(&EcnParams::default(), Inputs::Kernel)?;
    let (pacer, feedback) = pacer(1.0)?;
    let (none, _) = self::pacer(0.0)?;
    let (data, acknowledgement) = (tcp(true), tcp(false));
    // The flow is associated once; the timed packets are then paced, at a rate whose waits are negligible.
    feedback.program().test_run(&Packet::new(&acknowledgement))?;
    let frame = frame();
    let subjects = [
        ("nothing", &empty, Reads::Nothing, &frame),
        ("the clock alone", &clock, Reads::Clock, &frame),
        ("QJump limiter: level without limit", line.program(), Reads::Nothing, &frame),
        ("QJump limiter: packet passes", pass.program(), Reads::Clock, &frame),
        ("QJump limiter: packet passes and refills", refill.program(), Reads::Clock, &frame),
        ("QJump limiter: packet of TCP, in its epoch", pass.program(), Reads::Stamp, &frame),
        ("QJump limiter: packet refused", refuse.program(), Reads::Clock, &frame),
        ("QJump limiter: packet passes, its DSCP checked", dscp.program(), Reads::Clock, &frame),
        ("QJump at a switch: level from DSCP", switch.program(), Reads::Nothing, &frame),
        ("phantom queue: below the threshold", below.program(), Reads::Clock, &frame),
        ("phantom queue: over it, CE set or there", over.program(), Reads::Clock, &frame),
        ("queue-length marker: below the threshold", backlog.program(), Reads::Nothing, &frame),
        ("pacer: connection is not paced", none.program(), Reads::Clock, &data),
        ("pacer: packet gets its departure", pacer.program(), Reads::Clock, &data),
        ("pacer: acknowledgement without ECE", feedback.program(), Reads::Nothing, &data),
        ("pacer: acknowledgement with ECE, associates", feedback.program(), Reads::Clock, &acknowledgement),
    ];
    let mut times = vec![Vec::with_capacity(ROUNDS); subjects.len()];
    for _ in 0..ROUNDS {
        for (times, (_, program, reads, frame)) in times.iter_mut().zip(&subjects) {
            let packet = Packet { leaves_ns: u64::from(*reads == Reads::Stamp), ..Packet::new(frame) };
            times.push(program.time(&packet, RUNS)?.as_nanos() as i64);
        }
    }
    let medians: Vec<i64> = times.into_iter().map(median).collect();
    outln!(
        "{:<48} {:>5} {:>9} {:>9}  {:>9} {:>10}",
        "",
        "run",
        "-nothing",
        "-clock",
        "verified",
        "translated"
    );
    for ((label, program, reads, _), median) in subjects.iter().zip(&medians) {
        let above = median - medians[0];
        let rule = if *reads == Reads::Clock { format!("{} ns", median - medians[1]) } else { String::new() };
        let size = program.size()?;
        outln!(
            "{label:<48} {median:>2} ns {above:>6} ns {rule:>9}  {:>9} {:>10}",
            size.verified,
            size.translated
        );
    }
    Ok(())
}

#[derive(PartialEq)]
enum Reads {
    Nothing,
    Clock,
    /// The time with which TCP has stamped the packet.
    Stamp,
}

fn limiter(share: LevelShare, write_dscp: bool) -> Result<LimiterProgram, Error> {
    // About a hundred packets of the refilling limiter share an epoch.
    let params = QjumpParams { levels: vec![share], epoch: Some(Span::from_us(5)), ..Default::default() };
    let levels: Levels = params.resolve(12, Rate::from_gbps(10)).unwrap();
    LimiterProgram::load(&levels, Excess::Refuse, write_dscp, Inputs::Kernel)
}

fn phantom_queue(link: Rate) -> Result<PhantomQueueProgram, Error> {
    PhantomQueueProgram::load(&PhantomQueueParams::default(), link, Inputs::Kernel)
}

/// Returns a pacer of 100 Gb/s whose acknowledgements with ECE all associate, or none, for as long as it is timed.
fn pacer(association_probability: f64) -> Result<(PacerProgram, PacerFeedback), Error> {
    let rate = Rate::from_gbps(100);
    let params = PacerParams {
        association_probability,
        association_timeout: Span::from_secs(1_000),
        initial_rate: rate,
        min_rate: Some(rate),
        ..Default::default()
    };
    let pacer = PacerProgram::load(&params, &[], Inputs::Kernel)?;
    let feedback = PacerFeedback::load(&params, pacer.flows()?.as_fd(), Inputs::Kernel)?;
    Ok((pacer, feedback))
}

/// Returns a data packet of a connection, without payload, or an acknowledgement with ECE.
fn tcp(leaves: bool) -> Vec<u8> {
    let mut frame = frame();
    let (addresses, ports, flags) = if leaves {
        ([10, 0, 0, 1, 10, 0, 0, 2], [0, 1, 0, 2], 0x10)
    } else {
        ([10, 0, 0, 2, 10, 0, 0, 1], [0, 2, 0, 1], 0x50)
    };
    frame[23] = 6;
    frame[26..34].copy_from_slice(&addresses);
    frame[34..38].copy_from_slice(&ports);
    frame[47] = flags;
    frame
}

/// Returns a frame of IPv4 and UDP with ECT(0), DSCP 0 and 64 bytes.
fn frame() -> Vec<u8> {
    let mut frame = vec![0x02; 12];
    frame.extend([0x08, 0, 0x45, 0b10, 0, 50, 0, 0, 0x40, 0, 64, 17, 0x26, 0xb7, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.resize(64, 0);
    frame
}

fn median(mut times: Vec<i64>) -> i64 {
    times.sort_unstable();
    times[times.len() / 2]
}
