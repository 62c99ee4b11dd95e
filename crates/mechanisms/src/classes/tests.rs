//! Shares, delays and rates of classes, against what theory says of each scheduler.

use std::collections::VecDeque;

use plimsoll_units::{Span, Time};
use proptest::prelude::*;

use super::*;

const FULL: u64 = 1_500;

fn params(text: &str) -> ClassesParams {
    let params: ClassesParams = toml::from_str(text).unwrap();
    params.validate().unwrap();
    params
}

/// Classes with these weights, of which 0 is strict, the first with the highest priority.
fn weights(rule: WeightedScheduler, weights: &[u32]) -> ClassesParams {
    let class =
        |weight: u32| ClassParams { weight: (weight > 0).then_some(weight), ..ClassParams::default() };
    let priority =
        weights.iter().enumerate().map(|(index, weight)| ((7 - index).to_string(), class(*weight))).collect();
    ClassesParams { scheduler: rule, priority }
}

/// A link on which a byte takes one nanosecond, behind the queues of some classes.
struct Link {
    scheduler: ClassScheduler,
    queues: Vec<VecDeque<u64>>,
    now: Time,
    /// The class and the bytes of each packet, with the time at which it begins to be sent.
    sent: Vec<(Time, usize, u64)>,
}

impl Link {
    fn new(params: &ClassesParams) -> Link {
        let map = ClassMap::of(params);
        let queues = vec![VecDeque::new(); map.classes.len()];
        let scheduler = ClassScheduler::new(&map, params.scheduler, FULL);
        Link { scheduler, queues, now: Time::ZERO, sent: Vec::new() }
    }

    fn push(&mut self, class: usize, bytes: u64) {
        if self.queues[class].is_empty() {
            self.scheduler.on_backlog(self.now, class);
        }
        self.queues[class].push_back(bytes);
    }

    /// Sends one packet of the classes that `may` lets through. Returns its class.
    fn send(&mut self, may: impl Fn(usize) -> bool) -> Option<usize> {
        let queues = &self.queues;
        let head = |class: usize| queues[class].front().copied().filter(|_| may(class));
        let class = self.scheduler.next(self.now, head)?;
        let bytes = self.queues[class].pop_front().expect("a class with a packet was chosen");
        self.scheduler.on_sent(self.now, class, bytes, self.queues[class].is_empty());
        self.sent.push((self.now, class, bytes));
        self.now += Span::from_ns(bytes);
        Some(class)
    }

    fn bytes_of(&self, class: usize) -> u64 {
        self.sent.iter().filter(|(_, of, _)| *of == class).map(|(_, _, bytes)| bytes).sum()
    }
}

#[test]
fn classes_are_numbered_by_their_highest_priority() {
    let map =
        ClassMap::of(&params("priority = { '6' = {}, '0..2' = { weight = 2 }, '4..5' = { weight = 3 } }"));
    assert_eq!(map.of_priority, [2, 2, 2, 3, 1, 1, 0, 3]);
    assert_eq!(
        map.classes.iter().map(|class| class.weight).collect::<Vec<_>>(),
        [None, Some(3), Some(2), Some(1)]
    );
    let all = ClassMap::of(&params("priority = { '0..7' = {} }"));
    assert_eq!((all.classes.len(), all.of_priority), (1, [0; 8]));
}

#[test]
fn bad_classes_are_errors() {
    for (text, key) in [
        ("priority = { '8' = {} }", "priority"),
        ("priority = { '0..3' = {}, '3' = {} }", "priority"),
        ("priority = { '1' = { weight = 0 } }", "priority/1/weight"),
        ("priority = { '2' = {}, '5..6' = { weight = 1001 } }", "priority/5..6/weight"),
        ("priority = { '1' = { buffer = '0B' } }", "priority/1/buffer"),
        ("priority = { '1' = { rate = '0bps' } }", "priority/1/rate"),
        ("priority = { '1' = { burst = '3KB' } }", "priority/1/burst"),
        (
            "priority = { '1' = { ecn = { threshold = '0B', compare = 'at-least' } } }",
            "priority/1/ecn/threshold",
        ),
    ] {
        let params: ClassesParams = toml::from_str(text).unwrap();
        let invalid = params.validate().unwrap_err();
        assert_eq!(invalid.path().collect::<Vec<_>>().join("/"), key, "{text}");
    }
}

