//! Bursts, trains, acknowledgements, losses and timestamps.

use std::collections::BTreeMap;

use plimsoll_bursts::{Address, Analyser, Frame, Framing, Options, Report, Stamp, analyse, scaled_gap};
use plimsoll_units::{Rate, Span, Time};
use proptest::prelude::*;

use crate::made::{DATA, Form, PCAP, Stamped, Tcp, gap_of, report, tso};

fn lengths(packets: &[Stamped], options: Options) -> Vec<(u64, u64)> {
    report(&PCAP.file(packets), options).lengths_packets.into_iter().collect()
}

#[test]
fn a_tso_segment_of_64_kb_is_one_burst_of_44_packets() {
    let found = report(&PCAP.file(&tso(0.0, 1)), Options::default());
    assert_eq!(found.lengths_packets, BTreeMap::from([(44, 1)]));
    assert_eq!(found.lengths_bytes, BTreeMap::from([(66_616, 1)]));
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["lengths_packets"], serde_json::json!({"44": 1}));
    assert_eq!(json["pairs"][0]["lengths_packets"], serde_json::json!({"44": 1}));
}

#[test]
fn the_threshold_is_40_ns_at_10_gbps() {
    let thresholds = [1, 10, 40, 100].map(|gbps| scaled_gap(Rate::from_gbps(gbps)));
    assert_eq!(thresholds, [400, 40, 10, 4].map(Span::from_ns));
    let two = |gap: u64| vec![(0, DATA.frame()), (1_231 + gap, DATA.frame())];
    // A frame takes 1230.4 ns: gaps of 39.6 and 40.6 ns.
    assert_eq!(lengths(&two(39), Options::default()), [(2, 1)]);
    assert_eq!(lengths(&two(40), Options::default()), [(1, 2)]);
    assert_eq!(lengths(&two(40), gap_of(41)), [(2, 1)]);
    let slow = Options { rate: Rate::from_gbps(1), ..Options::default() };
    assert_eq!(lengths(&[(0, DATA.frame()), (12_700, DATA.frame())], slow), [(2, 1)]);
    assert_eq!(lengths(&[(0, DATA.frame()), (12_705, DATA.frame())], slow), [(1, 2)]);
}

#[test]
fn short_frames_are_padded_on_the_wire() {
    let ack = Tcp { payload: 0, ..DATA }.frame();
    assert_eq!(ack.len(), 54);
    // 60 bytes and 24 more take 67.2 ns.
    assert_eq!(lengths(&[(0, ack.clone()), (107, ack.clone())], Options::default()), [(2, 1)]);
    assert_eq!(lengths(&[(0, ack.clone()), (108, ack)], Options::default()), [(1, 2)]);
}

#[test]
fn timestamps_may_be_of_the_end() {
    let short = Tcp { payload: 6, ..DATA }.frame();
    // The long frame starts 1230.4 ns before its stamp: 50 ns after the short one ends.
    let packets = [(1_000, short), (2_280, DATA.frame())];
    assert_eq!(lengths(&packets, Options { stamp: Stamp::End, ..gap_of(51) }), [(2, 1)]);
    assert_eq!(lengths(&packets, Options { stamp: Stamp::End, ..gap_of(49) }), [(1, 2)]);
}

#[test]
fn framing_counts_the_bytes_of_the_wire() {
    assert_eq!([54, 60, 1_514].map(|frame| Framing::ETHERNET.wire_bytes(frame)), [84, 84, 1_538]);
    assert_eq!([10, 54, 1_514].map(|frame| Framing::SIMULATED.wire_bytes(frame)), [0, 40, 1_500]);
}

#[test]
fn another_destination_has_bursts_of_its_own() {
    // Frames to two hosts alternate, so that a frame of the other host is always between two of one.
    let mut packets = tso(0.0, 1);
    for (_, frame) in packets.iter_mut().step_by(2) {
        *frame = Tcp { destination: 3, ..DATA }.frame();
    }
    assert_eq!(lengths(&packets, Options::default()), [(1, 44)]);
}

