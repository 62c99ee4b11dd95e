use super::*;
use plimsoll_units::{Bytes, Rate};
use proptest::prelude::*;

const HIT: fn() -> u64 = || 0;
const MISS: fn() -> u64 = || u64::MAX;

fn at_us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// Returns the departures of the pacer up to `end`, with the times, polling when it requests it.
fn departures<T>(pacer: &mut HostPacer<T>, mut now: Time, end: Time) -> Vec<(Time, T)> {
    let mut out = Vec::new();
    while now <= end {
        while let Some(item) = pacer.poll(now) {
            out.push((now, item));
        }
        match pacer.next_due() {
            Some(due) => {
                assert!(due > now, "due at {due}, polled at {now}");
                now = due;
            }
            None => break,
        }
    }
    out
}

#[test]
fn flows_without_congestion_bypass() {
    let mut pacer = HostPacer::new(&PacerParams::default());
    assert_eq!(pacer.on_packet(Time::ZERO, 1, 990, 'a'), Admission::Bypass('a'));
    assert!(!pacer.on_ece(Time::ZERO, 1, MISS));
    assert_eq!(pacer.on_packet(Time::ZERO, 1, 990, 'b'), Admission::Bypass('b'));
    assert_eq!(pacer.next_due(), None);
    assert_eq!(pacer.counts(), PacedCounts { paced: 0, bypassed: 2 });
}

#[test]
fn a_burst_leaves_by_the_bucket_and_then_at_the_rate() {
    let mut pacer = HostPacer::new(&PacerParams::default());
    assert!(pacer.on_ece(Time::ZERO, 1, HIT));
    for packet in 0..5 {
        assert_eq!(pacer.on_packet(Time::ZERO, 1, 1_000, packet), Admission::Queued);
    }
    assert_eq!((pacer.backlog_bytes(), pacer.backlog_packets()), (5_000, 5));
    // The bucket lets three packets pass. 6400 of the next 8000 bit have come when, at 64 us, the rate becomes 0.875 x
    // 100 + 0.125 x 40000/64 + 16e-6 x 16000 = 165.881 Mb/s.
    let out = departures(&mut pacer, Time::ZERO, at_us(1_000));
    let third = Time::ZERO;
    let fourth = Time::from_ps(64_000_000 + 9_645_469);
    let fifth = Time::from_ps(64_000_000 + 57_872_813);
    assert_eq!(out, [(third, 0), (third, 1), (third, 2), (fourth, 3), (fifth, 4)]);
    assert_eq!(pacer.next_due(), None);
}

#[test]
fn others_overtake_but_never_within_a_flow() {
    let params = PacerParams { association_timeout: Span::from_us(10), ..PacerParams::default() };
    let mut pacer = HostPacer::new(&params);
    pacer.on_ece(Time::ZERO, 1, HIT);
    pacer.on_packet(Time::ZERO, 1, 3_000, 'a');
    pacer.on_packet(Time::ZERO, 1, 990, 'b');
    assert_eq!(pacer.poll(Time::ZERO), Some('a'));
    // The association of flow 1 has ended, yet 'c' must not pass 'b'.
    let later = at_us(20);
    assert_eq!(pacer.poll(later), None);
    assert_eq!(pacer.on_packet(later, 2, 990, 'x'), Admission::Bypass('x'));
    assert_eq!(pacer.on_packet(later, 1, 990, 'c'), Admission::Queued);
    let out = departures(&mut pacer, later, at_us(1_000));
    assert_eq!(out.iter().map(|&(_, item)| item).collect::<String>(), "bc");
    assert_eq!(pacer.on_packet(at_us(1_000), 1, 990, 'd'), Admission::Bypass('d'));
    assert_eq!(pacer.flows().counts_of(at_us(1_000), 1).dissociations, 1);
}

#[test]
fn an_idle_pacer_asks_for_nothing() {
    let mut pacer = HostPacer::new(&PacerParams::default());
    pacer.on_packet(Time::ZERO, 1, 990, ());
    assert_eq!(pacer.next_due(), None);
    assert_eq!(pacer.rate(Time::ZERO + Span::from_secs(1)), Rate::ZERO);
}

