//! Makes a [`Summary`] of the outcomes of all points.

use std::collections::BTreeMap;

use super::workload::{WorkloadReplicates, WorkloadSubject};
use super::{
    Best, BlockedSummary, Cell, Comparison, Distribution, FORMAT, MechanismSummary, Options, RunInfo,
    Summary, WorkloadChange, approximation, circuits, jobs, processors, queue, tier, warning,
};
use crate::outcome::{Counters, Outcome};
use crate::point::PointOutcome;
use crate::stats::Statistic;
use crate::stats::paired::{self, ChangeDirection, Pair};

impl Summary {
    /// Summarises points. Variants and sweep points keep the order in which they first appear;
    /// replicates are taken by number.
    pub fn of(points: &[PointOutcome], options: &Options) -> Summary {
        let mut variants: Vec<String> = Vec::new();
        let mut sweeps: Vec<&[(String, String)]> = Vec::new();
        for point in points {
            if !variants.contains(&point.key.variant) {
                variants.push(point.key.variant.clone());
            }
            if !sweeps.contains(&point.key.sweep.as_slice()) {
                sweeps.push(&point.key.sweep);
            }
        }
        let mut cells = Vec::new();
        let mut comparisons = Vec::new();
        let mut best = Vec::new();
        for sweep in &sweeps {
            let by_variant: Vec<(&String, Vec<&PointOutcome>)> =
                variants.iter().map(|variant| (variant, replicates(points, variant, sweep))).collect();
            let first = cells.len();
            for (variant, runs) in &by_variant {
                if !runs.is_empty() {
                    cells.push(cell(variant, sweep, runs, options));
                }
            }
            best.extend(best_of(&cells[first..], &by_variant));
            let Some(((base, base_runs), others)) = by_variant.split_first() else { continue };
            for (variant, runs) in others {
                let workloads = changes(base_runs, runs);
                if !workloads.is_empty() {
                    comparisons.push(Comparison {
                        variant: (*variant).clone(),
                        base: (*base).clone(),
                        sweep: sweep.to_vec(),
                        workloads,
                    });
                }
            }
        }
        let all: Vec<&PointOutcome> = points.iter().collect();
        let warnings = warning::collect(&cells, &all);
        let sweep_keys =
            sweeps.first().map(|s| s.iter().map(|(key, _)| key.clone()).collect()).unwrap_or_default();
        let mechanisms = MechanismSummary::of(points, &variants);
        let blocked = BlockedSummary::of(points, &variants);
        Summary {
            format: FORMAT,
            options: *options,
            variants,
            sweep_keys,
            cells,
            comparisons,
            best,
            warnings,
            mechanisms,
            blocked,
        }
    }
}

fn replicates<'a>(
    points: &'a [PointOutcome],
    variant: &str,
    sweep: &[(String, String)],
) -> Vec<&'a PointOutcome> {
    let mut runs: Vec<&PointOutcome> =
        points.iter().filter(|point| point.key.variant == variant && point.key.sweep == sweep).collect();
    runs.sort_by_key(|point| point.key.replicate);
    runs
}

fn cell(variant: &str, sweep: &[(String, String)], runs: &[&PointOutcome], options: &Options) -> Cell {
    let outcomes: Vec<&Outcome> = runs.iter().map(|point| &point.outcome).collect();
    let mut counters = Counters::default();
    outcomes.iter().for_each(|outcome| counters += outcome.counters);
    Cell {
        variant: variant.to_owned(),
        sweep: sweep.to_vec(),
        runs: runs
            .iter()
            .map(|point| RunInfo { replicate: point.key.replicate, seed: point.seed, digest: point.digest })
            .collect(),
        workloads: workload_names(&outcomes)
            .into_iter()
            .map(|name| WorkloadReplicates::new(name, &outcomes).summarise())
            .collect(),
        queues: queue::summarise(&outcomes, options),
        tiers: tier::summarise(&outcomes),
        circuits: circuits::summarise(&outcomes),
        processors: processors::summarise(&outcomes),
        approximation: approximation::summarise(&outcomes),
        jobs: jobs::summarise(&outcomes),
        counters,
        faults: outcomes
            .first()
            .map_or_else(Vec::new, |first| first.faults.iter().map(ToString::to_string).collect()),
    }
}

fn workload_names<'a>(outcomes: &[&'a Outcome]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for workload in outcomes.iter().flat_map(|outcome| &outcome.workloads) {
        if !names.contains(&workload.name.as_str()) {
            names.push(&workload.name);
        }
    }
    names
}

