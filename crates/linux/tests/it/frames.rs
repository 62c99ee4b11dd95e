//! Mutates frames with a seeded generator and feeds them to the edge of a fabric: none may panic, none may be lost
//! without being counted, and every answer is a frame.
//!
//! `FUZZ_SECONDS=60 cargo test -p plimsoll-linux --test it frames` runs for a quarter of a minute, `FUZZ_SEED=7` with
//! other mutations. A failure prints the seed. fuzz/fuzz_targets/frames.rs does the same with a fuzzer's bytes, before
//! the same judge.
#![allow(clippy::print_stdout, reason = "a test; its runner shows it where it fails")]
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "frames/judge.rs"]
mod judge;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use judge::{FABRICS, HOSTS, judge, model};
use plimsoll_fabric::net::HostId;
use plimsoll_linux::frame::{ipv4, ipv6, mac};
use plimsoll_scenario::model::Model;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Rounds without FUZZ_SECONDS.
const ROUNDS: u64 = 300;
/// The share of FUZZ_SECONDS that is ours; the rest is the scenario parser's.
const SHARE: u32 = 4;

fn below(rng: &mut Pcg64Mcg, bound: usize) -> usize {
    (rng.next_u64() % bound.max(1) as u64) as usize
}

/// A frame as a host would send it: IPv4, IPv6, ARP or a solicitation, with tags or without.
fn whole(rng: &mut Pcg64Mcg, from: HostId, to: HostId) -> Vec<u8> {
    let mut frame = [mac(to), mac(from)].concat();
    for _ in 0..below(rng, 4) {
        frame.extend([[0x81, 0x00], [0x88, 0xa8]][below(rng, 2)]);
        frame.extend((rng.next_u64() as u16).to_be_bytes());
    }
    let payload = [0, 1, 8, 20, 60, 1400, 1460, 1500, 9000][below(rng, 9)];
    match below(rng, 4) {
        0 => {
            frame.extend([0x08, 0x00, 0x45, rng.next_u64() as u8]);
            frame.extend(((payload + 20) as u16).to_be_bytes());
            let fragment: [u8; 4] =
                [[0; 4], [0, 1, 0x20, 0], [0, 1, 0x00, 0xb9], [0, 0, 0x40, 0]][below(rng, 4)];
            frame.extend(fragment);
            frame.extend([64, [6, 17, 1, 47, 132][below(rng, 5)], 0, 0]);
            frame.extend(ipv4(from).octets());
            frame.extend(ipv4(to).octets());
        }
        1 => {
            frame.extend([0x86, 0xdd, 0x60, rng.next_u64() as u8, 0, 0]);
            frame.extend((payload as u16).to_be_bytes());
            frame.extend([[6, 17, 58, 0, 44, 60][below(rng, 6)], 255]);
            frame.extend(ipv6(from).octets());
            frame.extend(ipv6(to).octets());
        }
        2 => {
            frame.extend([0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1]);
            frame.extend(mac(from));
            frame.extend(ipv4(from).octets());
            frame.extend([0; 6]);
            frame.extend(ipv4(to).octets());
        }
        _ => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 58, 255]);
            frame.extend(ipv6(from).octets());
            frame.extend(ipv6(to).octets());
            frame.extend([135, 0, 0, 0, 0, 0, 0, 0]);
            frame.extend(ipv6(to).octets());
        }
    }
    let random = std::iter::repeat_with(|| rng.next_u64() as u8);
    frame.extend(random.take(payload));
    frame
}

/// Cuts it, turns bytes, repeats or inserts some, as a host may send them.
fn mutate(frame: &mut Vec<u8>, rng: &mut Pcg64Mcg) {
    for _ in 0..below(rng, 4) {
        let at = below(rng, frame.len().min(80));
        match below(rng, 5) {
            0 => frame.truncate(at),
            1 if at < frame.len() => frame[at] = rng.next_u64() as u8,
            2 if at < frame.len() => frame[at] = [0, 0xff, 0x7f, 0x80][below(rng, 4)],
            3 => frame.insert(at, rng.next_u64() as u8),
            _ => frame.resize([0, 13, 14, 34, 59, 1522, 1523, 70_000][below(rng, 8)], 0),
        }
    }
}

#[test]
fn no_frame_panics_and_none_is_lost_unseen() {
    let models: Vec<Model> = FABRICS.into_iter().map(model).collect();
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let limit = number("FUZZ_SECONDS").map(|seconds| Duration::from_secs(seconds) / SHARE);
    let first = number("FUZZ_SEED").unwrap_or(1);
    let start = Instant::now();
    for seed in first.. {
        let done = match limit {
            Some(limit) => start.elapsed() > limit,
            None => seed - first >= ROUNDS,
        };
        if done {
            println!("{} rounds", seed - first);
            break;
        }
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let frames: Vec<(HostId, Vec<u8>)> = (0..64)
            .map(|_| {
                let from = HostId(below(&mut rng, HOSTS as usize) as u32);
                let to = HostId(below(&mut rng, HOSTS as usize + 1) as u32);
                let mut frame = whole(&mut rng, from, to);
                mutate(&mut frame, &mut rng);
                (from, frame)
            })
            .collect();
        let model = &models[below(&mut rng, models.len())];
        if catch_unwind(AssertUnwindSafe(|| judge(model, frames))).is_err() {
            panic!("FUZZ_SEED={seed} cargo test -p plimsoll-linux --test it frames");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Random bytes behind an address of a host, so that they are parsed.
    #[test]
    fn any_bytes_are_carried_answered_or_counted(
        kind in 0..FABRICS.len(),
        frames in prop::collection::vec((0..HOSTS, 0..HOSTS, prop::collection::vec(any::<u8>(), 0..200)), 1..40),
    ) {
        let of = |(from, to, bytes): (u32, u32, Vec<u8>)| {
            let mut frame = mac(HostId(to)).to_vec();
            frame.extend(bytes);
            (HostId(from), frame)
        };
        judge(&model(FABRICS[kind]), frames.into_iter().map(of).collect());
    }
}
