//! Trimming at one port: capacities to the packet, and the order of headers and data.

use std::sync::Arc;

use plimsoll_fabric::net::port::{BufferLimit, Discipline, PortConfig, PortRules, ServiceOrder, Trimmer};
use plimsoll_fabric::net::{Packet, Port};
use plimsoll_mechanisms::PortMechanisms;
use plimsoll_mechanisms::trim::TrimParams;
use plimsoll_units::{Span, Streams, Time};
use proptest::prelude::*;

use crate::bench::{Recorder, Ties, packet, plain, rules};

/// NDP's port: 8 packets of 9,000 B, the packet in service among them.
const NDP: BufferLimit = BufferLimit { packets: u64::MAX, bytes: 72_000, counts_in_service: true };

/// A port that trims by `trim`; `seed` is that of its coin.
fn port(trim: &str, seed: u64) -> Port {
    port_with(trim, None, NDP, seed)
}

/// The same with classes and a limit.
fn port_with(trim: &str, classes: Option<&str>, limit: BufferLimit, seed: u64) -> Port {
    let params: TrimParams = toml::from_str(trim).unwrap();
    let classes = classes.map(|text| toml::from_str(text).unwrap());
    let mechanisms = PortMechanisms { trim: Some(params), classes, ..PortMechanisms::default() };
    Port::new(PortConfig {
        rules: Arc::new(PortRules { limit, ..rules() }),
        discipline: Discipline::of(ServiceOrder::Fifo, &mechanisms, 9_064, limit),
        trimmer: Some(Trimmer::new(&params, false, || Streams::new(seed).stream("trim"))),
        ..plain()
    })
}

/// Offers `packets` and returns what happened.
fn drive(trim: &str, packets: &[(Time, Packet)]) -> Recorder {
    let mut recorder = Recorder::default();
    recorder.drive(&mut port(trim, 3), packets, Ties::CallFirst, |_, _| {});
    recorder
}

/// The sequence numbers of the packets that were sent, negative where they were trimmed.
fn order(recorder: &Recorder) -> Vec<i64> {
    let sent = recorder.sent.iter();
    sent.map(|(_, packet)| i64::from(packet.seq) * if packet.is_trimmed() { -1 } else { 1 }).collect()
}

fn at_once(count: u32) -> Vec<(Time, Packet)> {
    (1..=count).map(|seq| (Time::ZERO, packet(0, seq, 9_064))).collect()
}

#[test]
fn a_queue_of_eight_holds_seven_full_packets() {
    let recorder = drive("", &at_once(10));
    assert_eq!(order(&recorder), [1, -8, -9, -10, 2, 3, 4, 5, 6, 7]);
    let sizes: Vec<u16> = recorder.sent.iter().map(|(_, packet)| packet.size).collect();
    assert_eq!((sizes[0], sizes[1], recorder.dropped.len()), (9_064, 64, 0));
    // A trimmed packet keeps the length of its payload.
    assert_eq!((recorder.sent[1].1.len, recorder.sent[1].1.priority), (9_024, 7));
}

#[test]
fn ten_headers_go_before_each_data_packet() {
    let recorder = drive("service = '10:1'", &at_once(7 + 22));
    let headers = |range: std::ops::Range<i64>| range.map(|seq| -seq).collect::<Vec<_>>();
    let expected =
        [vec![1], headers(8..18), vec![2], headers(18..28), vec![3], headers(28..30), vec![4, 5, 6, 7]]
            .concat();
    assert_eq!(order(&recorder), expected);
}

#[test]
fn control_packets_wait_with_the_headers_and_are_not_cut() {
    let mut packets = at_once(8);
    let mut ack = packet(1, 99, 84);
    (ack.len, ack.priority) = (0, 7);
    packets.push((Time::ZERO, ack));
    assert_eq!(order(&drive("", &packets))[..3], [1, -8, 99]);
}

