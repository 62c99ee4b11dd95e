//! Two ends of NDP, packet by packet.

use crate::transports::NicEnd;
use plimsoll_units::Time;

use super::{NdpEnd, NdpParams};
use crate::tcp::{Flags, TcpConfig, TcpSegment, TransportParams};
use crate::transports::Kind;

const AT: Time = Time::from_ps(1_000_000);

fn config(ndp: NdpParams) -> TcpConfig {
    TransportParams { kind: Kind::Ndp, segment: plimsoll_units::Bytes::new(1_000), ndp, ..Default::default() }
        .resolve()
        .unwrap()
}

/// A sender with a window of `window` that has written `packets` packets, and what it sends at once.
fn sender(window: u32, packets: u64, keeps_pulls: bool) -> (TcpConfig, NdpEnd, Vec<TcpSegment>) {
    let config = config(NdpParams { initial_window: window, keeps_pulls, ..NdpParams::default() });
    let mut end = NdpEnd::new(&config.ndp);
    end.write(&config.ndp, AT, packets * 1_000);
    let sent = drain(&config, &mut end);
    (config, end, sent)
}

fn drain(config: &TcpConfig, end: &mut NdpEnd) -> Vec<TcpSegment> {
    std::iter::from_fn(|| end.poll_transmit(&config.ndp, AT)).collect()
}

fn numbers(segments: &[TcpSegment]) -> Vec<u64> {
    segments.iter().map(|segment| segment.ack).collect()
}

fn trimmed(segment: &TcpSegment) -> TcpSegment {
    TcpSegment { flags: segment.flags.with(Flags::TRIMMED), ..*segment }
}

fn bounced(segment: &TcpSegment) -> TcpSegment {
    TcpSegment { flags: segment.flags.with(Flags::TRIMMED).with(Flags::SYN), ..*segment }
}

/// Has `to` take `segment`, and returns what it sends.
fn give(config: &TcpConfig, to: &mut NdpEnd, segment: &TcpSegment) -> Vec<TcpSegment> {
    to.on_segment(&config.ndp, AT, segment);
    drain(config, to)
}

/// The PULL of a receiver that has given `pulled`.
fn pull(pulled: u64) -> TcpSegment {
    TcpSegment { seq: pulled, ..TcpSegment::default() }
}

#[test]
fn a_first_window_leaves_at_once_and_each_pull_brings_one_packet() {
    let (config, mut end, sent) = sender(3, 10, false);
    assert_eq!(numbers(&sent), [0, 1, 2]);
    assert_eq!(numbers(&give(&config, &mut end, &pull(1))), [3]);
    // The second and the third were lost; the fourth makes them good, and an old one changes nothing.
    assert_eq!(numbers(&give(&config, &mut end, &pull(4))), [4, 5, 6]);
    assert!(give(&config, &mut end, &pull(2)).is_empty());
    let last = give(&config, &mut end, &pull(9));
    assert_eq!(numbers(&last), [7, 8, 9]);
    let tells_end: Vec<bool> = last.iter().map(|segment| segment.flags.has(Flags::CWR)).collect();
    assert_eq!(tells_end, [false, false, true]);
}

#[test]
fn lost_packets_come_before_new_ones_and_pulls_without_a_packet_are_lost_unless_kept() {
    for keeps in [false, true] {
        let (config, mut end, sent) = sender(4, 5, keeps);
        let mut receiver = NdpEnd::new(&config.ndp);
        let [nack_2, nack_1] =
            [2, 1].map(|number: usize| give(&config, &mut receiver, &trimmed(&sent[number]))[0]);
        assert!(give(&config, &mut end, &nack_2).is_empty());
        assert_eq!(numbers(&give(&config, &mut end, &pull(2))), [2, 4]);
        // Two pulls find nothing to send, and one of them is of use later.
        assert!(give(&config, &mut end, &pull(4)).is_empty());
        assert_eq!(numbers(&give(&config, &mut end, &nack_1)), if keeps { vec![1] } else { vec![] });
        assert_eq!(numbers(&give(&config, &mut end, &pull(5))), if keeps { vec![] } else { vec![1] });
    }
}

#[test]
fn a_header_that_comes_back_waits_for_a_pull_unless_none_will_come_or_its_path_alone_is_bad() {
    let (config, mut end, sent) = sender(3, 3, false);
    assert!(give(&config, &mut end, &bounced(&sent[0])).is_empty(), "two others have no answer yet");
    assert_eq!(numbers(&give(&config, &mut end, &bounced(&sent[1]))), [1], "one other");
    let mut receiver = NdpEnd::new(&config.ndp);
    let ack = give(&config, &mut receiver, &sent[2])[0];
    assert!(give(&config, &mut end, &ack).is_empty());
    assert!(!end.is_idle() && end.acknowledged() == 0);
    assert_eq!(numbers(&give(&config, &mut end, &pull(1))), [0], "the first that came back has waited");
    // Three answers in four were positive: the paths as a whole are not overloaded.
    let (config, mut end, sent) = sender(6, 6, false);
    let mut receiver = NdpEnd::new(&config.ndp);
    for segment in &sent[..3] {
        let ack = give(&config, &mut receiver, segment)[0];
        give(&config, &mut end, &ack);
    }
    assert_eq!(numbers(&give(&config, &mut end, &bounced(&sent[3]))), [3]);
}

