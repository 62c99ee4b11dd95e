//! The express and the general engine do the same, packet by packet, and it does not matter whether a port
//! is first called or first offered a packet when both happen at one instant.

use std::sync::Arc;

use plimsoll_fabric::net::port::{BufferLimit, HeadPacer, Marker, PortConfig, PortRules};
use plimsoll_fabric::net::{Packet, Port, QueueMeter, WaitPlace};
use plimsoll_mechanisms::Depth;
use plimsoll_mechanisms::PortMechanisms;
use plimsoll_mechanisms::ecn::{Compare, Ecn, EcnParams, MarkAt};
use plimsoll_mechanisms::pacer::{PacerForm, PacerParams};
use plimsoll_mechanisms::phantom_queue::{PhantomQueue, PhantomQueueParams};
use plimsoll_mechanisms::red::RedParams;
use plimsoll_units::{Bytes, Span, Streams, Time};
use proptest::prelude::*;
use proptest::sample::select;

use crate::bench::{RATE, Recorder, Ties, packet, plain, rules};

/// The configuration of a random port; the port itself cannot be cloned.
#[derive(Clone, Debug)]
struct Setup {
    limit: BufferLimit,
    mark: Mark,
    phantom_queue: bool,
    /// Probability that an ECE associates a flow.
    pacer: Option<f64>,
    meter_from_us: u64,
}

#[derive(Clone, Debug)]
enum Mark {
    Off,
    Above(Depth, Compare),
    Red(RedParams),
}

impl Setup {
    fn port(&self, general: bool) -> Port {
        let (ecn, marker) = match &self.mark {
            Mark::Off => (None, None),
            Mark::Above(threshold, compare) => {
                let params = EcnParams { threshold: *threshold, at: MarkAt::Enqueue, compare: *compare };
                (Some(Ecn::new(&params)), None)
            }
            Mark::Red(params) => {
                let mechanisms = PortMechanisms { red: Some(*params), ..PortMechanisms::default() };
                (None, Marker::of(&mechanisms, RATE, false, |name| Streams::new(1).stream(name)))
            }
        };
        let phantom = PhantomQueueParams::default();
        let pacer = self.pacer.map(|association_probability| {
            let params = PacerParams {
                form: PacerForm::Source,
                association_probability,
                initial_rate: plimsoll_units::Rate::from_gbps(1),
                ..PacerParams::default()
            };
            HeadPacer::new(&params, Streams::new(1).stream("pacer"))
        });
        let from = Time::ZERO + Span::from_us(self.meter_from_us);
        Port::new(PortConfig {
            rules: Arc::new(PortRules { limit: self.limit, ecn, ..rules() }),
            marker,
            phantom_queue: self.phantom_queue.then(|| PhantomQueue::new(&phantom, RATE)),
            pacer,
            meter: Some(QueueMeter::new(from, Span::from_us(3), 500)),
            general,
            settles: false,
            ..plain()
        })
    }
}

fn setups() -> impl Strategy<Value = Setup> {
    let most = || select(vec![0, 1, 2, 5, 20, u64::MAX]);
    let limit = (most(), select(vec![1500, 3000, 20_000, u64::MAX]), any::<bool>())
        .prop_map(|(packets, bytes, counts_in_service)| BufferLimit { packets, bytes, counts_in_service });
    let mark = prop_oneof![
        Just(Mark::Off),
        (0u64..8, any::<bool>()).prop_map(|(packets, at_least)| {
            let compare = if at_least { Compare::AtLeast } else { Compare::More };
            Mark::Above(Depth::Packets(packets + u64::from(at_least)), compare)
        }),
        (500u64..9000, any::<[bool; 4]>(), select(vec![1.0, 0.05])).prop_map(
            |(min, [bytes, wait, gentle, ecn], weight)| {
                let (min, max) = (Bytes::new(min), Bytes::new(min * 2));
                Mark::Red(RedParams {
                    min,
                    max,
                    probability: 0.2,
                    weight,
                    bytes,
                    wait,
                    gentle,
                    ecn,
                    ..RedParams::default()
                })
            }
        ),
    ];
    (limit, mark, any::<bool>(), select(vec![None, Some(0.3), Some(1.0)]), 0u64..20).prop_map(
        |(limit, mark, phantom_queue, pacer, meter_from_us)| Setup {
            limit,
            mark,
            phantom_queue,
            pacer,
            meter_from_us,
        },
    )
}

