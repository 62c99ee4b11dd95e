//! Measured latencies beside the points of runs: a row for each quantile, and a verdict for each point.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::bail;
use plimsoll_calibrate::{Comparison, ModelledLatencies, listing, shortest_timeout};
use plimsoll_process::note;
use plimsoll_results::PointOutcome;
use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::Scenario;

use super::Args;
use crate::measured::longest_run;
use crate::output::{self, Done, Format};

/// Compares each measurement with every point of every run that has its workload.
pub fn run(
    args: &Args,
    names: &[String],
    points: &[Vec<PointOutcome>],
    scenarios: &[Option<&Scenario>],
) -> Done {
    let mut workloads: Vec<&str> = Vec::new();
    for info in points.iter().flatten().flat_map(|point| &point.outcome.workloads) {
        if !workloads.contains(&info.name.as_str()) {
            workloads.push(&info.name);
        }
    }
    let points_of_runs = || scenarios.iter().flatten().flat_map(|scenario| scenario.points());
    let run = scenarios.iter().all(Option::is_some).then(|| longest_run(points_of_runs())).flatten();
    let mut servers = BTreeMap::new();
    for text in &args.server {
        let (workload, times) = args.hints.read("--server", text, &workloads, run)?;
        if servers.insert(workload.clone(), times).is_some() {
            bail!("--server {text}: workload `{workload}` has two files; allowed: one");
        }
    }
    let mut measured = Vec::new();
    for text in &args.measured {
        measured.push((text, args.hints.read("--measured", text, &workloads, run)?));
    }
    let mut comparisons = Vec::new();
    for (text, (workload, latencies)) in &measured {
        let is_alone = measured.iter().filter(|(_, (other, _))| other == workload).count() == 1;
        for ((name, points), scenario) in names.iter().zip(points).zip(scenarios) {
            let timeout = scenario.and_then(|scenario| scenario.points().first());
            let timeout = timeout.map_or(f64::INFINITY, |point| shortest_timeout(&point.model));
            for (label, outcomes) in by_label(points) {
                let Some(modelled) = ModelledLatencies::of(&outcomes, workload) else { continue };
                // Two measurements of one workload have rows of their own.
                let run =
                    if is_alone { format!("{name}: {label}") } else { format!("{name}: {label}, {text}") };
                if modelled.unfinished > 0 {
                    note!(
                        "warning: {run}: {} messages of {workload} were unfinished at the end and are left out",
                        modelled.unfinished
                    );
                }
                comparisons.push(Comparison::of(
                    workload,
                    &run,
                    latencies,
                    servers.get(workload),
                    &modelled,
                    timeout,
                ));
            }
        }
    }
    if comparisons.is_empty() {
        bail!("no run has a completed message of the measured workloads after its warm-up");
    }
    let text = match args.shown.format {
        Format::Json => format!("{}\n", serde_json::to_string_pretty(&comparisons)?),
        format => {
            let table = listing(&comparisons).written(format.of_report());
            let verdicts = comparisons.iter().map(|found| {
                output::folded(&format!("{}, {}: {}", found.workload, found.run, found.sentence), "", "  ")
            });
            match format {
                Format::Csv => table,
                _ => format!("{table}\n{}", verdicts.collect::<String>()),
            }
        }
    };
    output::print(&text).map(|()| ExitCode::SUCCESS)
}

/// Groups the replicates of each point.
fn by_label(points: &[PointOutcome]) -> BTreeMap<String, Vec<&Outcome>> {
    let mut groups: BTreeMap<String, Vec<&Outcome>> = BTreeMap::new();
    for point in points {
        let sweep = point.key.sweep_label();
        let label = if sweep.is_empty() {
            point.key.variant.clone()
        } else {
            format!("{}, {sweep}", point.key.variant)
        };
        groups.entry(label).or_default().push(&point.outcome);
    }
    groups
}
