use super::*;
use crate::pacer::{Admission, HostPacer};
use plimsoll_units::{Bytes, Span, Time};
use proptest::prelude::*;

const FLOW: u64 = 7;
const HIT: u32 = 0;
const PACKETS: u64 = 20_000;

fn params() -> PacerParams {
    PacerParams { min_rate: Some(Rate::from_mbps(10)), ..PacerParams::default() }
}

fn associated(params: &PacerParams) -> EarliestDeparture {
    let mut pacer = EarliestDeparture::new(params).unwrap();
    assert!(pacer.on_ece(0, FLOW, HIT));
    pacer
}

#[test]
fn flows_without_congestion_bypass_and_count() {
    let mut pacer = EarliestDeparture::new(&params()).unwrap();
    assert_eq!(pacer.on_packet(5, FLOW, 1_000), None);
    assert!(!pacer.on_ece(5, FLOW, u32::MAX));
    assert_eq!(pacer.on_packet(5, FLOW, 1_000), None);
    assert_eq!((pacer.state().received, pacer.state().tick_ns), (16_000, 64_005));
}

#[test]
fn a_burst_leaves_by_the_bucket_and_then_at_the_rate_that_it_brings() {
    let mut pacer = associated(&params());
    let leaves: Vec<Option<u64>> = (0..5).map(|_| pacer.on_packet(0, FLOW, 1_000)).collect();
    // With 8,000 bit more each, the law gives 87.5 + 15.625 a packet in Mb/s: 150 for the fourth, and for the fifth
    // 165.625 and the push of 16 x 8,000 bit/s.
    let fourth = (8_000 * NS_PER_S).div_ceil(150_000_000);
    let fifth = fourth + (8_000 * NS_PER_S).div_ceil(165_625_000 + 128_000);
    assert_eq!(leaves, [Some(0), Some(0), Some(0), Some(fourth), Some(fifth)]);
    assert_eq!((pacer.state().backlog, pacer.state().free_ns), (16_000, fifth));
}

#[test]
fn a_flow_is_paced_until_its_last_packet_has_left() {
    let mut pacer = associated(&PacerParams { association_timeout: Span::from_us(10), ..params() });
    pacer.on_packet(0, FLOW, 3_000);
    let held = pacer.on_packet(0, FLOW, 3_000).unwrap();
    assert!(held > 10_000);
    assert!(pacer.on_packet(held - 1, FLOW, 100).unwrap() >= held, "never before an earlier one");
    let last = pacer.flow(FLOW).unwrap().leaves_ns;
    assert_eq!(pacer.on_packet(last, FLOW, 100), None);
    pacer.forget_before(last);
    assert_eq!(pacer.flow(FLOW), None);
}

#[test]
fn nothing_is_held_beyond_the_horizon() {
    let slow = Rate::from_bps(1_000);
    let interval = Span::from_secs(1);
    let slow =
        PacerParams { interval, initial_rate: slow, min_rate: Some(slow), eta: 0.001, beta: 0.0, ..params() };
    let mut pacer = associated(&slow);
    let last = (0..10_000).filter_map(|_| pacer.on_packet(0, FLOW, 64)).max();
    assert_eq!(last, Some(HORIZON_NS));
}

#[test]
fn an_idle_rate_decays_to_its_floor() {
    let fast = PacerParams { initial_rate: Rate::from_gbps(100), ..params() };
    for (intervals, rate) in [(1, 87_500_000_000), (2, 76_562_500_000), (1_000, 10_000_000)] {
        let mut pacer = EarliestDeparture::new(&fast).unwrap();
        pacer.on_packet(0, FLOW, 0);
        pacer.on_packet(intervals * 64_000, FLOW, 0);
        assert_eq!(pacer.state().rate, rate, "{intervals}");
    }
}

#[test]
fn a_rate_that_can_reach_zero_or_decays_too_slowly_is_an_error() {
    let key = |params: &PacerParams| EarliestDeparture::new(params).err().map(|invalid| invalid.key);
    assert_eq!(key(&PacerParams::default()), Some("min_rate"));
    assert_eq!(key(&PacerParams { eta: 0.0005, ..params() }), Some("eta"));
    assert_eq!(key(&params()), None);
}