#[test]
fn trains_end_at_the_maximum_inter_car_gap() {
    let mut packets = tso(0.0, 1);
    packets.extend(tso(64_137.0, 64_241));
    packets.extend(tso(1_000_000.0, 128_481));
    let options = Options { train_gap: Span::from_us(10), ..Options::default() };
    let found = report(&PCAP.file(&packets), options);
    assert_eq!(found.lengths_packets, BTreeMap::from([(44, 3)]));
    assert_eq!((found.trains.count, found.trains.packets.max, found.trains.packets.p50), (2, 88.0, 44.0));
    assert_eq!((found.trains.inter_car_ns.count, found.trains.inter_train_ns.count), (130, 1));
    // 44 frames of 1230.4 ns end at 118,274.6 ns.
    let silence = found.pairs[0].mean_inter_train_ns.unwrap();
    assert!((silence - 881_725.4).abs() < 1.0, "{silence}");
    assert_eq!((found.on_ns.count, found.off_ns.count), (3, 2));
}

fn ack(ns: u64, ack: u32) -> Stamped {
    (ns, Tcp { source: 2, destination: 1, payload: 0, ack, ..DATA }.frame())
}

#[test]
fn the_ack_ratio_is_the_bytes_of_an_advancing_ack() {
    let packets = [ack(0, 1), ack(1_000, 2_921), ack(2_000, 5_841), ack(3_000, 5_841), ack(4_000, 49_841)];
    let found = report(&PCAP.file(&packets), Options::default()).acks;
    assert_eq!((found.pure, found.advancing, found.duplicate, found.bytes), (5, 3, 1, 49_840));
    assert_eq!(found.ratio(), Some(49_840.0 / 3.0));
    // The numbers go round.
    let packets = [ack(0, u32::MAX - 99), ack(1_000, 100)];
    assert_eq!(report(&PCAP.file(&packets), Options::default()).acks.bytes, 200);
}

#[test]
fn a_retransmission_counts_against_the_burst_of_its_first_transmission() {
    let mut packets = tso(0.0, 1);
    packets.extend(tso(100_000.0, 64_241));
    // Two segments of the first burst and none of the second; the first of them is lost again.
    let again = |ns, number: u32| (ns, Tcp { sequence: 1 + number * 1_460, ..DATA }.frame());
    packets.extend([again(300_000, 7), again(320_000, 8), again(500_000, 7)]);
    // A keep-alive, and a segment that fills a hole which the capture never saw.
    packets.push((600_000, Tcp { sequence: 128_480, payload: 1, ..DATA }.frame()));
    packets.push((700_000, Tcp { sequence: 128_481 + 1_460, ..DATA }.frame()));
    packets.push((800_000, Tcp { sequence: 128_481, ..DATA }.frame()));
    let found = report(&PCAP.file(&packets), Options::default()).losses;
    assert_eq!((found.seen.retransmitted, found.seen.unknown_burst, found.seen.filled), (3, 0, 1));
    let bins =
        found.by_length.iter().map(|bin| (bin.from, bin.bursts, bin.bursts_with_loss, bin.retransmitted));
    assert_eq!(bins.collect::<Vec<_>>(), [(1, 6, 1, 1), (32, 2, 1, 2)]);
}

#[test]
fn a_second_copy_is_no_retransmission() {
    let frame = DATA.frame();
    let found = report(&PCAP.file(&[(0, frame.clone()), (100, frame)]), Options::default());
    assert_eq!((found.losses.seen.copies, found.losses.seen.retransmitted), (1, 0));
}

