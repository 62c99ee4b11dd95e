//! The processors of a cell's hosts: busy time and lost packets.

use super::ProcessorSummary;
use crate::outcome::{Outcome, ProcessorTotals};
use crate::stats;

/// Summarises the processors of all hosts over the replicates of a cell; `None` where hosts have none.
pub(super) fn summarise(outcomes: &[&Outcome]) -> Option<ProcessorSummary> {
    let all: Vec<&ProcessorTotals> = outcomes.iter().flat_map(|outcome| &outcome.processors).collect();
    if all.is_empty() {
        return None;
    }
    let busy = |core: fn(&[f64]) -> Option<f64>| -> Vec<f64> {
        let of_run = |outcome: &&Outcome| -> Vec<f64> {
            let seconds = outcome.end.as_secs_f64() - outcome.warmup.as_secs_f64();
            let shares = |totals: &ProcessorTotals| {
                let shares: Vec<f64> = totals.busy.iter().map(|busy| busy.as_secs_f64() / seconds).collect();
                core(&shares).filter(|_| seconds > 0.0)
            };
            outcome.processors.iter().filter_map(shares).collect()
        };
        outcomes.iter().flat_map(of_run).collect()
    };
    let mean = |values: Vec<f64>| stats::mean(&values).unwrap_or(0.0);
    let sum = |pick: fn(&ProcessorTotals) -> u64| all.iter().map(|totals| pick(totals)).sum();
    let busiest = |shares: &[f64]| shares.iter().copied().reduce(f64::max);
    Some(ProcessorSummary {
        hosts: (all.len() / outcomes.len().max(1)) as u64,
        cores: all.iter().map(|totals| totals.busy.len() as u64).max().unwrap_or(0),
        interrupts: mean(busy(|shares| shares.first().copied())),
        application: mean(busy(|shares| shares.last().copied())),
        busiest: busy(busiest).into_iter().fold(0.0, f64::max),
        frames_received: sum(|totals| totals.frames_received),
        frames_sent: sum(|totals| totals.frames_sent),
        ring_drops: sum(|totals| totals.ring_drops),
    })
}
