//! Compares the limiter with Rust in thousands of sequences: each decision and each bucket.

use plimsoll_bpf::shared::{QJUMP_GUESTS, QJUMP_UNLIMITED};
use plimsoll_bpf::{Inputs, LimitedGuest, LimiterProgram, Packet, Tag};
use plimsoll_mechanisms::qjump::{self, Excess, Level, Levels, Verdict};
use plimsoll_units::{Bytes, Rate, Span, Time};

use crate::{Draw, frames, loaded};

const SETTINGS: u64 = 60;
const SEQUENCES: u64 = 50;
const PACKETS: u64 = 60;

#[test]
fn every_decision_and_bucket_is_that_of_rust() {
    let frame = frames::ipv4(0b10, 0, 30);
    let mut verdicts = [0u64; 3];
    for seed in 0..SETTINGS {
        let mut draw = Draw::new(seed);
        let levels = levels(&mut draw);
        let excess = draw.one_of(&[Excess::Refuse, Excess::Drop]);
        let Some(limiter) = loaded(LimiterProgram::load(&levels, excess, false, Inputs::Packet)) else {
            return;
        };
        let whole = Levels { epoch: LimiterProgram::epoch(&levels), ..levels.clone() };
        for sequence in 0..SEQUENCES {
            limiter.reset().unwrap();
            let mut twin = qjump::Limiter::new(&whole, excess);
            let mut now_ns = draw.magnitude(53);
            for index in 0..PACKETS {
                let epoch_ns = whole.epoch.as_ps() / 1_000;
                now_ns = next(&mut draw, now_ns, epoch_ns);
                let priority = draw.below(10) as u32;
                let level = if priority < 8 { priority as u8 } else { 0 };
                let wire_len = frame.len() as u32 + draw.magnitude(15) as u32;
                let leaves_ns = stamp(&mut draw, now_ns);
                let packet = Packet { wire_len, priority, now_ns, leaves_ns, ..Packet::new(&frame) };
                let at = format!("seed {seed}, sequence {sequence}, packet {index}: {packet:?} of {whole:?}");
                let verdict = limiter.test_run(&packet).unwrap();
                let now = Time::from_ps(now_ns * 1_000);
                let stamp = (leaves_ns > 0).then(|| Time::from_ps(leaves_ns * 1_000));
                let expected = twin.on_stamped_packet(stamp, now, level, u64::from(wire_len));
                assert_eq!(verdict, expected, "{at}");
                // A level without limit keeps no state in the kernel.
                let limited = whole
                    .levels
                    .get(usize::from(level))
                    .is_none_or(|level| level.bucket.get() != QJUMP_UNLIMITED);
                let state = if limited { twin.bucket(level) } else { (Bytes::ZERO, Time::ZERO) };
                let bucket = limiter.bucket(level).unwrap();
                assert_eq!((bucket.bytes, bucket.next_ns * 1_000), (state.0.get(), state.1.as_ps()), "{at}");
                verdicts[verdict as usize] += 1;
            }
        }
    }
    assert!(verdicts.iter().all(|count| *count > 1_000), "vectors that show little: {verdicts:?}");
}

/// Each guest's decisions and buckets are those of a limiter in Rust that sees its packets alone.
#[test]
fn every_guest_has_the_buckets_of_a_limiter_in_rust() {
    let addresses: Vec<u64> = (0..QJUMP_GUESTS).map(|guest| 0x5254_0000_0000 + guest * 0x1_0001).collect();
    let mut verdicts = [0u64; 3];
    for seed in 0..SETTINGS {
        let mut draw = Draw::new(1_000 + seed);
        let levels = levels(&mut draw);
        let whole = Levels { epoch: LimiterProgram::epoch(&levels), ..levels.clone() };
        let excess = draw.one_of(&[Excess::Refuse, Excess::Drop]);
        let count = draw.below(QJUMP_GUESTS + 1) as usize;
        let guest = |draw: &mut Draw, address: &u64| LimitedGuest {
            address: *address,
            level: draw.one_of(&[None, Some(7), Some(0), Some(3)]),
        };
        let guests: Vec<_> = addresses[..count].iter().map(|address| guest(&mut draw, address)).collect();
        let limiter = LimiterProgram::load_for_guests(&levels, excess, Tag::None, &guests, Inputs::Packet);
        let Some(limiter) = loaded(limiter) else { return };
        let mut twins = vec![qjump::Limiter::new(&whole, excess); count + 1];
        let mut now_ns = draw.magnitude(53);
        for index in 0..PACKETS * 5 {
            now_ns = next(&mut draw, now_ns, whole.epoch.as_ps() / 1_000);
            let sender = draw.below(QJUMP_GUESTS + 1) as usize;
            let selector = draw.below(8) as u8;
            let mut frame = match draw.below(3) {
                0 => frames::ipv4(0b10, selector << 3, 30),
                1 => frames::ipv6(0b01, selector << 3, 0x12345, 30),
                _ => frames::arp(),
            };
            let class = frames::class(&frame).map_or(0, |class| class >> 5);
            if sender > 0 {
                frame[6..12].copy_from_slice(&addresses[sender - 1].to_be_bytes()[2..]);
            }
            let priority = draw.below(10) as u32;
            // An address that the limiter has not got is the host's.
            let (number, level) = match guests.get(sender.wrapping_sub(1)) {
                Some(guest) => (sender, guest.level.unwrap_or(class)),
                None => (0, if priority < 8 { priority as u8 } else { 0 }),
            };
            let wire_len = frame.len() as u32 + draw.magnitude(15) as u32;
            let packet = Packet { wire_len, priority, now_ns, ..Packet::new(&frame) };
            let at = format!("seed {seed}, packet {index}: {packet:?} of {guests:?}, {whole:?}");
            let expected = twins[number].on_packet(Time::from_ps(now_ns * 1_000), level, u64::from(wire_len));
            let verdict = limiter.test_run(&packet).unwrap();
            assert_eq!(verdict, expected, "{at}");
            verdicts[verdict as usize] += 1;
            let limited = whole
                .levels
                .get(usize::from(level))
                .is_none_or(|level| level.bucket.get() != QJUMP_UNLIMITED);
            if limited {
                let (bytes, next) = twins[number].bucket(level);
                let bucket = limiter.bucket_of(number, level).unwrap();
                assert_eq!((bucket.bytes, bucket.next_ns * 1_000), (bytes.get(), next.as_ps()), "{at}");
            }
        }
        let passed = (0..=count).flat_map(|guest| (0..8).map(move |level| (guest, level)));
        let counts = passed.map(|(guest, level)| limiter.counts_of(guest, level).unwrap());
        assert_eq!(counts.map(|count| count.passed + count.refused).sum::<u64>(), PACKETS * 5);
    }
    assert!(verdicts.iter().all(|count| *count > 500), "vectors that show little: {verdicts:?}");
}

