use plimsoll_circuits::{Classify, Configuration, Demand, Matching};
use plimsoll_units::{Rate, Span, Time};

use super::{ClassQueues, ClassRates, ClassSignal};
use crate::net::port::waiting::Waiting;
use crate::net::{HostId, Packet, PathClass, Slot};

/// Host 0 of three, with circuits of 8 Gb/s (a byte a nanosecond) and a packet switch of 0.8 Gb/s.
fn queues() -> ClassQueues {
    queues_with(Classify::WhenSent, 1)
}

fn queues_that_classify(classify: Classify) -> ClassQueues {
    queues_with(classify, 1)
}

fn queues_with(classify: Classify, circuit_uplinks: u32) -> ClassQueues {
    let rates = ClassRates {
        circuit_uplinks,
        circuit: Rate::from_gbps(8),
        packet: Rate::from_mbps(800),
        circuit_first: false,
        classify,
    };
    ClassQueues::new(0, 3, rates)
}

fn at(ns: u64) -> Time {
    Time::ZERO + Span::from_ns(ns)
}

fn push(queues: &mut ClassQueues, ns: u64, to: u32, class: PathClass) {
    let mut packet = Packet::new(HostId(0), HostId(to), to, 1_000);
    packet.set_path_class(class);
    // The slot's number is the packet's destination.
    queues.push(Waiting::new(Slot::new(to), &packet, at(ns), false), &mut packet);
}

/// Destination and path class of the packet that leaves at `ns`.
fn pop(queues: &mut ClassQueues, ns: u64) -> Option<(u32, PathClass)> {
    queues.pop(at(ns)).map(|departure| (departure.waiting.slot.number(), departure.by))
}

/// A week with a circuit from host 0 to host 1, and this residue of its three destinations.
fn week(queues: &mut ClassQueues, ns: u64, residue: [u64; 3], spread: Option<Span>) {
    let matching = Matching::new(vec![Some(1), Some(2), Some(0)]);
    let configurations = [Configuration { matching, duration: Span::from_us(5) }];
    let residue = Demand::from_rows(&[&residue, &[0; 3], &[0; 3]]);
    queues.on_signal(at(ns), ClassSignal::Week(&configurations, &residue, spread));
}

#[test]
fn without_a_schedule_destinations_take_turns_at_the_packet_rate() {
    let mut queues = queues();
    for to in [1, 1, 2] {
        push(&mut queues, 0, to, PathClass::Either);
    }
    assert_eq!(pop(&mut queues, 0), Some((1, PathClass::Packet)));
    // 1,000 bytes at 0.8 Gb/s take 10 us.
    assert_eq!((pop(&mut queues, 9_999), queues.next_due(at(9_999))), (None, Some(at(10_000))));
    assert_eq!(pop(&mut queues, 10_000), Some((2, PathClass::Packet)));
    assert_eq!(pop(&mut queues, 20_000), Some((1, PathClass::Packet)));
    assert!(queues.is_empty());
}

#[test]
fn a_class_with_a_circuit_to_come_waits_for_it_but_for_its_residue() {
    let mut queues = queues();
    week(&mut queues, 0, [0, 1_500, 0], None);
    for _ in 0..3 {
        push(&mut queues, 0, 1, PathClass::Either);
    }
    assert_eq!(pop(&mut queues, 0), Some((1, PathClass::Packet)), "the residue has room for one packet");
    assert_eq!((pop(&mut queues, 50_000), queues.next_due(at(50_000))), (None, None));
    queues.on_signal(at(60_000), ClassSignal::Open(0, 1));
    let sent = queues.pop(at(60_000)).unwrap();
    assert_eq!((sent.by, sent.held), (PathClass::Circuit, Span::from_us(60)), "it has waited since it came");
    assert_eq!(sent.waiting.since, at(60_000), "no wait is counted twice");
    // 1,000 bytes at 8 Gb/s.
    assert_eq!((pop(&mut queues, 60_999), queues.next_due(at(60_999))), (None, Some(at(61_000))));
    queues.on_signal(at(61_000), ClassSignal::Close(0));
    assert_eq!(pop(&mut queues, 61_000), None);
    assert_eq!((queues.len(), queues.class_bytes(1)), (1, 1_000));
}

