//! [`RequestRecorder`] collects requests in constant memory and makes a [`Report`] of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hdrhistogram::Histogram;

use crate::part::{Layer, PARTS, Part};
use crate::report::{LayerReport, PartReport, Quantiles, Report, SlowRequest, UnmatchedReport};
use crate::request::{Reason, Request, Unmatched};

/// Collects requests without keeping them.
#[derive(Debug)]
pub struct RequestRecorder {
    latency: Histogram<u64>,
    parts: Vec<Histogram<u64>>,
    layers: Vec<Histogram<u64>>,
    /// The sums of all requests, and of the requests in each bucket of latency: so the slowest 1 % have exact shares
    /// without a request being kept.
    all: LatencyRange,
    buckets: Vec<LatencyRange>,
    slowest: BinaryHeap<Reverse<Ranked>>,
    slowest_max: usize,
    bytes_in: u64,
    bytes_out: u64,
    packets_in: u64,
    packets_out: u64,
}

/// The sums of the requests of one range of latencies.
#[derive(Clone, Copy, Default, Debug)]
struct LatencyRange {
    requests: u64,
    latency: u128,
    parts: [u128; PARTS],
}

impl LatencyRange {
    fn add(&mut self, other: &LatencyRange) {
        self.requests += other.requests;
        self.latency += other.latency;
        self.parts.iter_mut().zip(&other.parts).for_each(|(sum, more)| *sum += more);
    }

    fn share(&self, parts: impl Iterator<Item = Part>) -> f64 {
        let sum: u128 = parts.map(|part| self.parts[part as usize]).sum();
        sum as f64 / (self.latency as f64).max(1.0)
    }
}

/// A request in the order of latency; of equal ones, the earlier is slower.
#[derive(Debug)]
struct Ranked(Request);

