//! The bursts, trains, acknowledgements and losses of packet captures as tables, figures, CSV and JSON.

mod figures;
mod tables;

use plimsoll_bursts::Report;
use serde::Serialize;
use serde_json::{Value, json};

use crate::findings::Findings;

pub use figures::{figures, of_packets};
pub use tables::{csv, joined_csv, warnings};

/// Makes the sentence, the tables with at most `pairs` pairs of hosts, and the warnings.
pub fn findings(report: &Report, pairs: usize) -> Findings {
    Findings {
        sentence: tables::sentence(report),
        grids: tables::grids(report, pairs),
        closing: String::new(),
        warnings: warnings(report),
    }
}

/// Returns the report as JSON, after the names of the captures; `ended` says why a capture was not read to its end.
pub fn json(report: &Report, names: &[String], ended: Option<&str>) -> Value {
    #[derive(Serialize)]
    struct Whole<'a> {
        captures: &'a [String],
        ended: Option<&'a str>,
        warnings: Vec<String>,
        ack_ratio_bytes: Option<f64>,
        #[serde(flatten)]
        report: &'a Report,
    }
    let ack_ratio_bytes = report.acks.ratio();
    json!(Whole { captures: names, ended, warnings: warnings(report), ack_ratio_bytes, report })
}
