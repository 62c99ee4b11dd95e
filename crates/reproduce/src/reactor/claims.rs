//! What the thesis says of its figures, as ratios of rows.
//!
//! ```text
//! of_ideal                = throughput / (10 Gb/s x share of the time in which data may be sent)
//! of_ideal_in_slow_start  = time of the same flow without a night / time / that share
//! of_unscheduled          = goodput / goodput without nights
//! of_allowed              = goodput
//!                           / min(goodput without nights, goodput without losses nor nights x share of the day)
//! ```
//!
//! A schedule allows no more than its days carry, and losses no more than without it; `of_allowed` compares with the
//! smaller of the two.

use super::closed_loop::{self, Claim};
use crate::published::Kind;
use crate::row::Row;
use crate::study::Study;

/// The day of Fig. 7.3b and of the losses, in ms, as the scenarios have it.
const DAY_MS: f64 = 0.5;
/// The night beside which losses are studied, in ms, as the scenarios have it.
const NIGHT_MS: f64 = 0.1;
/// The rate of a link, in Mb/s.
const LINE_MBPS: f64 = 10_000.0;
/// The factor within which a ratio counts as the published one.
const TOLERANCE: f64 = 1.1;

/// Computes the ratios of Fig. 7.3b and of the losses, and what is said of the control loop.
pub(crate) fn claims(study: &Study, rows: &[Row]) -> Vec<Row> {
    let claims = rows.iter().flat_map(|row| match row.figure.as_str() {
        "fig7.3b" => steady(study, row).into_iter().collect(),
        "fig7.3b-slow-start" => cold(study, rows, row).into_iter().collect(),
        "slow-start-size" => by_size(study, rows, row).into_iter().collect(),
        "loss" => with_losses(study, rows, row),
        _ => closed_loop::claims(rows, row).into_iter().map(|claim| held(study, row, claim)).collect(),
    });
    claims.filter(|claim: &Row| claim.measured.is_finite()).collect()
}

/// Computes what flows that have left slow start make of the time in which they may send.
fn steady(study: &Study, row: &Row) -> Option<Row> {
    let ideal = LINE_MBPS * data_share(row)?;
    Some(ratio(study, row, &row.series, "of_ideal", row.measured / ideal))
}

/// Computes what cold flows make of it.
fn cold(study: &Study, rows: &[Row], row: &Row) -> Option<Row> {
    let whole = other(rows, row, &row.series, "0").filter(|_| row.x != "0")?;
    let value = whole / row.measured / data_share(row)?;
    Some(ratio(study, row, &row.series, "of_ideal_in_slow_start", value))
}

/// Computes the same by the size of the flow, whose rows have the night as their x.
fn by_size(study: &Study, rows: &[Row], row: &Row) -> Option<Row> {
    let whole = other(rows, row, "always-day", &row.x).filter(|_| row.series == "acks-paused")?;
    let mut claim = ratio(study, row, &row.series, "of_ideal_in_slow_start", whole / row.measured);
    claim.x = format!("3 ({} MB)", row.x);
    Some(claim)
}

/// Computes what nights take where packets are lost.
fn with_losses(study: &Study, rows: &[Row], row: &Row) -> Vec<Row> {
    let unscheduled = |x: &str| other(rows, row, "always-day", x).filter(|_| row.series == "bi-directional");
    let (Some(lossy), Some(lossless)) = (unscheduled(&row.x), unscheduled("0")) else { return Vec::new() };
    let allowed = lossy.min(lossless * DAY_MS / (DAY_MS + NIGHT_MS));
    vec![
        ratio(study, row, "paused", "of_unscheduled", row.measured / lossy),
        ratio(study, row, "paused", "of_allowed", row.measured / allowed),
    ]
}

/// Returns the number of another point of the same figure.
fn other(rows: &[Row], row: &Row, series: &str, x: &str) -> Option<f64> {
    let is_it = |other: &&Row| {
        (&other.figure, &other.base, &other.metric) == (&row.figure, &row.base, &row.metric)
            && (other.series.as_str(), other.x.as_str()) == (series, x)
    };
    rows.iter().find(is_it).map(|other| other.measured)
}

/// Returns the share of the time in which data may be sent: all of it, where only acknowledgements are paused.
fn data_share(row: &Row) -> Option<f64> {
    let night: f64 = row.x.parse().ok()?;
    Some(if row.series == "acks-paused" { 1.0 } else { DAY_MS / (DAY_MS + night) })
}

/// Returns a claim of the control loop beside what the thesis says: about a number, at least or at most one.
fn held(study: &Study, row: &Row, claim: Claim) -> Row {
    let Claim { series, x, metric, unit, measured } = claim;
    let mut claim = Row::new("claims", &row.base, &series, &x, metric, unit);
    claim.measured = measured;
    let said = |kind| study.published.value(kind, "claims", &series, &x, metric);
    let (about, least, most) = (said(Kind::About), said(Kind::AtLeast), said(Kind::AtMost));
    let mut claim = claim.compare(about.or(least).or(most), None, about.map(|_| TOLERANCE));
    claim.within =
        claim.within.or(least.map(|least| measured >= least)).or(most.map(|most| measured <= most));
    claim
}

fn ratio(study: &Study, row: &Row, series: &str, metric: &str, value: f64) -> Row {
    let mut claim = Row::new("claims", &row.base, series, &row.x, metric, "x");
    claim.measured = value;
    let published = study.published.value(Kind::About, "claims", series, &row.x, metric);
    claim.compare(published, None, published.map(|_| TOLERANCE))
}
