//! Ports whose only mechanism is flow control or a shared buffer have code of their own, and packets pass an idle port
//! without joining its queue. Beside a port that is watched, which does neither, nothing may differ.

use std::sync::Arc;

use plimsoll_fabric::net::port::{
    BufferLimit, Discipline, PortConfig, PortRules, ServiceOrder, SharedRoom, Trimmer,
};
use plimsoll_fabric::net::{Packet, Port, QueueMeter};
use plimsoll_mechanisms::ecn::{Compare, Ecn, EcnParams, MarkAt};
use plimsoll_mechanisms::shared_buffer::{SharedBuffer, SharedBufferParams};
use plimsoll_mechanisms::trim::TrimParams;
use plimsoll_mechanisms::{Depth, PortMechanisms};
use plimsoll_units::{Bytes, Span, Streams, Time};
use proptest::prelude::*;
use proptest::sample::select;

use crate::bench::{RATE, Recorder, Ties, packet, plain, rules};

/// The mechanism of a port beside its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Beside {
    Nothing,
    FlowControl,
    SharedBuffer,
}

/// The configuration of a random port; the port itself cannot be cloned.
#[derive(Clone, Debug)]
struct Setup {
    beside: Beside,
    order: ServiceOrder,
    trims: Option<&'static str>,
    limit: BufferLimit,
    marks: Option<MarkAt>,
}

impl Setup {
    fn port(&self, watched: bool) -> Port {
        let trim: Option<TrimParams> = self.trims.map(|text| toml::from_str(text).unwrap());
        let mechanisms = PortMechanisms { trim, ..PortMechanisms::default() };
        let ecn = self
            .marks
            .map(|at| Ecn::new(&EcnParams { threshold: Depth::Packets(2), at, compare: Compare::AtLeast }));
        Port::new(PortConfig {
            rules: Arc::new(PortRules { limit: self.limit, ecn, ..rules() }),
            discipline: Discipline::of(self.order, &mechanisms, 1_500, self.limit),
            trimmer: trim.map(|params| Trimmer::new(&params, false, || Streams::new(1).stream("trim"))),
            shared: (self.beside == Beside::SharedBuffer).then_some(SharedRoom { pool: 0, port: 0 }),
            accounts: self.beside == Beside::FlowControl,
            meter: watched.then(|| QueueMeter::new(Time::ZERO, Span::from_us(3), 500)),
            general: true,
            ..plain()
        })
    }

    /// Returns everything that the world sees of the port.
    fn observed(
        &self,
        packets: &[(Time, Packet)],
        watched: bool,
        ties: Ties,
    ) -> impl PartialEq + std::fmt::Debug {
        let mut port = self.port(watched);
        let params = SharedBufferParams { total: Bytes::new(9_000), alpha: 1.0, reserved: Bytes::ZERO };
        let mut recorder = Recorder::default();
        recorder.pool = Some(SharedBuffer::new(&params, 1));
        recorder.drive(&mut port, packets, ties, |_, _| {});
        assert_eq!(port.held(), 0);
        assert_eq!(recorder.pool.as_ref().map(SharedBuffer::total_bytes), Some(0), "all is given back");
        let Recorder { sent, marked, dropped, bounced, accounted, .. } = recorder;
        let sent: Vec<String> = sent.iter().map(|packet| format!("{packet:?}")).collect();
        (sent, marked, dropped, bounced, accounted)
    }
}

fn setups() -> impl Strategy<Value = Setup> {
    let limit = (select(vec![1, 2, 5, u64::MAX]), select(vec![1_500, 5_000, u64::MAX]), any::<bool>())
        .prop_map(|(packets, bytes, counts_in_service)| BufferLimit { packets, bytes, counts_in_service });
    let beside = select(vec![Beside::Nothing, Beside::FlowControl, Beside::SharedBuffer]);
    let order = select(vec![ServiceOrder::Fifo, ServiceOrder::Priorities, ServiceOrder::FairPerFlow]);
    let trims =
        select(vec![None, Some(""), Some("service = '2:1'\nbounce = true"), Some("victim = 'coin-tail'")]);
    let marks = select(vec![None, Some(MarkAt::Enqueue), Some(MarkAt::Dequeue)]);
    (beside, order, trims, limit, marks).prop_map(|(beside, order, trims, limit, marks)| Setup {
        beside,
        order,
        trims,
        limit,
        marks,
    })
}

proptest! {
    #[test]
    fn a_port_of_each_kind_is_the_same_when_watched(
        setup in setups(),
        steps in prop::collection::vec((prop_oneof![Just(0u64), 0u64..30, Just(100)], 1u16..16, 0u8..8), 1..120),
    ) {
        let mut now = Time::ZERO;
        let packets: Vec<(Time, Packet)> = (0..).zip(&steps).map(|(seq, (gap, size, priority))| {
            now += RATE.byte_time().span(100) * *gap;
            let mut packet = packet(u32::from(*priority) % 3, seq, size * 100);
            packet.priority = *priority;
            (now, packet)
        }).collect();
        for ties in [Ties::CallFirst, Ties::ArrivalFirst] {
            prop_assert_eq!(setup.observed(&packets, false, ties), setup.observed(&packets, true, ties));
        }
    }
}