impl Ranked {
    fn key(&self) -> (u64, Reverse<u64>, crate::Flow) {
        (self.0.latency, Reverse(self.0.received), self.0.flow)
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Ranked) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Ranked) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Ranked) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl RequestRecorder {
    /// Creates a recorder that keeps the `slowest_max` slowest requests with all their spans.
    pub fn new(slowest_max: usize) -> RequestRecorder {
        let histogram = || Histogram::new(SIGNIFICANT_DIGITS).expect("1 to 5 digits are allowed");
        RequestRecorder {
            latency: histogram(),
            parts: (0..PARTS).map(|_| histogram()).collect(),
            layers: Layer::ALL.iter().map(|_| histogram()).collect(),
            all: LatencyRange::default(),
            buckets: Vec::new(),
            slowest: BinaryHeap::new(),
            slowest_max,
            bytes_in: 0,
            bytes_out: 0,
            packets_in: 0,
            packets_out: 0,
        }
    }

    /// Adds a request to all sums.
    pub fn add(&mut self, request: Request) {
        let one = LatencyRange {
            requests: 1,
            latency: u128::from(request.latency),
            parts: request.parts.map(u128::from),
        };
        self.all.add(&one);
        let index = bucket_of(request.latency);
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, LatencyRange::default());
        }
        self.buckets[index].add(&one);
        self.latency.record(request.latency.min(LATENCY_MAX)).expect(RESIZES);
        for (histogram, part) in self.parts.iter_mut().zip(request.parts) {
            histogram.record(part.min(LATENCY_MAX)).expect(RESIZES);
        }
        let mut layers = [0; Layer::ALL.len()];
        for (part, ns) in Part::ALL.into_iter().zip(request.parts) {
            layers[part.layer() as usize] += ns;
        }
        for (histogram, layer) in self.layers.iter_mut().zip(layers) {
            histogram.record(layer.min(LATENCY_MAX)).expect(RESIZES);
        }
        self.bytes_in += request.bytes_in;
        self.bytes_out += request.bytes_out;
        self.packets_in += u64::from(request.packets_in);
        self.packets_out += u64::from(request.packets_out);
        if self.slowest_max == 0 {
            return;
        }
        let ranked = Ranked(request);
        if self.slowest.len() < self.slowest_max {
            self.slowest.push(Reverse(ranked));
        } else if self.slowest.peek().is_some_and(|least| ranked > least.0) {
            self.slowest.pop();
            self.slowest.push(Reverse(ranked));
        }
    }

    /// Returns how many requests were taken.
    pub fn requests(&self) -> u64 {
        self.all.requests
    }

    /// Makes the report of all requests so far, which took `seconds`.
    pub fn report(&self, unmatched: &Unmatched, seconds: f64) -> Report {
        let tail = self.tail();
        let part = |part: Part| {
            let histogram = &self.parts[part as usize];
            PartReport {
                part,
                name: part.name(),
                layer: part.layer(),
                source: if part == Part::Remainder { "remainder" } else { "measured" },
                time: quantiles(
                    histogram,
                    self.all.parts[part as usize] as f64 / self.all.requests.max(1) as f64,
                ),
                share: self.all.share([part].into_iter()),
                share_of_slowest: tail.share([part].into_iter()),
            }
        };
        let layer = |layer: Layer| {
            let of = || Part::ALL.into_iter().filter(move |part| part.layer() == layer);
            LayerReport {
                layer,
                name: layer.name(),
                time: quantiles(
                    &self.layers[layer as usize],
                    of().map(|part| self.all.parts[part as usize]).sum::<u128>() as f64
                        / self.all.requests.max(1) as f64,
                ),
                share: self.all.share(of()),
                share_of_slowest: tail.share(of()),
            }
        };
        let mut slowest: Vec<&Ranked> = self.slowest.iter().map(|ranked| &ranked.0).collect();
        slowest.sort_by(|a, b| b.cmp(a));
        let per_request = |sum: u64| sum as f64 / self.all.requests.max(1) as f64;
        Report {
            requests: self.all.requests,
            seconds,
            bytes_in: per_request(self.bytes_in),
            bytes_out: per_request(self.bytes_out),
            packets_in: per_request(self.packets_in),
            packets_out: per_request(self.packets_out),
            latency: quantiles(&self.latency, self.all.latency as f64 / self.all.requests.max(1) as f64),
            slowest_requests: tail.requests,
            slowest_from_ns: self.tail_from(),
            slowest_mean_ns: tail.latency as f64 / tail.requests.max(1) as f64,
            parts: Part::ALL.into_iter().map(part).collect(),
            layers: Layer::ALL.into_iter().map(layer).collect(),
            unmatched: UnmatchedReport {
                requests: unmatched.total(),
                share: unmatched.total() as f64 / (unmatched.total() + self.all.requests).max(1) as f64,
                by_reason: Reason::ALL
                    .into_iter()
                    .map(|reason| (reason, unmatched.of(reason)))
                    .filter(|(_, requests)| *requests > 0)
                    .collect(),
                cut_off: unmatched.cut_off,
            },
            slowest: slowest.into_iter().map(|ranked| SlowRequest::of(&ranked.0)).collect(),
        }
    }

    /// Returns the index of the first bucket of the slowest 1 %: the fewest buckets that hold at least that many
    /// requests.
    fn tail_bucket(&self) -> usize {
        let wanted = self.all.requests.div_ceil(TAIL).max(1);
        let mut requests = 0;
        for (index, bucket) in self.buckets.iter().enumerate().rev() {
            requests += bucket.requests;
            if requests >= wanted {
                return index;
            }
        }
        0
    }

    fn tail(&self) -> LatencyRange {
        let mut sum = LatencyRange::default();
        self.buckets.iter().skip(self.tail_bucket()).for_each(|bucket| sum.add(bucket));
        sum
    }

    fn tail_from(&self) -> u64 {
        lowest_of(self.tail_bucket())
    }
}

