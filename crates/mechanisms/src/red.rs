//! Random early detection as ns-2 computes it, which is how DCTCP's single threshold was simulated.
//!
//! The averaged queue `a` (bytes waiting before the arriving packet) gives a base probability:
//!
//! ```text
//! p = 0                                          a < min
//! p = probability x (a - min) / (max - min)      min <= a < max
//! p = 1                                          a >= max, unless `gentle`
//! p = probability + (1 - probability) x (a - max) / max, at most 1     a >= max, `gentle`
//! ```
//!
//! which is then spread over arrivals: with `n` packets since the last mark, or `floor(bytes since the
//! last mark / mean_packet)` if `bytes`,
//!
//! ```text
//! wait:     0 if n p < 1;   p / (2 - n p) if n p < 2;   else 1
//! no wait:  p / (1 - n p) if n p < 1;                   else 1
//! bytes and p < 1:  p x size / mean_packet
//! ```
//!
//! The first arrival of an excursion above `min` only restarts the count. So with `min = max = K`,
//! `bytes` and `wait` (ns-2's defaults) and packets of 500 to 999 B the first packet above K is never
//! marked, and then every second one: the share of marked packets saturates at one half, which DCTCP
//! sees as alpha. With `bytes = false`, all but the first are marked.
//!
//! Departures: `mark_p` is not modelled; ECT packets are marked at any probability, 1 included. A draw is taken only
//! for probabilities strictly between 0 and 1, so `min = max` uses no random numbers.

use plimsoll_units::{Bytes, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::chance::Chance;
use crate::ecn::MarkAt;
use crate::mechanism::{EngineNeed, Marking, Mechanism, Section, Table};
use crate::{Depth, InvalidParam};

/// RED on a port, with every detail of ns-2's that changes results. The defaults are DCTCP with
/// K = 30 KB as the HULL reproduction ran it.
///
/// For a plain ECN threshold use `ecn`; RED also *drops* packets that cannot carry a mark.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RedParams {
    /// The average queue (bytes waiting before the arrival) from which packets are marked or dropped.
    /// Default 30 KB.
    pub min: Bytes,
    /// The average queue from which the probability is 1, or, if `gentle`, from which it rises from
    /// `probability` to 1 at twice this. At least `min`, and more than 0; equal to `min` for a step.
    /// Default 30 KB.
    pub max: Bytes,
    /// The probability just below `max`: more than 0, at most 1. No effect if `min = max` and not
    /// `gentle`. Default 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub probability: f64,
    /// The weight of each arrival in the average queue: more than 0, at most 1. 1 means the
    /// instantaneous queue. Default 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub weight: f64,
    /// The bytes that count as one packet with `bytes`, and the packet size at which the average decays while the queue
    /// is idle: more than 0. Default 1000 B.
    pub mean_packet: Bytes,
    /// Whether the distance between marks is counted in bytes over `mean_packet` (rounded down) and
    /// the probability is scaled by packet size, rather than counting packets. Default true (ns-2).
    pub bytes: bool,
    /// Whether marks are spaced at least `1/p` packets apart. Default true (ns-2).
    pub wait: bool,
    /// Whether ECT packets are marked instead of dropped. Packets that are not ECT are dropped either
    /// way. Default true.
    pub ecn: bool,
    /// Whether the probability rises gently above `max`. Default false.
    pub gentle: bool,
    /// How marks follow each other: `spread` evenly over arrivals, by `bytes` and `wait` (ns-2), or `independent`: each
    /// by the base probability alone, where packets that cannot carry a mark pass unharmed, as the switches of DCQCN
    /// mark (SIGCOMM 2015, section 3.1). Default `spread`.
    #[serde(skip_serializing_if = "MarkSpacing::is_default")]
    pub marks: MarkSpacing,
    /// Whether a packet is judged by the queue that it finds (`enqueue`), or, where marks are `independent`, by the
    /// queue that it leaves behind (`dequeue`): of data alone, where a port trims. Default `enqueue`.
    #[serde(skip_serializing_if = "is_at_enqueue")]
    pub at: MarkAt,
    /// Whether ports that lead to hosts mark. Without, a receiver whose credit keeps that queue short is not disturbed
    /// by its marks (RCCC). Default true.
    #[serde(skip_serializing_if = "is_true")]
    pub towards_hosts: bool,
    /// Drops an arriving packet if the bytes already waiting reach this. Default none, so that only
    /// the port's buffer limits the queue. The HULL reproduction's switch had `"500KB"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Bytes>,
    /// The rate of the links to which `min` and `max` belong: at a port of another rate they are larger or smaller in
    /// proportion, as where switches have 400 KB for each 25 Gb/s. More than 0. Default absent: all ports have the
    /// same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_rate: Option<Rate>,
}