/// The same bucket without the shortcut.
fn tick_by_tick(bucket: &mut ContinuousBucket, now: Time) {
    while bucket.next_tick <= now {
        bucket.tick();
    }
    bucket.fill(now);
}

fn any_params() -> impl Strategy<Value = PacerParams> {
    let rates = prop_oneof![Just(None), (1_000u64..1_000_000_000).prop_map(Some)];
    (8u64..200, 0.02f64..=1.0, 16f64..5_000.0, 0u64..2_000_000_000, rates, 40u64..20_000).prop_map(
        |(interval, eta, beta, initial, min, bucket)| PacerParams {
            interval: Span::from_us(interval),
            eta,
            beta,
            initial_rate: Rate::from_bps(initial),
            min_rate: min.map(Rate::from_bps),
            bucket: Bytes::new(bucket),
            association_probability: 1.0,
            ..PacerParams::default()
        },
    )
}

fn any_gap() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0u64), 3 => 0u64..200_000_000, 1 => 0u64..50_000_000_000]
}

proptest! {
    #[test]
    fn catching_up_equals_ticking(
        params in any_params(),
        calls in prop::collection::vec((any_gap(), 40u64..9_000), 1..40),
    ) {
        let mut quick = ContinuousBucket::new(&params);
        quick.start(at_us(3));
        let (mut slow, mut now) = (quick, at_us(3));
        for (gap, bytes) in calls {
            now += Span::from_ps(gap);
            quick.advance(now);
            tick_by_tick(&mut slow, now);
            prop_assert_eq!(quick, slow);
            for bucket in [&mut quick, &mut slow] {
                bucket.law.on_received(8 * bytes);
                bucket.backlog += 8 * bytes;
                if !bucket.pay(8 * bytes) {
                    bucket.backlog -= 8 * bytes;
                }
            }
        }
    }

    /// FIFO, nothing lost, nothing starved, and the bound on the output in the module's head.
    #[test]
    fn the_output_is_in_order_complete_and_bounded(
        params in any_params(),
        packets in prop::collection::vec((any_gap(), 0u64..3, 40u64..9_000), 1..60),
    ) {
        let mut pacer = HostPacer::new(&params);
        let mut arrivals = Vec::new();
        let mut now = Time::ZERO;
        for (gap, flow, bytes) in packets {
            now += Span::from_ps(gap);
            arrivals.push((now, flow, bytes));
        }
        let end = now + Span::from_secs(100);

        // The tokens that a bottomless bucket would have, with which departures are compared.
        let mut meter = ContinuousBucket { depth: i128::MAX / 2, tokens: 0, ..ContinuousBucket::new(&params) };
        let mut out: Vec<(usize, i128, i128)> = Vec::new();
        let mut next = 0;
        let mut now = Time::ZERO;
        while next < arrivals.len() || pacer.backlog_packets() > 0 {
            let arrival = arrivals.get(next).map_or(Time::MAX, |arrival| arrival.0);
            now = pacer.next_due().unwrap_or(Time::MAX).min(arrival).max(now);
            prop_assert!(now <= end, "{} packets starve", pacer.backlog_packets());
            meter.start(now);
            tick_by_tick(&mut meter, now);
            if arrival == now {
                let (_, flow, bytes) = arrivals[next];
                pacer.on_ece(now, flow, HIT);
                pacer.on_packet(now, flow, bytes, next);
                meter.law.on_received(8 * bytes);
                meter.backlog += 8 * bytes;
                next += 1;
            }
            while let Some(index) = pacer.poll(now) {
                prop_assert_eq!(index, out.len());
                let bits = 8 * arrivals[index].2;
                meter.backlog -= bits;
                out.push((index, cost(bits), meter.tokens));
            }
        }
        prop_assert_eq!(out.len(), arrivals.len());
        let depth = cost(params.bucket.bits());
        for from in 0..out.len() {
            let mut sent = 0;
            for &(_, cost, tokens) in &out[from..] {
                sent += cost;
                let bound = depth + (tokens - out[from].2) + (cost - depth).max(0);
                prop_assert!(sent <= bound, "{sent} > {bound}");
            }
        }
    }
}
