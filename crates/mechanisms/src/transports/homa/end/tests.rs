//! Two ends that exchange packets without a network.

use crate::transports::NicEnd;
use plimsoll_units::{Span, Time};
use proptest::prelude::*;

use super::*;
use crate::transports::homa::HomaParams;

fn config(repair: bool) -> HomaConfig {
    HomaConfig::new(1_472, 66, &HomaParams { repair, ..HomaParams::default() })
}

/// Both ends of a connection, without a network between them.
#[derive(Default)]
struct Pair {
    sender: HomaEnd,
    receiver: HomaEnd,
    now: Time,
}

impl Pair {
    /// Sends all that may leave, and grants what may be granted, until nothing moves. `loses` says which packets are
    /// lost, by their number. Returns data packets as (offset, bytes, priority).
    fn drive(&mut self, config: &HomaConfig, mut loses: impl FnMut() -> bool) -> Vec<(u64, u32, u8)> {
        let mut seen = Vec::new();
        loop {
            self.now += Span::from_us(1);
            let mut moved = false;
            while let Some((packet, priority)) = self.sender.next_data(config, self.now) {
                moved = true;
                seen.push((packet.seq, packet.len, priority));
                if !loses() {
                    self.receiver.on_segment(config, self.now, &packet);
                }
            }
            while let Some(packet) = self.sender.next_control() {
                moved = true;
                if !loses() {
                    self.receiver.on_segment(config, self.now, &packet);
                }
            }
            if self.receiver.may_grant(config) {
                self.receiver.grant(config, self.now, 0);
            }
            while let Some(packet) = self.receiver.next_control() {
                moved = true;
                if !loses() {
                    self.sender.on_segment(config, self.now, &packet);
                }
            }
            if !moved {
                return seen;
            }
        }
    }

    /// Lets the next timer pass. Returns false if none is set.
    fn wait(&mut self, config: &HomaConfig) -> bool {
        let due = self.sender.deadline(config, self.now).min(self.receiver.deadline(config, self.now));
        if due == Time::MAX {
            return false;
        }
        self.now = self.now.max(due);
        self.sender.on_deadline(config, self.now);
        self.receiver.on_deadline(config, self.now);
        true
    }
}

#[test]
fn a_message_of_the_unscheduled_bytes_needs_no_grant_and_one_more_byte_does() {
    let config = config(false);
    for (bytes, grants, packets) in [(1, 0, 1), (9_328, 0, 7), (9_329, 1, 8), (9_328 + 1_457, 2, 9)] {
        let mut pair = Pair::default();
        pair.sender.write(&config, pair.now, bytes);
        let seen = pair.drive(&config, || false);
        assert_eq!((pair.receiver.received(), seen.len()), (bytes, packets));
        assert_eq!(pair.receiver.counters().types.pulls.sent, grants);
        // Nothing is lost, so nothing is acknowledged.
        assert_eq!(pair.receiver.counters().types.acks.sent, 0);
        assert!(pair.sender.is_idle() && pair.receiver.is_idle());
        assert_eq!(pair.sender.deadline(&config, pair.now), Time::MAX);
    }
}

#[test]
fn scheduled_packets_have_the_priority_of_their_grants_and_the_tail_is_boosted() {
    let config = config(false);
    let mut pair = Pair::default();
    // Ten scheduled packets: the last six and 690 B take 10,000 B on the wire.
    pair.sender.write(&config, pair.now, 9_328 + 10 * 1_456);
    let seen = pair.drive(&config, || false);
    let priorities: Vec<u8> = seen.iter().map(|(_, _, priority)| *priority).collect();
    assert_eq!(priorities, [7, 7, 7, 7, 7, 7, 7, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7]);
}

#[test]
fn no_more_than_a_round_trip_is_in_flight() {
    let config = config(true);
    let (mut sender, mut receiver) = (HomaEnd::default(), HomaEnd::default());
    sender.write(&config, Time::ZERO, 1_000_000);
    let (first, _) = sender.next_data(&config, Time::ZERO).unwrap();
    receiver.on_segment(&config, Time::ZERO, &first);
    assert!(receiver.take_arrival() && !receiver.take_arrival());
    // 1,538 B have arrived on the wire, so that one packet may follow.
    assert!(receiver.may_grant(&config));
    receiver.grant(&config, Time::ZERO, 0);
    assert!(!receiver.may_grant(&config));
}

