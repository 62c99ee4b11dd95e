//! [`Approximation`]: the outcome of an approximate run, and how far it can be trusted.

use plimsoll_results::outcome::Outcome;
use plimsoll_stats::{Estimate, Interval, percentile};
use plimsoll_units::{Span, Streams};
use rand::Rng;

use crate::compose::{Delays, MeasuredFlow};

/// The result of an approximate run.
#[derive(Clone, Debug)]
pub struct Approximation {
    /// The measured messages with their approximate completion times.
    pub outcome: Outcome,
    /// What the run simulated.
    pub precision: Precision,
    /// The slowdown by workload and size.
    pub rows: Vec<ApproximateRow>,
}

/// What an approximate run simulated.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Precision {
    /// The load of the busiest link.
    pub busiest: f64,
    /// The number of simulated links.
    pub links: usize,
    /// The number of all links.
    pub of_links: usize,
    /// The number of all flows.
    pub flows: u64,
    /// The share of the packets of simulated links that was lost.
    pub loss: f64,
    /// The simulated packet-hops.
    pub packet_hops: u64,
}

/// The slowdown of a workload's messages of some sizes.
#[derive(Clone, PartialEq, Debug)]
pub struct ApproximateRow {
    /// The name of the workload.
    pub workload: String,
    /// The largest size in bytes; `None` for those above all of [`SIZES`].
    pub up_to: Option<u64>,
    /// Percentiles of the slowdown in the order of [`SHARES`], each with the interval that sampling alone gives.
    pub slowdown: [Option<Estimate>; 3],
}

/// The ends of the ranges of sizes, in bytes.
pub const SIZES: [u64; 3] = [10_000, 100_000, 1_000_000];

/// The percentiles of an [`ApproximateRow`].
pub const SHARES: [f64; 3] = [0.5, 0.9, 0.99];

/// A measured flow with its time on idle links, and its time without others.
pub(crate) struct Composed<'a> {
    pub(crate) flow: &'a MeasuredFlow,
    pub(crate) ideal: Span,
    pub(crate) alone: Span,
}

impl Composed<'_> {
    fn slowdown(&self, delays: &Delays, word: u64) -> f64 {
        let delay = delays.of(self.flow, word);
        (self.alone.as_ps() as f64 + delay as f64).max(0.0) / self.ideal.as_ps().max(1) as f64
    }
}

/// How often links and flows are drawn anew for intervals.
const RESAMPLES: u64 = 40;

/// Returns the rows of all workloads. `links` is the number of simulated links.
pub(crate) fn rows<'a>(
    workloads: impl Iterator<Item = &'a String>,
    flows: &[Composed<'_>],
    delays: &Delays,
    links: usize,
    word: u64,
) -> Vec<ApproximateRow> {
    let bin = |flow: &Composed<'_>| {
        (flow.flow.key.0, SIZES.iter().position(|up_to| flow.flow.bytes <= *up_to).unwrap_or(SIZES.len()))
    };
    let resamples: Vec<Delays> = (0..RESAMPLES)
        .map(|number| delays.resampled(links, &mut Streams::keyed(word, number)))
        .collect();
    let mut rows = Vec::new();
    for (workload, number) in workloads.zip(0_u16..) {
        for size in 0..=SIZES.len() {
            let of_bin: Vec<&Composed<'_>> = flows.iter().filter(|flow| bin(flow) == (number, size)).collect();
            if of_bin.is_empty() {
                continue;
            }
            let best = percentiles(of_bin.iter().map(|flow| flow.slowdown(delays, word)).collect());
            let drawn = resamples.iter().zip(0_u64..).map(|(delays, number)| {
                let mut stream = Streams::keyed(!word, number);
                let again = (0..of_bin.len()).map(|_| {
                    let place = u128::from(stream.next_u64()) * of_bin.len() as u128 >> 64;
                    of_bin[place as usize].slowdown(delays, word.wrapping_add(number + 1))
                });
                percentiles(again.collect())
            });
            let drawn: Vec<[Option<f64>; 3]> = drawn.collect();
            let estimate = |share: usize| {
                let value = best[share]?;
                let mut others: Vec<f64> = drawn.iter().filter_map(|of| of[share]).collect();
                others.sort_unstable_by(f64::total_cmp);
                let ends = percentile(&others, 0.025).zip(percentile(&others, 0.975));
                let interval = ends.map(|(low, high)| Interval { low, high });
                Some(Estimate { value, interval, samples: of_bin.len() as u64 })
            };
            rows.push(ApproximateRow {
                workload: workload.clone(),
                up_to: SIZES.get(size).copied(),
                slowdown: [estimate(0), estimate(1), estimate(2)],
            });
        }
    }
    rows
}

/// Returns the percentiles that reach within the values: p99 from a hundred on.
fn percentiles(mut values: Vec<f64>) -> [Option<f64>; 3] {
    values.sort_unstable_by(f64::total_cmp);
    SHARES.map(|share| {
        let beyond = values.len() as f64 * (1.0 - share);
        percentile(&values, share).filter(|_| beyond >= 1.0 - 1e-9)
    })
}
