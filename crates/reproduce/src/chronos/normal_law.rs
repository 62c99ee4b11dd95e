//! Values that formulas settle.

use std::path::Path;

use plimsoll_models::fan_out;

use super::tasks::OBSERVED;
use crate::error::ReproduceError;
use crate::row::Row;
use crate::study::Study;

/// Computes N(90, 50): its percentiles by tables of the normal distribution, and expected maxima by those of order
/// statistics.
pub(crate) fn normal_law(_: &Study, _: u64, _: &Path) -> Result<Vec<Row>, ReproduceError> {
    let row = |x: &str, metric: &str, measured: f64, exact: f64| {
        let mut row = Row::new("oracles", "source", "N(90, 50)", x, metric, "us");
        row.measured = measured;
        row.compare(Some(exact), None, Some(1.0001))
    };
    let expected = |servers, exact| {
        row(&format!("{servers} servers"), "latency_us_mean", fan_out::expected(&OBSERVED, servers), exact)
    };
    Ok(vec![
        row("p99", "latency_us", OBSERVED.quantile(0.99), 90.0 + 50.0 * 2.326_348),
        row("p99.95", "latency_us", OBSERVED.quantile(0.9995), 90.0 + 50.0 * 3.290_527),
        expected(1, 90.0),
        expected(10, 90.0 + 50.0 * 1.538_753),
        expected(100, 90.0 + 50.0 * 2.507_594),
    ])
}