#[test]
fn strict_classes_come_before_weighted_ones() {
    let mut link = Link::new(&weights(WeightedScheduler::Dwrr, &[1, 0, 0]));
    for class in [0, 0, 2, 1, 2] {
        link.push(class, FULL);
    }
    let order: Vec<usize> = std::iter::from_fn(|| link.send(|_| true)).collect();
    assert_eq!(order, [1, 2, 2, 0, 0]);
}

#[test]
fn backlogged_classes_share_by_weight() {
    for rule in [WeightedScheduler::Dwrr, WeightedScheduler::Wfq] {
        // Packets of different sizes: the shares are of bytes.
        let sizes = [1_500, 500, 64];
        let shares = [4, 2, 1];
        let mut link = Link::new(&weights(rule, &shares));
        for (class, bytes) in sizes.into_iter().enumerate() {
            (0..40_000).for_each(|_| link.push(class, bytes));
        }
        while link.now < Time::ZERO + Span::from_ms(7) {
            link.send(|_| true);
        }
        for (class, weight) in shares.into_iter().enumerate() {
            let sent = link.bytes_of(class);
            // A round of DWRR is seven quanta.
            assert!(sent.abs_diff(u64::from(weight) * 1_000_000) <= 7 * FULL, "{rule:?} {class}: {sent}");
        }
    }
}

#[test]
fn a_packet_waits_for_one_round_of_the_others_at_most() {
    // The bound of DWRR for a class that sends less than its share: the others' quanta, each exceeded by less than a
    // packet, and the packet in service.
    let shares = [1, 3, 2];
    let mut link = Link::new(&weights(WeightedScheduler::Dwrr, &shares));
    (0..3_000).for_each(|_| (1..3).for_each(|class| link.push(class, FULL)));
    for _ in 0..100 {
        (0..7).for_each(|_| assert!(link.send(|_| true).is_some()));
        link.push(0, 64);
        let arrived = link.now;
        while link.send(|_| true) != Some(0) {}
        let waited = link.sent.last().unwrap().0 - arrived;
        assert!(waited <= Span::from_ns((3 + 2 + 2) * FULL), "{waited}");
    }
}

#[test]
fn a_class_that_was_paused_saves_no_claim() {
    for rule in [WeightedScheduler::Dwrr, WeightedScheduler::Wfq] {
        let mut link = Link::new(&weights(rule, &[1, 1]));
        (0..2_000).for_each(|_| (0..2).for_each(|class| link.push(class, FULL)));
        (0..500).for_each(|_| assert_eq!(link.send(|class| class == 0), Some(0)));
        link.sent.clear();
        (0..1_000).for_each(|_| assert!(link.send(|_| true).is_some()));
        assert!(link.bytes_of(0).abs_diff(link.bytes_of(1)) <= 2 * FULL, "{rule:?}");
    }
}

#[test]
fn a_rate_limits_its_class_and_a_burst_passes() {
    let classes =
        params("priority = { '7' = { rate = '800Mbps', burst = '4500B' }, '0..6' = { weight = 1 } }");
    let mut link = Link::new(&classes);
    (0..1_000).for_each(|_| link.push(0, FULL));
    let mut due = Vec::new();
    while !link.queues[0].is_empty() {
        if link.send(|_| true).is_none() {
            let next = link.scheduler.next_due(link.now).expect("a class waits for its rate");
            assert!(next > link.now);
            due.push(next);
            link.now = next;
        }
    }
    let starts: Vec<Time> = link.sent.iter().map(|(at, ..)| *at).collect();
    // Three packets at once, 1.5 us each on the link, then one in each 15 us.
    let at = |ns| Time::ZERO + Span::from_ns(ns);
    assert_eq!(starts[..4], [at(0), at(1_500), at(3_000), at(15_000)]);
    assert_eq!(starts[999] - starts[3], Span::from_us(15 * 996));
    assert_eq!(link.scheduler.next_due(link.now), None);
}