impl Default for RedParams {
    fn default() -> RedParams {
        RedParams {
            min: Bytes::new(30_000),
            max: Bytes::new(30_000),
            probability: 1.0,
            weight: 1.0,
            mean_packet: Bytes::new(1_000),
            bytes: true,
            wait: true,
            ecn: true,
            gentle: false,
            marks: MarkSpacing::Spread,
            at: MarkAt::Enqueue,
            towards_hosts: true,
            limit: None,
            for_rate: None,
        }
    }
}

/// How the marks of RED follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarkSpacing {
    /// Evenly over arrivals.
    #[default]
    Spread,
    /// By the base probability alone.
    Independent,
}

/// For serde, which hands over references.
fn is_true(flag: &bool) -> bool {
    *flag
}

/// For serde, which hands over references.
fn is_at_enqueue(at: &MarkAt) -> bool {
    *at == MarkAt::Enqueue
}

impl MarkSpacing {
    fn is_default(&self) -> bool {
        *self == MarkSpacing::default()
    }
}

impl Mechanism for RedParams {
    const TABLE: Table =
        Table::replaced_whole(Section::Port, "red", "the queue drops and marks no packet early")
            .marks_queue();

    fn marking(&self) -> Option<Marking> {
        Some(Marking {
            marks: self.ecn,
            thresholds: vec![Depth::Bytes(self.min)],
            at_dequeue: self.marks_at_dequeue(),
        })
    }

    /// At dequeue, a mark depends on the packets that wait when a packet leaves, which is unknown at its admission.
    fn engine(&self) -> EngineNeed {
        if self.marks_at_dequeue() { EngineNeed::GeneralHere } else { EngineNeed::Either }
    }

    fn engine_setting(&self) -> &'static str {
        "red.at = \"dequeue\""
    }

    fn validate(&self) -> Result<(), InvalidParam> {
        let share = |value: f64| value > 0.0 && value <= 1.0;
        let max_ok = self.max >= self.min && self.max > Bytes::ZERO;
        InvalidParam::unless(max_ok, "max", self.max, "a size of at least `min`, and more than 0B")?;
        let shares = "more than 0 and at most 1";
        InvalidParam::unless(share(self.probability), "probability", self.probability, shares)?;
        InvalidParam::unless(share(self.weight), "weight", self.weight, shares)?;
        let mean_ok = self.mean_packet > Bytes::ZERO;
        InvalidParam::unless(mean_ok, "mean_packet", self.mean_packet, "more than 0B")?;
        let marks_alone = self.marks == MarkSpacing::Independent;
        InvalidParam::unless(
            self.ecn || !marks_alone,
            "ecn",
            self.ecn,
            "true with `marks = \"independent\"`",
        )?;
        let ok = marks_alone || !self.marks_at_dequeue();
        InvalidParam::unless(ok, "at", "dequeue", "`enqueue`, unless `marks = \"independent\"`")?;
        let limit = self.limit.unwrap_or(Bytes::new(1));
        InvalidParam::unless(limit > Bytes::ZERO, "limit", limit, "more than 0B")?;
        let rate = self.for_rate.unwrap_or(Rate::from_gbps(1));
        InvalidParam::unless(rate > Rate::ZERO, "for_rate", rate, "more than 0bps")
    }
}

impl RedParams {
    fn marks_at_dequeue(&self) -> bool {
        self.at == MarkAt::Dequeue
    }

    /// Returns the parameters at a port of rate `link`, with its thresholds.
    fn for_link(&self, link: Rate) -> RedParams {
        let scaled = |bytes: Bytes| match self.for_rate {
            Some(rate) => {
                let bytes = u128::from(bytes.get()) * u128::from(link.as_bps()) / u128::from(rate.as_bps());
                Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
            }
            None => bytes,
        };
        RedParams { min: scaled(self.min), max: scaled(self.max), ..*self }
    }
}

/// The decision of RED about an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The packet is queued as it is.
    Pass,
    /// The packet is queued with CE set.
    Mark,
    /// The packet is dropped.
    Drop,
}