/// IPv6 has no identification: equal packets within 10 us are copies.
#[test]
fn a_second_copy_over_ipv6_is_recognised() {
    let at = |ns, tcp: Tcp| (ns, tcp.frame_with(&[], true));
    let ack = Tcp { payload: 0, source: 2, destination: 1, ack: 1_461, ..DATA };
    let packets = [
        at(0, DATA),
        at(5_000, ack),
        at(8_000, ack),
        // A window update, and after that a duplicate ACK, too late to be a copy.
        at(9_000, Tcp { window: 7, ..ack }),
        at(90_000, Tcp { sequence: 2_921, ..DATA }),
        at(100_000, Tcp { window: 7, ..ack }),
    ];
    let found = report(&PCAP.file(&packets), Options::default());
    assert_eq!((found.losses.seen.copies, found.acks.pure), (1, 3));
    assert_eq!((found.acks.window_updates, found.acks.duplicate), (1, 1));
    // Another option gives another checksum, which the two last bytes of the ports' and numbers' header hold.
    let mut other = ack.frame_with(&[], true);
    let checksum = other.len() - 4;
    other[checksum] = 1;
    let found = report(&PCAP.file(&[at(0, ack), (3_000, other)]), Options::default());
    assert_eq!((found.losses.seen.copies, found.acks.pure), (0, 2));
}

#[test]
fn a_second_copy_of_a_datagram_is_recognised() {
    let udp = |id: Option<u16>, payload: &[u8]| {
        let length = 8 + payload.len() as u16;
        let udp = [&[0, 80, 0, 90][..], &length.to_be_bytes(), &[0, 0], payload].concat();
        let Some(id) = id else {
            let head = [&[0x60, 0, 0, 0][..], &length.to_be_bytes(), &[17, 64], &[1; 32]].concat();
            return [&[2; 12][..], &[0x86, 0xdd], &head, &udp].concat();
        };
        let total = (20 + length).to_be_bytes();
        let head = [&[0x45, 0][..], &total, &id.to_be_bytes(), &[0x40, 0, 64, 17, 0, 0]].concat();
        [&[2; 12][..], &[8, 0], &head, &[10, 0, 0, 1, 10, 0, 0, 2], &udp].concat()
    };
    let cases = [
        ("one identification", [(0, udp(Some(7), b"one")), (900_000, udp(Some(7), b"one"))], 1),
        ("too late", [(0, udp(Some(7), b"one")), (1_100_000, udp(Some(7), b"one"))], 0),
        ("two identifications", [(0, udp(Some(7), b"one")), (3_000, udp(Some(8), b"one"))], 0),
        ("IPv6", [(0, udp(None, b"one")), (3_000, udp(None, b"one"))], 1),
        ("IPv6, too late", [(0, udp(None, b"one")), (11_000, udp(None, b"one"))], 0),
        ("IPv6, another payload", [(0, udp(None, b"one")), (3_000, udp(None, b"two"))], 0),
    ];
    for (name, packets, copies) in cases {
        let found = report(&PCAP.file(&packets), Options::default());
        assert_eq!((found.losses.seen.copies, found.frames), (copies, 2), "{name}");
    }
}

/// Bursts of 44 at irregular times, each stamp rounded down to `step` nanoseconds.
fn irregular(step: u64) -> Report {
    let mut packets = Vec::new();
    for burst in 0..40u64 {
        let start = burst * 200_000 + burst * burst * 1_371;
        packets.extend(tso(start as f64, (burst * 64_240) as u32));
        packets.push((
            start + 150_003 + burst * 7,
            Tcp { source: 2, destination: 1, payload: 0, ..DATA }.frame(),
        ));
    }
    packets.iter_mut().for_each(|(ns, _)| *ns = *ns / step * step);
    report(&PCAP.file(&packets), Options::default())
}