/// The change of every workload from the base runs to the others, where replicates of both exist.
fn changes(base: &[&PointOutcome], other: &[&PointOutcome]) -> Vec<WorkloadChange> {
    let twins = twins(base, other);
    let bases: Vec<&Outcome> = twins.iter().map(|(base, _)| *base).collect();
    workload_names(&bases).into_iter().filter_map(|name| workload_change(name, &twins)).collect()
}

/// The outcomes of both sides that are of the same replicate.
fn twins<'a>(base: &[&'a PointOutcome], other: &[&'a PointOutcome]) -> Vec<(&'a Outcome, &'a Outcome)> {
    base.iter()
        .filter_map(|b| {
            let twin = other.iter().find(|o| o.key.replicate == b.key.replicate)?;
            Some((&b.outcome, &twin.outcome))
        })
        .collect()
}

fn workload_change(name: &str, twins: &[(&Outcome, &Outcome)]) -> Option<WorkloadChange> {
    let bases: Vec<&Outcome> = twins.iter().map(|(base, _)| *base).collect();
    let subject = WorkloadReplicates::new(name, &bases).subject();
    let replicates: Vec<Vec<Pair>> = twins
        .iter()
        .map(|(base, other)| pair_up(&values(name, base, subject), &values(name, other, subject)))
        .collect();
    let change = |statistic| paired::change(&replicates, statistic);
    Some(WorkloadChange {
        name: name.to_owned(),
        by_query: subject == WorkloadSubject::Queries,
        pairs: replicates.iter().map(|pairs| pairs.len() as u64).sum(),
        mean: change(Statistic::Mean)?,
        p50: change(Statistic::Percentile(0.5))?,
        p99: change(Statistic::Percentile(0.99))?,
    })
}

/// The significantly best variants of one sweep point, from its cells and its runs.
fn best_of(cells: &[Cell], by_variant: &[(&String, Vec<&PointOutcome>)]) -> Vec<Best> {
    type Pick = fn(&Distribution) -> f64;
    const STATISTICS: [(&str, Pick); 3] =
        [("mean", |d| d.mean.value), ("p50", |d| d.p50.value), ("p99", |d| d.p99.value)];
    let runs = |variant: &str| {
        by_variant.iter().find(|(name, _)| *name == variant).map_or(&[][..], |(_, runs)| runs.as_slice())
    };
    let mut names: Vec<&str> = Vec::new();
    for workload in cells.iter().flat_map(|cell| &cell.workloads) {
        if !names.contains(&workload.name.as_str()) {
            names.push(&workload.name);
        }
    }
    let mut found = Vec::new();
    for name in names {
        // Mostly one pair of variants has the lowest two values of every statistic.
        let mut known: Vec<([&str; 2], Option<WorkloadChange>)> = Vec::new();
        for (statistic, pick) in STATISTICS {
            let mut values: Vec<(f64, &str)> = cells
                .iter()
                .filter_map(|cell| Some((pick(cell.workload(name)?.waited_us()?), cell.variant.as_str())))
                .collect();
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
            let [(_, best), (_, second), ..] = values[..] else { continue };
            if known.iter().all(|(pair, _)| *pair != [best, second]) {
                let twins = twins(runs(second), runs(best));
                known.push(([best, second], workload_change(name, &twins)));
            }
            let change = known.iter().find(|(pair, _)| *pair == [best, second]).and_then(|(_, c)| c.as_ref());
            let statistics = change.map(WorkloadChange::statistics);
            let change = statistics.iter().flatten().find(|(other, _)| *other == statistic);
            if change.is_some_and(|(_, change)| change.direction() == ChangeDirection::Lower) {
                let sweep = cells[0].sweep.clone();
                let (variant, workload) = (best.to_owned(), name.to_owned());
                found.push(Best { variant, sweep, workload, statistic: statistic.to_owned() });
            }
        }
    }
    found
}

/// Returns the numbers in us that count and are complete, by index.
fn values(name: &str, outcome: &Outcome, subject: WorkloadSubject) -> BTreeMap<u64, f64> {
    WorkloadReplicates::new(name, &[outcome]).values_us(subject).into_iter().collect()
}

fn pair_up(base: &BTreeMap<u64, f64>, other: &BTreeMap<u64, f64>) -> Vec<Pair> {
    base.iter().filter_map(|(index, &base)| other.get(index).map(|&other| Pair { base, other })).collect()
}