#[test]
fn a_packet_that_passes_an_idle_port_counts_in_its_queue_while_it_is_sent() {
    let mut ack = packet(1, 99, 84);
    (ack.len, ack.priority) = (0, 7);
    // The control packet and one header are 148 B, so that the next header finds no room.
    let headers = drive("queue = '148B'", &[vec![(Time::ZERO, ack)], at_once(9)].concat());
    assert_eq!(order(&headers), [99, -8, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(headers.dropped.len(), 1);
    // A full packet that is sent later is one of the seven.
    let later = at_once(8).into_iter().map(|(at, packet)| (at + Span::from_ms(1), packet)).collect();
    let data = drive("", &[vec![(Time::ZERO, ack)], later].concat());
    assert_eq!(order(&data), [99, 1, -8, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_full_header_queue_bounces_once_or_drops() {
    // Two headers fit into 128 B.
    let bounced = drive("queue = '128B'\nbounce = true", &at_once(12));
    assert_eq!((bounced.bounced.clone(), bounced.dropped.len()), (vec![10, 11, 12], 0));
    let dropped = drive("queue = '128B'", &at_once(12));
    assert_eq!((dropped.bounced.len(), dropped.dropped.len()), (0, 3));
    // A packet that comes back and finds no room again is dropped.
    let mut back = packet(2, 50, 64);
    back.priority = 7;
    back.flags = back.flags.with(plimsoll_fabric::net::Flags::TRIMMED).with(plimsoll_fabric::net::Flags::SYN);
    let mut packets = at_once(9);
    packets.push((Time::ZERO, back));
    let recorder = drive("queue = '128B'\nbounce = true", &packets);
    assert_eq!(
        (recorder.bounced.len(), recorder.dropped.iter().map(|(_, seq)| *seq).collect::<Vec<_>>()),
        (0, vec![50])
    );
}

#[test]
fn a_fair_coin_takes_the_tail() {
    // Waves of seven with one more: by the coin the eighth stays whole and the seventh is cut.
    let trimmed: Vec<u32> = (0..200)
        .map(|wave| {
            let mut recorder = Recorder::default();
            recorder.drive(&mut port("victim = 'coin-tail'", wave), &at_once(8), Ties::CallFirst, |_, _| {});
            let cut: Vec<u32> = recorder
                .sent
                .iter()
                .filter(|(_, packet)| packet.is_trimmed())
                .map(|(_, packet)| packet.seq)
                .collect();
            assert_eq!((recorder.sent.len(), cut.len()), (8, 1));
            cut[0]
        })
        .collect();
    let tails = trimmed.iter().filter(|seq| **seq == 7).count();
    assert!(trimmed.iter().all(|seq| [7, 8].contains(seq)) && (70..130).contains(&tails), "{tails}");
}

/// Classes with a strict header queue behave as the port's own queues.
#[test]
fn a_header_class_has_room_beside_full_data() {
    let classes = "priority = { '7' = {}, '0..6' = { weight = 1 } }";
    for counts_in_service in [false, true] {
        for victim in ["arriving", "coin-tail"] {
            let limit = BufferLimit { counts_in_service, ..NDP };
            let trim = format!("victim = '{victim}'\nbounce = true");
            let [own, by_class] = [None, Some(classes)].map(|classes| {
                let mut recorder = Recorder::default();
                let mut port = port_with(&trim, classes, limit, 3);
                recorder.drive(&mut port, &at_once(3_000), Ties::CallFirst, |_, _| {});
                recorder
            });
            assert_eq!(order(&own), order(&by_class));
            // Twice the data's limit is the room of headers, and the others go back.
            assert!(own.bounced.len() > 500 && own.bounced == by_class.bounced, "{}", own.bounced.len());
        }
    }
}

proptest! {
    /// No packet takes a place that is too small for it, whichever is cut.
    #[test]
    fn limits_hold_with_packets_of_all_sizes(
        arrivals in prop::collection::vec((0u64..2_000, 65u16..9_064, 0u8..8), 1..200),
        seed in any::<u64>(),
        is_coin in any::<bool>(),
        by_class in any::<bool>(),
        counts_in_service in any::<bool>(),
    ) {
        let (headers, data) = (640, 20_000);
        let limit = BufferLimit { bytes: data, counts_in_service, ..NDP };
        let victim = if is_coin { "coin-tail" } else { "arriving" };
        let trim = format!("victim = '{victim}'");
        let classes = "priority = { '7' = { buffer = '640B' }, '0..6' = {} }";
        let (trim, classes) =
            if by_class { (trim, Some(classes)) } else { (format!("{trim}\nqueue = '640B'"), None) };
        let mut now = Time::ZERO;
        let packets: Vec<(Time, Packet)> = arrivals.iter().zip(0..).map(|((gap, size, priority), seq)| {
            now += Span::from_ns(*gap);
            let mut packet = packet(0, seq, *size);
            packet.priority = if by_class { priority % 7 } else { *priority };
            (now, packet)
        }).collect();
        let mut port = port_with(&trim, classes, limit, seed);
        let mut recorder = Recorder::default();
        let mut most = 0;
        recorder.drive(&mut port, &packets, Ties::CallFirst, |port, _| most = most.max(port.drain_bytes(0)));
        prop_assert!(most.max(port.drain_bytes(0)) <= data + headers, "{most}");
    }

    /// Every packet is sent, dropped or sent back, once; and the payload that is missing is that of trimmed packets.
    #[test]
    fn packets_and_payload_are_conserved(
        arrivals in prop::collection::vec((0u64..8_000, 40u16..9_064, 0u8..8), 1..200),
        queue in 64u64..2_000,
        is_bouncing in any::<bool>(),
        is_coin in any::<bool>(),
    ) {
        let victim = if is_coin { "coin-tail" } else { "arriving" };
        let trim = format!("queue = '{queue}B'\nbounce = {is_bouncing}\nvictim = '{victim}'");
        let mut now = Time::ZERO;
        let packets: Vec<(Time, Packet)> = arrivals.iter().zip(0..).map(|((gap, size, priority), seq)| {
            now += Span::from_ns(*gap);
            let mut packet = packet(0, seq, *size);
            packet.priority = *priority;
            (now, packet)
        }).collect();
        let recorder = drive(&trim, &packets);
        let mut seen: Vec<u32> = recorder.sent.iter().map(|(_, packet)| packet.seq).collect();
        seen.extend(recorder.dropped.iter().map(|(_, seq)| *seq));
        seen.extend(&recorder.bounced);
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..packets.len() as u32).collect::<Vec<_>>());
        for (_, sent) in &recorder.sent {
            let before = &packets[sent.seq as usize].1;
            prop_assert_eq!(sent.size, if sent.is_trimmed() { 64 } else { before.size });
            prop_assert_eq!(sent.len, before.len);
        }
    }
}
