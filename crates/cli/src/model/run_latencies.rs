//! Reads the completion times of a workload from a run directory.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, anyhow};
use plimsoll_models::Empirical;
use plimsoll_models::measured::Measured;
use plimsoll_process::note;
use plimsoll_results::{Outcome, PointOutcome};
use plimsoll_text::spelling::did_you_mean;

use crate::output;

/// Reads the completion times in us of a workload at a point, of all its replicates together, as far as they were
/// created after the warm-up.
pub(super) fn read(run: &Path, workload: Option<&str>, point: Option<&str>) -> Result<Measured> {
    let points = output::read_points(&output::open_run(run)?)?;
    let mut of_point: BTreeMap<String, Vec<&PointOutcome>> = BTreeMap::new();
    for point in &points {
        of_point.entry(label(point)).or_default().push(point);
    }
    let labels: Vec<&str> = of_point.keys().map(String::as_str).collect();
    let label = only("--point", point, &labels)?;
    let replicates = &of_point[label];
    let names: Vec<&str> =
        replicates[0].outcome.workloads.iter().map(|workload| workload.name.as_str()).collect();
    let name = only("--workload", workload, &names)?;
    let number = names.iter().position(|known| *known == name);
    let number = number.and_then(|number| u16::try_from(number).ok());
    let (mut latencies, mut unfinished) = (Vec::new(), 0_u64);
    for replicate in replicates {
        let Outcome { messages, warmup, .. } = &replicate.outcome;
        let counted = messages
            .iter()
            .filter(|message| Some(message.workload) == number && message.created.as_ps() >= warmup.as_ps());
        for message in counted {
            match message.latency() {
                Some(latency) => latencies.push(latency.as_us_f64()),
                None => unfinished += 1,
            }
        }
    }
    if latencies.is_empty() {
        return Err(anyhow!("workload `{name}` has no completed message after the warm-up at point {label}"));
    }
    if unfinished > 0 {
        note!(
            "warning: {unfinished} of {} messages were unfinished when the run ended, and are left out",
            unfinished + latencies.len() as u64
        );
    }
    let samples = Some(latencies.len() as u64);
    Ok(Measured { distribution: Empirical::of_samples(latencies), samples, suspect: Vec::new() })
}

/// Returns the name of a point without its replicate.
fn label(point: &PointOutcome) -> String {
    let sweep = point.key.sweep_label();
    if sweep.is_empty() { point.key.variant.clone() } else { format!("{}, {sweep}", point.key.variant) }
}

/// Returns the name that was asked for, or the only one.
fn only<'a>(option: &str, asked: Option<&str>, allowed: &[&'a str]) -> Result<&'a str> {
    let listed = || {
        let mut names: Vec<String> = allowed.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
        if allowed.len() > LISTED {
            names.push(format!("and {} more", allowed.len() - LISTED));
        }
        names.join("; ")
    };
    match (asked, allowed) {
        (_, []) => Err(anyhow!("the run has no finished point with a workload")),
        (None, [only]) => Ok(only),
        (None, _) => Err(anyhow!("the run has several; name one with {option}: {}", listed())),
        (Some(asked), _) => allowed.iter().find(|name| **name == asked).copied().ok_or_else(|| {
            let hint =
                did_you_mean(asked, allowed.iter().copied()).map_or_else(String::new, |hint| hint + " ");
            anyhow!("{option} {asked}: {hint}allowed: {}", listed())
        }),
    }
}

/// The most names in an error.
const LISTED: usize = 20;
