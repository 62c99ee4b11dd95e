//! The functions that a `study.toml` names: what cannot be said as data.

use crate::study::{Exact, MakeTask, Named, RunRows, Summary};
use crate::{
    breakdown_kernel, bullettrains_kernel, chronos, chronos_kernel, costs, detail, hull, hull_kernel, qjump,
    qjump_kernel, solstice,
};

pub(crate) const RUN_ROWS: Named<RunRows> =
    &[("hull.association", hull::association), ("hull-kernel.occupancy", hull_kernel::occupancy)];

pub(crate) const EXACT: Named<Exact> = &[
    ("hull.exact", hull::exact),
    ("qjump.theory", qjump::theory),
    ("detail.theory", detail::theory),
    ("chronos.normal-law", chronos::normal_law),
    ("solstice.solved", solstice::solved),
];

pub(crate) const SUMMARY: Named<Summary> = &[
    ("qjump.summary", qjump::summary),
    ("qjump-kernel.summary", qjump_kernel::summary),
    ("chronos-kernel.summary", chronos_kernel::summary),
    ("breakdown-kernel.summary", breakdown_kernel::summary),
    ("solstice.claims", solstice::claims),
];

const TASKS: [Named<MakeTask>; 6] = [
    breakdown_kernel::TASKS,
    bullettrains_kernel::TASKS,
    chronos::TASKS,
    chronos_kernel::TASKS,
    costs::TASKS,
    solstice::TASKS,
];

/// Finds a function by name; the error says which names there are.
pub(crate) fn find<F: Copy>(what: &str, name: &str, among: Named<F>) -> Result<F, String> {
    among.iter().find(|(known, _)| *known == name).map(|(_, function)| *function).ok_or_else(|| {
        let known: Vec<&str> = among.iter().map(|(known, _)| *known).collect();
        format!("there is no {what} `{name}`; allowed: {}", known.join(", "))
    })
}

/// Finds a task by name; the error says which names there are.
pub(crate) fn task(name: &str) -> Result<MakeTask, String> {
    let all = TASKS.concat();
    all.iter().find(|(known, _)| *known == name).map(|(_, make)| *make).ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|(known, _)| *known).collect();
        format!("there is no task `{name}`; allowed: {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::Reproduction;
    use crate::row::Row;
    use crate::studies::every;

    /// Computes the sums of every committed page again; those of chronos-kernel take half a minute of its model.
    #[test]
    fn committed_rows_that_are_computed_follow_from_the_others() {
        let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproductions");
        for study in every().iter().filter(|study| study.computes() && study.id != "chronos-kernel") {
            let rows =
                std::fs::read_to_string(pages.join(&study.id).join("rows.json")).expect("it is committed");
            let made: Reproduction = serde_json::from_str(&rows).expect("the rows are a reproduction");
            let measured = |row: &&Row| study.figure(&row.figure).is_some();
            let measured: Vec<Row> = made.rows.iter().filter(measured).cloned().collect();
            for claims in &study.claims {
                let lost = claims.without_rows(study.bases[0].name(), &study.published, &measured);
                assert!(lost.is_empty(), "{}: no row of the page is {lost:?}", study.id);
            }
            let mut computed = study.computed(&measured);
            computed.iter_mut().filter(|row| row.suspect).for_each(Row::let_go);
            crate::ledger::settle(study, &mut computed);
            assert!(!computed.is_empty(), "{}", study.id);
            assert!(made.rows.ends_with(&computed), "{}: {computed:#?}", study.id);
        }
    }
}
