//! Tests of HPCC: by hand-computed loads.

use plimsoll_units::Time;

use super::*;
use crate::telemetry::{DigestParams, IntParams, Stamp, Written};

const LINE: Rate = Rate::from_gbps(100);
const RTT: Span = Span::from_us(8);
/// The bytes that the line sends in a round trip.
const BDP: f64 = 100_000.0;

fn flow(max_stage: u32) -> Hpcc {
    let params = HpccParams { max_stage, increase: Rate::from_mbps(100), ..HpccParams::default() };
    Hpcc::new(params, LINE, RTT)
}

/// The stamps of links of 100 Gb/s, each with its queue and the bytes that it has sent by `ns`.
fn stamps(ns: u64, links: &[(u64, u64)]) -> Stamps {
    let mut stamps = Stamps::default();
    for (queue_bytes, sent_bytes) in links.iter().copied() {
        let at = Time::ZERO + Span::from_ns(ns);
        let stamp = Stamp { queue_bytes, sent_bytes, at, rate: LINE, waited: Span::ZERO };
        stamps.push(Written::Stamp(stamp), &IntParams::default());
    }
    stamps
}

fn ack(flow: &mut Hpcc, (ack, nxt): (u64, u64), stamps: &Stamps) {
    // A byte counts as a packet: the acknowledgement of `ack` of them is of the last one.
    flow.on_ack(&RoceAck { echo: ack - 1, sent: nxt, stamps: Some(stamps), ..RoceAck::at(Time::ZERO) });
}

fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-6 * expected, "{value}, not {expected}");
}

#[test]
fn a_flow_starts_with_the_bandwidth_delay_product_and_the_first_stamps_are_only_kept() {
    let mut flow = flow(0);
    assert_eq!((flow.window(), flow.rate()), (Some(100_000), LINE));
    ack(&mut flow, (1_000, 100_000), &stamps(1_000, &[(0, 0)]));
    assert_eq!((flow.window(), flow.one.load), (Some(100_000), 1.0));
}

#[test]
fn the_most_loaded_link_sets_the_window() {
    let mut flow = flow(0);
    ack(&mut flow, (1_000, 100_000), &stamps(0, &[(50_000, 0), (0, 0)]));
    // 2 us later, a quarter of T: the first link has sent at its full rate with a queue of 30 KB or more, the
    // second at half of it.
    ack(&mut flow, (2_000, 101_000), &stamps(2_000, &[(30_000, 25_000), (0, 12_500)]));
    let load = 1.0 + 0.25 * (1.3 - 1.0);
    near(flow.one.load, load);
    // W = Wc eta / U + W_AI, and W_AI = 100 Mb/s x 8 us = 100 B.
    let window = BDP * 0.95 / load + 100.0;
    near(flow.level, window);
    // The reference moves with an ACK beyond what was sent when the first one came, and so on.
    near(flow.one.level, BDP);
    ack(&mut flow, (100_001, 190_000), &stamps(4_000, &[(30_000, 50_000), (0, 25_000)]));
    near(flow.level, BDP * 0.95 / flow.one.load + 100.0);
    let reference = flow.level;
    near(flow.one.level, reference);
    ack(&mut flow, (190_000, 250_000), &stamps(6_000, &[(0, 75_000), (0, 37_500)]));
    near(flow.level, reference * 0.95 / flow.one.load + 100.0);
    near(flow.one.level, reference);
}

#[test]
fn a_digest_is_the_load_itself() {
    let params = IntParams { digest: Some(DigestParams::default()), ..IntParams::default() };
    let digest = |load| {
        let mut stamps = Stamps::default();
        stamps.push(Written::Load(load), &params);
        stamps
    };
    let mut flow = flow(0);
    ack(&mut flow, (1_000, 100_000), &digest(1.9));
    assert_eq!((flow.window(), flow.one.load), (Some(100_000), 1.0), "the first is only kept");
    // Each acknowledgement from the reference window, which moves once a round trip.
    ack(&mut flow, (2_000, 101_000), &digest(1.9));
    near(flow.level, BDP * 0.95 / 1.9 + 100.0);
    ack(&mut flow, (3_000, 102_000), &digest(1.25));
    near(flow.level, BDP * 0.95 / 1.25 + 100.0);
    near(flow.one.level, BDP);
    ack(&mut flow, (100_001, 190_000), &digest(1.25));
    near(flow.one.level, BDP * 0.95 / 1.25 + 100.0);
}

#[test]
fn below_the_target_stages_of_additive_increase_come_first() {
    let mut flow = flow(2);
    flow.level = 40_000.0;
    flow.one = Reference { level: 40_000.0, load: 0.4, stage: 0 };
    ack(&mut flow, (1, 1), &stamps(0, &[(0, 0)]));
    let mut seen = Vec::new();
    for round in 1..=4 {
        // A load of 0.4 for a whole round trip each.
        let stamps = stamps(8_000 * round, &[(0, 40_000 * round)]);
        ack(&mut flow, (10 * round, 10 * round + 5), &stamps);
        near(flow.one.load, 0.4);
        seen.push(flow.level.round());
    }
    let multiplied = 40_200.0 * 0.95 / 0.4 + 100.0;
    assert_eq!(seen, [40_100.0, 40_200.0, multiplied, multiplied + 100.0]);
}

