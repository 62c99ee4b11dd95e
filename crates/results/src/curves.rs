//! [`Curves`]: the data of a figure, thinned so that a page stays small for runs of any size.
//!
//! A distribution keeps as many points in its last tenth as before it, there spaced by the logarithm of the remaining
//! share: the tail is the part that readers examine. A timeline keeps the mean, the least and the most of every bin, so
//! that no peak is lost.

use serde::{Deserialize, Serialize};

use crate::by_rank::{self, SlowdownByRank};
use crate::by_size::{SlowdownBySize, buckets};
use crate::circuit_curves::{self, CircuitCurves, WINDOW_WEEKS};
use crate::job_timeline::{self, JobTimeline, timelines};
use crate::link_map::{LinkMap, maps};
use crate::outcome::{Outcome, QueueObservation};
use crate::over_time::{LatencyOverTime, slots};
use crate::point::{PointKey, PointOutcome};
use crate::summary::queue::delay_us;
use crate::summary::workload::{WorkloadSubject, begun_us};

/// Limits of the number of points of each curve, which bound the size of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Detail {
    /// The greatest number of points of a distribution.
    pub cdf_points: usize,
    /// The greatest number of bins of a timeline.
    pub timeline_bins: usize,
    /// The greatest number of slots of a workload's latency over time.
    pub latency_slots: usize,
    /// The greatest number of weeks whose circuits are drawn one by one.
    pub circuit_weeks: usize,
    /// The greatest number of bars of a job's timeline.
    pub job_bars: usize,
}

impl Detail {
    /// The most that is worth drawing: 400 points of a distribution, 1,000 bins of a timeline, 50 slots of latencies,
    /// 20 weeks of circuits, 2,400 bars of a job.
    pub const FULL: Detail = Detail {
        cdf_points: 400,
        timeline_bins: 1_000,
        latency_slots: 50,
        circuit_weeks: WINDOW_WEEKS,
        job_bars: job_timeline::BARS,
    };

    /// Returns the detail for a number of runs: all of it for a few, less from a dozen on, so that the curves of a
    /// sweep stay within some megabytes.
    pub fn for_runs(runs: usize) -> Detail {
        let share = |full: usize, least: usize| (full * 12 / runs.max(12)).max(least);
        Detail {
            cdf_points: share(Detail::FULL.cdf_points, 60),
            timeline_bins: share(Detail::FULL.timeline_bins, 80),
            latency_slots: share(Detail::FULL.latency_slots, 25),
            circuit_weeks: share(Detail::FULL.circuit_weeks, 4),
            job_bars: share(Detail::FULL.job_bars, 240),
        }
    }
}

/// All curves of an experiment, for the figures of its report.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Curves {
    /// One for each variant, sweep point and workload, over all replicates.
    pub cdfs: Vec<Cdf>,
    /// One for each variant, sweep point and watched queue, of the first replicate.
    pub timelines: Vec<Timeline>,
    /// One for each variant, sweep point and workload that has enough messages, over all replicates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<LatencyOverTime>,
    /// One for each variant, sweep point and workload whose messages differ in size, over all replicates.
    pub slowdowns: Vec<SlowdownBySize>,
    /// The same messages by the rank of their size, where a run has enough of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<SlowdownByRank>,
    /// One for each sweep point at which links were counted.
    pub maps: Vec<LinkMap>,
    /// One for each variant and sweep point with circuits, of the first replicate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub circuits: Vec<CircuitCurves>,
    /// One for each variant, sweep point and job with a timeline, of the first replicate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobTimeline>,
}

/// A distribution of completion times, or of a workload's observations.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cdf {
    /// The name of the variant.
    pub variant: String,
    /// Swept keys and their values.
    pub sweep: Vec<(String, String)>,
    /// The name of the workload.
    pub workload: String,
    /// True for a distribution over queries instead of messages.
    pub by_query: bool,
    /// The values in us, ascending.
    pub us: Vec<f64>,
    /// Share of all that are at most so large.
    pub share: Vec<f64>,
}

/// The delay of a queue over time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Timeline {
    /// The name of the variant.
    pub variant: String,
    /// Swept keys and their values.
    pub sweep: Vec<(String, String)>,
    /// The scenario's name of the queue.
    pub queue: String,
    /// The port of the queue, in words.
    pub port: String,
    /// The middle of each bin, in ms since the start of the run.
    pub ms: Vec<f64>,
    /// Mean delay in each bin in us.
    pub mean_us: Vec<f64>,
    /// Least interval mean in each bin in us.
    pub least_us: Vec<f64>,
    /// Most delay at any instant of each bin in us.
    pub most_us: Vec<f64>,
}

