//! Runs points into a run directory, and summarizes a run directory.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::panic;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, anyhow};
use plimsoll_files::Origin;
use plimsoll_process::note;
use plimsoll_report::html;
use plimsoll_results::capture::{Capture, pcapng, perfetto};
use plimsoll_results::curves::{Curves, Detail};
use plimsoll_results::outcome::Outcome;
use plimsoll_results::run_dir::point_id;
use plimsoll_results::summary::Options;
use plimsoll_results::{PointOutcome, RunDir, Summary};
use plimsoll_scenario::Point;
use plimsoll_scenario::model::Model;
use plimsoll_sim::batch::{self, BatchError, Watch};
use plimsoll_sim::{Progress, RunError};

use crate::job::{key, label};
use crate::memory::Memory;
use crate::output;
use crate::progress::{Board, Show};
use crate::signals::Interrupt;

/// The reason why not all points were run.
#[derive(Debug)]
pub enum Stopped {
    /// The process received this signal.
    Signal(u8),
    /// A point failed with this error, while these points were running.
    Error(anyhow::Error, Vec<String>),
}

/// Runs `points` and writes each to the run directory as soon as it is finished.
pub fn run(
    run: &RunDir,
    points: &[&Point],
    threads: usize,
    memory: Memory,
    show: Show,
) -> Result<(), Stopped> {
    let interrupt = Interrupt::watch()
        .context("cannot watch for Ctrl-C")
        .map_err(|error| Stopped::Error(error, Vec::new()))?;
    let keeper = Keeper {
        run,
        points,
        board: Board::new(points, show),
        interrupt,
        memory,
        failed: AtomicBool::new(false),
    };
    name_the_point_in_panics();
    let models: Vec<&Model> = points.iter().map(|point| &point.model).collect();
    let asked = memory.asked();
    let ended = batch::run_all(&models, threads, &keeper);
    drop(asked);
    keeper.board.clear();
    let error = match ended {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    if let Some(signal) = keeper.interrupt.signal().filter(|_| !keeper.failed.load(Ordering::Relaxed)) {
        return Err(Stopped::Signal(signal));
    }
    let error = match error {
        BatchError::Run(RunError::Cancelled) if memory.is_exceeded() => memory.error(),
        BatchError::Run(error) => error.into(),
        BatchError::Owner(error) => anyhow!(error),
    };
    Err(Stopped::Error(error, keeper.board.under_way()))
}

/// Returns the number of threads that the user requested, or the number of processors.
pub fn threads(wanted: Option<usize>) -> usize {
    wanted.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
}

struct Keeper<'a> {
    run: &'a RunDir,
    points: &'a [&'a Point],
    board: Board<'a>,
    interrupt: Interrupt,
    memory: Memory,
    /// Whether a finished point could not be written.
    failed: AtomicBool,
}

thread_local! {
    /// The point that this thread runs, for the message of a panic.
    static POINT: RefCell<String> = const { RefCell::new(String::new()) };
}

impl Watch for Keeper<'_> {
    fn on_start(&self, index: usize) {
        POINT.with_borrow_mut(|name| *name = label(self.points[index]));
        self.board.on_start(index);
    }

    fn on_progress(&self, index: usize, progress: Progress) -> bool {
        self.board.on_progress(index, progress);
        self.interrupt.signal().is_none() && !self.memory.is_exceeded()
    }

    fn memory_max(&self) -> u64 {
        self.memory.limit()
    }

    fn on_done(
        &self,
        index: usize,
        outcome: Outcome,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let point = self.points[index];
        let hops = outcome.counters.packet_hops;
        keep(self.run, point, outcome).inspect_err(|_| self.failed.store(true, Ordering::Relaxed))?;
        self.board.on_done(index, hops);
        match self.interrupt.signal() {
            // Points that are shorter than a step of progress are cancelled here.
            Some(_) => Err(Box::new(RunError::Cancelled)),
            None => Ok(()),
        }
    }
}

/// Writes the outcome of a point to a run directory, with the packets that it captured.
///
/// # Errors
/// Returns an error if a file cannot be written.
pub fn keep(run: &RunDir, point: &Point, outcome: Outcome) -> anyhow::Result<PointOutcome> {
    // The packets are written before the point counts as done, since it will not be run again for them.
    write_capture(run, point, &outcome.capture)?;
    let outcome = PointOutcome::new(key(point), point.seed, outcome);
    run.write_point(&outcome)?;
    Ok(outcome)
}

/// Makes a panic, which is a defect of the simulator, report its point and that finished points are safe.
fn name_the_point_in_panics() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        usual(info);
        let point = POINT.with_borrow(Clone::clone);
        if !point.is_empty() {
            note!(
                "error: plimsoll has a defect that shows at the point `{point}`; please report it with the \
                 scenario. Finished points are kept"
            );
        }
    }));
}

/// Summarizes the finished points. Writes `summary.json` and `report.html`, and a timeline of each point if
/// `timelines`.
pub fn conclude(run: &RunDir, timelines: bool) -> anyhow::Result<Summary> {
    let points = output::read_points(run)?;
    let summary = conclude_points(run, &points)?;
    if timelines {
        write_timelines(&run.path().join("perfetto"), &points)?;
    }
    Ok(summary)
}

/// Summarizes `points`, which are the finished points of a run directory. Writes the manifest, `summary.json` and
/// `report.html`.
///
/// # Errors
/// Returns an error if a file cannot be written.
pub fn conclude_points(run: &RunDir, points: &[PointOutcome]) -> anyhow::Result<Summary> {
    run.finish()?;
    let summary = Summary::of(points, &Options::default());
    run.write_summary(&summary)?;
    let curves = Curves::of(points, Detail::for_runs(points.len()));
    let manifest = run.manifest();
    let scenario = run.scenario().unwrap_or_default();
    run.write_report(&html::render(&html::Page {
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

/// Writes the captured packets of a point, if any.
fn write_capture(run: &RunDir, point: &Point, capture: &Capture) -> anyhow::Result<()> {
    if capture.ports.is_empty() {
        return Ok(());
    }
    let path = run.path().join("pcap").join(format!("{}.pcapng", point_id(&key(point))));
    write_file(&path, |out| pcapng::write(capture, out))
}

fn write_timelines(folder: &Path, points: &[PointOutcome]) -> anyhow::Result<()> {
    for point in points {
        let path = folder.join(format!("{}.json", point_id(&point.key)));
        write_file(&path, |out| perfetto::write(&point.outcome, out))?;
    }
    Ok(())
}

/// Writes a file, and creates its folder.
fn write_file(path: &Path, write: impl FnOnce(BufWriter<File>) -> io::Result<()>) -> anyhow::Result<()> {
    let written = path
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| write(BufWriter::new(plimsoll_files::create(path, Origin::Folder)?)));
    if written.is_err() {
        // A truncated file is removed, not least because the disk may be full.
        let _ = fs::remove_file(path);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
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