#[test]
fn other_reactions_move_the_window_once_a_round_trip_or_from_the_last_window() {
    // Three acknowledgements of one round trip, each of which sees a load of 2 for a whole base round trip.
    let windows = |reaction| {
        let mut flow = flow(0);
        flow.params.reaction = reaction;
        flow.one.load = 2.0;
        ack(&mut flow, (1, 1), &stamps(0, &[(100_000, 0)]));
        let acks = [1u64, 2, 3].map(|at| {
            ack(&mut flow, (at * 1_000, 100_000), &stamps(8_000 * at, &[(100_000, 100_000 * at)]));
            flow.level.round()
        });
        acks.to_vec()
    };
    let halved = |window: f64| (window * 0.95 / 2.0 + 100.0).round();
    let once = halved(BDP);
    assert_eq!(windows(HpccReaction::PerRtt), [once, once, once]);
    assert_eq!(windows(HpccReaction::PerAck), [once, halved(once), halved(halved(once))]);
    // The first one moves the reference too, so the others are computed from it.
    assert_eq!(windows(HpccReaction::Reference), [once, halved(once), halved(once)]);
}

#[test]
fn a_paced_flow_alone_settles_at_the_target() {
    let mut flow = flow(0);
    let (mut sent, mut acked) = (0.0, 0);
    for round in 0..400u64 {
        ack(&mut flow, (acked + 1, acked + 1), &stamps(8_000 * round, &[(0, sent as u64)]));
        sent += flow.level;
        acked += 1;
    }
    let load = flow.level / BDP;
    assert!((0.94..0.96).contains(&load), "{load}");
}

#[test]
fn stamps_that_are_not_comparable_leave_the_window() {
    let mut flow = flow(0);
    ack(&mut flow, (1, 2), &stamps(1_000, &[(0, 0)]));
    for other in [stamps(1_000, &[(90_000, 90_000)]), stamps(2_000, &[(90_000, 90_000), (0, 0)])] {
        ack(&mut flow, (2, 3), &other);
        assert_eq!((flow.window(), flow.one.load), (Some(100_000), 1.0));
    }
    flow.on_ack(&RoceAck { echo: 2, sent: 4, ..RoceAck::at(Time::ZERO) });
    assert_eq!(flow.window(), Some(100_000));
}

#[test]
fn the_form_by_rates_differs_by_rounding_alone() {
    let [mut by_window, mut by_rate] = [HpccForm::Window, HpccForm::Rate].map(|form| {
        let mut flow = flow(2);
        flow.params.form = form;
        Hpcc::new(flow.params, LINE, RTT)
    });
    let (mut sent, mut lowest) = (0, LINE);
    for at in 0..200u64 {
        // Loads between 0.6 and 1.6, a quarter of a round trip each.
        sent += 15_000 + at * 7_919 % 20_000;
        let stamps = stamps(2_000 * at, &[(at * 104_729 % 30_000, sent)]);
        for flow in [&mut by_window, &mut by_rate] {
            ack(flow, (1 + at, 5 + at), &stamps);
        }
        near(by_rate.rate().as_bps() as f64, by_window.level / BDP * 100e9);
        assert!(by_rate.window().unwrap().abs_diff(by_window.window().unwrap()) <= 1, "{at}");
        lowest = lowest.min(by_rate.rate());
    }
    assert!(lowest < Rate::from_gbps(50), "{lowest}");
    // U = 1 + 0.25 (1.3 - 1): R = 100 Gb/s x 0.95 / 1.075 + 100 Mb/s, in whole b/s.
    let mut first = Hpcc::new(HpccParams { max_stage: 0, ..by_rate.params }, LINE, RTT);
    ack(&mut first, (1_000, 100_000), &stamps(0, &[(50_000, 0)]));
    ack(&mut first, (2_000, 101_000), &stamps(2_000, &[(30_000, 25_000)]));
    assert_eq!((first.rate(), first.window()), (Rate::from_bps(88_472_093_023), Some(88_472)));
}

#[test]
fn with_a_reference_for_each_link_the_lowest_applies() {
    let windows = |references| {
        let mut flow = flow(0);
        flow.params.references = references;
        ack(&mut flow, (1, 1), &stamps(0, &[(100_000, 0), (0, 0)]));
        // Loads of 2 and 0.5 for a whole round trip, and then of 0.95 and 1.9.
        let rounds = [[(100_000, 100_000), (90_000, 50_000)], [(0, 195_000), (90_000, 150_000)]];
        [1u64, 2].map(|round| {
            let stamps = stamps(8_000 * round, &rounds[round as usize - 1]);
            ack(&mut flow, (10 * round, 10 * round + 5), &stamps);
            flow.level.round()
        })
    };
    // 0.95 / 2 of the bandwidth-delay product, and then 0.95 / 0.95 of that, or half of all.
    assert_eq!(windows(HpccReferences::PerLink), [47_600.0, 47_700.0]);
    assert_eq!(windows(HpccReferences::One), [47_600.0, 23_900.0]);
}

#[test]
fn quantised_stamps_are_read_across_a_wrap_and_not_across_a_pause() {
    let params = IntParams { nic_rate: Some(LINE), ..IntParams::default() };
    let mut flow = flow(0);
    let mut hear = |us: u64, sent_bytes: u64| {
        let now = Time::ZERO + Span::from_us(us);
        let stamp = Stamp { queue_bytes: 32_000, sent_bytes, at: now, rate: LINE, waited: Span::ZERO };
        let mut stamps = Stamps::default();
        stamps.push(Written::Stamp(params.written(stamp)), &params);
        flow.on_ack(&RoceAck { sent: 100, stamps: Some(&stamps), ..RoceAck::at(now) });
        flow.one.load
    };
    // The fields wrap at 16,777.216 us, and at 2^20 units of 512 B.
    let wraps = 512 << 20;
    hear(16_776, wraps - 5_120);
    let load = 1.0 + 0.25 * (25_600.0 / 25_000.0 + 0.32 - 1.0);
    near(hear(16_778, wraps + 20_480), load);
    near(hear(16_778 + 8_389, wraps + 40_960), load);
    assert!(hear(16_778 + 8_391, wraps + 66_560) > load);
}
