//! Telemetry through a whole fabric: three packets over three ports, with each value by hand.
//!
//! ```text
//! h0 ── 2 Gb/s ──> switch 0 ── 1 Gb/s ──> switch 1 ── 2 Gb/s ──> h1        4 ns, 8 ns and 4 ns a byte, 1 us each
//! ```

use plimsoll_fabric::net::topology::LinkClass;
use plimsoll_fabric::net::{Flags, HostId, Network, Packet};
use plimsoll_fabric::{Fabric, FabricSpec, Handled};
use plimsoll_mechanisms::telemetry::{DigestParams, IntParams, Stamp, Stamps};
use plimsoll_units::{Rate, Span, Streams, Time};

const EDGE: Rate = Rate::from_gbps(2);
const MIDDLE: Rate = Rate::from_gbps(1);

fn spec(int: Option<IntParams>) -> FabricSpec {
    let link = |rate| LinkClass { rate, propagation: Span::from_us(1) };
    let mut spec = FabricSpec::new(Network::dumbbell(1, 1, link(EDGE), link(MIDDLE)));
    spec.nic.mechanisms.int = int;
    spec.tiers.iter_mut().for_each(|tier| tier.mechanisms.int = int);
    spec
}

/// A packet of 1,000 B with data, of flow 7.
fn data(seq: u32) -> Packet {
    let mut packet = Packet::new(HostId(0), HostId(1), 7, 1_000);
    (packet.seq, packet.len, packet.flags) = (seq, 960, Flags::ACK);
    packet
}

fn ns(ns: u64) -> Time {
    Time::ZERO + Span::from_ns(ns)
}

/// A delivered packet: when, its size, and the stamps that it has returned.
type Delivery = (Time, u16, Option<Stamps>);

/// Sends three packets at once, and an acknowledgement of 40 B when the first and the second have arrived. Their sender
/// handles both when all has arrived. Returns all deliveries.
fn run(spec: FabricSpec) -> (Fabric<()>, Vec<Delivery>) {
    let mut fabric = Fabric::build(spec, &Streams::new(1), ()).unwrap();
    (0..3).for_each(|number| fabric.send(Time::ZERO, data(number * 960)));
    let (mut arrived, mut delivered) = (Packet::default(), Vec::new());
    while let Some((now, owner)) = fabric.next_event(Time::MAX) {
        if let Handled::Delivered(&packet) = fabric.on_event(now, owner, &mut arrived) {
            delivered.push((now, packet));
            if packet.len > 0 && packet.seq <= 960 {
                fabric.send(now, Packet::new(HostId(1), HostId(0), 7, 40));
            }
        }
    }
    let deliveries =
        delivered.iter().map(|(at, packet)| (*at, packet.size, fabric.take_returned_stamps(packet)));
    let deliveries = deliveries.collect();
    fabric.settle(ns(100_000));
    fabric.assert_conservation();
    (fabric, deliveries)
}

fn stamp(queue_bytes: u64, sent_bytes: u64, at: u64, rate: Rate, waited: u64) -> Stamp {
    Stamp { queue_bytes, sent_bytes, at: ns(at), rate, waited: Span::from_ns(waited) }
}

#[test]
fn stamps_are_those_computed_by_hand_and_return_with_the_acknowledgement() {
    let (fabric, deliveries) = run(spec(Some(IntParams::default())));
    let of_second = [
        stamp(1_000, 1_010, 4_040, EDGE, 4_040),
        stamp(1_010, 1_018, 13_184, MIDDLE, 4_104),
        stamp(0, 1_026, 22_328, EDGE, 0),
    ];
    let of_first = [stamp(0, 0, 0, EDGE, 0), stamp(0, 0, 5_040, MIDDLE, 0), stamp(0, 0, 14_184, EDGE, 0)];
    // 2 B and three times 8 B on data, and the same on the acknowledgement from its first link on.
    let sizes: Vec<(Time, u16)> = deliveries.iter().map(|(at, size, _)| (*at, *size)).collect();
    let expected = [(19_288, 1_026), (23_344, 66), (27_432, 1_026), (31_488, 66), (35_576, 1_026)];
    assert_eq!(sizes, expected.map(|(at, size)| (ns(at), size)));
    let hops = |delivery: usize| deliveries[delivery].2.map(|stamps| stamps.hops().to_vec());
    assert_eq!(
        hops(1),
        Some(of_first.to_vec()),
        "an acknowledgement returns the stamps of the packet before it"
    );
    assert_eq!(hops(3), Some(of_second.to_vec()));
    assert_eq!(deliveries[3].2.unwrap().queueing_delay(), Span::from_ns(8_144));
    assert_eq!([hops(0), hops(2), hops(4)], [None, None, None]);
    let counters = fabric.counters();
    let echoed = (counters.echoed_stamps, counters.echoed_queue_bytes, counters.echoed_delay_ns);
    assert_eq!((counters.echoes, echoed), (2, (6, 2_010, 8_144)));
}

#[test]
fn late_departures_write_the_stamps_of_explicit_ones() {
    let late = spec(Some(IntParams::default()));
    let mut explicit = late.clone();
    explicit.nic.explicit_departures = true;
    explicit.tiers.iter_mut().for_each(|tier| tier.explicit_departures = true);
    assert_eq!(run(late).1, run(explicit).1);
}

#[test]
fn a_fixed_header_is_added_once_and_fields_are_cut() {
    let released = IntParams {
        header: plimsoll_units::Bytes::new(42),
        hop: plimsoll_units::Bytes::ZERO,
        nic_rate: Some(Rate::from_gbps(25)),
        digest: None,
    };
    let (_, deliveries) = run(spec(Some(released)));
    assert!(deliveries.iter().all(|(_, size, _)| [1_042, 82].contains(size)), "{deliveries:?}");
    // The first port of the second packet: 1,000 B of queue are 12 units of 80 B, 1,042 B sent 8 of 128 B.
    let first = deliveries[3].2.unwrap().hops()[0];
    assert_eq!((first.queue_bytes, first.sent_bytes, first.at), (960, 1_024, ns(4_168)));
}

#[test]
fn a_digest_is_the_load_of_the_most_loaded_port() {
    let digest = DigestParams { base_rtt: Span::from_us(10), base: 1.05 };
    let (_, deliveries) = run(spec(Some(IntParams { digest: Some(digest), ..IntParams::default() })));
    // The port in the middle begins to send the first packet of 1,002 B at 5,008 ns and the second 8,016 ns later, just
    // before the third arrives: all of the link, for 0.8016 of the round trip.
    let middle = 0.8016;
    let loads: Vec<Option<f64>> =
        deliveries.iter().map(|(_, _, stamps)| stamps.and_then(|stamps| stamps.load())).collect();
    assert_eq!(loads, [None, Some(0.0), None, Some(digest.rounded(middle)), None]);
    assert!(deliveries.iter().all(|(_, size, _)| [1_002, 42].contains(size)), "{deliveries:?}");
}

#[test]
fn without_telemetry_there_are_no_stamps() {
    let (fabric, deliveries) = run(spec(None));
    assert!(deliveries.iter().all(|(_, size, stamps)| stamps.is_none() && [1_000, 40].contains(size)));
    assert_eq!(fabric.counters().echoes, 0);
}
