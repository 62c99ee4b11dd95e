//! Tests of queue pairs: by hand-computed packets, and over channels that lose.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::tcp::controller::{DctcpParams, SwiftParams};
use crate::telemetry::{IntParams, Stamp, Written};
use crate::transports::roce::controller::{DcqcnForm, DcqcnParams, HpccParams, HpccReaction};
use crate::transports::roce::{NicParams, RoceController, RoceParams, RoceWindow};

const LINE: Rate = Rate::from_gbps(10);
const RTT: Span = Span::from_us(10);

fn config(params: RoceParams) -> RoceConfig {
    let controller = RoceController::Dcqcn;
    RoceConfig {
        controller,
        uses_marks: true,
        payload: 1_000,
        header: 48,
        dctcp: DctcpParams::default(),
        swift: SwiftParams::default(),
        max_window: 65_536_000,
        params,
    }
}

fn pair(config: &RoceConfig) -> QueuePair {
    let mut pair = QueuePair::new(config);
    pair.set_path(config, LINE, RTT, 1);
    pair
}

fn at(ns: u64) -> Time {
    Time::ZERO + Span::from_ns(ns)
}

/// Everything that leaves by itself until `until`, with its time.
fn sent(pair: &mut QueuePair, config: &RoceConfig, from: Time, until: Time) -> Vec<(Time, TcpSegment)> {
    let (mut now, mut all) = (from, Vec::new());
    loop {
        while let Some(segment) = pair.poll_transmit(config, now) {
            all.push((now, segment));
        }
        let due = pair.deadline(config, now);
        if due > until {
            return all;
        }
        now = due;
        pair.on_deadline(config, now);
    }
}

fn data(seq: u64, len: u32) -> TcpSegment {
    TcpSegment { seq, len, ecn: EcnField::Ect, ..TcpSegment::default() }
}

/// The answers to packets that arrive, as text: `ack N`, `nak N`, `cnp`.
fn answers(pair: &mut QueuePair, config: &RoceConfig, now: Time) -> Vec<String> {
    std::iter::from_fn(|| pair.poll_transmit(config, now))
        .map(|answer| match (answer.flags.has(Flags::ACK), answer.flags.has(Flags::CWR)) {
            (false, _) => "cnp".to_owned(),
            (true, false) => format!("ack {}", answer.ack),
            (true, true) => format!("nak {}", answer.ack),
        })
        .collect()
}

#[test]
fn packets_end_with_their_message_and_leave_at_the_rate() {
    let config = config(RoceParams { ack_every: 3, ..RoceParams::default() });
    let mut pair = pair(&config);
    [1_500, 1, 4_000].into_iter().for_each(|bytes| pair.write(&config, Time::ZERO, bytes));
    // A byte takes 0.8 ns; a header has 48 bytes.
    let shape: Vec<_> = sent(&mut pair, &config, Time::ZERO, at(20_000))
        .iter()
        .map(|(at, packet)| (at.as_ps() / 100, packet.seq, packet.len, packet.flags.has(Flags::CWR)))
        .collect();
    assert_eq!(
        shape,
        [
            (0, 0, 1_000, false),
            (8_384, 1_000, 500, true),
            (12_768, 1_500, 1, true),
            (13_160, 1_501, 1_000, false),
            (21_544, 2_501, 1_000, false),
            (29_928, 3_501, 1_000, true),
            (38_312, 4_501, 1_000, true),
        ]
    );
}

#[test]
fn a_message_leaves_once_the_nic_has_it_ready() {
    let nic = NicParams { message_start: Span::from_us(2), ..NicParams::default() };
    let config = config(RoceParams { nic, ..RoceParams::default() });
    let mut pair = pair(&config);
    pair.write(&config, at(0), 1_000);
    pair.write(&config, at(500), 1_000);
    pair.write(&config, at(500), 1_000);
    // A packet takes 838.4 ns, within which the second message is ready.
    let times: Vec<_> =
        sent(&mut pair, &config, at(500), at(20_000)).iter().map(|(at, _)| at.as_ps()).collect();
    assert_eq!(times, [2_000_000, 2_838_400, 3_676_800]);
    pair.write(&config, at(20_000), 1_000);
    let late = sent(&mut pair, &config, at(20_000), at(30_000));
    assert_eq!((late.len(), late[0].0), (1, at(22_000)));
}

