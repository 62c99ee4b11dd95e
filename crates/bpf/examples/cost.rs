//! What each program costs a packet: `cargo run --release -p plimsoll-bpf --features kernel --example cost`, as root.
//!
//! The mean of a BPF_PROG_TEST_RUN over many runs, its median over rounds in which all programs take turns, less
//! the same for an empty program, and less the same for one that only reads the clock. The kernel gives whole
//! nanoseconds.
#![allow(clippy::unwrap_used, reason = "constants within their ranges")]

use plimsoll_bpf::{Error, Inputs, Limiter, Packet, PacketClassifier, PhantomQueue, Program, QueueLength};
use plimsoll_mechanisms::ecn::EcnParams;
use plimsoll_mechanisms::phantom_queue::PhantomQueueParams;
use plimsoll_mechanisms::qjump::{Excess, LevelShare, Levels, QjumpParams};
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
    // A test run sends a packet every 50 ns or so: less than this link drains, and more than that one.
    let below = phantom_queue(Rate::from_gbps(400))?;
    let over = phantom_queue(Rate::from_mbps(100))?;
    let backlog = QueueLength::load(&EcnParams::default(), Inputs::Kernel)?;
    let subjects = [
        ("nothing", &empty, Reads::Nothing),
        ("the clock alone", &clock, Reads::Clock),
        ("QJump limiter: level without limit", line.program(), Reads::Nothing),
        ("QJump limiter: packet passes", pass.program(), Reads::Clock),
        ("QJump limiter: packet passes and refills", refill.program(), Reads::Clock),
        ("QJump limiter: packet refused", refuse.program(), Reads::Clock),
        ("QJump limiter: packet passes, its DSCP checked", dscp.program(), Reads::Clock),
        ("QJump at a switch: level from DSCP", switch.program(), Reads::Nothing),
        ("phantom queue: below the threshold", below.program(), Reads::Clock),
        ("phantom queue: over it, CE set or there", over.program(), Reads::Clock),
        ("queue-length marker: below the threshold", backlog.program(), Reads::Nothing),
    ];
    let frame = frame();
    let mut times = vec![Vec::with_capacity(ROUNDS); subjects.len()];
    for _ in 0..ROUNDS {
        for (times, (_, program, _)) in times.iter_mut().zip(&subjects) {
            times.push(program.time(&Packet::new(&frame), RUNS)?.as_nanos() as i64);
        }
    }
    let medians: Vec<i64> = times.into_iter().map(median).collect();
    println!(
        "{:<48} {:>5} {:>9} {:>9}  {:>9} {:>10}",
        "", "run", "-nothing", "-clock", "verified", "translated"
    );
    for ((label, program, reads), median) in subjects.iter().zip(&medians) {
        let above = median - medians[0];
        let rule = if *reads == Reads::Clock { format!("{} ns", median - medians[1]) } else { String::new() };
        let size = program.size()?;
        println!(
            "{label:<48} {median:>2} ns {above:>6} ns {rule:>9}  {:>9} {:>10}",
            size.verified, size.translated
        );
    }
    Ok(())
}

#[derive(PartialEq)]
enum Reads {
    Nothing,
    Clock,
}

fn limiter(share: LevelShare, write_dscp: bool) -> Result<Limiter, Error> {
    // Of the refilling one, some hundred packets share an epoch.
    let params = QjumpParams { levels: vec![share], epoch: Some(Span::from_us(5)), ..Default::default() };
    let levels: Levels = params.resolve(12, Rate::from_gbps(10)).unwrap();
    Limiter::load(&levels, Excess::Refuse, write_dscp, Inputs::Kernel)
}

fn phantom_queue(link: Rate) -> Result<PhantomQueue, Error> {
    PhantomQueue::load(&PhantomQueueParams::default(), link, Inputs::Kernel)
}

/// IPv4 and UDP, ECT(0), DSCP 0, 64 bytes.
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