fn quantiles(histogram: &Histogram<u64>, mean: f64) -> Quantiles {
    let at = |quantile| histogram.value_at_quantile(quantile);
    Quantiles {
        mean_ns: mean,
        p50_ns: at(0.5),
        p90_ns: at(0.9),
        p99_ns: at(0.99),
        p999_ns: at(0.999),
        max_ns: histogram.max(),
    }
}

/// Returns the bucket of a latency: exact up to 128 ns, then 64 buckets each time that it doubles.
fn bucket_of(latency: u64) -> usize {
    let octave = latency.max(1).ilog2();
    if octave <= SUB_BITS {
        return latency as usize;
    }
    let sub = (latency >> (octave - SUB_BITS)) as usize - (1 << SUB_BITS);
    (((octave - SUB_BITS) as usize + 1) << SUB_BITS) + sub
}

/// Returns the lowest latency of a bucket.
fn lowest_of(bucket: usize) -> u64 {
    let octave = bucket >> SUB_BITS;
    if octave <= 1 {
        return bucket as u64;
    }
    let sub = (bucket & ((1 << SUB_BITS) - 1)) as u64;
    ((1 << SUB_BITS) + sub) << (octave - 1)
}

/// The buckets of an octave, as a power of two: a bucket is 1.6 % wide.
const SUB_BITS: u32 = 6;
/// The slowest requests are one in this many.
const TAIL: u64 = 100;
const SIGNIFICANT_DIGITS: u8 = 3;
const RESIZES: &str = "the histogram grows with its values";
/// Longer times (over a day) count as this one in the quantiles.
const LATENCY_MAX: u64 = 100_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::PartSpan;

    fn request(received: u64, application: u64, queue: u64) -> Request {
        let mut parts = [0; PARTS];
        parts[Part::Application as usize] = application;
        parts[Part::RunQueue as usize] = queue;
        Request {
            flow: crate::Flow::from_bits(1),
            reader: 1,
            sender: 1,
            bytes_in: 10,
            bytes_out: 20,
            packets_in: 1,
            packets_out: 1,
            spans: vec![PartSpan {
                part: Part::Application,
                from: received,
                to: received + application + queue,
            }],
            parts,
            received,
            latency: application + queue,
        }
    }

    #[test]
    fn buckets_are_ordered_and_begin_where_they_say() {
        for bucket in 0..2_000 {
            assert_eq!(bucket_of(lowest_of(bucket)), bucket);
            assert_eq!(bucket_of(lowest_of(bucket + 1) - 1), bucket);
        }
        assert!(bucket_of(u64::MAX) < 1 << 12);
    }

    #[test]
    fn the_slowest_hundredth_has_its_own_shares() {
        let mut recorder = RequestRecorder::new(3);
        (0..990).for_each(|number| recorder.add(request(number, 1_000, 0)));
        (0..10).for_each(|number| recorder.add(request(5_000 + number, 1_000, 99_000)));
        let report = recorder.report(&Unmatched::default(), 1.0);
        assert_eq!((report.requests, report.slowest_requests), (1_000, 10));
        let of = |part: Part| report.parts[part as usize];
        assert_eq!(of(Part::RunQueue).share_of_slowest, 0.99);
        assert_eq!(of(Part::Application).share_of_slowest, 0.01);
        assert!((of(Part::RunQueue).share - 990.0 / 1_990.0).abs() < 1e-12);
        assert_eq!(of(Part::Application).time.p50_ns, 1_000);
        assert!(report.latency.max_ns >= 99_900, "{:?}", report.latency);
        assert_eq!(report.slowest.len(), 3);
        assert!(report.slowest.iter().all(|slow| slow.latency_ns == 100_000));
        assert_eq!(report.slowest[0].received_ns, 5_000);
        let layers: f64 = report.layers.iter().map(|layer| layer.share).sum();
        assert!((layers - 1.0).abs() < 1e-12);
    }
}
