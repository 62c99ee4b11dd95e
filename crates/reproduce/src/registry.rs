//! The functions that a `study.toml` names: what cannot be said as data.

use std::sync::Arc;

use plimsoll_servers::{Parameters, TaskPoint};

use crate::functions;
use crate::models;
use crate::simulated::Simulated;
use crate::study::{Base, Exact, MakePointTask, NamedFunctions, RunRows, SummaryRows};
pub(crate) const RUN_ROWS: NamedFunctions<RunRows> =
    &[("pacer-associations", functions::pacer_associations), ("queue-in-time", functions::queue_in_time)];

pub(crate) const EXACT: NamedFunctions<Exact> = &[
    ("idle-flows", functions::idle_flows),
    ("idle-requests", functions::idle_requests),
    ("normal-law", models::normal_law),
    ("optimum", functions::optimum),
];

pub(crate) const SUMMARY: NamedFunctions<SummaryRows> = &[("small-flows", functions::small_flows)];

/// Finds a function by name; the error says which names there are.
pub(crate) fn find<F: Copy>(what: &str, name: &str, among: NamedFunctions<F>) -> Result<F, String> {
    among.iter().find(|(known, _)| *known == name).map(|(_, function)| *function).ok_or_else(|| {
        let known: Vec<&str> = among.iter().map(|(known, _)| *known).collect();
        format!("there is no {what} `{name}`; allowed: {}", known.join(", "))
    })
}

/// Returns what makes the tasks of a figure: of a model by its name, of the same figure of another study for the
/// simulated base, or of `plimsoll-servers`.
///
/// # Errors
/// Returns an error if no task has the name, or if its parameters do not fit it.
pub(crate) fn task(
    name: &str,
    parameters: Parameters,
    simulated: Option<Parameters>,
) -> Result<MakePointTask, String> {
    if let Some((_, task)) = models::TASKS.iter().find(|(known, _)| *known == name) {
        let of_study = "a test makes every task of every study";
        return Ok(Arc::new(move |point| Some(task(&parameters, point).expect(of_study))));
    }
    let make = plimsoll_servers::read(name, parameters).map_err(|problem| {
        let known = models::TASKS.map(|(known, _)| known).join(", ");
        format!("{problem}, {known}")
    })?;
    Ok(Arc::new(move |point| match &simulated {
        Some(simulated) if point.base == Base::Simulated => Simulated::task(simulated, point),
        _ => {
            let crate::study::Point { x, series, quick, seed, servers, .. } = *point;
            make(&TaskPoint { x, series, quick, seed, servers })
        }
    }))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::Reproduction;
    use crate::row::StudyRow;
    use crate::studies::every;

    /// Computes the sums of every committed page again; the sums of chronos-kernel take half a minute of its model.
    #[test]
    fn committed_rows_that_are_computed_follow_from_the_others() {
        let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproductions");
        for study in every().iter().filter(|study| study.computes() && study.id != "chronos-kernel") {
            let rows =
                std::fs::read_to_string(pages.join(&study.id).join("rows.json")).expect("it is committed");
            let made: Reproduction = serde_json::from_str(&rows).expect("the rows are a reproduction");
            let measured = |row: &&StudyRow| study.figure(&row.figure).is_some();
            let measured: Vec<StudyRow> = made.rows.iter().filter(measured).cloned().collect();
            for claims in &study.claims {
                let lost = claims.without_rows(study.bases[0].name(), &study.published, &measured);
                assert!(lost.is_empty(), "{}: no row of the page is {lost:?}", study.id);
            }
            let mut computed = study.computed(&measured);
            computed.iter_mut().filter(|row| row.suspect).for_each(StudyRow::let_go);
            crate::ledger::settle(study, &mut computed);
            assert!(!computed.is_empty(), "{}", study.id);
            assert!(made.rows.ends_with(&computed), "{}: {computed:#?}", study.id);
        }
    }
}