/// Host 1 sends segments of 44 packets to host 2 and acknowledges each of host 3's; a datagram has no payload of TCP.
#[test]
fn bursts_of_data_have_no_pure_acknowledgements() {
    let mut packets = Vec::new();
    for burst in 0..10u64 {
        let start = burst * 200_000;
        packets.extend(tso(start as f64, (burst * 64_240) as u32));
        let ack = Tcp { destination: 3, payload: 0, ack: 1 + burst as u32 * 1_460, ..DATA };
        packets.extend((0..3).map(|number| (start + 60_000 + number * 30_000, ack.frame())));
    }
    // An acknowledgement of the same pair, 68 ns long, between two segments of a burst: the gap that it leaves ends it.
    let at = |ns: u64| 3_000_000 + ns;
    packets.push((at(0), DATA.frame()));
    packets.push((at(1_231), Tcp { payload: 0, ..DATA }.frame()));
    packets.push((at(1_299), Tcp { sequence: 64_241, ..DATA }.frame()));
    let all = report(&PCAP.file(&packets), Options::default());
    assert_eq!(all.lengths_packets, BTreeMap::from([(1, 30), (3, 1), (44, 10)]));
    let data = report(&PCAP.file(&packets), Options { data_only: true, ..Options::default() });
    assert_eq!(data.lengths_packets, BTreeMap::from([(1, 2), (44, 10)]));
    assert_eq!((all.frames_without_payload, data.frames_without_payload), (0, 31));
    assert_eq!((all.trains.count, data.trains.count), (3, 2), "trains of host 3's have no packets with data");
    // The rest of the report has them.
    assert_eq!((data.frames, data.acks, &data.losses.seen), (all.frames, all.acks, &all.losses.seen));
    assert_eq!(data.timestamps.floor_ns, all.timestamps.floor_ns);
}

#[test]
fn coarse_timestamps_are_found_and_hide_short_bursts() {
    let fine = irregular(1);
    assert_eq!((fine.timestamps.too_coarse, fine.timestamps.granularity_ns), (false, 1.0));
    assert_eq!(fine.lengths_packets, BTreeMap::from([(1, 40), (44, 40)]));
    assert_eq!(fine.gap_ns, 40.0);
    // The file declares nanoseconds and has microseconds: an acknowledgement of 67.2 ns is below the floor.
    let coarse = irregular(1_000);
    let stamps = &coarse.timestamps;
    assert_eq!((stamps.too_coarse, stamps.declared_ns, stamps.granularity_ns), (true, 1.0, 1_000.0));
    assert_eq!((stamps.floor_ns, coarse.gap_ns, coarse.gap_asked_ns), (1_000.0, 1_000.0, 40.0));
    assert_eq!(coarse.lengths_packets, BTreeMap::from([(44, 40)]));
    assert_eq!((coarse.unresolved.bursts, coarse.unresolved.frames), (40, 40));
    assert!(stamps.below_floor > 0.9, "{}", stamps.below_floor);
}

#[test]
fn declared_microseconds_are_a_floor() {
    let form = Form { decimals: 6, ..PCAP };
    let found = report(&form.file(&tso(0.0, 1)), Options::default());
    assert_eq!((found.timestamps.floor_ns, found.timestamps.too_coarse), (1_000.0, true));
    assert_eq!(found.lengths_packets, BTreeMap::from([(44, 1)]));
}

#[test]
fn frames_that_overlap_show_the_floor() {
    // Software stamps a batch of frames when it gets to them: 200 ns apart instead of 1230.4 ns.
    let packets: Vec<Stamped> =
        (0..1_000).map(|n: u64| (n / 8 * 12_345 + n % 8 * 200 + n, DATA.frame())).collect();
    let found = report(&PCAP.file(&packets), Options::default());
    let stamps = &found.timestamps;
    assert!((stamps.floor_ns - 1_029.4).abs() < 1.0 && stamps.too_coarse, "{stamps:?}");
    assert!(stamps.overlapping > 0.8);
}

#[test]
fn pairs_beyond_the_limit_are_counted() {
    let packets: Vec<Stamped> =
        (1..=10).map(|host: u8| (u64::from(host), Tcp { source: host, ..DATA }.frame())).collect();
    let found = report(&PCAP.file(&packets), Options { pairs_max: 4, ..Options::default() });
    assert_eq!((found.frames, found.pairs.len(), found.left_out_frames), (10, 4, 6));
}