/// Decides about the packets of one queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Red {
    params: RedParams,
    /// Marks are independent, and the average is the present queue.
    has_no_memory: bool,
    /// The average of the bytes that wait.
    average: f64,
    /// Arrivals since the last mark or drop, and their bytes.
    count: u64,
    count_bytes: u64,
    /// True if the arrival before this one found the average at `min` or above.
    above: bool,
    /// Since when the queue has been idle, if it is.
    idle_since: Option<Time>,
    /// Mean packets that the link sends in a second.
    packets_per_second: f64,
}

impl Red {
    /// RED on an empty queue in front of a link of rate `link`.
    pub fn new(params: &RedParams, link: Rate) -> Red {
        let is_present = params.weight == 1.0 || params.marks_at_dequeue();
        Red {
            params: params.for_link(link),
            has_no_memory: params.marks == MarkSpacing::Independent && is_present,
            average: 0.0,
            count: 0,
            count_bytes: 0,
            above: false,
            idle_since: Some(Time::ZERO),
            packets_per_second: link.as_bps() as f64 / params.mean_packet.bits() as f64,
        }
    }

    /// Decides on a packet of `packet_bytes` that finds `queue_bytes_before` bytes waiting (not
    /// counting one in transmission). `draw` yields a uniform 64-bit value if one is needed.
    pub fn on_enqueue(
        &mut self,
        now: Time,
        queue_bytes_before: u64,
        packet_bytes: u64,
        ect: bool,
        draw: impl FnOnce() -> u64,
    ) -> Verdict {
        let is_full = self.params.limit.is_some_and(|limit| queue_bytes_before >= limit.get());
        if self.has_no_memory {
            self.average = queue_bytes_before as f64;
            // With marks at dequeue, what it leaves behind decides.
            let may_mark = ect && !self.params.marks_at_dequeue();
            let is_marked = may_mark
                && queue_bytes_before > self.params.min.get()
                && Chance::of(self.base_probability()).hits(draw);
            return match is_full {
                true => Verdict::Drop,
                false if is_marked => Verdict::Mark,
                false => Verdict::Pass,
            };
        }
        self.update_average(now, queue_bytes_before);
        self.count += 1;
        self.count_bytes += packet_bytes;

        let mut verdict = Verdict::Pass;
        if self.params.marks == MarkSpacing::Independent {
            let is_above = ect && self.average > self.params.min.get() as f64;
            if is_above && Chance::of(self.base_probability()).hits(draw) {
                verdict = Verdict::Mark;
            }
        } else if self.average < self.params.min.get() as f64 || queue_bytes_before <= 1 {
            // More than one byte waiting is ns-2's test for a queue that is not empty.
            self.above = false;
        } else if !self.above {
            self.above = true;
            self.count = 1;
            self.count_bytes = packet_bytes;
        } else if Chance::of(self.spread(self.base_probability(), packet_bytes)).hits(draw) {
            self.restart_count();
            verdict = if self.params.ecn && ect { Verdict::Mark } else { Verdict::Drop };
        }
        if is_full {
            self.restart_count();
            verdict = Verdict::Drop;
        }
        verdict
    }

    /// Returns whether each decision depends on the queue of that moment alone.
    pub fn has_no_memory(&self) -> bool {
        self.has_no_memory
    }

    /// Returns whether packets are judged by the queue that they leave behind.
    pub fn marks_at_dequeue(&self) -> bool {
        self.params.marks_at_dequeue()
    }

    /// Returns whether a packet that leaves `queue_bytes_after` bytes waiting is marked, if it can be.
    pub fn on_dequeue(&mut self, queue_bytes_after: u64, draw: impl FnOnce() -> u64) -> bool {
        self.average = queue_bytes_after as f64;
        self.average > self.params.min.get() as f64 && Chance::of(self.base_probability()).hits(draw)
    }

    /// A packet that another rule decides on finds `queue_bytes_before` bytes waiting, which the average counts.
    pub fn on_other_arrival(&mut self, now: Time, queue_bytes_before: u64) {
        self.update_average(now, queue_bytes_before);
    }

    /// The port dropped the packet just decided on, as its buffer was full.
    pub fn on_overflow(&mut self) {
        self.restart_count();
    }

    /// The last packet has left and the link is idle: the average decays from here on.
    pub fn on_idle(&mut self, now: Time) {
        self.idle_since = Some(now);
    }

    /// The average queue in bytes that the last arrival saw.
    pub fn average_bytes(&self) -> f64 {
        self.average
    }

    fn restart_count(&mut self) {
        self.count = 0;
        self.count_bytes = 0;
    }

