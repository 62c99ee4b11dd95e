//! One watched queue in one cell.

use std::collections::HashMap;
use std::ptr;

use super::workload::{counts, trimmed};
use super::{InstantDelay, Options, QueueSummary};
use crate::outcome::{Outcome, QueueObservation};
use crate::stats::{self, Samples, Statistic};

/// Summarises the watched queues of a cell over its replicates, in the order in which the outcomes have them.
pub(super) fn summarise(outcomes: &[&Outcome], options: &Options) -> Vec<QueueSummary> {
    let mut places: HashMap<(&str, &str), usize> = HashMap::new();
    let mut queues: Vec<Vec<(&Outcome, &QueueObservation)>> = Vec::new();
    for &outcome in outcomes {
        for queue in &outcome.queues {
            let place = *places.entry((&queue.name, &queue.port)).or_insert(queues.len());
            if place == queues.len() {
                queues.push(Vec::new());
            }
            // A run may have several queues of one name at one port, as of parallel links; the first counts.
            if queues[place].last().is_none_or(|(last, _)| !ptr::eq(*last, outcome)) {
                queues[place].push((outcome, queue));
            }
        }
    }
    queues.iter().filter_map(|replicates| summary(replicates, options)).collect()
}

/// Summarises one queue over its replicates.
fn summary(queues: &[(&Outcome, &QueueObservation)], options: &Options) -> Option<QueueSummary> {
    let &(_, first) = queues.first()?;
    let delays = Samples::new(
        queues.iter().map(|(outcome, queue)| interval_delays(outcome, queue, options)).collect(),
    );
    let max_bytes = queues.iter().flat_map(|(_, queue)| queue.max_bytes.iter()).max();
    let utilisations: Vec<f64> =
        queues.iter().filter_map(|(outcome, queue)| utilisation(outcome, queue)).collect();
    let time_at = summed_time_at(queues);
    Some(QueueSummary {
        name: first.name.clone(),
        port: first.port.clone(),
        every_us: first.every.as_us_f64(),
        mean_us: delays.estimate(Statistic::Mean),
        p99_us: delays.estimate(Statistic::Percentile(0.99)),
        max_us: max_bytes.map_or(0.0, |&bytes| delay_us(bytes as f64, first)),
        nearly_empty: nearly_empty(&time_at),
        instant_us: instant_delay(&time_at, first),
        utilisation: stats::mean(&utilisations),
        drops: queues.iter().map(|(_, queue)| queue.drops).sum(),
        marks: queues.iter().map(|(_, queue)| queue.marks).sum(),
        packets: queues.iter().map(|(_, queue)| queue.packets).sum(),
    })
}

/// The delay that `bytes` waiting bytes mean, in us.
pub(crate) fn delay_us(bytes: f64, queue: &QueueObservation) -> f64 {
    match queue.rate.as_bps() {
        0 => 0.0,
        rate => bytes * 8e6 / rate as f64,
    }
}

fn interval_delays(outcome: &Outcome, queue: &QueueObservation, options: &Options) -> Vec<f64> {
    let behind_warmup: Vec<f64> = queue
        .mean_bytes
        .iter()
        .enumerate()
        .filter(|(interval, _)| {
            counts(outcome, queue.from.saturating_add(queue.every.saturating_mul(*interval as u64)))
        })
        .map(|(_, &bytes)| bytes)
        .collect();
    let kept = if options.trim_idle_ends {
        trimmed(&behind_warmup, |&bytes| bytes == 0.0)
    } else {
        &behind_warmup[..]
    };
    kept.iter().map(|&bytes| delay_us(bytes, queue)).collect()
}

fn utilisation(outcome: &Outcome, queue: &QueueObservation) -> Option<f64> {
    let watched = outcome.end.saturating_since(queue.from);
    let capacity = queue.rate.as_bps() as f64 * watched.as_secs_f64();
    (capacity > 0.0).then(|| queue.bytes as f64 * 8.0 / capacity)
}

fn summed_time_at(queues: &[(&Outcome, &QueueObservation)]) -> Vec<u128> {
    let bins = queues.iter().map(|(_, queue)| queue.time_at.len()).max().unwrap_or(0);
    let mut sums = vec![0u128; bins];
    for (_, queue) in queues {
        for (sum, &time) in sums.iter_mut().zip(&queue.time_at) {
            *sum += u128::from(time);
        }
    }
    sums
}

fn nearly_empty(time_at: &[u128]) -> Option<f64> {
    let total: u128 = time_at.iter().sum();
    (total > 0).then(|| time_at[0] as f64 / total as f64)
}

fn instant_delay(time_at: &[u128], queue: &QueueObservation) -> Option<InstantDelay> {
    let total: u128 = time_at.iter().sum();
    if total == 0 {
        return None;
    }
    let bin_of = |share: f64| {
        let target = share * total as f64;
        let mut sum = 0;
        let reaches = |time: &u128| {
            sum += *time;
            sum as f64 >= target
        };
        time_at.iter().position(reaches).unwrap_or(time_at.len() - 1)
    };
    let at = |share| delay_us(bin_of(share) as f64 * QueueObservation::BIN_BYTES as f64, queue);
    Some(InstantDelay {
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p999: at(0.999),
        beyond_scale: time_at.len() > 1 && bin_of(0.999) == time_at.len() - 1,
    })
}
