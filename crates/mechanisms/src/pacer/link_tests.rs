use super::*;
use plimsoll_units::{Bytes, Rate};
use proptest::prelude::*;

const HIT: fn() -> u64 = || 0;
const MISS: fn() -> u64 = || u64::MAX;
const NEVER: fn() -> u64 = || panic!("a draw was taken");

/// The reproduction's scripts.
fn script() -> PacerParams {
    PacerParams { interval: Span::from_us(32), ..PacerParams::default() }
}

fn at_us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// A pacer whose flow 1 is associated by a first packet of no size at `now`.
fn associated(params: &PacerParams, now: Time) -> LinkPacer {
    let mut pacer = LinkPacer::new(params);
    assert_eq!(pacer.on_head(now, 1, 0, true, HIT), Release::Now);
    pacer
}

#[test]
fn the_first_packet_starts_the_clock_with_a_rate_tick() {
    let mut pacer = LinkPacer::new(&script());
    assert_eq!(pacer.rate(at_us(5_000)), Rate::from_mbps(100));
    assert_eq!(pacer.on_head(at_us(5_000), 1, 990, false, NEVER), Release::Now);
    assert_eq!(pacer.rate(at_us(5_000)), Rate::from_bps(87_500_000));
    // 0.875 x 87.5 Mb/s + 0.125 x 7920 bit / 32 us
    assert_eq!(pacer.rate(at_us(5_032)), Rate::from_bps(76_562_500 + 30_937_500));
    assert_eq!(pacer.counts(), PacedCounts { paced: 0, bypassed: 1 });
}

#[test]
fn three_packets_pass_and_the_fourth_waits_for_its_tokens() {
    let mut pacer = associated(&script(), Time::ZERO);
    for _ in 0..3 {
        assert_eq!(pacer.on_head(Time::ZERO, 1, 990, false, NEVER), Release::Now);
    }
    // 24000 - 3 x 7920 = 240 bit are left. Due at 7680 bit / 87.5 Mb/s = 87.8 us, until the rate tick at
    // 32 us makes the rate 0.875 x 87.5 + 0.125 x 31680/32 + 0.12672 = 200.4392 Mb/s; then only the lump
    // of 16 us (1400 bit) counts: 7920 - 1640 = 6280 bit / 200.4392 Mb/s = 31.331194 us later.
    let Release::At(time) = pacer.on_head(Time::ZERO, 1, 990, false, NEVER) else {
        panic!("the bucket is empty");
    };
    assert_eq!(pacer.rate(at_us(32)), Rate::from_bps(200_439_220));
    assert_eq!(time, Time::from_ps(63_331_194));
    assert_eq!(pacer.backlog_bytes(Time::from_ps(63_331_193)), 990);
    assert_eq!(pacer.backlog_bytes(time), 0);
    assert_eq!(pacer.counts(), PacedCounts { paced: 5, bypassed: 0 });
}

#[test]
fn a_held_packet_blocks_and_others_pass_once_it_has_left() {
    let mut pacer = associated(&script(), Time::ZERO);
    for _ in 0..3 {
        pacer.on_head(Time::ZERO, 1, 990, false, NEVER);
    }
    let Release::At(time) = pacer.on_head(Time::ZERO, 1, 990, false, NEVER) else {
        panic!("the bucket is empty");
    };
    assert_eq!(pacer.on_head(time, 2, 990, false, NEVER), Release::Now);
}

#[test]
#[should_panic(expected = "while it holds one")]
fn a_second_packet_while_one_is_held_is_a_mistake() {
    let mut pacer = associated(&script(), Time::ZERO);
    pacer.on_head(Time::ZERO, 1, 3_000, false, NEVER);
    pacer.on_head(Time::ZERO, 1, 990, false, NEVER);
    pacer.on_head(Time::ZERO, 2, 990, false, NEVER);
}

#[test]
fn many_marks_are_one_draw_on_the_next_data_packet() {
    let mut pacer = LinkPacer::new(&script());
    pacer.on_ece(1);
    pacer.on_ece(1);
    assert!(pacer.on_data_sent(1));
    assert!(!pacer.on_data_sent(1));
    pacer.on_head(Time::ZERO, 1, 990, true, MISS);
    pacer.on_head(Time::ZERO, 1, 990, false, NEVER);
    assert_eq!(pacer.flows().counts_of(Time::ZERO, 1).draws, 1);
    assert_eq!(pacer.counts(), PacedCounts { paced: 0, bypassed: 2 });
}

#[test]
fn acknowledgements_of_an_associated_flow_draw_tokens() {
    let mut pacer = associated(&script(), Time::ZERO);
    pacer.on_head(Time::ZERO, 1, 2_970, false, NEVER);
    assert!(matches!(pacer.on_head(Time::ZERO, 1, 40, false, NEVER), Release::At(_)));
}

