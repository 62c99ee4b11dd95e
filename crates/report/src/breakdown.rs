//! The parts of a live server's requests as tables, figures, CSV and JSON, and as a timeline.

mod figures;
mod tables;
mod timeline;

use plimsoll_breakdown::{Rise, Traced};
use plimsoll_text::printable_json;
use serde_json::{Value, json};

use crate::figures::{fixed, time};
use crate::findings::{Findings, FindingsPage};
use crate::table::{Grid, Row};

pub use tables::{csv, reasons};
pub use timeline::timeline;

/// Makes the sentences, the tables with `slowest` requests at most, and the warnings.
pub fn findings(traced: &Traced, slowest: usize) -> Findings {
    Findings {
        sentence: tables::sentence(traced),
        grids: tables::grids(traced, slowest),
        closing: tables::cost(traced),
        warnings: tables::warnings(traced),
    }
}

/// Renders the page, whose table of the slowest requests has `slowest` rows, or 50 if that is more.
pub fn page(traced: &Traced, slowest: usize, command: &str, version: &str, commit: Option<&str>) -> String {
    findings(traced, slowest.max(SLOWEST_SHOWN)).to_page(FindingsPage {
        kind: "Plimsoll breakdown",
        title: &format!("Where the requests of {} spend their time", traced.target.name),
        figures: figures::figures(&traced.report),
        command,
        version,
        commit,
    })
}

/// Returns all numbers of a trace as JSON, as `plimsoll breakdown --format json` prints them.
pub fn json(traced: &Traced) -> String {
    let report = &traced.report;
    let mut whole = json!({
        "server": traced.target.name,
        "processes": traced.target.processes,
        "ports": traced.target.ports.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "sample": traced.sample,
        "duty": traced.duty,
        "ended": traced.ended,
        "records": traced.records,
        "lost_records": traced.lost_records,
        "cost": traced.cost,
        "serialisation_ns": traced.link_bps.map(|bps| report.serialisation_ns(bps)),
    });
    let last = json!({"locks": traced.locks, "profile": traced.profile.as_ref().ok()});
    for more in [json!(report), last] {
        if let (Some(whole), Value::Object(more)) = (whole.as_object_mut(), more) {
            whole.extend(more);
        }
    }
    format!("{}\n", printable_json(&format!("{whole:#}")))
}

/// Makes the table of the cost of tracing, over this number of pairs of turns.
pub fn overhead(rises: &[Rise], pairs: u32) -> Grid {
    let row = |rise: &Rise| {
        let interval = format!("{} .. {}", fixed(rise.low, 3), fixed(rise.high, 3));
        let cells = [time(rise.without_us), time(rise.with_us), fixed(rise.median, 3), interval];
        Row::plain(rise.quantity, cells)
    };
    let title = format!("What tracing costs, over {pairs} pairs of turns");
    let columns = ["without", "with", "ratio", "least .. most"];
    Grid::plain(title, "seen by the client", &columns, rises.iter().map(row))
}

/// The slowest requests on the page, at least.
const SLOWEST_SHOWN: usize = 50;

#[cfg(test)]
mod tests;