    /// Takes one step of the moving average, after as many steps towards zero as mean packets would have fitted into
    /// the idle time.
    fn update_average(&mut self, now: Time, queue_bytes: u64) {
        let idle = self.idle_since.take().map_or(0.0, |since| now.saturating_since(since).as_secs_f64());
        let keep = 1.0 - self.params.weight;
        self.average *= power(keep, (idle * self.packets_per_second) as u64);
        self.average = self.average * keep + self.params.weight * queue_bytes as f64;
    }

    fn base_probability(&self) -> f64 {
        let (min, max) = (self.params.min.get() as f64, self.params.max.get() as f64);
        let top = self.params.probability;
        if self.average < max {
            top * (self.average - min) / (max - min)
        } else if self.params.gentle {
            (top + (1.0 - top) * (self.average - max) / max).min(1.0)
        } else {
            1.0
        }
    }

    /// Spreads marks evenly over arrivals.
    fn spread(&self, p: f64, packet_bytes: u64) -> f64 {
        let mean = self.params.mean_packet.get();
        let since_mark = if self.params.bytes { self.count_bytes / mean } else { self.count };
        let expected = since_mark as f64 * p;
        let spread = match self.params.wait {
            true if expected < 1.0 => 0.0,
            true if expected < 2.0 => p / (2.0 - expected),
            false if expected < 1.0 => p / (1.0 - expected),
            _ => 1.0,
        };
        let sized = if self.params.bytes && spread < 1.0 {
            spread * packet_bytes as f64 / mean as f64
        } else {
            spread
        };
        sized.min(1.0)
    }
}

