//! Completion times that the study's raw data settle exactly, and the effect of the random choice of paced flows on a
//! queue.

use std::path::Path;

use plimsoll_experiment::Measure;
use plimsoll_results::outcome::{MessageRecord, Outcome};
use plimsoll_units::Span;

use crate::error::ReproduceError;
use crate::row::StudyRow;
use crate::single_run::run_once;
use crate::study::Study;

/// Computes the rows that follow from an idle network and from the draws of arrivals.
pub(crate) fn exact(study: &Study, seed: u64, folder: &Path) -> Result<Vec<StudyRow>, ReproduceError> {
    let mut rows = idle(study, seed, folder)?;
    rows.extend(draws(study, seed, folder)?);
    Ok(rows)
}

/// Measures requests that are rare enough to meet an idle network.
fn idle(study: &Study, seed: u64, folder: &Path) -> Result<Vec<StudyRow>, ReproduceError> {
    let set = [
        "run.duration=\"600s\"",
        "workload.small.load=\"1Kbps\"",
        "workload.small.count=30",
        "workload.background.load=\"4Mbps\"",
        "workload.background.count=20",
        "workload.background.start=\"300s\"",
    ];
    let mut rows = Vec::new();
    for series in ["TCP", "DCTCP-30K"] {
        let outcome = run_once(study, "dynamic.toml", series, &set, seed, folder)?;
        for (metric, unit, value) in values(&outcome) {
            let mut row = StudyRow::new("oracles", "source", series, "idle", metric, unit);
            row.measured = value;
            rows.push(study.published.beside(row, Some(EXACT)));
        }
    }
    Ok(rows)
}

/// Measures the queue of three flows under HULL with other draws of which packets associate their flow.
fn draws(study: &Study, seed: u64, folder: &Path) -> Result<Vec<StudyRow>, ReproduceError> {
    let set = ["sweep.\"workload.bulk.from\"=[\"h1..h3\"]", "topology.delay=\"5us\""];
    let mut delays = Vec::new();
    for other in 0..DRAWS {
        let outcome = run_once(study, "static.toml", "DCTCP-PQ-Pacer", &set, seed + other, folder)?;
        let of = Measure::parse("p99(queue.client)").expect("a measure");
        delays.extend(of.estimate(&outcome, Span::ZERO).map(|estimate| estimate.value));
    }
    delays.sort_by(f64::total_cmp);
    let row = |metric: &str, measured: f64| {
        let mut row = StudyRow::new("draws", "source", "DCTCP-PQ-Pacer", "3 flows, 40 seeds", metric, "us");
        row.measured = measured;
        row
    };
    let (Some(&least), Some(&most)) = (delays.first(), delays.last()) else { return Ok(Vec::new()) };
    Ok(vec![
        row("queue_us_p99_least", least),
        row("queue_us_p99_median", delays[delays.len() / 2]),
        row("queue_us_p99_most", most),
    ])
}

/// The number of seeds with which three flows are run.
const DRAWS: u64 = 40;

/// How close to the raw data a time must be.
const EXACT: f64 = 1.001;

/// Returns the fastest completion of each workload, at first and on a warm connection.
fn values(outcome: &Outcome) -> [(&'static str, &'static str, f64); 4] {
    let fastest = |workload: u16, first: bool| -> f64 {
        let of = |message: &&MessageRecord| message.workload == workload && (message.index < 9) == first;
        let times = outcome.messages.iter().filter(of).filter_map(MessageRecord::latency);
        times.min().map_or(f64::NAN, |span| span.as_us_f64())
    };
    [
        ("small_fct_us_warm", "us", fastest(0, false)),
        ("small_fct_us_first", "us", fastest(0, true)),
        ("bkg_fct_ms_warm", "ms", fastest(1, false) / 1e3),
        ("bkg_fct_ms_first", "ms", fastest(1, true) / 1e3),
    ]
}