impl Curves {
    /// The curves of all points, in their order.
    pub fn of(points: &[PointOutcome], detail: Detail) -> Curves {
        let mut curves = Curves::default();
        let mut seen: Vec<(&str, &[(String, String)])> = Vec::new();
        for point in points {
            let key = (point.key.variant.as_str(), point.key.sweep.as_slice());
            if seen.contains(&key) {
                continue;
            }
            seen.push(key);
            let mut runs: Vec<&PointOutcome> =
                points.iter().filter(|p| p.key.variant == key.0 && p.key.sweep == key.1).collect();
            runs.sort_by_key(|run| run.key.replicate);
            curves.add(&runs, detail);
        }
        let mut sweeps: Vec<&[(String, String)]> = Vec::new();
        for (_, sweep) in &seen {
            if !sweeps.contains(sweep) {
                sweeps.push(sweep);
            }
        }
        for sweep in sweeps {
            let variants = seen.iter().filter(|(_, at)| *at == sweep).map(|(variant, _)| *variant);
            let outcomes = |variant| {
                let mine = points.iter().filter(|p| p.key.variant == variant && p.key.sweep == sweep);
                (variant, mine.map(|point| &point.outcome).collect())
            };
            curves.maps.extend(maps(sweep, &variants.map(outcomes).collect::<Vec<_>>()));
        }
        curves
    }

    fn add(&mut self, runs: &[&PointOutcome], detail: Detail) {
        let outcomes: Vec<&Outcome> = runs.iter().map(|run| &run.outcome).collect();
        let Some(first) = runs.first() else { return };
        for workload in &first.outcome.workloads {
            let (begun, subject) = begun_us(&workload.name, &outcomes);
            let slots = slots(&begun, detail.latency_slots);
            if !slots.is_empty() {
                self.latencies.push(LatencyOverTime {
                    variant: first.key.variant.clone(),
                    sweep: first.key.sweep.clone(),
                    workload: workload.name.clone(),
                    slots,
                });
            }
            let mut us: Vec<f64> = begun.into_iter().filter_map(|(_, us)| us).collect();
            us.sort_unstable_by(f64::total_cmp);
            if us.is_empty() {
                continue;
            }
            let (us, share) = thin_cdf(&us, detail.cdf_points);
            self.cdfs.push(Cdf {
                variant: first.key.variant.clone(),
                sweep: first.key.sweep.clone(),
                workload: workload.name.clone(),
                by_query: subject == WorkloadSubject::Queries,
                us,
                share,
            });
        }
        for workload in &first.outcome.workloads {
            let buckets = buckets(&workload.name, &outcomes);
            if !buckets.is_empty() {
                let bins = by_rank::bins(&workload.name, &outcomes);
                if !bins.is_empty() {
                    self.ranks.push(SlowdownByRank {
                        variant: first.key.variant.clone(),
                        sweep: first.key.sweep.clone(),
                        workload: workload.name.clone(),
                        bins,
                    });
                }
                self.slowdowns.push(SlowdownBySize {
                    variant: first.key.variant.clone(),
                    sweep: first.key.sweep.clone(),
                    workload: workload.name.clone(),
                    buckets,
                });
            }
        }
        let PointKey { variant, sweep, .. } = &first.key;
        let circuits = circuit_curves::curves(variant, sweep, &first.outcome, detail.circuit_weeks);
        self.circuits.extend(circuits);
        self.jobs.extend(timelines(variant, sweep, &first.outcome, detail.job_bars));
        for queue in &first.outcome.queues {
            self.timelines.push(timeline(first, queue, detail.timeline_bins));
        }
    }
}

/// Returns at most `most` points of an ascending list, with the share at or below each.
fn thin_cdf(sorted: &[f64], most: usize) -> (Vec<f64>, Vec<f64>) {
    let len = sorted.len();
    let mut kept: Vec<usize> = if len <= most {
        (0..len).collect()
    } else {
        let half = most / 2;
        let body = (0..half).map(|i| i * (len - 1) * 9 / 10 / half);
        // The last tenth of the values, evenly in the logarithm of the remaining share.
        let decades = libm::log(0.1 * len as f64);
        let steps = most - half;
        let tail = (0..steps).map(|i| {
            let left = libm::exp(decades * (1.0 - i as f64 / (steps - 1).max(1) as f64));
            len - (left.round() as usize).clamp(1, len)
        });
        body.chain(tail).collect()
    };
    // Of equal values, the last one has the right share.
    for index in &mut kept {
        *index = sorted.partition_point(|value| *value <= sorted[*index]) - 1;
    }
    kept.sort_unstable();
    kept.dedup();
    let us = kept.iter().map(|&i| rounded(sorted[i])).collect();
    // Eight decimals: the share above the last of a hundred million messages.
    let share = kept.iter().map(|&i| ((i + 1) as f64 / len as f64 * 1e8).round() / 1e8).collect();
    (us, share)
}

