//! What the experiment's text says, in words and without a table: held point by point.

use crate::row::Row;
use crate::study::Study;

/// Metric, arm, other arm, and the published range of the one over the other, if there is one.
type Claim = (&'static str, &'static str, &'static str, Option<(f64, f64)>);

/// The ratios of two arms in a metric, in percent, and the ranges that the text gives.
const CLAIMS: &[Claim] = &[
    // "average throughput was still over 90% of TCP's maximum bandwidth".
    ("throughput", "DCTCP-PQ", "TCP", Some((90.0, f64::INFINITY))),
    // "latency for a single flow was lower for DCTCP w/ PQ than DCTCP w/o PQ and both were significantly lower than
    // simple drop-tail TCP": half counts as significant here.
    ("latency", "DCTCP-PQ", "DCTCP", Some((0.0, 100.0))),
    ("latency", "DCTCP", "TCP", Some((0.0, 50.0))),
    ("latency", "DCTCP-PQ", "TCP", Some((0.0, 50.0))),
    // "Good pacing ... would probably reduce the occupancy even further": a guess, and no claim.
    ("queue_us_mean", "DCTCP-PQ-Pacer", "DCTCP-PQ", None),
];

/// The figures that the claims are of, and what their points are called: the text's own setting has no delay.
const SETTINGS: [(&str, &str); 2] = [("all", ""), ("near", ", no delay")];

/// Computes the claims at every number of hosts, for both bases, with the study's delay and without it.
pub(crate) fn claims(_: &Study, rows: &[Row]) -> Vec<Row> {
    SETTINGS.iter().flat_map(|setting| claims_of(*setting, rows)).collect()
}

fn claims_of((figure, setting): (&str, &str), rows: &[Row]) -> Vec<Row> {
    let mut claims = Vec::new();
    for (metric, arm, other, said) in CLAIMS {
        let of =
            |row: &&Row, series: &str| row.figure == figure && row.metric == *metric && row.series == series;
        for row in rows.iter().filter(|row| of(row, arm)) {
            let same = |other_row: &&Row| {
                of(other_row, other) && (&other_row.x, &other_row.base) == (&row.x, &row.base)
            };
            let Some(beside) = rows.iter().find(same) else { continue };
            let name = format!("{metric}_over_{other}");
            let x = format!("{}{setting}", row.x);
            let mut claim = Row::new("claims", &row.base, arm, &x, &name, "%");
            claim.measured = 100.0 * row.measured / beside.measured;
            claim.suspect = row.suspect || beside.suspect;
            claim.within =
                said.filter(|_| is_held(row)).map(|(least, most)| (least..most).contains(&claim.measured));
            claims.push(claim);
        }
    }
    // "the number of packets in the queue was always between 0 and 2".
    let is_occupancy = |row: &&Row| {
        row.figure == figure && row.series == "DCTCP-PQ" && row.metric == "time_with_0_to_2_packets"
    };
    claims.extend(rows.iter().filter(is_occupancy).map(|row| Row {
        figure: "claims".to_owned(),
        x: format!("{}{setting}", row.x),
        within: is_held(row).then_some(row.measured >= NEARLY_ALWAYS),
        ..row.clone()
    }));
    claims
}

/// Returns whether a row is held to the text: only the kernel's is.
fn is_held(row: &Row) -> bool {
    row.base == "kernel"
}

/// "Always", of a plot of samples: percent of the time.
const NEARLY_ALWAYS: f64 = 99.0;
