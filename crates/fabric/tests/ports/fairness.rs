//! Deficit round robin between flows.

use plimsoll_fabric::net::port::{Discipline, PortConfig};
use plimsoll_fabric::net::{Packet, Port};
use plimsoll_units::{Span, Time};

use crate::bench::{Recorder, Ties, packet, plain};

const QUANTUM: u64 = 1500;

fn fair() -> Port {
    Port::new(PortConfig { discipline: Discipline::fair_per_flow(QUANTUM), ..plain() })
}

/// The bytes that each of three flows has sent after each packet.
fn served(recorder: &Recorder) -> Vec<[u64; 3]> {
    let mut bytes = [0; 3];
    let after = recorder.sent.iter().map(|(_, packet)| {
        bytes[packet.flow as usize] += u64::from(packet.size);
        bytes
    });
    after.collect()
}

#[test]
fn flows_with_packets_waiting_get_equal_bytes() {
    // 300 kB of each flow at once, in small, middle and full packets.
    let sizes = [60u16, 700, 1500];
    let packets: Vec<(Time, Packet)> = (0..3)
        .flat_map(|flow| {
            let size = sizes[flow as usize];
            (0..300_000 / u32::from(size)).map(move |seq| (Time::ZERO, packet(flow, seq, size)))
        })
        .collect();
    let mut recorder = Recorder::default();
    recorder.drive(&mut fair(), &packets, Ties::CallFirst, |_, _| {});
    assert_eq!(recorder.sent.len(), packets.len());
    let all_wait = served(&recorder).into_iter().take_while(|bytes| bytes.iter().all(|sent| *sent < 298_000));
    for bytes in all_wait {
        // Each flow is within a quantum and a packet of every other (Shreedhar and Varghese, theorem 2).
        let (least, most) = (bytes.iter().min().unwrap(), bytes.iter().max().unwrap());
        assert!(most - least <= 2 * QUANTUM + 1500, "{bytes:?}");
    }
    for flow in 0..3 {
        let order = recorder.sent.iter().filter(|(_, packet)| packet.flow == flow);
        assert!(order.map(|(_, packet)| packet.seq).is_sorted(), "a flow keeps its order");
    }
}

#[test]
fn a_flow_alone_is_not_slowed_and_a_newcomer_waits_one_turn() {
    let mut packets: Vec<(Time, Packet)> = (0..1000).map(|seq| (Time::ZERO, packet(0, seq, 1500))).collect();
    for round in 1..100 {
        packets.push((Time::ZERO + Span::from_us(10 * round), packet(1, round as u32, 100)));
    }
    let mut recorder = Recorder::default();
    recorder.drive(&mut fair(), &packets, Ties::CallFirst, |_, _| {});
    let sizes: u64 = packets.iter().map(|(_, packet)| u64::from(packet.size)).sum();
    let last = recorder.sent.last().unwrap().0;
    assert_eq!(last, Time::from_ps(sizes * 800) + Span::from_us(1), "the link never rests");
    for (arrives, packet) in recorder.sent.iter().filter(|(_, packet)| packet.flow == 1) {
        let waited = *arrives - (Time::ZERO + Span::from_us(10 * u64::from(packet.seq)));
        // The packet in service, one turn of the other flow, its own 80 ns and the way.
        assert!(waited <= Span::from_ns(1200 + 1200 + 80 + 1000), "{waited}");
    }
}
