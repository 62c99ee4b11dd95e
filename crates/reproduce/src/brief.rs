//! A reproduction in ten lines: the count, the values outside their tolerance that are farthest from the published
//! ones, and where the page is.

use std::fmt::Write;

use plimsoll_report::figures::number;

use crate::ledger::Ledger;
use crate::row::{RowState, StudyRow};
use crate::run::Reproduction;
use crate::study::Study;
use crate::words;

/// The number of values that are named.
const FARTHEST: usize = 5;

/// Writes the lines; `page` is the path of the page.
pub fn in_brief(study: &Study, reproduction: &Reproduction, page: &str) -> String {
    let mut text = String::new();
    let ledger = reproduction.ledger();
    let Ledger { held, explained, open, .. } = ledger;
    let quick = if reproduction.quick { ", by a quick look" } else { "" };
    let of = ledger.published();
    let _ = writeln!(
        text,
        "{}{quick}: {held} held, {explained} explained, {open} open of {of} published.",
        study.command
    );
    let decided = || reproduction.orderings.iter().filter_map(|ordering| ordering.holds);
    let (in_order, pairs) = (decided().filter(|holds| *holds).count(), decided().count());
    if pairs > 0 {
        let _ =
            writeln!(text, "{in_order} of {pairs} pairs of schemes that differ have the published order.");
    }
    let farthest = farthest(study, reproduction);
    if !farthest.is_empty() {
        text.push_str("Outside their tolerance, the farthest first:\n");
        let names: Vec<String> = farthest.iter().map(|(row, _)| name(row)).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        for (name, (row, ratio)) in names.iter().zip(&farthest) {
            let measured = format!("{} {}", number(row.measured), row.unit);
            let published = row.published.map_or_else(String::new, number);
            let state = row.state.map_or("", RowState::name);
            let ratio = format!("{}x", number(*ratio));
            let _ = writeln!(
                text,
                "  {name:<width$}  {measured:>14}, published {published:>8}  {ratio:>7}  {state}"
            );
        }
    }
    if reproduction.quick {
        text.push_str(
            "The runs are short, so their tails mean little: omit --quick for the paper's, add --details for every \
             number.\n",
        );
    }
    let _ = writeln!(text, "Page: {page}");
    text
}

/// Returns the rows that are not held, and their factors from the published values: the largest first, either way.
fn farthest<'a>(study: &Study, reproduction: &'a Reproduction) -> Vec<(&'a StudyRow, f64)> {
    let held = study.bases[0].name();
    let outside = |row: &&StudyRow| {
        row.base == held && !row.suspect && matches!(row.state, Some(RowState::Explained | RowState::Open))
    };
    let mut rows: Vec<(&StudyRow, f64)> = reproduction
        .rows
        .iter()
        .filter(outside)
        .filter_map(|row| Some((row, row.ratio.filter(|ratio| *ratio > 0.0)?)))
        .collect();
    rows.sort_by(|(_, a), (_, b)| b.ln().abs().total_cmp(&a.ln().abs()));
    rows.truncate(FARTHEST);
    rows
}

/// Names a row: `Fig. 2b, TCP at 2: mean queueing delay`.
fn name(row: &StudyRow) -> String {
    let figure = words::figure(&row.figure).unwrap_or_else(|| row.figure.clone());
    let metric = words::metric(&row.metric).unwrap_or_else(|| row.metric.clone());
    format!("{figure}, {} at {}: {metric}", row.series, row.x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orderings::Ordering;
    use crate::studies::study;

    #[test]
    fn ten_lines_have_the_count_the_farthest_values_and_the_page() {
        let row = |x: &str, measured: f64, within: bool| {
            let mut row =
                StudyRow::new("fig2b", study("hull").bases[0].name(), "TCP", x, "queue_us_mean", "us");
            row.measured = measured;
            let mut row = row.compare(Some(100.0), None, Some(1.35));
            row.state = Some(if within { RowState::Held } else { RowState::Open });
            row
        };
        let ordering = Ordering {
            figure: "fig2b".to_owned(),
            x: "8".to_owned(),
            metric: "queue_us_mean".to_owned(),
            smaller: "HULL".to_owned(),
            larger: "TCP".to_owned(),
            holds: Some(true),
        };
        let reproduction = Reproduction {
            quick: true,
            seed: 1,
            rows: (2..9)
                .map(|x| row(&x.to_string(), 100.0 * f64::from(x), false))
                .chain([row("1", 90.0, true)])
                .collect(),
            orderings: vec![ordering],
            packet_hops: 0,
            builds: Vec::new(),
            missing: Vec::new(),
        };
        let text = in_brief(study("hull"), &reproduction, "out/hull.html");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 10, "{text}");
        assert_eq!(lines[0], "hull, by a quick look: 1 held, 0 explained, 7 open of 8 published.");
        assert!(lines[3].starts_with("  Fig. 2b, TCP at 8: Mean queueing delay"), "{text}");
        assert!(
            lines[3].ends_with("8.00x  open") && lines[3].contains("800 us, published      100"),
            "{text}"
        );
        assert_eq!(text.matches(", published ").count(), 5, "{text}");
        assert_eq!(lines.last(), Some(&"Page: out/hull.html"));
    }
}
