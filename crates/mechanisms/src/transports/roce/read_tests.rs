//! Tests of READ: by hand-computed packets, and over channels that lose.

use crate::transports::NicEnd;
use std::collections::VecDeque;

use plimsoll_units::{Rate, Span, Time};
use proptest::prelude::*;

use super::{NicParams, QueuePair, RoceConfig, RoceController, RoceOperation, RoceParams, RoceRepair};
use crate::tcp::controller::{DctcpParams, SwiftParams};
use crate::tcp::{Flags, Kind, TcpSegment, TransportParams};

const LINE: Rate = Rate::from_gbps(10);
const RTT: Span = Span::from_us(10);

fn config(params: RoceParams) -> RoceConfig {
    RoceConfig {
        controller: RoceController::Dcqcn,
        uses_marks: true,
        payload: 1_000,
        header: 48,
        dctcp: DctcpParams::default(),
        swift: SwiftParams::default(),
        max_window: u64::MAX,
        params: RoceParams { operation: RoceOperation::Read, ..params },
    }
}

fn pairs(config: &RoceConfig) -> [QueuePair; 2] {
    [(); 2].map(|()| {
        let mut pair = QueuePair::new(config);
        pair.set_path(config, LINE, RTT, 1);
        pair
    })
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// Posts READs of `sizes` at time 0: the ends are the requester and the responder.
fn posted(config: &RoceConfig, sizes: &[u64]) -> [QueuePair; 2] {
    let [mut requester, mut responder] = pairs(config);
    for bytes in sizes {
        requester.read(config, Time::ZERO, *bytes);
        responder.write(config, Time::ZERO, *bytes);
    }
    [requester, responder]
}

/// The packets that leave at `now`.
fn leaving(pair: &mut QueuePair, config: &RoceConfig, now: Time) -> Vec<TcpSegment> {
    std::iter::from_fn(|| pair.poll_transmit(config, now)).collect()
}

/// The packets that leave by themselves within 20 us from `now` on.
fn sent(pair: &mut QueuePair, config: &RoceConfig, mut now: Time) -> Vec<TcpSegment> {
    let (until, mut all) = (now + Span::from_us(20), Vec::new());
    while now <= until {
        all.extend(leaving(pair, config, now));
        now = pair.deadline(config, now);
        if now <= until {
            pair.on_deadline(config, now);
        }
    }
    all
}

/// The numbers of requests among packets, and whether they are repeats.
fn requests(packets: &[TcpSegment]) -> Vec<(u64, bool)> {
    let requests = packets.iter().filter(|packet| packet.is_read_request());
    requests.map(|packet| (packet.ack, packet.flags.has(Flags::RETRANSMISSION))).collect()
}

#[test]
fn data_is_sent_once_it_was_requested_and_completes_the_read() {
    let config = config(RoceParams::default());
    let [mut requester, mut responder] = posted(&config, &[2_500, 400]);
    assert!(sent(&mut responder, &config, at(0)).is_empty() && !responder.has_data());
    let asked = leaving(&mut requester, &config, at(0));
    assert_eq!(requests(&asked), [(1, false), (2, false)]);
    assert_eq!((asked.len(), asked[0].len), (2, 0));
    responder.on_segment(&config, at(5), &asked[0], None);
    let first = sent(&mut responder, &config, at(5));
    let shape: Vec<_> = first.iter().map(|packet| (packet.seq, packet.len)).collect();
    assert_eq!(shape, [(0, 1_000), (1_000, 1_000), (2_000, 500)]);
    responder.on_segment(&config, at(30), &asked[1], None);
    responder.on_segment(&config, at(30), &asked[0], None);
    let second = sent(&mut responder, &config, at(30));
    assert_eq!((second.len(), second[0].seq, second[0].len), (1, 2_500, 400));
    for packet in first.iter().chain(&second) {
        assert!(!requester.is_idle());
        requester.on_segment(&config, at(50), packet, None);
        for answer in leaving(&mut requester, &config, at(50)) {
            responder.on_segment(&config, at(55), &answer, None);
        }
    }
    assert_eq!((requester.received(), requester.is_idle(), responder.is_idle()), (2_900, true, true));
    let counted = |pair: &QueuePair| (pair.counters().types.requests, pair.counters().types.data);
    let both = [counted(&requester), counted(&responder)].map(|(asked, data)| [asked.sent, data.sent]);
    assert_eq!((both, counted(&responder).0.received), ([[2, 0], [0, 4]], 3));
}

#[test]
fn a_queue_pair_has_a_limit_of_outstanding_reads() {
    let nic = NicParams { outstanding_reads: 2, ..NicParams::default() };
    let config = config(RoceParams { nic, ..RoceParams::default() });
    let [mut requester, mut responder] = posted(&config, &[1_000, 1_000, 1_000]);
    let asked = leaving(&mut requester, &config, at(0));
    assert_eq!(requests(&asked), [(1, false), (2, false)]);
    asked.iter().for_each(|request| _ = responder.on_segment(&config, at(5), request, None));
    let data = sent(&mut responder, &config, at(5));
    assert_eq!(data.len(), 2);
    requester.on_segment(&config, at(10), &data[0], None);
    assert_eq!(requests(&leaving(&mut requester, &config, at(10))), [(3, false)]);
}

#[test]
fn a_lost_request_is_repeated_by_the_timeout_unless_a_later_one_has_come() {
    let config = config(RoceParams { timeout: Span::from_us(100), ..RoceParams::default() });
    let [mut requester, mut responder] = posted(&config, &[1_000, 1_000]);
    assert_eq!(leaving(&mut requester, &config, at(0)).len(), 2);
    assert_eq!(requester.deadline(&config, at(0)), at(100));
    requester.on_deadline(&config, at(100));
    let again = leaving(&mut requester, &config, at(100));
    assert_eq!((requests(&again), requester.counters().timeouts), (vec![(2, true)], 1));
    // It stands for the first one as well.
    responder.on_segment(&config, at(105), &again[0], None);
    let data = sent(&mut responder, &config, at(105));
    assert_eq!(data.len(), 2);
    // The timeout runs from the last new data.
    requester.on_segment(&config, at(120), &data[0], None);
    leaving(&mut requester, &config, at(120));
    assert_eq!(requester.deadline(&config, at(120)), at(220));
    requester.on_segment(&config, at(121), &data[1], None);
    leaving(&mut requester, &config, at(121));
    assert_eq!(requester.deadline(&config, at(121)), Time::MAX);
}

#[test]
fn the_requesters_nic_takes_its_time_and_the_responders_none() {
    let nic = NicParams { message_start: Span::from_us(2), ..NicParams::default() };
    let config = config(RoceParams { nic, ..RoceParams::default() });
    let [mut requester, mut responder] = posted(&config, &[1_000]);
    assert!(leaving(&mut requester, &config, at(0)).is_empty());
    assert_eq!(requester.deadline(&config, at(0)), at(2));
    let asked = leaving(&mut requester, &config, at(2));
    responder.on_segment(&config, at(2), &asked[0], None);
    assert_eq!(leaving(&mut responder, &config, at(2)).len(), 1);
}

#[test]
fn a_request_has_the_header_of_a_packet_and_the_reth() {
    let roce = RoceParams { operation: RoceOperation::Read, ..RoceParams::default() };
    let header = plimsoll_units::Bytes::new(48);
    let params = TransportParams { kind: Kind::Dcqcn, header, roce, ..TransportParams::default() };
    let transport = params.resolve().unwrap();
    let of_flags = |flags| TcpSegment { flags, ..TcpSegment::default() };
    assert_eq!(transport.wire_bytes(&of_flags(Flags::CWR.with(Flags::RETRANSMISSION))), 64);
    for flags in [Flags::ACK, Flags::ACK.with(Flags::CWR), Flags::ECE] {
        assert_eq!(transport.wire_bytes(&of_flags(flags)), 60);
    }
}

proptest! {
    /// Over a channel that loses packets of either direction, requests among them, every READ completes.
    #[test]
    fn every_read_completes_whatever_is_lost(
        sizes in prop::collection::vec(1u64..10_000, 1..8),
        outstanding_reads in 1u32..4,
        is_selective in any::<bool>(),
        mut lost in prop::collection::vec(prop::bool::weighted(0.2), 400),
    ) {
        let repair = if is_selective { RoceRepair::Selective } else { RoceRepair::GoBackN };
        let nic = NicParams { outstanding_reads, ..NicParams::default() };
        let timeout = Span::from_us(50);
        let config = config(RoceParams { repair, nic, timeout, ..RoceParams::default() });
        let [mut requester, mut responder] = posted(&config, &sizes);
        let mut channel: VecDeque<(Time, bool, TcpSegment)> = VecDeque::new();
        let mut now = Time::ZERO;
        for _ in 0..20_000 {
            for (pair, to_requester) in [(&mut responder, true), (&mut requester, false)] {
                while let Some(segment) = pair.poll_transmit(&config, now) {
                    if !lost.pop().unwrap_or(false) {
                        channel.push_back((now + RTT / 2, to_requester, segment));
                    }
                }
            }
            if requester.is_idle() && responder.is_idle() {
                break;
            }
            let arrival = channel.front().map_or(Time::MAX, |(at, ..)| *at);
            let due = [&requester, &responder].map(|pair| pair.deadline(&config, now));
            now = arrival.min(due[0]).min(due[1]);
            prop_assert!(now < Time::MAX, "stuck: {requester:?} {responder:?}");
            if arrival == now && let Some((_, to_requester, segment)) = channel.pop_front() {
                let pair = if to_requester { &mut requester } else { &mut responder };
                pair.on_segment(&config, now, &segment, None);
            } else {
                [&mut requester, &mut responder].into_iter().for_each(|pair| pair.on_deadline(&config, now));
            }
        }
        prop_assert!(requester.is_idle() && responder.is_idle());
        prop_assert_eq!(requester.received(), sizes.iter().sum::<u64>());
    }
}
