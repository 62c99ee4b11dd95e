//! How the pacer tells small flows from large ones: the study's section III-B counts it for one server
//! of the search workload at 200 Mb/s of background.

use crate::row::StudyRow;
use crate::study::{FinishedRun, Study};

/// Computes per workload how often a data packet associated its connection, and how often that ran out.
pub(crate) fn association(study: &Study, run: &FinishedRun<'_>) -> Vec<StudyRow> {
    let FinishedRun { figure, case, series, base, outcome } = *run;
    let mut rows = Vec::new();
    if figure.id != "fig4" || case.x != "200" || series != "DCTCP-PQ-Pacer" {
        return rows;
    }
    let percent = |name: &str, metric: &str, measured: f64| {
        let mut row = StudyRow::new("association", base.name(), name, "200", metric, "%");
        row.measured = measured;
        row
    };
    for name in ["search", "background"] {
        let workload = outcome.workloads.iter().position(|info| info.name == name);
        let of = || outcome.connections.iter().filter(|c| Some(usize::from(c.workload)) == workload);
        let packets: u64 = of().map(|c| c.segments).sum();
        let associations: u64 = of().map(|c| c.pacer_associations + c.pacer_renewals).sum();
        let dissociations: u64 = of().map(|c| c.pacer_dissociations).sum();
        let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        for (metric, measured) in [
            ("associated_percent_of_packets", share(associations, packets)),
            ("dissociated_percent_of_associations", share(dissociations, associations)),
        ] {
            rows.push(study.published.beside(percent(name, metric, measured), None));
        }
        // The study counted at one server.
        let of_one = of().map(|c| share(c.pacer_dissociations, c.pacer_associations + c.pacer_renewals));
        let of_one: Vec<f64> = of_one.collect();
        let least = of_one.iter().copied().min_by(f64::total_cmp);
        let most = of_one.iter().copied().max_by(f64::total_cmp);
        let ends = [("least", least), ("most", most)];
        rows.extend(ends.into_iter().filter_map(|(end, share)| {
            Some(percent(name, &format!("dissociated_percent_of_associations_{end}"), share?))
        }));
    }
    rows
}