#[test]
fn captures_follow_each_other() {
    let file = PCAP.file(&tso(0.0, 1));
    let mut analyser = Analyser::new(Options::default());
    analyse(&file[..], &mut analyser).unwrap();
    let whole = report(&file, Options::default());
    analyse(&file[..], &mut analyser).unwrap();
    let found = analyser.finish();
    // A burst ends with its capture, and a segment repeated in the next one does not count as retransmitted.
    assert_eq!(found.lengths_packets, BTreeMap::from([(44, 2)]));
    assert_eq!((found.losses.seen.retransmitted, found.seconds), (0, 2.0 * whole.seconds));
}

#[test]
fn times_may_go_backwards() {
    let packets = [(9_000_000, DATA.frame()), (0, DATA.frame()), (1_230, DATA.frame())];
    let found = report(&PCAP.file(&packets), Options::default());
    assert_eq!(found.lengths_packets, BTreeMap::from([(1, 1), (2, 1)]));
    assert_eq!((found.timestamps.backwards, found.seconds), (1, 0.009));
}

proptest! {
    #[test]
    fn every_frame_is_in_one_burst(
        frames in prop::collection::vec((0u64..3_000_000, 0u32..3, 0u32..20_000, 0u8..2), 0..300),
        gap_ps in 1u64..2_000_000,
        is_end: bool,
    ) {
        let stamp = if is_end { Stamp::End } else { Stamp::Start };
        let mut analyser = Analyser::new(Options { gap: Some(Span::from_ps(gap_ps)), stamp, ..Options::default() });
        let (mut now, mut bytes) = (Time::from_ps(1_000_000), 0);
        for (wait, host, size, back) in &frames {
            now += Span::from_ps(*wait);
            let time = Time::from_ps(now.as_ps().saturating_sub(u64::from(*back) * 5_000_000));
            bytes += u64::from(*size);
            let (source, destination) = (Address::V4(*host), Address::V4(9));
            let (interface, bytes) = (0, *size);
            let (segment, datagram, dscp, is_cut) = (None, None, 0, false);
            analyser.frame(&Frame { time, interface, source, destination, bytes, segment, datagram, dscp, is_cut });
        }
        let found = analyser.finish();
        let sum = |map: &BTreeMap<u64, u64>| map.iter().map(|(length, count)| length * count).sum::<u64>();
        prop_assert_eq!(sum(&found.lengths_packets) + found.unresolved.frames, frames.len() as u64);
        prop_assert_eq!(sum(&found.lengths_bytes) + found.unresolved.bytes, bytes);
        prop_assert_eq!(found.lengths_bytes.values().sum::<u64>(), found.bursts);
        prop_assert_eq!(found.pairs.iter().map(|pair| pair.frames).sum::<u64>(), frames.len() as u64);
        for pair in &found.pairs {
            prop_assert_eq!(sum(&pair.lengths_packets) + pair.unresolved.frames, pair.frames);
        }
        let trains: u64 = found.pairs.iter().map(|pair| pair.trains).sum();
        prop_assert_eq!(trains, found.trains.count);
    }

    #[test]
    fn a_larger_threshold_never_makes_more_bursts(
        waits in prop::collection::vec(0u64..400_000, 1..200), least in 1u64..100_000, more in 0u64..200_000,
    ) {
        let bursts = |gap_ps| {
            let mut analyser =
                Analyser::new(Options { gap: Some(Span::from_ps(gap_ps)), ..Options::default() });
            let mut now = Time::from_ps(0);
            for wait in &waits {
                // 84 bytes take 67,200 ps.
                now += Span::from_ps(67_200 + wait);
                let time = now;
                let (source, destination) = (Address::V4(1), Address::V4(2));
                let (interface, bytes) = (0, 60);
                let (segment, datagram, dscp, is_cut) = (None, None, 0, false);
                analyser.frame(&Frame { time, interface, source, destination, bytes, segment, datagram, dscp, is_cut });
            }
            analyser.finish().bursts
        };
        prop_assert!(bursts(least + more) <= bursts(least));
    }
}
