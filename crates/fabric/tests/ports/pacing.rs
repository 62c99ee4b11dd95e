//! The most that a paced flow may put on the wire in any window: the bucket, the rate times the window, and a packet.

use plimsoll_fabric::net::port::{HeadPacer, PortConfig};
use plimsoll_fabric::net::{Packet, Port};
use plimsoll_mechanisms::pacer::{Admission, HostPacer, PacerForm, PacerParams};
use plimsoll_units::{Bytes, Rate, Span, Streams, Time};
use proptest::prelude::*;

use crate::bench::{RATE, Recorder, Ties, packet, plain};

/// The time at which the first bit of each packet was on the wire, and its bits.
fn departures(recorder: &Recorder) -> Vec<(Time, f64)> {
    let start = |(arrives, packet): &(Time, Packet)| {
        let way = Span::from_us(1) + RATE.byte_time().span(u64::from(packet.size));
        (Time::from_ps(arrives.as_ps() - way.as_ps()), f64::from(packet.size) * 8.0)
    };
    recorder.sent.iter().map(start).collect()
}

/// The most by which the bits of a window exceed the result of `allowed` (bits, from a start to an end).
fn excess(departures: &[(Time, f64)], allowed: impl Fn(Time, Time) -> f64) -> f64 {
    let mut most = f64::NEG_INFINITY;
    for (first, &(from, _)) in departures.iter().enumerate() {
        let mut bits = 0.0;
        for &(to, size) in &departures[first..] {
            bits += size;
            most = most.max(bits - allowed(from, to));
        }
    }
    most
}

/// Bursts of full packets of one flow: gaps in microseconds, packets back to back.
fn bursts() -> impl Strategy<Value = Vec<(Time, Packet)>> {
    proptest::collection::vec((0u64..200, 1u64..20), 1..25).prop_map(|bursts| {
        let (mut now, mut seq) = (Time::ZERO, 0);
        let mut packets = Vec::new();
        for (gap, count) in bursts {
            now += Span::from_us(gap);
            for _ in 0..count {
                packets.push((now, packet(0, seq, 1500)));
                seq += 1;
            }
        }
        packets
    })
}

const FULL_PACKET_BITS: f64 = 1500.0 * 8.0;

/// The paper's pacer in front of a port, with the rate of each of its intervals.
fn paper(params: &PacerParams, packets: &[(Time, Packet)], associated: bool) -> (Recorder, Vec<(Time, f64)>) {
    let mut pacer: HostPacer<Packet> = HostPacer::new(params);
    let (mut port, mut recorder) = (Port::new(plain()), Recorder::default());
    let mut rates = Vec::new();
    let first = packets[0].0;
    let mut tick = first;
    let mut arrivals = packets.iter().peekable();
    if associated {
        assert!(pacer.on_ece(Time::ZERO, 0, || 0));
    }
    while let Some(now) = [arrivals.peek().map(|(at, _)| *at), pacer.next_due()].into_iter().flatten().min() {
        while tick <= now {
            rates.push((tick, pacer.rate(tick).as_bps() as f64));
            tick += params.interval;
        }
        while let Some((_, packet)) = arrivals.next_if(|(at, _)| *at == now) {
            if let Admission::Bypass(packet) = pacer.on_packet(now, 0, u64::from(packet.size), *packet) {
                recorder.offer(&mut port, now, packet);
            }
        }
        while let Some(packet) = pacer.poll(now) {
            recorder.offer(&mut port, now, packet);
        }
    }
    (recorder, rates)
}

/// Bits that a rate that changes at given times earns in a window.
fn integral(rates: &[(Time, f64)], from: Time, to: Time) -> f64 {
    let mut bits = 0.0;
    for (index, (start, rate)) in rates.iter().enumerate() {
        let end = rates.get(index + 1).map_or(Time::MAX, |(end, _)| *end);
        let span = to.min(end).saturating_since(from.max(*start));
        // The rate that the pacer reports is rounded down to a bit per second.
        bits += (rate + 1.0) * span.as_secs_f64();
    }
    bits
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_papers_pacer(
        packets in bursts(),
        bucket in prop::sample::select(vec![1500u64, 3000, 10_000]),
        beta in 1.0f64..100.0,
    ) {
        let params = PacerParams {
            bucket: Bytes::new(bucket),
            beta,
            association_probability: 1.0,
            association_timeout: Span::from_secs(1),
            ..PacerParams::default()
        };
        let (recorder, rates) = paper(&params, &packets, true);
        prop_assert_eq!(recorder.sent.len(), packets.len());
        let departures = departures(&recorder);
        let over = excess(&departures, |from, to| bucket as f64 * 8.0 + integral(&rates, from, to));
        prop_assert!(over <= FULL_PACKET_BITS, "{} bits more than bucket, rate and a packet", over);
    }

    /// The form of the reproduction's source: tokens come in lumps, so a lump more may pass.
    #[test]
    fn the_sources_pacer(packets in bursts()) {
        let params = PacerParams {
            form: PacerForm::Source,
            eta: 0.0001,
            beta: 1.0,
            initial_rate: Rate::from_gbps(1),
            min_rate: Some(Rate::from_gbps(1)),
            association_probability: 1.0,
            association_timeout: Span::from_secs(1),
            ..PacerParams::default()
        };
        let pacer = HeadPacer::new(&params, Streams::new(1).stream("pacer"));
        let mut port = Port::new(PortConfig { pacer: Some(pacer), ..plain() });
        let mut recorder = Recorder::default();
        recorder.drive(&mut port, &packets, Ties::CallFirst, |port, packet| {
            port.head_pacer().unwrap().on_ece(packet.flow);
        });
        let departures = departures(&recorder);
        // A ten-thousandth of ten times the rate is added at most, in each interval.
        let ticks = (departures.last().unwrap().0 - Time::ZERO).as_us_f64() / 64.0 + 1.0;
        let rate = 1e9 + ticks * (0.0001 * 10e9 + FULL_PACKET_BITS);
        let lump = rate * params.token_interval.as_secs_f64();
        let over = excess(&departures, |from, to| 24_000.0 + lump + rate * (to - from).as_secs_f64());
        prop_assert!(over <= FULL_PACKET_BITS, "{} bits more than bucket, lump, rate and a packet", over);
    }
}

#[test]
fn what_is_not_paced_breaks_the_bound() {
    let packets: Vec<(Time, Packet)> = (0..50).map(|seq| (Time::ZERO, packet(0, seq, 1500))).collect();
    let params = PacerParams { association_probability: 1.0, ..PacerParams::default() };
    let (recorder, rates) = paper(&params, &packets, false);
    let over = excess(&departures(&recorder), |from, to| 24_000.0 + integral(&rates, from, to));
    assert!(over > 10.0 * FULL_PACKET_BITS, "50 packets leave at line rate, {over} bits over");
}