#[test]
fn a_spread_residue_leaves_packet_by_packet() {
    let mut queues = queues();
    week(&mut queues, 0, [0, 4_000, 0], Some(Span::from_us(400)));
    for _ in 0..2 {
        push(&mut queues, 0, 1, PathClass::Either);
    }
    assert_eq!((pop(&mut queues, 0), queues.next_due(at(0))), (None, Some(at(100_000))));
    assert_eq!(pop(&mut queues, 100_000), Some((1, PathClass::Packet)));
    assert_eq!((pop(&mut queues, 150_000), queues.next_due(at(150_000))), (None, Some(at(200_000))));
}

#[test]
fn path_classes_bind_packets_to_a_switch() {
    let mut queues = queues();
    push(&mut queues, 0, 1, PathClass::Circuit);
    push(&mut queues, 1, 1, PathClass::Packet);
    assert_eq!(pop(&mut queues, 1), Some((1, PathClass::Packet)));
    assert_eq!((pop(&mut queues, 90_000), queues.next_due(at(90_000))), (None, None), "no circuit, ever");
    queues.on_signal(at(90_000), ClassSignal::Open(0, 1));
    assert_eq!(pop(&mut queues, 90_000), Some((1, PathClass::Circuit)));
}

/// A packet that joined a queue before its destination had a circuit leaves by the packet switch, behind the packets
/// that must use it.
#[test]
fn a_packet_that_is_classified_when_queued_keeps_its_switch() {
    let mut queues = queues_that_classify(Classify::WhenQueued);
    push(&mut queues, 0, 1, PathClass::Either);
    week(&mut queues, 1, [0; 3], None);
    push(&mut queues, 2, 1, PathClass::Either);
    assert_eq!((queues.waiting(1, PathClass::Packet), queues.class_bytes(1)), ((1, 1_000), 1_000));
    queues.on_signal(at(3), ClassSignal::Open(0, 1));
    assert_eq!(pop(&mut queues, 3), Some((1, PathClass::Packet)));
    assert_eq!(pop(&mut queues, 3), Some((1, PathClass::Circuit)));
}

/// Two uplinks: circuits to two destinations send at once, each at its rate, and two to one destination take turns.
#[test]
fn a_host_sends_by_all_its_circuits() {
    let mut queues = queues_with(Classify::WhenSent, 2);
    for to in [1, 1, 1, 1, 2, 2] {
        push(&mut queues, 0, to, PathClass::Circuit);
    }
    let pop = |queues: &mut ClassQueues, ns: u64| {
        queues.pop(at(ns)).map(|departure| (departure.waiting.slot.number(), departure.plane))
    };
    queues.on_signal(at(0), ClassSignal::Open(0, 1));
    queues.on_signal(at(0), ClassSignal::Open(1, 2));
    assert!(queues.has_circuit(1) && queues.has_circuit(2));
    let both = [pop(&mut queues, 0), pop(&mut queues, 0), pop(&mut queues, 0)];
    assert_eq!(both, [Some((1, 0)), Some((2, 1)), None]);
    assert_eq!(queues.next_due(at(0)), Some(at(1_000)));
    queues.on_signal(at(500), ClassSignal::Close(1));
    assert_eq!([pop(&mut queues, 1_000), pop(&mut queues, 1_000)], [Some((1, 0)), None]);
    queues.on_signal(at(1_500), ClassSignal::Open(1, 1));
    let to_one = [pop(&mut queues, 1_500), pop(&mut queues, 2_000), pop(&mut queues, 2_500)];
    assert_eq!(to_one, [Some((1, 1)), Some((1, 0)), None]);
}

#[test]
fn whatever_waits_can_be_dropped() {
    let mut queues = queues();
    for (to, class) in [(1, PathClass::Circuit), (2, PathClass::Either), (1, PathClass::Packet)] {
        push(&mut queues, 0, to, class);
    }
    assert_eq!(std::iter::from_fn(|| queues.pop_any()).count(), 3);
    assert!(queues.is_empty() && queues.class_bytes(1) == 0 && queues.class_bytes(2) == 0);
}
