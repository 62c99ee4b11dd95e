//! Published experiments, measured beside their published values.

use std::collections::BTreeMap;
use std::path::PathBuf;

use plimsoll_experiment::bench;
use plimsoll_reproduce::{Journal, Ledger, Options, Part, every, page};
use plimsoll_scenario::did_you_mean;
use pyo3::prelude::*;

use crate::errors::{self, RunDirectoryError, StudyError};
use crate::mechanisms::Failure;
use crate::runs::{json, place};
use crate::version;
use crate::watch::{PythonBoard, supervise};

/// A reproduction as Python sees it: the rows as JSON, the published values that are held, explained and open, and the
/// page with its figures by file name.
type Reproduced = (String, (usize, usize, usize), BTreeMap<String, String>);

/// Runs the parts of a study that the journal below `out` does not have.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python has keywords for them")]
pub(crate) fn reproduce(
    py: Python<'_>,
    study: &str,
    quick: bool,
    only: Vec<String>,
    threads: Option<usize>,
    seed: u64,
    servers: Option<PathBuf>,
    out: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Reproduced> {
    let Some(study) = every().iter().find(|known| known.id == study) else {
        let ids: Vec<&str> = every().iter().map(|study| study.id.as_str()).collect();
        let nearest =
            did_you_mean(study, ids.iter().copied()).map_or_else(String::new, |text| format!("; {text}"));
        let message = format!("there is no study {study:?}; allowed: {}{nearest}", ids.join(", "));
        return Err(StudyError::new_err(message));
    };
    let (folder, temporary) = place(out.as_deref())?;
    let folder = folder.join(&study.id);
    std::fs::create_dir_all(&folder)?;
    let journal = folder.join("journal.jsonl");
    let mut journal =
        Journal::open(&journal).map_err(|error| RunDirectoryError::new_err(error.to_string()))?;
    let parts = only.iter().map(|part| part.parse::<Part>().unwrap_or_else(|never| match never {}));
    let options = Options {
        quick,
        threads: bench::threads(threads),
        seed,
        only: parts.collect(),
        servers: servers.unwrap_or_default(),
        commit: version::commit().map(str::to_owned),
    };
    let failure = Failure::default();
    let board = PythonBoard::of(0, &failure);
    let counts = |done: usize, of: usize, packet_hops: u64| board.count(done, of, packet_hops);
    let run = || plimsoll_reproduce::reproduce(study, &options, &mut journal, &counts);
    let reproduction = supervise(py, &board, progress, run)?.map_err(|error| errors::study(py, error))?;
    let files = page::files(study, &reproduction);
    if let Some(out) = &out {
        for (name, text) in &files {
            std::fs::write(out.join(name), text)?;
        }
    }
    drop(temporary);
    let Ledger { held, explained, open, .. } = reproduction.ledger();
    Ok((json(&reproduction.rows)?, (held, explained, open), files))
}
