//! How the pacer tells small flows from large ones: the study's section III-B counts it for one server
//! of the search workload at 200 Mb/s of background.

use plimsoll_results::outcome::Outcome;

use crate::row::Row;
use crate::study::{Base, Case, Figure};

/// Per workload: how often a data packet associated its connection, and how often that ran out.
pub(super) fn rows(figure: &Figure, case: &Case, series: &str, base: Base, outcome: &Outcome) -> Vec<Row> {
    let mut rows = Vec::new();
    if figure.id != "fig4" || case.x != "200" || series != "DCTCP-PQ-Pacer" {
        return rows;
    }
    // 2542 of 72 000 packets and 18 106 of 390 000; 82 % and 0.8 % of those ran out.
    let published = [("search", 2542.0 / 720.0, 82.0), ("background", 18_106.0 / 3900.0, 0.8)];
    for (name, associated, dissociated) in published {
        let workload = outcome.workloads.iter().position(|info| info.name == name);
        let of = || outcome.connections.iter().filter(|c| Some(usize::from(c.workload)) == workload);
        let packets: u64 = of().map(|c| c.segments).sum();
        let associations: u64 = of().map(|c| c.pacer_associations + c.pacer_renewals).sum();
        let dissociations: u64 = of().map(|c| c.pacer_dissociations).sum();
        let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        for (metric, measured, published) in [
            ("associated_percent_of_packets", share(associations, packets), associated),
            ("dissociated_percent_of_associations", share(dissociations, associations), dissociated),
        ] {
            let mut row = Row::new("association", base.name(), name, "200", metric, "%");
            row.measured = measured;
            rows.push(row.compare(Some(published), None, None));
        }
    }
    rows
}
