//! Finished points in a run directory: which are missing, how one is kept, and the summary of all.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use plimsoll_files::Origin;
use plimsoll_process::note;
use plimsoll_report::html;
use plimsoll_results::capture::{Capture, pcapng};
use plimsoll_results::curves::{Curves, Detail};
use plimsoll_results::outcome::Outcome;
use plimsoll_results::run_dir::{self, Existing, RunPlan, Status, point_id};
use plimsoll_results::summary::Options;
use plimsoll_results::{Digest, PointKey, PointOutcome, RunDir, Summary};
use plimsoll_scenario::Point;

use crate::question::{key, label};

/// The reason why a run directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PointsError {
    /// It holds another run.
    #[error(
        "{} holds another run: {why}. Choose another place with `--out DIR`, or remove that run and begin anew with \
         `--force`",
        path.display()
    )]
    Conflict {
        /// The path of the run directory.
        path: PathBuf,
        /// The difference from the run that is asked for.
        why: String,
    },
    /// A file of the run directory is damaged.
    #[error("{0}; {REPAIR}")]
    Damaged(run_dir::Error),
    /// Finished points have been changed since; the first of them are named.
    #[error("finished points have been changed since:\n  {}\n{REPAIR}", .0.join("\n  "))]
    Changed(Vec<String>),
    /// The operating system refused to write a file.
    #[error("cannot write {}", path.display())]
    Write {
        /// The path of the file.
        path: PathBuf,
        /// The reason of the operating system.
        source: io::Error,
    },
    /// The run directory cannot be read or written for another reason.
    #[error(transparent)]
    Directory(run_dir::Error),
}

/// The advice after damage.
const REPAIR: &str = "the same command with `--repair` runs only the damaged points again";

/// The most points that a message names.
pub const NAMED_AT_MOST: usize = 20;

impl From<run_dir::Error> for PointsError {
    fn from(error: run_dir::Error) -> PointsError {
        match error {
            run_dir::Error::Conflict { path, why } => PointsError::Conflict { path, why },
            damaged @ run_dir::Error::Damaged { .. } => PointsError::Damaged(damaged),
            other => PointsError::Directory(other),
        }
    }
}

/// Returns how to treat an existing run.
pub fn existing(force: bool, repair: bool) -> Existing {
    match (force, repair) {
        (true, _) => Existing::Replace,
        (false, true) => Existing::Repair,
        (false, false) => Existing::Resume,
    }
}

/// Creates a run directory, or opens the one that is there.
///
/// # Errors
/// Returns an error if it cannot be written or holds another run; the error names the flags that help.
pub fn create(out: &Path, plan: &RunPlan, existing: Existing) -> Result<RunDir, PointsError> {
    Ok(RunDir::create(out, plan, existing, 0)?)
}

/// Returns the points of `share` that have to be run.
///
/// # Errors
/// Returns an error if finished points are damaged, unless they are to be repaired; the error names their files.
pub fn missing<'a>(dir: &RunDir, share: &[&'a Point], repair: bool) -> Result<Vec<&'a Point>, PointsError> {
    let statuses: BTreeMap<&PointKey, Status> =
        dir.verify().into_iter().map(|(point, status)| (&point.key, status)).collect();
    let mut damaged = Vec::new();
    let mut todo = Vec::new();
    for &point in share {
        match statuses.get(&key(point)) {
            Some(Status::Done(_)) => continue,
            Some(Status::Damaged(what)) if !repair => damaged.push(what.clone()),
            Some(Status::Damaged(what) | Status::Cut(what)) => {
                note!("warning: {}: {what}; it runs again", label(point));
            }
            Some(Status::Missing) | None => {}
        }
        todo.push(point);
    }
    match damaged.is_empty() {
        true => Ok(todo),
        false => Err(PointsError::Changed(first(damaged))),
    }
}