fn timeline(run: &PointOutcome, queue: &QueueObservation, most: usize) -> Timeline {
    let len = queue.mean_bytes.len();
    let bins = len.min(most);
    let mut out = Timeline {
        variant: run.key.variant.clone(),
        sweep: run.key.sweep.clone(),
        queue: queue.name.clone(),
        port: queue.port.clone(),
        ms: Vec::with_capacity(bins),
        mean_us: Vec::with_capacity(bins),
        least_us: Vec::with_capacity(bins),
        most_us: Vec::with_capacity(bins),
    };
    for bin in 0..bins {
        let range = bin * len / bins..(bin + 1) * len / bins;
        let means = &queue.mean_bytes[range.clone()];
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        let least = means.iter().copied().fold(f64::INFINITY, f64::min);
        let peaks = queue.max_bytes.get(range.clone()).unwrap_or_default();
        let most = peaks.iter().map(|&b| b as f64).chain(means.iter().copied()).fold(0.0, f64::max);
        let middle = (range.start + range.end) as f64 / 2.0;
        out.ms.push(rounded(queue.from.as_secs_f64() * 1e3 + queue.every.as_ms_f64() * middle));
        out.mean_us.push(rounded(delay_us(mean, queue)));
        out.least_us.push(rounded(delay_us(least, queue)));
        out.most_us.push(rounded(delay_us(most, queue)));
    }
    out
}

/// Five significant digits: more than a figure shows, and half the bytes.
fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{self, Shape};

    #[test]
    fn a_thinned_distribution_keeps_its_ends_and_its_tail() {
        let sorted: Vec<f64> = (1..=1_000_000).map(f64::from).collect();
        let (us, share) = thin_cdf(&sorted, 400);
        assert!(us.len() <= 400 && us.len() > 340, "{}", us.len());
        assert_eq!((us[0], *us.last().unwrap()), (1.0, 1e6));
        assert_eq!(*share.last().unwrap(), 1.0);
        assert!(share.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(share.iter().filter(|&&share| share > 0.9999).count() > 40);
        for (us, share) in us.iter().zip(&share) {
            assert!((us / 1e6 - share).abs() < 1e-4);
        }
    }

    #[test]
    fn equal_values_are_one_step() {
        let mut sorted = vec![37.6; 900];
        sorted.extend((0..100).map(|i| 40.0 + f64::from(i)));
        let (us, share) = thin_cdf(&sorted, 400);
        assert_eq!((us[0], share[0]), (37.6, 0.9));
        assert!(us.len() > 60, "the tail keeps its points: {}", us.len());
    }

    #[test]
    fn a_thinned_timeline_keeps_its_peaks() {
        let shape = Shape { intervals: 7_777, ..Shape::default() };
        let points = synthetic::experiment(&shape, &["TCP"], &[], 2, 3);
        let curves = Curves::of(&points, Detail { timeline_bins: 100, ..Detail::FULL });
        assert_eq!(curves.timelines.len(), 1);
        let line = &curves.timelines[0];
        assert_eq!(line.ms.len(), 100);
        let queue = &points[0].outcome.queues[0];
        let peak = *queue.max_bytes.iter().max().unwrap() as f64 * 8.0 / 1e3;
        assert_eq!(line.most_us.iter().copied().fold(0.0, f64::max), rounded(peak));
        assert!(line.least_us.iter().zip(&line.mean_us).all(|(least, mean)| least <= mean));
    }

    #[test]
    fn a_large_sweep_gets_less_detail() {
        assert_eq!(Detail::for_runs(3), Detail::FULL);
        assert_eq!(Detail::for_runs(48).cdf_points, 100);
        assert_eq!(
            Detail::for_runs(10_000),
            Detail { cdf_points: 60, timeline_bins: 80, latency_slots: 25, circuit_weeks: 4, job_bars: 240 }
        );
    }
}
