//! Runs an arm: rounds with connections of their own, seen at the first host's device.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use plimsoll_bursts::{Address, Analyser, Captured, Frame, Options, Report};
use plimsoll_fabric::net::HostId;
use plimsoll_linux::frame::ipv6;
use plimsoll_linux::packet_socket::PacketSocket;
use plimsoll_linux::{HOST_DEVICE, Star, StarSettings};
use plimsoll_stats::{self as stats, Samples, Statistic};
use plimsoll_units::Time;

use super::arm::Arm;
use super::flows::StarFlows;
use super::trains::{LINK, PACKET_PAYLOAD, between_us, segments, trains};
use crate::rounds::in_rounds;
use crate::task::Measured;

/// Headers of a packet: IPv6 and TCP without options.
const HEADERS: u32 = 60;
/// The most bytes of a connection's buffers, as the simulated hosts have them.
const SOCKET_BUFFER: u64 = 32 << 20;

/// How long an arm is measured.
#[derive(Clone, Copy)]
pub(super) struct Length {
    pub(super) count: u32,
    pub(super) warm_up_ms: u64,
    pub(super) time_ms: u64,
}

impl Length {
    pub(super) fn of(quick: bool) -> Length {
        match quick {
            true => Length { count: 1, warm_up_ms: 300, time_ms: 300 },
            false => Length { count: 6, warm_up_ms: 400, time_ms: 600 },
        }
    }
}

/// The frames of a round, and its throughput.
struct RoundSeen {
    segments: Vec<f64>,
    trains: Vec<f64>,
    uninterrupted: Vec<f64>,
    between_us: Vec<f64>,
    gbps_each: f64,
    /// What timestamps of frames that the host hands over resolve, by the estimate of `plimsoll bursts`.
    floor_us: f64,
    report: Report,
    dropped: u64,
}

/// Measures an arm.
///
/// # Errors
/// If the system refuses the star, its connections or the packet socket, or the run is cancelled.
pub(super) fn measure(
    arm: &Arm,
    length: Length,
    goes_on: &dyn Fn() -> bool,
) -> anyhow::Result<Vec<Measured>> {
    let rounds = in_rounds(1, length.count, goes_on, |_, _| round(arm, length))?;
    Ok(rows(arm, &rounds[0]))
}

fn round(arm: &Arm, length: Length) -> anyhow::Result<RoundSeen> {
    let star = Star::create(&StarSettings {
        hosts: arm.hosts,
        mtu: PACKET_PAYLOAD + HEADERS,
        segmentation_offload: arm.segmentation_offload,
        segment_bytes: arm.segment_bytes,
        segment_packets: arm.one_by_one.then_some(1),
        receive_offload: arm.receive_offload,
        output_limit: arm.output_limit,
        socket_buffer: SOCKET_BUFFER,
        rate: arm.rate,
    })
    .context("cannot join namespaces by a bridge")?;
    let flows = StarFlows::start(&star, arm).context("cannot open the connections")?;
    let half = Duration::from_millis(length.warm_up_ms) / 2;
    thread::sleep(half);
    flows.narrow_windows(arm).context("cannot narrow the windows")?;
    thread::sleep(half);
    let opened = star.inside(0, || PacketSocket::open_ethernet(HOST_DEVICE).map_err(std::io::Error::other));
    let mut socket = opened.context("cannot receive the packets of the first host")?;
    let stop = AtomicBool::new(false);
    let (before, begun) = (flows.received(), Instant::now());
    let captured = thread::scope(|scope| {
        let capture = thread::Builder::new().spawn_scoped(scope, || capture(&mut socket, &stop))?;
        thread::sleep(Duration::from_millis(length.time_ms));
        stop.store(true, Ordering::Relaxed);
        let (bytes, seconds) = (flows.received() - before, begun.elapsed().as_secs_f64());
        capture.join().expect("the capture does not panic").map(|frames| (frames, bytes, seconds))
    });
    let (frames, bytes, seconds) = captured.context("the packets of the first host")?;
    drop(flows);
    let link = arm.rate.unwrap_or(LINK);
    let own = Address::V6(ipv6(HostId(0)).to_bits());
    let report = |frames: &mut dyn Iterator<Item = &Frame>| {
        let mut analyser = Analyser::new(Options::default());
        frames.for_each(|frame| analyser.frame(frame));
        analyser.finish()
    };
    Ok(RoundSeen {
        segments: segments(&frames, own),
        trains: trains(&frames, own, link, false),
        uninterrupted: trains(&frames, own, link, true),
        between_us: between_us(&frames, own),
        gbps_each: bytes as f64 * 8e-9 / seconds / f64::from(arm.senders()),
        floor_us: report(&mut frames.iter().filter(|frame| frame.source == own)).timestamps.floor_ns / 1e3,
        report: report(&mut frames.iter()),
        dropped: socket.dropped(),
    })
}

