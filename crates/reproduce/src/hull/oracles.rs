//! Completion times that the study's raw data settle exactly.

use std::path::Path;

use plimsoll_results::outcome::{Message, Outcome};

use crate::error::ReproduceError;
use crate::row::Row;
use crate::single_run::run_once;
use crate::study::Study;

/// Measures requests so rare that nothing is ever in their way.
pub(crate) fn idle(study: &Study, seed: u64, folder: &Path) -> Result<Vec<Row>, ReproduceError> {
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
            let mut row = Row::new("oracles", "source", series, "idle", metric, unit);
            row.measured = value;
            rows.push(study.published.beside(row, Some(EXACT)));
        }
    }
    Ok(rows)
}

/// How close to the raw data a time must be.
const EXACT: f64 = 1.001;

/// Returns the fastest completion of each workload, at first and on a warm connection.
fn values(outcome: &Outcome) -> [(&'static str, &'static str, f64); 4] {
    let fastest = |workload: u16, first: bool| -> f64 {
        let of = |message: &&Message| message.workload == workload && (message.index < 9) == first;
        let times = outcome.messages.iter().filter(of).filter_map(Message::latency);
        times.min().map_or(f64::NAN, |span| span.as_us_f64())
    };
    [
        ("small_fct_us_warm", "us", fastest(0, false)),
        ("small_fct_us_first", "us", fastest(0, true)),
        ("bkg_fct_ms_warm", "ms", fastest(1, false) / 1e3),
        ("bkg_fct_ms_first", "ms", fastest(1, true) / 1e3),
    ]
}