/// Runs the first `count` of `classes`, all of which always have packets, for 20 ms. Returns the share of the link of
/// each.
fn shares_of_backlogged(classes: &ClassesParams, count: usize) -> Vec<f64> {
    let mut link = Link::new(classes);
    (0..count).for_each(|class| (0..20_000).for_each(|_| link.push(class, FULL)));
    let end = Time::ZERO + Span::from_ms(20);
    while link.now < end {
        if link.send(|_| true).is_none() {
            link.now = link.scheduler.next_due(link.now).expect("a class waits for its rate");
        }
    }
    (0..count).map(|class| link.bytes_of(class) as f64 / 20e6).collect()
}

/// The smaller of its rate and of its share of the remaining capacity, for each class: the link has 8 Gb/s.
#[test]
fn backlogged_classes_get_their_rates_and_share_the_rest() {
    let classes = [
        // A strict class above weights, and one below another.
        ("'7' = { rate = '3.2Gbps' }, '0..6' = { weight = 1 }", vec![0.4, 0.6]),
        ("'7' = { rate = '3.2Gbps' }, '6' = { rate = '2Gbps' }, '0..5' = {}", vec![0.4, 0.25, 0.35]),
        // The rate is less than the share, about the same, and more.
        ("'5' = { weight = 10, rate = '3.2Gbps' }, '0..4' = { weight = 10 }", vec![0.4, 0.6]),
        ("'5' = { weight = 10, rate = '4Gbps' }, '0..4' = { weight = 10 }", vec![0.5, 0.5]),
        ("'5' = { weight = 10, rate = '6Gbps' }, '0..4' = { weight = 10 }", vec![0.5, 0.5]),
        ("'5' = { weight = 1, rate = '80Mbps' }, '0..4' = { weight = 50 }", vec![0.01, 0.99]),
        (
            "'7' = { rate = '1.6Gbps' }, '5' = { weight = 4, rate = '800Mbps' }, '3' = { weight = 2 }, \
             '0..2' = { weight = 5 }",
            vec![0.2, 0.1, 0.2, 0.5],
        ),
    ];
    for rule in [WeightedScheduler::Dwrr, WeightedScheduler::Wfq] {
        for (text, expected) in &classes {
            let mut params = params(&format!("priority = {{ {text} }}"));
            params.scheduler = rule;
            let shares = shares_of_backlogged(&params, expected.len());
            for (share, expected) in shares.iter().zip(expected) {
                assert!((share - expected).abs() <= 0.02 * expected, "{rule:?} {text}: {shares:?}");
            }
        }
    }
}

/// In any time a class sends no more than its rate, its burst, and what it may have fallen behind.
#[test]
fn a_class_makes_up_for_a_bounded_time_only() {
    for (rule, behind) in [(WeightedScheduler::Dwrr, 4 + 3), (WeightedScheduler::Wfq, 3)] {
        let mut classes = params(
            "priority = { '6..7' = {}, '5' = { weight = 4, rate = '800Mbps', burst = '4500B' }, \
             '0..4' = { weight = 1 } }",
        );
        classes.scheduler = rule;
        let mut link = Link::new(&classes);
        // The strict class holds the link for 15 ms, and the class with the rate comes after 5 ms.
        (0..10_000).for_each(|_| link.push(0, FULL));
        while link.now < Time::ZERO + Span::from_ms(5) {
            link.send(|_| true);
        }
        (0..1_000).for_each(|_| link.push(1, FULL));
        while link.sent.len() < 10_000 {
            link.send(|_| true);
        }
        let from = link.now;
        while link.send(|_| true) == Some(1) {}
        // 0.1 B/ns while they are sent, 1 B/ns.
        let at_once = link.bytes_of(1) / FULL;
        let most = (3 + behind) * 10 / 9 + 1;
        assert!(at_once >= behind && at_once <= most, "{rule:?}: {at_once} after {from}");
    }
}