/// Gaps are multiples of 100 bytes' time, and so are sizes: arrivals meet departures.
fn arrivals() -> impl Strategy<Value = Vec<(Time, Packet)>> {
    let one = (prop_oneof![Just(0u64), 0u64..30, Just(100)], 1u16..16, 0u32..3);
    proptest::collection::vec(one, 1..120).prop_map(|steps| {
        let mut now = Time::ZERO;
        let with_time = steps.into_iter().enumerate().map(|(seq, (gap, size, flow))| {
            now += RATE.byte_time().span(100) * gap;
            (now, packet(flow, seq as u32, size * 100))
        });
        with_time.collect()
    })
}

/// All effects of a port that the world can see.
fn observed(
    setup: &Setup,
    packets: &[(Time, Packet)],
    general: bool,
    ties: Ties,
) -> impl PartialEq + std::fmt::Debug {
    let mut port = setup.port(general);
    assert_eq!(!port.is_express(), general);
    let mut recorder = Recorder::default();
    recorder.drive(&mut port, packets, ties, |port, packet| {
        // Every third packet is preceded by congestion feedback.
        if packet.seq % 3 == 0
            && let Some(pacer) = port.head_pacer()
        {
            pacer.on_ece(packet.flow);
        }
    });
    let Recorder { sent, mut marked, dropped, .. } = recorder;
    // The time at which a mark at departure is reported differs; the set of marked packets does not.
    marked.sort_unstable();
    let sent: Vec<_> = sent
        .iter()
        .map(|(at, packet)| {
            (*at, packet.seq, packet.ecn, packet.wait(WaitPlace::Tier0), packet.wait(WaitPlace::Pacer))
        })
        .collect();
    (sent, marked, dropped, port.take_meter(Time::ZERO + Span::from_ms(100)))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn engines_agree_whatever_comes_first(setup in setups(), packets in arrivals()) {
        let express = observed(&setup, &packets, false, Ties::CallFirst);
        for ties in [Ties::CallFirst, Ties::ArrivalFirst] {
            let general = observed(&setup, &packets, true, ties);
            prop_assert!(express == general, "{:?}\nexpress {:?}\ngeneral {:?}", ties, express, general);
        }
    }

    /// Nothing is lost, and packets do not overtake each other in a queue that is first come, first served.
    #[test]
    fn packets_are_sent_once_in_order_or_dropped(setup in setups(), packets in arrivals()) {
        for general in [false, true] {
            let mut port = setup.port(general);
            let mut recorder = Recorder::default();
            recorder.drive(&mut port, &packets, Ties::CallFirst, |_, _| {});
            prop_assert!(recorder.sent.windows(2).all(|pair| pair[0].1.seq < pair[1].1.seq));
            let mut seen: Vec<u32> = recorder.sent.iter().map(|(_, packet)| packet.seq).collect();
            seen.extend(recorder.dropped.iter().map(|(_, seq)| *seq));
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..packets.len() as u32).collect::<Vec<_>>());
            // The link carries one packet at a time, and each waited as long as its packet says.
            for (arrives, packet) in &recorder.sent {
                let offered = packets[packet.seq as usize].0;
                let waited = packet.wait(WaitPlace::Tier0) + packet.wait(WaitPlace::Pacer);
                let service = RATE.byte_time().span(u64::from(packet.size));
                prop_assert_eq!(*arrives, offered + waited + service + Span::from_us(1));
            }
            for pair in recorder.sent.windows(2) {
                let service = RATE.byte_time().span(u64::from(pair[1].1.size));
                prop_assert!(pair[1].0 - pair[0].0 >= service, "two packets on one link at once");
            }
        }
    }
}