#[test]
fn a_window_limits_what_is_outstanding_and_its_last_packet_asks() {
    let config = config(RoceParams { window: RoceWindow::Bdp, ack_every: 1_000, ..RoceParams::default() });
    let mut pair = pair(&config);
    pair.write(&config, Time::ZERO, 100_000);
    // 10 Gb/s x 10 us = 12,500 B: a packet leaves while fewer are outstanding.
    let first = sent(&mut pair, &config, Time::ZERO, at(100_000));
    assert_eq!(first.len(), 13);
    let asks: Vec<_> = first.iter().map(|(_, packet)| packet.flags.has(Flags::CWR)).collect();
    assert_eq!(asks.iter().rposition(|asks| *asks), Some(12));
    assert_eq!(asks.iter().filter(|asks| **asks).count(), 1);
    let ack = TcpSegment { ack: 2_000, flags: Flags::ACK, ..TcpSegment::default() };
    pair.on_segment(&config, at(100_000), &ack, None);
    assert_eq!(sent(&mut pair, &config, at(100_000), at(150_000)).len(), 2);
}

#[test]
fn one_nak_until_the_gap_has_closed_and_duplicates_are_acknowledged() {
    let config = config(RoceParams::default());
    let mut pair = pair(&config);
    let mut arrive = |seq, asks| {
        let packet = TcpSegment { flags: Flags::NONE.with_if(asks, Flags::CWR), ..data(seq, 1_000) };
        let delivered = pair.on_segment(&config, at(seq), &packet, None).new_bytes;
        (delivered, answers(&mut pair, &config, at(seq)))
    };
    let none = Vec::<String>::new();
    assert_eq!(arrive(0, true), (1_000, vec!["ack 1000".to_owned()]));
    assert_eq!(arrive(1_000, false), (1_000, none.clone()));
    assert_eq!(arrive(3_000, true), (0, vec!["nak 2000".to_owned()]));
    assert_eq!(arrive(4_000, true), (0, none.clone()));
    assert_eq!(arrive(1_000, false), (0, vec!["ack 2000".to_owned()]), "a duplicate");
    assert_eq!(arrive(2_000, false), (1_000, none), "the gap has closed");
    assert_eq!(arrive(4_000, true), (0, vec!["nak 3000".to_owned()]), "the next gap");
}

#[test]
fn marks_are_notified_at_once_and_then_once_an_interval() {
    let cnp_interval = Some(Span::from_us(50));
    let config = config(RoceParams { cnp_interval, ..RoceParams::default() });
    let mut pair = pair(&config);
    let mut notified = Vec::new();
    for us in 0..200 {
        let now = at(1_000 * us);
        let packet = TcpSegment { ecn: EcnField::Ce, ..data(1_000 * us, 1_000) };
        pair.on_segment(&config, now, &packet, None);
        if answers(&mut pair, &config, now).contains(&"cnp".to_owned()) {
            notified.push(us);
        }
    }
    assert_eq!(notified, [0, 50, 100, 150]);
    assert_eq!(pair.counters().ce_received, 200);
}

