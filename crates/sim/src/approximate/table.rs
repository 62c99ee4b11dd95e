//! [`slowdowns`]: percentiles by size, with intervals from other draws of links and messages.

use plimsoll_results::outcome::{ApproximateSlowdown, Approximation};
use plimsoll_results::stats::percentile;
use plimsoll_results::{Estimate, Interval};
use plimsoll_units::{Span, mix64};

use super::compose::{Delays, MeasuredFlow, choice};

/// The ends of the ranges of sizes, in bytes.
const SIZES: [u64; 3] = [10_000, 100_000, 1_000_000];

/// A measured flow with its time on idle links, and its time without others.
pub(super) struct Composed<'a> {
    pub(super) flow: &'a MeasuredFlow,
    pub(super) ideal: Span,
    pub(super) alone: Span,
}

impl Composed<'_> {
    fn slowdown(&self, delays: &Delays, word: u64) -> f64 {
        let delay = delays.of(self.flow, word);
        (self.alone.as_ps() as f64 + delay as f64).max(0.0) / self.ideal.as_ps().max(1) as f64
    }
}

/// How often links and flows are drawn anew for intervals.
const RESAMPLES: u64 = 40;

/// Returns the slowdowns of all workloads. `links` is the number of links in the sample.
pub(super) fn slowdowns<'a>(
    workloads: impl Iterator<Item = &'a String>,
    flows: &[Composed<'_>],
    delays: &Delays,
    links: usize,
    word: u64,
    bias: [Interval; 3],
) -> Vec<ApproximateSlowdown> {
    let size =
        |flow: &Composed<'_>| SIZES.iter().position(|up_to| flow.flow.bytes <= *up_to).unwrap_or(SIZES.len());
    let resamples: Vec<(u64, Delays)> = (1..=RESAMPLES)
        .map(|number| mix64(word ^ number))
        .map(|word| (word, delays.resampled(links, word)))
        .collect();
    let mut rows = Vec::new();
    for (workload, number) in workloads.zip(0_u16..) {
        for range in 0..=SIZES.len() {
            let is_of = |flow: &&Composed<'_>| flow.flow.key.0 == number && size(flow) == range;
            let flows: Vec<&Composed<'_>> = flows.iter().filter(is_of).collect();
            if flows.is_empty() {
                continue;
            }
            let best = percentiles(flows.iter().map(|flow| flow.slowdown(delays, word)).collect());
            let drawn = resamples.iter().map(|(word, delays)| {
                let again = (0..flows.len()).map(|draw| choice(mix64(word ^ draw as u64), flows.len()));
                percentiles(again.map(|place| flows[place].slowdown(delays, *word)).collect())
            });
            let drawn: Vec<[Option<f64>; 3]> = drawn.collect();
            let estimate = |share: usize| {
                let mut others: Vec<f64> = drawn.iter().filter_map(|of| of[share]).collect();
                others.sort_unstable_by(f64::total_cmp);
                let ends = percentile(&others, 0.025).zip(percentile(&others, 0.975));
                let interval = ends.map(|(low, high)| Interval { low, high });
                Some(Estimate { value: best[share]?, interval, samples: flows.len() as u64 })
            };
            rows.push(ApproximateSlowdown {
                workload: workload.clone(),
                up_to: SIZES.get(range).copied(),
                slowdown: [estimate(0), estimate(1), estimate(2)],
                bias,
            });
        }
    }
    rows
}

/// Returns the percentiles that reach within the values: p99 from a hundred on.
fn percentiles(mut values: Vec<f64>) -> [Option<f64>; 3] {
    values.sort_unstable_by(f64::total_cmp);
    Approximation::SHARES.map(|share| {
        let beyond = values.len() as f64 * (1.0 - share);
        percentile(&values, share).filter(|_| beyond >= 1.0 - 1e-9)
    })
}