#[test]
fn time_after_the_end_of_time_saturates() {
    let levels = Levels { epoch: Span::from_us(1), levels: vec![level(100)] };
    let Some(limiter) = loaded(LimiterProgram::load(&levels, Excess::Refuse, false, Inputs::Packet)) else {
        return;
    };
    let frame = frames::ipv4(0, 0, 0);
    let packet = Packet { now_ns: u64::MAX, wire_len: 60, ..Packet::new(&frame) };
    assert_eq!(limiter.test_run(&packet).unwrap(), Verdict::Send);
    assert_eq!(limiter.bucket(0).unwrap().next_ns, u64::MAX);
    // The epoch cannot end later, so every packet refills the bucket.
    assert_eq!(limiter.test_run(&packet).unwrap(), Verdict::Send);
}

#[test]
fn excess_is_counted_per_level() {
    let levels = Levels { epoch: Span::from_ms(1), levels: vec![level(100); 8] };
    let Some(limiter) = loaded(LimiterProgram::load(&levels, Excess::Drop, false, Inputs::Packet)) else {
        return;
    };
    let frame = frames::ipv4(0, 0, 0);
    for _ in 0..5 {
        limiter.test_run(&Packet { priority: 6, wire_len: 50, ..Packet::new(&frame) }).unwrap();
    }
    let excess: Vec<u64> = (0..8).map(|level| limiter.bucket(level).unwrap().excess).collect();
    assert_eq!(excess, [0, 0, 0, 0, 0, 0, 3, 0]);
}

/// Returns levels with epochs of all magnitudes, also fractions of a nanosecond; one to eight levels.
fn levels(draw: &mut Draw) -> Levels {
    let count = 1 + draw.below(8);
    let bucket = |draw: &mut Draw| match draw.below(6) {
        0 => QJUMP_UNLIMITED,
        1 => 64,
        _ => draw.magnitude(20),
    };
    Levels {
        epoch: Span::from_ps(1 + draw.magnitude(40)),
        levels: (0..count).map(|_| level(bucket(draw))).collect(),
    }
}

fn level(bucket: u64) -> Level {
    Level { bucket: Bytes::new(bucket), rate: Rate::from_gbps(10), latency_bound: None }
}

/// Draws a stamp: none, as of UDP; the time itself or an earlier one, as of TCP; sometimes a later one.
fn stamp(draw: &mut Draw, now_ns: u64) -> u64 {
    match draw.below(8) {
        0..=2 => 0,
        3 => now_ns,
        4 => now_ns + draw.magnitude(30),
        _ => now_ns.saturating_sub(draw.magnitude(40)),
    }
}

/// Draws the next time: at once, within the epoch, at its very end, beyond it, or back.
fn next(draw: &mut Draw, now_ns: u64, epoch_ns: u64) -> u64 {
    match draw.below(8) {
        0 | 1 => now_ns,
        2 | 3 => now_ns + draw.below(epoch_ns),
        4 => now_ns + epoch_ns,
        5 => (now_ns + epoch_ns).saturating_sub(1),
        6 => now_ns + epoch_ns + draw.magnitude(40),
        _ => now_ns.saturating_sub(draw.magnitude(20)),
    }
}