#[test]
fn notifications_take_their_time_at_both_ends() {
    let delays = [Span::from_us(30), Span::from_us(20)];
    let config = config(RoceParams {
        cnp_generation_delay: delays[0],
        cnp_delay: delays[1],
        cnp_interval: Some(Span::from_us(10)),
        dcqcn: DcqcnParams { form: DcqcnForm::Paper, ..DcqcnParams::default() },
        ..RoceParams::default()
    });
    let mut receiver = pair(&config);
    let mut notified = Vec::new();
    for us in 0..25 {
        let packet = TcpSegment { ecn: EcnField::Ce, ..data(1_000 * us, 1_000) };
        receiver.on_segment(&config, at(1_000 * us), &packet, None);
    }
    // Marks at 0, 10 and 20 us cause CNPs; each is under way while the next one is generated.
    for _ in 0..3 {
        while receiver.poll_transmit(&config, at(25_000)).is_some() {}
        let due = receiver.deadline(&config, at(25_000));
        receiver.on_deadline(&config, due);
        notified.push((due, answers(&mut receiver, &config, due)));
    }
    let cnp = |us: u64| (at(1_000 * us), vec!["cnp".to_owned()]);
    assert_eq!(notified, [cnp(30), cnp(40), cnp(50)]);

    let mut sender = pair(&config);
    let cnp = TcpSegment { flags: Flags::ECE, ..TcpSegment::default() };
    sender.on_segment(&config, at(0), &cnp, None);
    sender.on_segment(&config, at(15_000), &cnp, None);
    sender.write(&config, Time::ZERO, 100_000);
    // The paper's form halves the rate at the first cut: a packet takes 838.4 ns at 10 Gb/s.
    let gaps: Vec<_> = sent(&mut sender, &config, at(0), at(40_000))
        .windows(2)
        .map(|pair| (pair[0].0, pair[1].0 - pair[0].0))
        .collect();
    let full = Span::from_ps(838_400);
    assert!(gaps.iter().all(|(at, gap)| (*at < self::at(19_000)) <= (*gap == full)), "{gaps:?}");
    assert!(gaps.iter().all(|(at, gap)| (*at >= self::at(20_000)) <= (*gap >= full * 2)), "{gaps:?}");
    assert!(gaps.iter().any(|(at, gap)| *at >= self::at(33_000) && *gap > full * 3), "{gaps:?}");
}

#[test]
fn dctcp_has_marks_in_acknowledgements_and_no_notifications() {
    let config = RoceConfig { controller: RoceController::Dctcp, ..config(RoceParams::default()) };
    let mut pair = pair(&config);
    let mut echoed = Vec::new();
    for (seq, ecn) in
        [(0, EcnField::Ect), (1_000, EcnField::Ce), (3_000, EcnField::Ce), (2_000, EcnField::Ect)]
    {
        let flags = Flags::ACK.with(Flags::CWR);
        let packet = TcpSegment { ecn, ack: seq / 500, flags, ..data(seq, 1_000) };
        pair.on_segment(&config, at(seq), &packet, None);
        while let Some(answer) = pair.poll_transmit(&config, at(seq)) {
            echoed.push((answer.ack, answer.seq, answer.flags.has(Flags::ECE), answer.flags.has(Flags::CWR)));
        }
    }
    assert_eq!(
        echoed,
        [(1_000, 0, false, false), (2_000, 2, true, false), (2_000, 6, true, true), (3_000, 4, false, false)]
    );
}

#[test]
fn a_nak_and_a_timeout_go_back_to_the_first_packet_that_is_missing() {
    let config = config(RoceParams { timeout: Span::from_us(100), ..RoceParams::default() });
    let mut pair = pair(&config);
    pair.write(&config, Time::ZERO, 5_000);
    assert_eq!(sent(&mut pair, &config, Time::ZERO, at(20_000)).len(), 5);
    let nak = TcpSegment { ack: 3_000, flags: Flags::ACK.with(Flags::CWR), ..TcpSegment::default() };
    assert_eq!(pair.on_segment(&config, at(20_000), &nak, None).acked, 3_000);
    let again: Vec<_> = sent(&mut pair, &config, at(20_000), at(60_000));
    let seqs = |sent: &[(Time, TcpSegment)]| sent.iter().map(|(_, packet)| packet.seq).collect::<Vec<_>>();
    assert_eq!(seqs(&again), [3_000, 4_000]);
    assert!(again.iter().all(|(_, packet)| packet.flags.has(Flags::RETRANSMISSION)));
    // Nothing is heard: the timer runs from the last acknowledgement of new data.
    let late = sent(&mut pair, &config, at(60_000), at(125_000));
    assert_eq!((late[0].0, seqs(&late)), (at(120_000), vec![3_000, 4_000]));
    assert_eq!((pair.counters().timeouts, pair.counters().retransmissions), (1, 4));
}