#[test]
fn a_receiver_answers_at_once_and_owes_a_pull_for_each_packet_until_it_has_all() {
    let (config, mut end, sent) = sender(4, 4, false);
    let mut receiver = NdpEnd::new(&config.ndp);
    receiver.on_segment(&config.ndp, AT, &sent[0]);
    assert!(receiver.pulls_in_answer() && !receiver.pulls_in_answer(), "one packet, one pull");
    assert!(!receiver.enlists());
    let [ack] = drain(&config, &mut receiver)[..] else { panic!("one answer") };
    assert_eq!(end.on_segment(&config.ndp, AT, &ack).acked, 1_000);
    // The next two have to wait for the pacer, which gives each connection one in turn.
    give(&config, &mut receiver, &trimmed(&sent[1]));
    give(&config, &mut receiver, &sent[2]);
    assert!(receiver.enlists() && !receiver.enlists());
    assert!(receiver.grant());
    assert_eq!(drain(&config, &mut receiver)[0].seq, 2);
    assert!(receiver.enlists());
    // The last packet closes all but one gap, and the repeated one that gap: the rest of the pulls is dropped.
    give(&config, &mut receiver, &sent[3]);
    assert!(!receiver.withdraws());
    assert_eq!(receiver.on_segment(&config.ndp, AT, &sent[1]).new_bytes, 3_000);
    drain(&config, &mut receiver);
    assert!(receiver.withdraws() && !receiver.enlists() && !receiver.grant());
}

#[test]
fn a_packet_behind_a_last_one_is_owed_a_pull_if_more_follows() {
    // Three messages of one packet each: the first leaves as the last that was written, and the second does not.
    let config = config(NdpParams { initial_window: 2, ..NdpParams::default() });
    let mut end = NdpEnd::new(&config.ndp);
    end.write(&config.ndp, AT, 1_000);
    let mut sent = drain(&config, &mut end);
    end.write(&config.ndp, AT, 1_000);
    end.write(&config.ndp, AT, 1_000);
    sent.extend(drain(&config, &mut end));
    assert_eq!(sent.iter().map(|segment| segment.flags.has(Flags::CWR)).collect::<Vec<_>>(), [true, false]);
    for whole in [true, false] {
        let mut receiver = NdpEnd::new(&config.ndp);
        give(&config, &mut receiver, &sent[0]);
        assert!(!receiver.enlists(), "all that was written has arrived");
        give(&config, &mut receiver, &if whole { sent[1] } else { trimmed(&sent[1]) });
        assert!(!receiver.withdraws() && receiver.enlists() && receiver.grant(), "more is to come");
    }
}

#[test]
fn a_connection_begins_with_a_first_window_again_when_the_receiver_has_all() {
    let (config, mut end, sent) = sender(2, 2, false);
    let mut receiver = NdpEnd::new(&config.ndp);
    end.write(&config.ndp, AT, 3_000);
    assert!(drain(&config, &mut end).is_empty(), "the first window is under way");
    for (segment, expected) in sent.iter().zip([&[][..], &[2, 3]]) {
        let ack = give(&config, &mut receiver, segment)[0];
        assert_eq!(numbers(&give(&config, &mut end, &ack)), expected);
    }
}

#[test]
fn what_gets_no_answer_and_what_gets_no_pull_is_sent_after_a_timeout_that_doubles() {
    let (config, mut end, sent) = sender(2, 4, false);
    let rto = config.params.ndp.min_rto;
    assert_eq!(end.deadline(&config.ndp, AT), AT + rto);
    end.on_deadline(&config.ndp, AT + rto);
    let again: Vec<TcpSegment> = std::iter::from_fn(|| end.poll_transmit(&config.ndp, AT + rto)).collect();
    let mut repeated = numbers(&again);
    repeated.sort_unstable();
    assert_eq!(repeated, [0, 1]);
    assert_eq!(end.deadline(&config.ndp, AT), AT + rto + rto * 2);
    // Both are answered, and the pulls are lost.
    let mut receiver = NdpEnd::new(&config.ndp);
    for segment in &sent {
        let ack = give(&config, &mut receiver, segment)[0];
        give(&config, &mut end, &ack);
    }
    let due = end.deadline(&config.ndp, AT);
    assert_eq!(due, AT + rto * 16);
    end.on_deadline(&config.ndp, due);
    let next: Vec<TcpSegment> = std::iter::from_fn(|| end.poll_transmit(&config.ndp, due)).collect();
    assert_eq!((numbers(&next), end.counters().timeouts), (vec![2], 3));
    assert_eq!(end.deadline(&config.ndp, AT), due + rto * 2);
}
