//! Replays of made-up ingress logs through the live fabric.

use std::fmt::Write;
use std::path::Path;

use plimsoll_fabric::net::{EcnField, HostId};
use plimsoll_linux::frame::Header;
use plimsoll_linux::live::{FrameEntry, Ingress, LiveFabric, Nowhere, replay};
use plimsoll_scenario::Scenario;
use plimsoll_units::{Span, Time};

/// Scenarios whose fabric has a pacer, priorities, flow control, several paths or dead links.
const FABRICS: &[&str] = &[
    "quickstart.toml",
    "hull-kernel/star.toml",
    "detail-kernel/pages.toml",
    "detail/degraded.toml",
    "detail/pages.toml",
    "parity/permutation.toml",
    "parity/priorities.toml",
    "qjump-kernel/switch.toml",
];

/// The number of frames in a log.
const FRAMES: u64 = 4_000;

/// Draws the next number of the generator SplitMix64.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// Frames of all sizes and priorities between all hosts, in bursts that fill queues.
fn log(hosts: u32, bits_per_second: u64) -> Vec<Ingress> {
    let mut state = 14;
    let mut at = Time::ZERO;
    // A frame of 800 bytes on average from half of the hosts at a time.
    let mean_gap = 800 * 8 * 1_000_000_000_000 / bits_per_second / u64::from(hosts / 2).max(1);
    let frame = |_| {
        let from = (draw(&mut state) % u64::from(hosts)) as u32;
        let to = (from + 1 + (draw(&mut state) % u64::from(hosts - 1)) as u32) % hosts;
        // Most go to the first hosts.
        let to = if !draw(&mut state).is_multiple_of(4) && from != to % 2 { to % 2 } else { to };
        let word = draw(&mut state);
        let size = 64 + (word % 1450) as u16;
        let header = Header {
            to: HostId(to),
            flow: from * hosts + to,
            from_larger: from > to,
            tag_priority: Some((word >> 16) as u8 & 7),
            ecn: if word >> 20 & 3 == 0 { EcnField::NotEct } else { EcnField::Ect },
            payload: size - 54.min(size),
            ece: word >> 24 & 31 == 0,
            is_control: false,
            alias: 0,
            dscp: 0,
        };
        at += Span::from_ps(draw(&mut state) % (2 * mean_gap));
        Ingress { at, from: HostId(from), header, size }
    };
    (0..FRAMES).map(frame).collect()
}

/// A row for each variant of each of [`FABRICS`].
pub fn rows(table: &mut String, folder: &Path) {
    for file in FABRICS {
        let scenario = Scenario::load(folder.join(file)).unwrap_or_else(|errors| panic!("{errors:?}"));
        let mut seen: Vec<&str> = Vec::new();
        for point in scenario.points() {
            if seen.contains(&point.variant.as_str()) {
                continue;
            }
            seen.push(&point.variant);
            let fabric = LiveFabric::new(&point.model).unwrap_or_else(|error| panic!("{file}: {error:?}"));
            let rate = fabric.network().link(plimsoll_fabric::net::PortId(0)).rate.as_bps();
            let log = log(fabric.hosts(), rate);
            let end = log.last().expect("a log has frames").at + Span::from_secs(1);
            let entries: Vec<FrameEntry> = log.iter().copied().map(FrameEntry::Frame).collect();
            let digest = replay(fabric, &entries, end);
            let mut again = LiveFabric::new(&point.model).expect("it was built before");
            for entry in &log {
                again.on_frame(entry.at, entry.from, entry.header, entry.size, 0, &mut Nowhere);
            }
            again.advance(end, &mut Nowhere);
            let counters = again.counters();
            writeln!(
                table,
                "replay of {file},{},{:016x},{} dropped {} marked,{:016x}",
                point.label().replace(',', ";"),
                point.digest,
                counters.switch_drops + counters.nic_drops + counters.link_drops + counters.no_route_drops,
                counters.marks,
                digest.0
            )
            .expect("a string takes all");
        }
    }
}