/// A queue pair of `controller` sends its window, has an acknowledgement of the first packet, and goes back to the
/// second one. Returns its state when the second one is acknowledged, with the packets sent again under way.
fn after_going_back(controller: RoceController) -> WindowState {
    let hpcc = HpccParams { reaction: HpccReaction::PerRtt, ..HpccParams::default() };
    let params = RoceParams { window: RoceWindow::Bdp, hpcc, ..RoceParams::default() };
    let config = RoceConfig { controller, ..config(params) };
    let mut pair = pair(&config);
    pair.write(&config, Time::ZERO, 100_000);
    assert_eq!(sent(&mut pair, &config, Time::ZERO, at(15_000)).len(), 13);
    // A link of 10 Gb/s with a queue of one bandwidth-delay product, which it sends every 10 us: a load of 2.
    let mut hear = |us: u64, ack, flags, number| {
        let at = at(1_000 * us);
        let sent_bytes = 1_250 * us;
        let stamp = Stamp { queue_bytes: 12_500, sent_bytes, at, rate: LINE, waited: Span::ZERO };
        let mut stamps = Stamps::default();
        stamps.push(Written::Stamp(stamp), &IntParams::default());
        let answer = TcpSegment { seq: number, ack, flags, ..TcpSegment::default() };
        pair.on_segment(&config, at, &answer, Some(&stamps));
        sent(&mut pair, &config, at, at + Span::from_us(5))
    };
    hear(20, 1_000, Flags::ACK, 0);
    let again = hear(30, 1_000, Flags::ACK.with(Flags::CWR), 2);
    assert!(again[0].1.flags.has(Flags::RETRANSMISSION) && again[0].1.seq == 1_000);
    hear(40, 2_000, Flags::ACK, again[0].1.ack);
    pair.window(&config)
}

#[test]
fn a_round_trip_passes_by_transmissions_also_where_offsets_go_back() {
    // W = 12,500 B x 0.95 / 2 + 50 Mb/s x 10 us.
    assert_eq!(after_going_back(RoceController::Hpcc).cwnd_bytes, 6_000);
    // The first acknowledgement ends a window, and so does that of the packet that was sent again.
    let alpha = after_going_back(RoceController::Dctcp).alpha;
    assert!((alpha - (15.0f64 / 16.0).powi(2)).abs() < 1e-6, "{alpha}");
}

proptest! {
    /// Over a channel that loses packets of either direction, everything arrives once and in order, and the sender
    /// learns of it.
    #[test]
    fn everything_arrives_whatever_is_lost(
        sizes in prop::collection::vec(1u64..20_000, 1..8),
        ack_every in 1u32..5,
        window in any::<bool>(),
        mut lost in prop::collection::vec(prop::bool::weighted(0.2), 400),
    ) {
        let window = if window { RoceWindow::Bdp } else { RoceWindow::Off };
        let timeout = Span::from_us(50);
        let config = config(RoceParams { ack_every, window, timeout, ..RoceParams::default() });
        let (mut sender, mut receiver) = (pair(&config), pair(&config));
        sizes.iter().for_each(|bytes| sender.write(&config, Time::ZERO, *bytes));
        let mut channel: VecDeque<(Time, bool, TcpSegment)> = VecDeque::new();
        let mut now = Time::ZERO;
        let mut delivered = 0;
        for _ in 0..20_000 {
            for (pair, to_receiver) in [(&mut sender, true), (&mut receiver, false)] {
                while let Some(segment) = pair.poll_transmit(&config, now) {
                    if !lost.pop().unwrap_or(false) {
                        channel.push_back((now + RTT / 2, to_receiver, segment));
                    }
                }
            }
            if sender.is_idle() {
                break;
            }
            let arrival = channel.front().map_or(Time::MAX, |(at, ..)| *at);
            now = arrival.min(sender.deadline(&config, now));
            prop_assert!(now < Time::MAX, "stuck: {sender:?} {receiver:?}");
            if arrival == now && let Some((_, to_receiver, segment)) = channel.pop_front() {
                if to_receiver {
                    delivered += receiver.on_segment(&config, now, &segment, None).new_bytes;
                } else {
                    sender.on_segment(&config, now, &segment, None);
                }
            } else {
                sender.on_deadline(&config, now);
            }
        }
        prop_assert_eq!(delivered, sizes.iter().sum::<u64>());
        prop_assert_eq!(receiver.received(), delivered);
        prop_assert!(sender.is_idle());
    }
}
