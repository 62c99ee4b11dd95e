//! Values that theory settles exactly: a page on an idle network, and the mean page of the motivation.

use std::path::Path;

use plimsoll_results::outcome::Query;

use crate::error::ReproduceError;
use crate::row::Row;
use crate::single_run::run_once;
use crate::study::Study;

/// Measures both, with the scenarios in a folder.
pub(crate) fn theory(study: &Study, seed: u64, folder: &Path) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = idle(study, seed, folder)?;
    rows.extend(means(study, seed, folder)?);
    Ok(rows)
}

const EXACT: f64 = 1.001;
/// The mean of 4000 pages of 150 retrievals, whose standard error is below 0.3 %.
const DRAWN: f64 = 1.01;

/// Measures one page, from a front-end in the rack of its back-end: ten times a request of 100 B (140 B on the wire)
/// and a response of 2 KB in two segments over two links, each 10 us and a serialisation. A response leaves behind
/// the acknowledgement of its request, and a request behind that of the response before it.
fn idle(study: &Study, seed: u64, folder: &Path) -> Result<Vec<Row>, ReproduceError> {
    const US_PER_BYTE: f64 = 0.008;
    let links = |bytes: f64| 2.0 * (10.0 + bytes * US_PER_BYTE);
    // The second segment follows the first on both links, and is behind it once.
    let response = links(1500.0) + 580.0 * US_PER_BYTE;
    let acknowledgement = 40.0 * US_PER_BYTE;
    let ideal = 10.0 * (links(140.0) + response + acknowledgement) + 9.0 * acknowledgement;
    let quiet = ["page4", "page8", "page16", "page32"];
    let quiet = quiet.map(|name| format!("workload.{name}.pages_per_second=0.000001"));
    let mut set: Vec<&str> = quiet.iter().map(String::as_str).collect();
    let page = [
        "workload.page2.front_ends=[\"h0\"]",
        "workload.page2.back_ends=[\"h1\"]",
        "workload.page2.count=1",
        "workload.background.load=0.000000001",
        "run.warmup=\"0s\"",
    ];
    set.extend(page);
    let row = |series: &'static str| {
        let outcome = run_once(study, "pages.toml", series, &set, seed, folder)?;
        let page = outcome.queries.iter().find_map(|query| Some(query.completed? - query.created));
        let mut row = Row::new("oracles", "source", series, "one page", "page_us", "us");
        row.measured = page.map_or(f64::NAN, |span| span.as_us_f64());
        Ok(row.compare(Some(ideal), None, Some(EXACT)))
    };
    ["baseline", "push-back", "DeTail"].into_iter().map(row).collect()
}

/// Measures 150 times the mean of a distribution: of the points joined by lines, and of the log-normal one.
fn means(study: &Study, seed: u64, folder: &Path) -> Result<Vec<Row>, ReproduceError> {
    let points = [(100.0, 0.0), (334.0, 0.5), (2000.0, 0.94), (14000.0, 1.0)];
    let uniform: f64 = points.windows(2).map(|p| (p[1].1 - p[0].1) * (p[0].0 + p[1].0) / 2.0).sum();
    let row = |(series, mean_us): (&'static str, f64)| {
        let outcome =
            run_once(study, "motivation.toml", series, &["workload.page.count=4000"], seed, folder)?;
        let span = |query: &Query| Some((query.completed? - query.created).as_ms_f64());
        let pages: Vec<f64> = outcome.queries.iter().filter_map(span).collect();
        let mut row = Row::new("oracles", "source", series, "150 retrievals", "page_ms_mean", "ms");
        row.measured = plimsoll_results::stats::mean(&pages).unwrap_or(f64::NAN);
        Ok(row.compare(Some(150.0 * mean_us / 1e3), None, Some(DRAWN)))
    };
    [("uniform", uniform), ("log-normal", 648.0)].into_iter().map(row).collect()
}