/// Receives frames until it is to stop. It sleeps between two looks, so that it does not interrupt a sender for every
/// frame.
fn capture(socket: &mut PacketSocket, stop: &AtomicBool) -> std::io::Result<Vec<Frame>> {
    // It goes before the senders, as far as the system allows; else frames are lost, and counted.
    let _ = rustix::process::setpriority_process(None, -20);
    let mut frames: Vec<Frame> = Vec::new();
    let mut first = None;
    while !stop.load(Ordering::Relaxed) {
        let count = socket.receive(|packet| {
            let first = *first.get_or_insert(packet.ns);
            let time = Time::from_ps(packet.ns.saturating_sub(first).saturating_mul(1_000));
            let (number, length) = (frames.len() as u64 + 1, packet.length as u32);
            frames.push(Frame::decode(&Captured::ethernet(number, time, length, packet.data), 0, false));
        })?;
        if count < FEW {
            thread::sleep(LOOK_AGAIN);
        }
    }
    Ok(frames)
}

/// So few frames of a look are all that there were.
const FEW: usize = 64;
const LOOK_AGAIN: Duration = Duration::from_millis(1);

fn rows(arm: &Arm, rounds: &[RoundSeen]) -> Vec<Measured> {
    let suspect = rounds.iter().any(|seen| seen.dropped > 0);
    let mut rows = Vec::new();
    let mut push = |metric: String, unit: &str, estimate: Option<stats::Estimate>| {
        let unit = unit.to_owned();
        rows.extend(estimate.map(|estimate| Measured { series: None, metric, unit, estimate, suspect }));
    };
    let of_rounds = |lengths: fn(&RoundSeen) -> &Vec<f64>| {
        Samples::new(rounds.iter().map(|seen| lengths(seen).clone()).collect())
    };
    let lengths = [
        ("segment", of_rounds(|seen| &seen.segments)),
        ("train", of_rounds(|seen| &seen.trains)),
        ("uninterrupted", of_rounds(|seen| &seen.uninterrupted)),
    ];
    for (name, samples) in lengths {
        for (percentile, share) in [("p10", 0.1), ("p50", 0.5), ("p90", 0.9)] {
            push(format!("{name}_{percentile}"), "packets", samples.estimate(Statistic::Percentile(share)));
        }
    }
    let between = of_rounds(|seen| &seen.between_us);
    push("between_us_p50".to_owned(), "us", between.estimate(Statistic::Percentile(0.5)));
    let median = |of: &dyn Fn(&RoundSeen) -> Option<f64>| {
        stats::median(&rounds.iter().filter_map(of).collect::<Vec<f64>>())
    };
    push("ack_kb".to_owned(), "KB", median(&|seen| Some(seen.report.acks.ratio()? / 1e3)));
    push("throughput".to_owned(), "Gb/s", median(&|seen| Some(seen.gbps_each)));
    let resent = |seen: &RoundSeen| {
        let losses = &seen.report.losses.seen;
        Some(100.0 * losses.retransmitted as f64 / losses.segments.max(1) as f64)
    };
    push("resent".to_owned(), "%", median(&resent));
    if !arm.segmentation_offload {
        push("floor_us".to_owned(), "us", median(&|seen| Some(seen.floor_us)));
    }
    rows
}