/// The service that weighted fair queueing imitates: all classes with fluid send at once, each by its weight.
struct Fluid {
    weights: Vec<f64>,
    waiting: Vec<f64>,
    served: Vec<f64>,
}

impl Fluid {
    /// Serves for the time of `bytes` on the link.
    fn serve(&mut self, mut bytes: f64) {
        loop {
            let busy: Vec<usize> =
                (0..self.waiting.len()).filter(|class| self.waiting[*class] > 1e-9).collect();
            let total: f64 = busy.iter().map(|class| self.weights[*class]).sum();
            if busy.is_empty() || bytes <= 1e-9 {
                return;
            }
            // Until the first class is empty.
            let to_first = busy.iter().map(|class| self.waiting[*class] / self.weights[*class] * total);
            let step = to_first.fold(bytes, f64::min);
            for class in busy {
                let part = step * self.weights[class] / total;
                self.waiting[class] -= part;
                self.served[class] += part;
            }
            bytes -= step;
        }
    }
}

proptest! {
    /// No class is ever ahead of the fluid schedule, or behind it, by more than a full packet of each class.
    #[test]
    fn weighted_fair_queueing_follows_the_fluid_schedule(
        shares in prop::collection::vec(1u32..9, 2..6),
        arrivals in prop::collection::vec((0usize..6, 64u64..=FULL, 0u64..2_500), 1..400),
    ) {
        let mut link = Link::new(&weights(WeightedScheduler::Wfq, &shares));
        let count = shares.len();
        let mut fluid = Fluid {
            weights: shares.iter().map(|share| f64::from(*share)).collect(),
            waiting: vec![0.0; count],
            served: vec![0.0; count],
        };
        let mut at = Time::ZERO;
        let mut fluid_at = Time::ZERO;
        let bound = (count as u64 * FULL) as f64;
        for (class, bytes, gap) in arrivals {
            at += Span::from_ns(gap);
            // Departures before the arrival, each compared when its last bit leaves.
            while link.now <= at && link.queues.iter().any(|queue| !queue.is_empty()) {
                link.send(|_| true);
                if link.now > at {
                    break;
                }
                fluid.serve((link.now - fluid_at).as_ns_f64());
                fluid_at = link.now;
                for class in 0..count {
                    let apart = link.bytes_of(class) as f64 - fluid.served[class];
                    prop_assert!(apart.abs() <= bound, "class {}: {} B", class, apart);
                }
            }
            link.now = link.now.max(at);
            fluid.serve((at - fluid_at.min(at)).as_ns_f64());
            fluid_at = fluid_at.max(at);
            let class = class % count;
            link.push(class, bytes);
            fluid.waiting[class] += bytes as f64;
        }
    }

    /// The link is never idle while a class has packets, and every packet is sent once.
    #[test]
    fn nothing_is_lost_and_no_time_is_wasted(
        shares in prop::collection::vec(0u32..4, 1..8),
        packets in prop::collection::vec((0usize..8, 64u64..=FULL), 1..200),
        is_wfq in any::<bool>(),
    ) {
        let rule = if is_wfq { WeightedScheduler::Wfq } else { WeightedScheduler::Dwrr };
        let mut link = Link::new(&weights(rule, &shares));
        let mut total = 0;
        for (class, bytes) in &packets {
            link.push(class % shares.len(), *bytes);
            total += bytes;
        }
        while link.send(|_| true).is_some() {}
        prop_assert_eq!(link.sent.len(), packets.len());
        prop_assert_eq!(link.now, Time::ZERO + Span::from_ns(total));
    }
}
