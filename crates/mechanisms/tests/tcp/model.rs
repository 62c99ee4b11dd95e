//! A random operation model: two endpoints and a network that loses, marks, reorders, duplicates and delays as the
//! operations say. Once it stops losing, every byte arrives, in order, in bounded steps; on the way the senders keep
//! their books.

use plimsoll_mechanisms::tcp::{
    BackoffReset, CutBase, EcnField, EcnMode, Endpoint, FastRetransmitGuard, Growth, Kind, Recovery,
    RttSampling, TcpSegment, TransportParams, WindowUnit,
};
use plimsoll_units::{Bytes, Span, Time};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Op {
    /// End `e` writes this number of bytes.
    Write(usize, u64),
    /// The oldest segment towards `e` arrives.
    Deliver(usize),
    Lose(usize),
    /// It arrives marked, if it can be.
    Mark(usize),
    /// It moves to the end of the line.
    Reorder(usize),
    /// It arrives, and a copy joins the end of the line.
    Duplicate(usize),
    /// Microseconds pass; timers fire on their way.
    Wait(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let end = 0..2usize;
    prop_oneof![
        3 => (end.clone(), prop_oneof![1..50u64, 1..5_000u64, Just(20_000)]).prop_map(|(e, n)| Op::Write(e, n)),
        20 => end.clone().prop_map(Op::Deliver),
        3 => end.clone().prop_map(Op::Lose),
        3 => end.clone().prop_map(Op::Mark),
        3 => end.clone().prop_map(Op::Reorder),
        1 => end.prop_map(Op::Duplicate),
        4 => prop_oneof![1..500u64, 1..50_000u64].prop_map(Op::Wait),
    ]
}

fn params() -> impl Strategy<Value = TransportParams> {
    let kinds = prop_oneof![Just(Kind::Tcp), Just(Kind::Cubic), Just(Kind::Dctcp), Just(Kind::Swift)];
    let recoveries = prop_oneof![Just(Recovery::Reno), Just(Recovery::NewReno), Just(Recovery::Sack)];
    let guards = prop_oneof![
        Just(FastRetransmitGuard::Recover),
        Just(FastRetransmitGuard::AfterTimeout),
        Just(FastRetransmitGuard::Off)
    ];
    let switches = prop::array::uniform14(any::<bool>());
    let numbers = (1..4u32, 1..12u32, 0..4u32, prop::option::of(1..20u32), 1..4u32, 0..4u32);
    (kinds, recoveries, guards, switches, numbers).prop_map(|(kind, recovery, guard, on, n)| {
        TransportParams {
            kind,
            recovery,
            fast_retransmit_guard: guard,
            segment: Bytes::new(if on[0] { 100 } else { 1000 }),
            growth: if on[1] { Growth::Count } else { Growth::Fraction },
            window_unit: if on[2] { WindowUnit::Segments } else { WindowUnit::Bytes },
            cut_from: if on[3] { CutBase::Window } else { CutBase::Flight },
            rtt_sampling: if on[4] { RttSampling::OnePerWindow } else { RttSampling::EveryAck },
            backoff_reset: if on[5] { BackoffReset::Ack } else { BackoffReset::Sample },
            app_limited_growth: on[6],
            idle_restart: on[7],
            restart_on_write: on[12],
            limited_transmit: on[8],
            nagle: on[9],
            handshake: on[10],
            ecn: if on[11] { EcnMode::On } else { EcnMode::Auto },
            ecn_on_acks: on[0] ^ on[5],
            ack_every: n.0,
            initial_window: n.1,
            dup_ack_threshold: n.2,
            initial_ssthresh: n.3,
            min_window: n.4,
            probe_after: n.5,
            sacked_in_window: on[13],
            max_window: 12,
            min_rto: Span::from_us(500),
            initial_rto: Span::from_ms(1),
            max_rto: Span::from_ms(20),
            syn_loss_rto: Span::from_ms(3),
            ack_delay: Span::from_us(300),
            ..TransportParams::default()
        }
    })
}

struct Model {
    config: plimsoll_mechanisms::tcp::TcpConfig,
    now: Time,
    ends: [Endpoint; 2],
    /// Segments on their way to each end.
    towards: [std::collections::VecDeque<TcpSegment>; 2],
    sent: u64,
    delivered: [u64; 2],
    acknowledged: [u64; 2],
}

impl Model {
    fn flush(&mut self, end: usize) {
        let mut burst = 0;
        while let Some(segment) = self.ends[end].poll_transmit(&self.config, self.now) {
            assert!(u64::from(segment.len) <= self.config.segment, "{segment:?}");
            assert!(segment.end() <= self.ends[end].sent(), "{segment:?} was not booked");
            self.towards[1 - end].push_back(segment);
            self.sent += 1;
            burst += 1;
            assert!(burst < 5_000, "a poll without end");
        }
        self.check(end);
    }

    fn check(&self, index: usize) {
        let end = &self.ends[index];
        let window = end.window();
        if self.config.params.kind == Kind::Swift {
            assert!((1..=self.config.max_window).contains(&window.cwnd_bytes), "cwnd {}", window.cwnd_bytes);
        } else {
            assert!(window.cwnd_bytes >= self.config.segment, "cwnd {}", window.cwnd_bytes);
            assert!(window.ssthresh_bytes >= self.config.min_ssthresh.min(self.config.initial_ssthresh));
        }
        assert!((0.0..=1.0).contains(&window.alpha), "alpha {}", window.alpha);
        assert!(end.acknowledged() <= end.sent() && end.sent() <= end.written());
        let (remaining, arrived) = (end.remaining(), self.ends[1 - index].received());
        assert!(remaining <= end.written() - end.acknowledged());
        assert!(remaining > 0 || arrived == end.written(), "{remaining} B remain, {arrived} B arrived");
        assert!(end.acknowledged() <= self.ends[1 - index].received(), "acknowledged before it arrived");
        assert!(end.received() <= self.ends[1 - index].sent());
        if end.sent() > end.acknowledged() {
            assert!(end.deadline() < Time::MAX, "data is outstanding and no timer runs");
        }
        let counters = end.counters();
        assert!(counters.retransmissions <= counters.data_segments);
        assert!(counters.data_segments <= counters.segments_sent);
    }

    fn arrive(&mut self, end: usize, segment: &TcpSegment) {
        let delivered = self.ends[end].on_segment(&self.config, self.now, segment);
        self.delivered[end] += delivered.new_bytes;
        self.acknowledged[end] += delivered.acked;
        assert_eq!(self.delivered[end], self.ends[end].received());
        assert_eq!(self.acknowledged[end], self.ends[end].acknowledged());
        self.flush(end);
    }

    /// Lets time pass up to `until`, timers firing on the way.
    fn wait(&mut self, until: Time) {
        loop {
            let first = if self.ends[0].deadline() <= self.ends[1].deadline() { 0 } else { 1 };
            let deadline = self.ends[first].deadline();
            if deadline > until {
                break;
            }
            self.now = self.now.max(deadline);
            self.ends[first].on_deadline(&self.config, self.now);
            self.flush(first);
            let after = self.ends[first].deadline();
            assert!(after > self.now, "a timer that does not move on");
        }
        self.now = self.now.max(until);
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Write(end, bytes) => {
                self.ends[end].write(&self.config, self.now, bytes);
                self.flush(end);
            }
            Op::Wait(us) => self.wait(self.now + Span::from_us(us)),
            Op::Deliver(end) | Op::Lose(end) | Op::Mark(end) | Op::Reorder(end) | Op::Duplicate(end) => {
                let Some(mut segment) = self.towards[end].pop_front() else { return };
                match op {
                    Op::Lose(_) => return,
                    Op::Reorder(_) => return self.towards[end].push_back(segment),
                    Op::Duplicate(_) => self.towards[end].push_back(segment),
                    Op::Mark(_) if segment.ecn == EcnField::Ect => segment.ecn = EcnField::Ce,
                    _ => {}
                }
                self.arrive(end, &segment);
            }
        }
    }

    /// Lets the network lose nothing any more: all must become quiet.
    fn settle(&mut self) {
        for _ in 0..20_000 {
            let next = [0, 1].into_iter().find(|end| !self.towards[*end].is_empty());
            if let Some(end) = next {
                self.now += Span::from_us(10);
                self.run(Op::Deliver(end));
                continue;
            }
            let deadline = self.ends[0].deadline().min(self.ends[1].deadline());
            if deadline == Time::MAX {
                break;
            }
            self.wait(deadline);
        }
        for index in 0..2 {
            let (end, other) = (&self.ends[index], &self.ends[1 - index]);
            assert!(end.is_idle(), "not idle at {}: {end:#?}", self.now);
            assert_eq!(end.acknowledged(), end.written());
            assert_eq!(other.received(), end.written());
            assert_eq!(end.deadline(), Time::MAX);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn all_bytes_arrive(params in params(), ops in prop::collection::vec(op(), 1..200)) {
        let config = params.resolve().unwrap();
        let ends = [Endpoint::new(&config), Endpoint::new(&config)];
        let (now, towards) = (Time::ZERO, Default::default());
        let mut model = Model { config, now, ends, towards, sent: 0, delivered: [0; 2], acknowledged: [0; 2] };
        for op in ops {
            model.run(op);
        }
        model.settle();
        // Limit of segments per byte: no end sends without end.
        let written: u64 = model.ends.iter().map(|end| end.written().div_ceil(model.config.segment) + 4).sum();
        prop_assert!(model.sent < 60 * written + 2_000, "{} segments for {written}", model.sent);
    }
}