#[test]
fn a_rate_that_decayed_to_zero_recovers_by_the_backlog() {
    let mut pacer = associated(&script(), Time::ZERO);
    let params = PacerParams { association_timeout: Span::from_secs(10), ..script() };
    let mut slow = associated(&params, Time::ZERO);
    let late = Time::ZERO + Span::from_secs(1);
    assert_eq!(slow.rate(late), Rate::ZERO);
    // Full bucket, then 3000 bit too many: only eta and beta bring tokens.
    assert_eq!(slow.on_head(late, 1, 3_000, false, NEVER), Release::Now);
    let Release::At(time) = slow.on_head(late, 1, 990, false, NEVER) else {
        panic!("the bucket is empty");
    };
    assert!(time > late && time < late + Span::from_ms(1), "{time}");
    // Without the longer timeout the association of the flow has ended.
    assert_eq!(pacer.on_head(late, 1, 9_000, false, NEVER), Release::Now);
}

/// The same pacer without any shortcut, for comparison.
fn tick_by_tick(bucket: &mut GridBucket, now: Time) {
    while bucket.step(now) != Step::Nothing {}
}

fn any_params() -> impl Strategy<Value = PacerParams> {
    let rates = prop_oneof![Just(None), (1_000u64..1_000_000_000).prop_map(Some)];
    (8u64..200, 4u64..100, 0.02f64..=1.0, 16f64..5_000.0, 0u64..2_000_000_000, rates, 40u64..20_000).prop_map(
        |(interval, token_interval, eta, beta, initial, min, bucket)| PacerParams {
            interval: Span::from_us(interval),
            token_interval: Span::from_us(token_interval),
            eta,
            beta,
            initial_rate: Rate::from_bps(initial),
            min_rate: min.map(Rate::from_bps),
            bucket: Bytes::new(bucket),
            association_probability: 1.0,
            association_timeout: Span::from_secs(100),
            ..PacerParams::default()
        },
    )
}

/// Gaps between offered packets in picoseconds: back to back, usual, and long silences.
fn any_gap() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0u64), 3 => 0u64..200_000_000, 1 => 0u64..50_000_000_000]
}

proptest! {
    /// Catching up after a silence gives the same result as ticking one by one.
    #[test]
    fn catching_up_equals_ticking(
        params in any_params(),
        packets in prop::collection::vec((any_gap(), 40u64..9_000), 1..40),
    ) {
        let mut quick = GridBucket::new(&params).started(at_us(3));
        let mut slow = quick;
        let mut now = at_us(3);
        for (gap, bytes) in packets {
            now += Span::from_ps(gap);
            quick.advance(now);
            tick_by_tick(&mut slow, now);
            prop_assert_eq!(quick, slow);
            for bucket in [&mut quick, &mut slow] {
                bucket.law.on_received(8 * bytes);
            }
            let release = quick.take(now, 8 * bytes);
            prop_assert_eq!(release, slow.take(now, 8 * bytes));
            if let Release::At(time) = release {
                prop_assert!(time >= now);
                now = time;
                quick.advance(now);
                prop_assert!(quick.held.is_none(), "held beyond its release");
            }
        }
    }

    /// Over any window, the output is at most the bucket, the lumps added meanwhile, the last packet, and the one lump
    /// that a held packet may run ahead of.
    #[test]
    fn the_output_keeps_to_the_bucket(
        params in any_params(),
        packets in prop::collection::vec((any_gap(), 40u64..9_000), 1..60),
    ) {
        let mut pacer = LinkPacer::new(&params);
        let (mut now, mut earned, mut lump_max) = (Time::ZERO, 0, 0);
        // For each departure: its cost, and the sum of the lumps until then.
        let mut departures: Vec<(i128, i128)> = Vec::new();
        for (gap, bytes) in packets {
            now += Span::from_ps(gap);
            play(&mut pacer, now, &mut earned, &mut lump_max);
            if let Release::At(time) = pacer.on_head(now, 1, bytes, true, NEVER) {
                now = time;
            }
            play(&mut pacer, now, &mut earned, &mut lump_max);
            departures.push((cost(8 * bytes), earned));
        }
        let depth = cost(params.bucket.bits());
        for (from, &(_, earned_from)) in departures.iter().enumerate() {
            let mut sent = 0;
            for (to, &(cost, earned_to)) in departures.iter().enumerate().skip(from) {
                sent += cost;
                let bound = depth + (earned_to - earned_from) + cost + lump_max;
                prop_assert!(sent <= bound, "packets {from} to {to}: {sent} > {bound}");
            }
        }
    }
}

/// Runs the pacer to `now`, adding up the lumps on the way.
fn play(pacer: &mut LinkPacer, now: Time, earned: &mut i128, lump_max: &mut i128) {
    let Some(bucket) = pacer.bucket.as_mut() else { return };
    loop {
        let token_tick = bucket.next_token;
        if bucket.step(now) == Step::Nothing {
            return;
        }
        let lump = bucket.law.tokens_in(bucket.token_interval.as_ps());
        *lump_max = lump.max(*lump_max);
        if bucket.next_token != token_tick {
            *earned += lump;
        }
    }
}
