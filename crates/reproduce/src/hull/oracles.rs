//! Completion times that the study's raw data settle exactly.

use plimsoll_results::outcome::{Message, Outcome};
use plimsoll_scenario::Overrides;
use plimsoll_sim::{RunError, run};

use super::scenario_text;
use crate::row::Row;
use crate::run::{ReproduceError, load};
use crate::study::Base;

/// Requests so rare that nothing is ever in their way.
pub(super) fn rows(seed: u64, folder: &std::path::Path) -> Result<Vec<Row>, ReproduceError> {
    let set = [
        "run.duration=\"600s\"",
        "workload.small.load=\"1Kbps\"",
        "workload.small.count=30",
        "workload.background.load=\"4Mbps\"",
        "workload.background.count=20",
        "workload.background.start=\"300s\"",
    ];
    let overrides = Overrides { set: set.map(str::to_owned).to_vec(), seed: Some(seed), replicates: 1 };
    let text = scenario_text("dynamic.toml", Base::Source);
    let scenario = load("dynamic.toml", &text, folder, &overrides)?;
    let mut rows = Vec::new();
    for series in ["TCP", "DCTCP-30K"] {
        let point = scenario.points().iter().find(|point| point.variant == series);
        let Some(point) = point else { continue };
        let outcome = run(&point.model, &mut |_| true)
            .map_err(|error: RunError| ReproduceError::Batch(error.into()))?;
        for (metric, unit, value, published, tolerance) in values(&outcome) {
            let mut row = Row::new("oracles", "source", series, "idle", metric, unit);
            row.measured = value;
            rows.push(row.compare(Some(published), None, Some(tolerance)));
        }
    }
    Ok(rows)
}

type Value = (&'static str, &'static str, f64, f64, f64);

fn values(outcome: &Outcome) -> Vec<Value> {
    let fastest = |workload: u16, first: bool| -> f64 {
        let of = |message: &&Message| message.workload == workload && (message.index < 9) == first;
        let times = outcome.messages.iter().filter(of).filter_map(Message::latency);
        times.min().map_or(f64::NAN, |span| span.as_us_f64())
    };
    const EXACT: f64 = 1.001;
    vec![
        ("small_fct_us_warm", "us", fastest(0, false), 37.60, EXACT),
        ("small_fct_us_first", "us", fastest(0, true), 59.20, EXACT),
        ("bkg_fct_ms_warm", "ms", fastest(1, false) / 1e3, 83.42, EXACT),
        ("bkg_fct_ms_first", "ms", fastest(1, true) / 1e3, 97.50, EXACT),
    ]
}