/// `base^exponent` by squaring, in the same order of multiplications on every machine.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Drop, Mark, Pass};
    use super::*;
    use plimsoll_units::Span;

    const NEVER: fn() -> u64 = || panic!("a draw was taken");

    fn red(params: RedParams) -> Red {
        params.validate().unwrap();
        Red::new(&params, Rate::from_gbps(1))
    }

    /// The verdicts on packets of `size` that find `queues` bytes waiting, without any draw.
    fn verdicts(red: &mut Red, size: u64, queues: &[u64]) -> Vec<Verdict> {
        queues.iter().map(|&queue| red.on_enqueue(Time::ZERO, queue, size, true, NEVER)).collect()
    }

    #[test]
    fn thresholds_follow_the_rate_of_the_port() {
        let params = RedParams {
            min: Bytes::new(100_000),
            max: Bytes::new(400_000),
            for_rate: Some(Rate::from_gbps(25)),
            ..RedParams::default()
        };
        for (gbps, min, max) in [(25, 100_000, 400_000), (100, 400_000, 1_600_000), (10, 40_000, 160_000)] {
            let at = Red::new(&params, Rate::from_gbps(gbps)).params;
            assert_eq!((at.min.get(), at.max.get()), (min, max), "{gbps} Gb/s");
        }
    }

    #[test]
    fn every_second_packet_above_k_and_never_the_first() {
        for size in [640, 990] {
            let mut red = red(RedParams::default());
            let seen = verdicts(&mut red, size, &[29_999, 30_000, 30_000, 31_000, 40_000, 50_000, 30_000]);
            assert_eq!(seen, [Pass, Pass, Mark, Pass, Mark, Pass, Mark], "packets of {size} B");
            // Below K the excursion ends, and the next one starts with an unmarked packet again.
            assert_eq!(verdicts(&mut red, size, &[29_999, 30_000, 30_000]), [Pass, Pass, Mark]);
        }
    }

    #[test]
    fn independent_marks_have_the_base_probability_and_spare_what_cannot_carry_them() {
        let kb = |size: u64| Bytes::new(1_000 * size);
        let params = RedParams {
            min: kb(100),
            max: kb(400),
            probability: 0.2,
            marks: MarkSpacing::Independent,
            ..Default::default()
        };
        let mut red = red(params);
        // At 250 KB the probability is 0.1: a draw in the lowest tenth marks.
        let mut decide = |queue, ect, share: f64| {
            red.on_enqueue(Time::ZERO, queue, 1_048, ect, || (share * u64::MAX as f64) as u64)
        };
        assert_eq!(decide(250_000, true, 0.099), Mark);
        assert_eq!(decide(250_000, true, 0.101), Pass);
        assert_eq!(decide(250_000, false, 0.0), Pass);
        assert_eq!(decide(100_000, true, 0.0), Pass);
        assert_eq!(decide(400_000, true, 1.0), Mark);
        assert_eq!(decide(400_000, false, 0.0), Pass);
    }

    #[test]
    fn acknowledgements_hardly_move_the_count() {
        let mut red = red(RedParams::default());
        let seen = verdicts(&mut red, 40, &[30_000; 30]);
        let marks: Vec<usize> = (0..30).filter(|&i| seen[i] != Pass).collect();
        assert_eq!(marks, [24]); // 25 x 40 B make the first 1000 B
    }

    #[test]
    fn counting_packets_marks_all_but_the_first() {
        let params = RedParams { bytes: false, mean_packet: Bytes::new(1_460), ..Default::default() };
        assert_eq!(verdicts(&mut red(params), 1_500, &[30_000; 4]), [Pass, Mark, Mark, Mark]);
    }

    #[test]
    fn packets_without_ect_are_dropped_in_place_of_marks() {
        let mut marking = red(RedParams::default());
        let seen: Vec<Verdict> =
            (0..3).map(|_| marking.on_enqueue(Time::ZERO, 40_000, 990, false, NEVER)).collect();
        assert_eq!(seen, [Pass, Drop, Pass]);
        let mut dropping = red(RedParams { ecn: false, ..Default::default() });
        assert_eq!(verdicts(&mut dropping, 990, &[40_000; 3]), [Pass, Drop, Pass]);
    }

    #[test]
    fn the_limit_is_tested_before_adding_and_restarts_the_count() {
        let mut red = red(RedParams { limit: Some(Bytes::new(50_000)), ..Default::default() });
        let seen = verdicts(&mut red, 990, &[49_999, 49_999, 50_000, 49_999, 49_999]);
        assert_eq!(seen, [Pass, Mark, Drop, Pass, Mark]);
    }

    #[test]
    fn an_empty_queue_never_marks() {
        let params = RedParams { min: Bytes::ZERO, max: Bytes::new(1), bytes: false, ..Default::default() };
        assert_eq!(verdicts(&mut red(params), 990, &[0, 0, 1, 1]), [Pass; 4]);
    }

    #[test]
    fn marks_on_the_slope_keep_their_distance() {
        // Half-way up a slope to 0.2: p = 0.1, so with `wait` 10 packets pass for certain.
        let params = RedParams {
            min: Bytes::new(10_000),
            max: Bytes::new(30_000),
            probability: 0.2,
            bytes: false,
            ..Default::default()
        };
        let mut red = red(params);
        for packet in 1..10 {
            assert_eq!(red.on_enqueue(Time::ZERO, 20_000, 990, true, NEVER), Pass, "packet {packet}");
        }
        // Then p/(2 - 10 p) = 0.1 for the next, and rising: 0.5 is above it, 0.05 below.
        assert_eq!(red.on_enqueue(Time::ZERO, 20_000, 990, true, || u64::MAX / 2), Pass);
        assert_eq!(red.on_enqueue(Time::ZERO, 20_000, 990, true, || u64::MAX / 20), Mark);
    }

    #[test]
    fn gentle_rises_to_one_at_twice_max() {
        let params = RedParams { gentle: true, probability: 0.1, weight: 1.0, ..Default::default() };
        let mut red = red(params);
        for (queue, p) in [(30_000.0, 0.1), (45_000.0, 0.55), (60_000.0, 1.0), (90_000.0, 1.0)] {
            red.average = queue;
            assert!((red.base_probability() - p).abs() < 1e-12, "{queue}");
        }
    }

    #[test]
    fn the_average_follows_the_queue_and_decays_when_idle() {
        let mut red = red(RedParams { weight: 0.002, ..Default::default() });
        red.on_enqueue(Time::ZERO, 10_000, 990, true, NEVER);
        assert!((red.average_bytes() - 20.0).abs() < 1e-9);
        red.on_idle(Time::ZERO);
        // 80 us at 1 Gb/s are ten packets of 1000 B.
        red.on_enqueue(Time::ZERO + Span::from_us(80), 0, 990, true, NEVER);
        let expected = 20.0 * 0.998f64.powi(11);
        assert!((red.average_bytes() - expected).abs() < 1e-9);
    }

    #[test]
    fn ranges() {
        let bad = |params: RedParams| params.validate().unwrap_err().key;
        assert_eq!(bad(RedParams { max: Bytes::new(10), ..Default::default() }), "max");
        assert_eq!(bad(RedParams { probability: 0.0, ..Default::default() }), "probability");
        assert_eq!(bad(RedParams { weight: f64::NAN, ..Default::default() }), "weight");
        assert_eq!(bad(RedParams { mean_packet: Bytes::ZERO, ..Default::default() }), "mean_packet");
        assert_eq!(bad(RedParams { limit: Some(Bytes::ZERO), ..Default::default() }), "limit");
    }
}
