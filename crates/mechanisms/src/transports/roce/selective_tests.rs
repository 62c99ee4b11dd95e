//! Tests of selective repeat: by hand-computed packets, and over channels that lose and reorder.

use crate::transports::NicEnd;
use plimsoll_units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;

use super::params::{RoceParams, RoceRepair, SelectiveParams};
use super::{QueuePair, RoceConfig, RoceController};
use crate::tcp::controller::{DctcpParams, SwiftParams};
use crate::tcp::{EcnField, Flags, TcpSegment};

const LINE: Rate = Rate::from_gbps(10);
const RTT: Span = Span::from_us(10);

fn config(selective: SelectiveParams) -> RoceConfig {
    let params = RoceParams { repair: RoceRepair::Selective, selective, ..RoceParams::default() };
    let controller = RoceController::Dcqcn;
    RoceConfig {
        controller,
        uses_marks: true,
        payload: 1_000,
        header: 48,
        dctcp: DctcpParams::default(),
        swift: SwiftParams::default(),
        max_window: u64::MAX,
        params,
    }
}

fn pair(config: &RoceConfig) -> QueuePair {
    let mut pair = QueuePair::new(config);
    pair.set_path(config, LINE, RTT, 1);
    pair
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// The offsets of the packets that leave by themselves from `from` until `until`, with the microsecond of the first.
fn sent(pair: &mut QueuePair, config: &RoceConfig, from: Time, until: Time) -> (u64, Vec<u64>) {
    let (mut now, mut first, mut all) = (from, None, Vec::new());
    loop {
        while let Some(segment) = pair.poll_transmit(config, now) {
            first.get_or_insert(now);
            all.push(segment.seq);
        }
        let due = pair.deadline(config, now);
        if due > until {
            return (first.map_or(0, |first| (first - Time::ZERO).as_us_f64() as u64), all);
        }
        now = due;
        pair.on_deadline(config, now);
    }
}

fn nak(ack: u64, arrived: (u64, u64)) -> TcpSegment {
    let sack = [arrived].into_iter().collect();
    TcpSegment { ack, sack, flags: Flags::ACK.with(Flags::CWR), ..TcpSegment::default() }
}

#[test]
fn a_receiver_keeps_what_is_out_of_order_and_names_it() {
    let config = config(SelectiveParams::default());
    let mut pair = pair(&config);
    let mut arrive = |seq: u64, asks: bool| {
        let flags = Flags::NONE.with_if(asks, Flags::CWR);
        let packet = TcpSegment { seq, len: 1_000, ecn: EcnField::Ect, flags, ..TcpSegment::default() };
        let new = pair.on_segment(&config, at(seq / 1_000), &packet, None).new_bytes;
        let answers: Vec<_> = std::iter::from_fn(|| pair.poll_transmit(&config, at(seq / 1_000)))
            .map(|answer| (answer.ack, answer.flags.has(Flags::CWR), answer.sack.as_slice().first().copied()))
            .collect();
        (new, answers)
    };
    assert_eq!(arrive(0, false), (1_000, vec![]));
    assert_eq!(arrive(2_000, true), (0, vec![(1_000, true, Some((2_000, 3_000)))]));
    assert_eq!(arrive(3_000, true), (0, vec![(1_000, true, Some((3_000, 4_000)))]), "each has its NAK");
    assert_eq!(arrive(5_000, true), (0, vec![(1_000, true, Some((5_000, 6_000)))]));
    assert_eq!(
        arrive(1_000, false),
        (3_000, vec![(4_000, false, None)]),
        "what closes a gap is acknowledged"
    );
    assert_eq!(arrive(2_000, false), (0, vec![(4_000, false, None)]), "a duplicate is acknowledged");
    assert_eq!(arrive(4_000, false), (2_000, vec![(6_000, false, None)]));
    assert_eq!(arrive(6_000, false), (1_000, vec![]), "nothing is kept");
}

#[test]
fn a_sender_repeats_what_is_missing_once_and_then_continues() {
    let config = config(SelectiveParams { cap: Some(Bytes::new(8_000)), ..SelectiveParams::default() });
    let mut pair = pair(&config);
    pair.write(&config, Time::ZERO, 20_000);
    let eight: Vec<_> = (0..8_000).step_by(1_000).collect();
    assert_eq!(sent(&mut pair, &config, at(0), at(20)), (0, eight), "the cap");
    // 1000, 2000 and 4000 are lost.
    pair.on_segment(&config, at(20), &nak(1_000, (3_000, 4_000)), None);
    pair.on_segment(&config, at(20), &nak(1_000, (5_000, 6_000)), None);
    assert_eq!(sent(&mut pair, &config, at(20), at(40)).1, [1_000, 2_000, 4_000, 8_000]);
    assert_eq!(pair.counters().retransmissions, 3);
    // The repeat of 2000 is lost: it waits for the timeout, which runs from the last acknowledgement of new data.
    pair.on_segment(&config, at(40), &nak(2_000, (6_000, 7_000)), None);
    pair.on_segment(&config, at(40), &nak(2_000, (4_000, 5_000)), None);
    assert_eq!(sent(&mut pair, &config, at(40), at(359)).1, [9_000]);
    assert_eq!(sent(&mut pair, &config, at(359), at(400)), (360, vec![2_000, 7_000, 8_000, 9_000]));
    assert_eq!(pair.counters().timeouts, 1);
}

#[test]
fn few_outstanding_packets_have_the_short_timeout() {
    for (bytes, us) in [(2_001, 100), (3_000, 100), (3_001, 320), (4_000, 320)] {
        let config = config(SelectiveParams::default());
        let mut pair = pair(&config);
        pair.write(&config, Time::ZERO, bytes);
        let (_, first) = sent(&mut pair, &config, at(0), at(20));
        assert_eq!(sent(&mut pair, &config, at(20), at(us + 5)), (us, first), "{bytes} B");
    }
}

#[test]
fn without_a_cap_of_its_own_a_queue_pair_has_a_round_trip_outstanding() {
    let config = config(SelectiveParams::default());
    let mut pair = pair(&config);
    pair.write(&config, Time::ZERO, 100_000);
    // 10 Gb/s x 10 us = 12,500 B: a packet leaves while fewer are outstanding.
    assert_eq!(sent(&mut pair, &config, at(0), at(90)).1.len(), 13);
}

proptest! {
    /// Over a channel that loses and reorders packets of either direction, everything arrives once and in order, and
    /// nothing is sent again that an answer has named.
    #[test]
    fn nothing_is_repeated_that_is_known_to_have_arrived(
        sizes in prop::collection::vec(1u64..20_000, 1..8),
        ack_every in 1u32..5,
        few in 0u32..5,
        fates in prop::collection::vec((prop::bool::weighted(0.2), 0u64..6), 400),
    ) {
        let mut config = config(SelectiveParams { few, timeout_low: Span::from_us(30), ..SelectiveParams::default() });
        config.params.ack_every = ack_every;
        let (mut sender, mut receiver) = (pair(&config), pair(&config));
        sizes.iter().for_each(|bytes| sender.write(&config, Time::ZERO, *bytes));
        let total = sizes.iter().sum::<u64>();
        let mut known = vec![false; total as usize];
        let mut fates = fates.into_iter();
        let mut channel: Vec<(Time, bool, TcpSegment)> = Vec::new();
        let (mut now, mut delivered) = (Time::ZERO, 0);
        for _ in 0..20_000 {
            for (pair, to_receiver) in [(&mut sender, true), (&mut receiver, false)] {
                while let Some(segment) = pair.poll_transmit(&config, now) {
                    let (seq, end) = (segment.seq as usize, segment.end() as usize);
                    let is_known = to_receiver && known[seq..end].iter().any(|known| *known);
                    prop_assert!(!is_known, "{seq} again at {now:?}");
                    let (is_lost, late) = fates.next().unwrap_or_default();
                    if !is_lost {
                        channel.push((now + RTT / 2 + Span::from_us(late), to_receiver, segment));
                    }
                }
            }
            if sender.is_idle() {
                break;
            }
            let first = (0..channel.len()).min_by_key(|index| channel[*index].0);
            let arrival = first.map_or(Time::MAX, |index| channel[index].0);
            now = arrival.min(sender.deadline(&config, now));
            prop_assert!(now < Time::MAX, "stuck: {sender:?} {receiver:?}");
            let Some(index) = first.filter(|_| arrival == now) else {
                sender.on_deadline(&config, now);
                continue;
            };
            let (_, to_receiver, segment) = channel.remove(index);
            if to_receiver {
                delivered += receiver.on_segment(&config, now, &segment, None).new_bytes;
            } else {
                let una = sender.acknowledged();
                sender.on_segment(&config, now, &segment, None);
                known[..segment.ack as usize].fill(true);
                if segment.ack >= una && let Some(&(start, end)) = segment.sack.as_slice().first() {
                    known[start as usize..end as usize].fill(true);
                }
            }
        }
        prop_assert_eq!(delivered, total);
        prop_assert_eq!(receiver.received(), total);
        prop_assert!(sender.is_idle());
    }
}