#[test]
fn the_silence_of_a_sender_begins_with_its_grant() {
    let config = config(true);
    let (mut sender, mut receiver) = (HomaEnd::default(), HomaEnd::default());
    sender.write(&config, Time::ZERO, 20_000);
    while let Some((packet, _)) = sender.next_data(&config, Time::ZERO) {
        receiver.on_segment(&config, Time::ZERO, &packet);
    }
    assert_eq!(receiver.deadline(&config, Time::ZERO), Time::MAX, "all that was granted is here");
    // Others are granted first, for longer than a RESEND takes.
    let late = Time::ZERO + Span::from_ms(20);
    receiver.grant(&config, late, 0);
    assert_eq!(receiver.deadline(&config, late), late + config.params.resend_after);
}

#[test]
fn messages_of_a_connection_follow_each_other_with_unscheduled_bytes_each() {
    let config = config(true);
    let mut pair = Pair::default();
    for bytes in [100, 20_000, 9_328] {
        pair.sender.write(&config, pair.now, bytes);
    }
    pair.drive(&config, || false);
    assert_eq!((pair.receiver.received(), pair.sender.acknowledged()), (29_428, 29_428));
    assert_eq!(pair.receiver.counters().types.pulls.sent, (20_000u64 - 9_328).div_ceil(1_456));
    assert!(pair.sender.is_idle() && !pair.wait(&config));
}

#[test]
fn a_receiver_asks_for_what_it_misses_and_a_sender_whether_it_arrived() {
    let config = config(true);
    let mut pair = Pair::default();
    pair.sender.write(&config, pair.now, 3_000);
    let mut number = 0;
    // The second packet is lost: the receiver knows of the message and asks after 5 ms.
    let sent = pair.drive(&config, || {
        number += 1;
        number == 2
    });
    assert_eq!((sent.len(), pair.receiver.received()), (3, 1_442));
    let heard = pair.now;
    assert!(pair.wait(&config));
    assert!(pair.now >= heard + Span::from_us(4_990) && pair.now <= heard + Span::from_ms(5));
    assert_eq!(pair.drive(&config, || false).len(), 1);
    assert_eq!((pair.receiver.counters().types.naks.sent, pair.sender.acknowledged()), (1, 3_000));
    // All is lost: the sender asks, and the receiver asks for it.
    let asked = pair.sender.counters().types.requests.sent;
    pair.sender.write(&config, pair.now, 100);
    pair.drive(&config, || true);
    assert!(pair.wait(&config));
    pair.drive(&config, || false);
    let requests = pair.sender.counters().types.requests.sent - asked;
    assert_eq!((requests, pair.sender.acknowledged()), (1, 3_100));
}

#[test]
fn duplicates_change_nothing_but_are_acknowledged_again() {
    let config = config(true);
    let (mut sender, mut receiver) = (HomaEnd::default(), HomaEnd::default());
    sender.write(&config, Time::ZERO, 100);
    let (packet, _) = sender.next_data(&config, Time::ZERO).unwrap();
    for new_bytes in [100, 0] {
        assert_eq!(receiver.on_segment(&config, Time::ZERO, &packet).new_bytes, new_bytes);
        assert!(receiver.next_control().is_some() && receiver.next_control().is_none());
    }
}

proptest! {
    /// Every message arrives once and whole, whichever packets are lost.
    #[test]
    fn all_messages_arrive(
        messages in prop::collection::vec(1u64..60_000, 1..6),
        losses in prop::collection::vec(0u8..4, 0..400),
    ) {
        let config = config(true);
        let mut pair = Pair::default();
        let all: u64 = messages.iter().sum();
        messages.iter().for_each(|bytes| pair.sender.write(&config, pair.now, *bytes));
        let mut losses = losses.into_iter();
        for _ in 0..10_000 {
            pair.drive(&config, || losses.next() == Some(0));
            if pair.sender.acknowledged() == all {
                break;
            }
            prop_assert!(pair.wait(&config), "a timer is set while something is missing");
        }
        prop_assert_eq!((pair.receiver.received(), pair.sender.acknowledged()), (all, all));
        prop_assert!(pair.sender.is_idle() && pair.receiver.is_idle());
    }
}
