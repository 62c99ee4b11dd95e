//! Rows that compare others: QJump's tail compared with pFabric's, TCP's growth, and where the classes are cut.

use super::SCHEMES;
use crate::published::PublishedKind;
use crate::row::StudyRow;
use crate::study::Study;

pub(crate) fn rows(study: &Study, rows: &[StudyRow]) -> Vec<StudyRow> {
    let of_figure = |row: &&StudyRow| row.figure == "fig9" && row.base == "source";
    let rows: Vec<&StudyRow> = rows.iter().filter(of_figure).collect();
    let find = |series: &str, metric: &str| -> Vec<&StudyRow> {
        let of = |row: &&&StudyRow| row.series == series && row.metric == metric;
        rows.iter().filter(of).copied().collect()
    };
    let is_full = |row: &StudyRow| is_full(study, row);
    let mut summary = beside_pfabric(&find("QJump", "small_p99"), &find("pFabric", "small_p99"), &is_full);
    let growth = |metric: &&str| growth(&find("TCP", metric), &is_full);
    summary.extend(["small_mean", "small_p99"].iter().flat_map(growth));
    for series in SCHEMES {
        for (metric, cut) in [("small", "(0, 100 kB]"), ("small_10kB", "(0, 10 kB]")] {
            for statistic in ["mean", "p99"] {
                let measured = find(series, &format!("{metric}_{statistic}"));
                summary.extend(distance(study, series, cut, statistic, &measured));
            }
        }
    }
    summary
}

/// Returns whether a run had as many flows as the study's, without which it is not held to what that found.
fn is_full(study: &Study, row: &StudyRow) -> bool {
    let cases = study.figure("fig9").map_or(&[][..], |figure| &figure.cases);
    cases.iter().any(|case| case.x == row.x && case.flows(false) == row.flows)
}

/// Computes the 99th percentile of QJump's small flows over pFabric's, which is at most 1.
fn beside_pfabric(
    qjump: &[&StudyRow],
    pfabric: &[&StudyRow],
    is_full: &dyn Fn(&StudyRow) -> bool,
) -> Vec<StudyRow> {
    let pair = |qjump: &&StudyRow| {
        let pfabric = pfabric.iter().find(|row| row.x == qjump.x && row.flows == qjump.flows)?;
        let mut row = StudyRow::new("claims", "source", "QJump", &qjump.x, "small_p99_over_pfabric", "x");
        row.measured = qjump.measured / pfabric.measured;
        row.flows = qjump.flows;
        let published = qjump.published.zip(pfabric.published).map(|(qjump, pfabric)| qjump / pfabric);
        let mut row = row.compare(published, None, None);
        row.within = is_full(&row).then_some(row.measured <= 1.0);
        Some(row)
    };
    qjump.iter().filter_map(pair).collect()
}

/// Computes the growth from each load to the next that was run with as many flows.
fn growth(rows: &[&StudyRow], is_full: &dyn Fn(&StudyRow) -> bool) -> Vec<StudyRow> {
    let step = |pair: &[&StudyRow]| {
        let [low, high] = pair else { return None };
        if low.flows != high.flows {
            return None;
        }
        let x = format!("{} to {}", low.x, high.x);
        let mut row = StudyRow::new("growth", "source", &high.series, &x, &high.metric, "x");
        row.measured = high.measured / low.measured;
        row.flows = high.flows;
        let published = high.published.zip(low.published).map(|(high, low)| high / low);
        let mut row = row.compare(published, None, None);
        let grows = published.map(|published| (row.measured > 1.0) == (published > 1.0));
        row.within = grows.filter(|_| is_full(high));
        Some(row)
    };
    rows.windows(2).filter_map(step).collect()
}

/// Computes how far the published curve of small flows is from a class: the mean factor over the loads.
fn distance(study: &Study, series: &str, cut: &str, statistic: &str, rows: &[&StudyRow]) -> Option<StudyRow> {
    let metric = format!("small_{statistic}");
    let published =
        |row: &StudyRow| study.published.value(PublishedKind::About, "fig9", series, &row.x, &metric);
    let logs: Vec<f64> =
        rows.iter().filter_map(|row| Some((row.measured / published(row)?).ln().abs())).collect();
    let mean = plimsoll_results::stats::mean(&logs)?;
    let mut row = StudyRow::new("cut", "source", series, cut, &format!("factor_off_{statistic}"), "x");
    row.measured = mean.exp();
    Some(row)
}