/// Returns the first of these names, and dots where there are more.
pub fn first(mut names: Vec<String>) -> Vec<String> {
    if names.len() > NAMED_AT_MOST {
        names.truncate(NAMED_AT_MOST);
        names.push("...".to_owned());
    }
    names
}

/// Writes the outcome of a point to a run directory, with the packets that it captured.
///
/// # Errors
/// Returns an error if a file cannot be written.
pub fn keep(dir: &RunDir, point: &Point, outcome: Outcome) -> Result<PointOutcome, PointsError> {
    // The packets are written before the point counts as done, since it will not be run again for them.
    write_capture(dir, point, &outcome.capture)?;
    let outcome = PointOutcome::new(key(point), point.seed, outcome);
    dir.write_point(&outcome).map_err(PointsError::Directory)?;
    Ok(outcome)
}

/// Writes the captured packets of a point, if any.
fn write_capture(dir: &RunDir, point: &Point, capture: &Capture) -> Result<(), PointsError> {
    if capture.ports.is_empty() {
        return Ok(());
    }
    let path = dir.path().join("pcap").join(format!("{}.pcapng", point_id(&key(point))));
    write_file(&path, |out| pcapng::write(capture, out))
}

/// Summarizes `points`, which are the finished points of a run directory. Writes the manifest, `summary.json`,
/// `slowdown-by-rank.csv` and `report.html`.
///
/// # Errors
/// Returns an error if a file cannot be written.
pub fn conclude(dir: &RunDir, points: &[PointOutcome]) -> Result<Summary, PointsError> {
    let write = || {
        dir.finish()?;
        let summary = Summary::of(points, &Options::default());
        dir.write_summary(&summary)?;
        let curves = Curves::of(points, Detail::for_runs(points.len()));
        dir.write_by_rank(&curves.ranks)?;
        let manifest = dir.manifest();
        let scenario = dir.scenario().unwrap_or_default();
        dir.write_report(&html::render(&html::Page {
            title: &manifest.title,
            description: &manifest.description,
            summary: &summary,
            curves: &curves,
            command: &manifest.command,
            carrier: &manifest.carrier,
            seed: manifest.seed,
            version: &manifest.plimsoll,
            commit: manifest.commit.as_deref(),
            scenario: shown(&scenario),
            warnings: &manifest.warnings,
        }))?;
        Ok(summary)
    };
    write().map_err(PointsError::Directory)
}

/// Returns one digest for all runs of a summary, in their order.
pub fn digest(summary: &Summary) -> Digest {
    let runs = summary.cells.iter().flat_map(|cell| &cell.runs);
    Digest::of_text(&runs.map(|run| run.digest.to_string()).collect::<String>())
}

/// Returns a scenario as the page shows it: without long included files.
fn shown(scenario: &str) -> &str {
    let files = scenario.find(FILES).filter(|_| scenario.len() > SHOWN_MAX);
    files.map_or(scenario, |start| &scenario[..start])
}

/// The line at which the included files of a recorded scenario begin.
const FILES: &str = "\n[files.";

/// The longest scenario with included files that a page shows whole, in bytes.
const SHOWN_MAX: usize = 64 << 10;

/// Writes a file, and creates its folder.
///
/// # Errors
/// Returns an error if the file cannot be written; it is then removed.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(BufWriter<File>) -> io::Result<()>,
) -> Result<(), PointsError> {
    let written = path
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| write(BufWriter::new(plimsoll_files::create(path, Origin::Folder)?)));
    written.map_err(|source| {
        // A truncated file is removed, not least because the disk may be full.
        let _ = fs::remove_file(path);
        PointsError::Write { path: path.to_owned(), source }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_shows_no_long_files() {
        let scenario = "version = 1\n";
        let carries =
            |rows: usize| format!("{scenario}\n[files.\"a.csv\"]\ntext = '''\n{}'''\n", "1,2\n".repeat(rows));
        assert_eq!(shown(scenario), scenario);
        assert_eq!(shown(&carries(3)), carries(3));
        assert_eq!(shown(&carries(100_000)), scenario);
    }
}
