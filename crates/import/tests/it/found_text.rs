//! What an import found, as text that a test compares.

use std::fmt::Write as _;

use plimsoll_import::{ClassTraffic, ImportFound, Remark};

/// Returns the hosts, and a line for each flow or rate of each class.
pub fn of(found: &ImportFound) -> String {
    let mut text = format!("{} over {}\n", found.hosts.join(" "), found.duration);
    for class in &found.classes {
        match &class.traffic {
            ClassTraffic::Flows(flows) => {
                for flow in flows {
                    let (from, to) = (flow.source, flow.destination);
                    let _ = writeln!(
                        text,
                        "{} {}..{} {from}>{to} {}",
                        class.name, flow.start, flow.end, flow.bytes
                    );
                }
            }
            ClassTraffic::Rates(rates) => {
                for of in rates {
                    let shown =
                        |rate: Option<f64>| rate.map_or_else(|| "?".to_owned(), |rate| format!("{rate:.0}"));
                    let (sent, received) = (shown(of.sent), shown(of.received));
                    let _ =
                        writeln!(text, "{} {} sends {sent} receives {received} bit/s", class.name, of.host);
                }
            }
            ClassTraffic::Exchanges(_) => panic!("an exchange of flow logs or metrics"),
        }
    }
    text
}

/// Returns the notes of one kind.
pub fn notes(found: &ImportFound, remark: Remark) -> Vec<&str> {
    found.notes.iter().filter(|note| note.remark == remark).map(|note| note.text.as_str()).collect()
}