/// Returns the departures of the paper's pacer for one flow, with the times in ns.
fn by_the_paper(params: &PacerParams, arrivals: &[(u64, u64)]) -> Vec<u64> {
    let mut pacer = HostPacer::new(params);
    let mut out = Vec::new();
    let poll = |pacer: &mut HostPacer<()>, until: Time, out: &mut Vec<u64>| {
        while let Some(due) = pacer.next_due().filter(|due| *due <= until) {
            while pacer.poll(due).is_some() {
                out.push(due.as_ps() / PS_PER_NS);
            }
        }
    };
    for &(now_ns, bytes) in arrivals {
        let now = Time::from_ps(now_ns * PS_PER_NS);
        poll(&mut pacer, now, &mut out);
        pacer.on_ece(now, FLOW, || 0);
        assert_eq!(pacer.on_packet(now, FLOW, bytes, ()), Admission::Queued);
        while pacer.poll(now).is_some() {
            out.push(now_ns);
        }
    }
    poll(&mut pacer, Time::MAX, &mut out);
    out
}

/// Returns how long packets are held on average, by both pacers, when windows of packets arrive at once.
fn mean_holds(window: u64, round_trip_us: u64) -> (f64, f64) {
    let params = PacerParams { min_rate: Some(Rate::from_mbps(1)), ..params() };
    let arrivals: Vec<(u64, u64)> =
        (0..PACKETS).map(|packet| (packet / window * round_trip_us * 1_000, 1_500)).collect();
    // Behind the first half, in which the rate is found.
    let mean = |leaves: &[u64]| {
        let half = leaves.iter().zip(&arrivals).skip(leaves.len() / 2);
        half.map(|(leaves, (now, _))| (leaves - now) as f64).sum::<f64>() / (leaves.len() / 2) as f64
    };
    let mut pacer = associated(&params);
    let ours = arrivals.iter().filter_map(|&(now, bytes)| {
        pacer.on_ece(now, FLOW, HIT);
        pacer.on_packet(now, FLOW, bytes)
    });
    (mean(&by_the_paper(&params, &arrivals)), mean(&ours.collect::<Vec<_>>()))
}

/// A departure that is fixed at arrival is later than one that follows the rate: the rate is lowest when a window
/// arrives.
#[test]
fn windows_are_held_longer_than_by_the_paper_and_not_for_ever() {
    for (window, round_trip_us, times) in
        [(4, 50, 1.3), (10, 100, 6.0), (10, 400, 3.0), (40, 1_000, 3.0), (100, 1_000, 3.0)]
    {
        let (paper, ours) = mean_holds(window, round_trip_us);
        let at = format!("{window} each {round_trip_us} us: {paper:.0} and {ours:.0} ns");
        assert!(ours > 0.9 * paper && ours < times * paper, "{at}");
    }
}

proptest! {
    /// A packet leaves neither before it arrives nor before an earlier one, and the bits that leave in a window are at
    /// most as many as the bucket and the fastest rate allow.
    #[test]
    fn departures_are_in_order_and_bounded(
        eta in 0.001f64..=1.0,
        beta in 0f64..1e6,
        bucket in 1u64..100_000,
        initial in 1_000u64..1_000_000_000_000,
        packets in prop::collection::vec((0u64..200_000, 1u64..70_000), 1..200),
    ) {
        let initial_rate = Rate::from_bps(initial);
        let params = PacerParams { eta, beta, bucket: Bytes::new(bucket), initial_rate, ..params() };
        let mut pacer = associated(&params);
        let (mut now, mut last) = (0, 0);
        for (gap, bytes) in packets {
            now += gap;
            pacer.on_ece(now, FLOW, HIT);
            let before = pacer.state();
            let leaves = pacer.on_packet(now, FLOW, bytes).unwrap();
            let after = pacer.state();
            prop_assert!(leaves >= now && leaves >= last, "{leaves} at {now} after {last}");
            prop_assert!(after.free_ns >= leaves && after.free_ns >= before.free_ns);
            prop_assert!(after.tokens <= 8 * bucket && after.backlog <= BACKLOG_MAX);
            // Bits beyond the tokens take time at the rate.
            let owed = (8 * bytes).saturating_sub(8 * bucket);
            prop_assert!(after.free_ns - now >= owed * NS_PER_S / RATE_MAX);
            last = leaves;
        }
    }
}
