//! Implements `plimsoll run`, which runs all points of a scenario into a run directory, and prints a table.

use std::collections::{BTreeMap, BTreeSet};
use std::panic;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use plimsoll_experiment::question::{Shard, key, label, objectives};
use plimsoll_experiment::{Bench, Question, bench, points, question};
use plimsoll_process::note;
use plimsoll_results::capture::perfetto;
use plimsoll_results::run_dir::{RunPlan, Status, point_id};
use plimsoll_results::{PointKey, PointOutcome, RunDir};
use plimsoll_scenario::model::Model;
use plimsoll_scenario::{Point, Registry};
use plimsoll_sim::batch::{BatchError, Workers};
use plimsoll_sim::{RunError, estimate};
use plimsoll_units::whole;

use crate::columns::ColumnForm;
use crate::memory::{self, Budget, Work};
use crate::output::{self, Done, Shown};
use crate::parallelism;
use crate::progress::{Board, POINT, Show};
use crate::signals::Interrupt;
use crate::source::Source;
use crate::workers::WorkerOptions;

/// Run every variant, sweep point and replicate of a scenario, and compare them.
///
/// Each finished point is kept: the same command resumes a stopped run.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: Source,
    /// Number of threads, all cores by default: concurrent runs, and logical processes of a large run where there are
    /// fewer runs. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    workers: WorkerOptions,
    #[command(flatten)]
    budget: Budget,
    #[command(flatten)]
    shown: Shown,
    /// Run directory; results/SCENARIO-DIGEST by default.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Form of the tables in the run directory.
    #[arg(long, value_enum, default_value_t)]
    columns: ColumnForm,
    /// Remove the runs in the run directory, and run all points again.
    #[arg(long, conflicts_with = "resume")]
    force: bool,
    /// Run damaged points again, and write the manifest anew. All other points stay.
    #[arg(long, conflicts_with = "force")]
    repair: bool,
    /// Resume an existing run; an error if there is none. By default a run is resumed or started, as needed.
    #[arg(long)]
    resume: bool,
    /// Print the points, and whether each is finished, without running any.
    #[arg(long)]
    list: bool,
    /// Run each point's first replicate on one thread, and print what N threads could gain: logical processes, their
    /// events in a window of the lookahead, their imbalance, messages, and the bound on the speed-up; or what keeps the
    /// run on one thread. Nothing is kept.
    #[arg(long, conflicts_with_all = RESULTS)]
    plan: bool,
    /// Run only the I-th of N shards of the points; `plimsoll merge` merges the shards.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Run only this variant; may be repeated. The run directory is that of all variants, so that the rest can follow.
    #[arg(long, value_name = "NAME")]
    variant: Vec<String>,
    /// Suppress progress and closing notes; warnings and errors remain.
    #[arg(long, short)]
    quiet: bool,
    /// On a terminal, too, print a line for every finished point with its time and speed.
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
    /// Also capture packets of each point for Wireshark, below pcap/ in the run directory: the first 100,000 at the
    /// watched queues, or as many as `--set observe.packets=N` sets.
    #[arg(long)]
    pcap: bool,
    /// Simulate a sample of links one by one in place of the network, which `run.approximate` sets.
    #[arg(long, conflicts_with = "pcap")]
    approximate: bool,
    /// Also write a timeline of each point for ui.perfetto.dev, below perfetto/ in the run directory.
    #[arg(long)]
    perfetto: bool,
}

/// The options that `--plan` excludes: those for results, which it does not keep.
const RESULTS: [&str; 11] = [
    "out",
    "columns",
    "force",
    "repair",
    "resume",
    "list",
    "pcap",
    "approximate",
    "workers",
    "perfetto",
    "details",
];

pub fn run(args: &Args, registry: &Registry) -> Done {
    let memory = args.budget.watch(Work::Points)?;
    let source = with_options(args);
    let scenario = source.load(registry)?;
    let question = Question::new(&scenario, args.shard, &args.variant)?;
    objectives(&scenario, &[])?;
    let out = args.out.clone().unwrap_or_else(|| question.default_dir());
    if args.list {
        return list(&question, &out);
    }
    let share = question.share();
    for point in &share {
        estimate::check(&point.model, memory.limit()).with_context(|| label(point))?;
    }
    let show = Show { quiet: args.quiet, verbose: args.verbose };
    let threads = bench::threads(args.threads.map(usize::from));
    if args.plan {
        return parallelism::print(&share, threads, memory, show, args.shown.format);
    }
    if args.pcap && share.iter().any(|point| point.model.run.approximate().is_some()) {
        return Err(anyhow!(
            "an approximate run has no packets of the whole network to capture: add `--set run.approximate=off`, or \
             leave out `--pcap`"
        ));
    }
    // Watched before a worker is started: what ends the run then ends its workers, too.
    let interrupt = Interrupt::watch().context("cannot watch for Ctrl-C")?;
    // Before anything is written or removed: a worker that cannot be started changes nothing.
    let mut pool = args.workers.start(&question::record(&scenario), &share)?;
    let plan = question.plan(source.command_of("run", scenario.points()), output::commit());
    let dir = open(args, RunPlan { columns: args.columns.into(), ..plan }, &out)?;
    let todo = points::missing(&dir, &share, args.repair)?;
    if !args.quiet {
        note_finished(&dir, share.len(), todo.len());
    }
    if let Some(warning) = dir.other_build() {
        note!("warning: {warning}");
    }
    if let Some(pool) = &mut pool {
        pool.points = todo.iter().map(|point| question::number_of(point, &scenario)).collect();
    }
    let board = Board::new(&todo, show, interrupt.clone(), memory);
    let ended = run_points(&dir, &todo, threads, pool.as_ref().map(|pool| pool as &dyn Workers), board);
    drop(pool);
    drop(interrupt);
    if let Err(stopped) = ended {
        // On a full disk this fails as the write before did; complete points are reported anyway.
        let noted = dir.finish().context("cannot note what is complete");
        let said = stop(stopped, &dir, &share);
        return noted.and(said);
    }
    memory::begin(Work::Summary);
    let finished = output::read_points(&dir)?;
    let summary = points::conclude(&dir, &finished)?;
    if args.perfetto {
        for PointOutcome { key, outcome, .. } in &finished {
            let path = dir.path().join("perfetto").join(format!("{}.json", point_id(key)));
            points::write_file(&path, |out| perfetto::write(outcome, out))?;
        }
    }
    // All results are on disk by now, and the notes say where: a full stdout prevents neither.
    let printed = output::print_summary(&summary, &[&dir], args.shown);
    if !args.quiet {
        closing_notes(args, scenario.points().len(), &dir);
    }
    printed.map(|()| ExitCode::SUCCESS)
}

/// Runs `points` and writes each to the run directory as soon as it is finished.
fn run_points(
    dir: &RunDir,
    points: &[&Point],
    threads: usize,
    workers: Option<&dyn Workers>,
    board: Board<'_>,
) -> Result<(), BatchStop> {
    let memory = board.memory;
    name_the_point_in_panics();
    let models: Vec<&Model> = points.iter().map(|point| &point.model).collect();
    let asked = memory.asked();
    let ended = Bench { threads, memory_max: memory.limit(), watch: &board, workers }
        .run(&models, |index, outcome| Ok(points::keep(dir, points[index], outcome).map(drop)?));
    drop(asked);
    board.clear();
    let Err(error) = ended else { return Ok(()) };
    let error = match (error, board.interrupt.signal()) {
        (BatchError::Owner(error), _) => anyhow!(error),
        (_, Some(signal)) => return Err(BatchStop::Signal(signal)),
        (BatchError::Run(RunError::Cancelled), _) if memory.is_exceeded() => memory.error().into(),
        (BatchError::Run(error), _) => error.into(),
    };
    Err(BatchStop::Error(error, board.under_way()))
}

/// The reason why not all points were run.
#[derive(Debug)]
pub enum BatchStop {
    /// The process received this signal.
    Signal(u8),
    /// A point failed with this error, while these points were running.
    Error(anyhow::Error, Vec<String>),
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

/// Makes options part of the scenario, so that they are repeated with the run.
fn with_options(args: &Args) -> Source {
    let mut source = if args.approximate { approximate(&args.source) } else { args.source.clone() };
    let key = "observe.packets=";
    if args.pcap && !source.set.iter().any(|set| set.trim_start().starts_with(key)) {
        source.set.push(format!("{key}{CAPTURED_PACKETS}"));
    }
    source
}

const CAPTURED_PACKETS: u64 = 100_000;

/// Returns the source of approximate runs, of the size that the user has set, if any.
pub fn approximate(source: &Source) -> Source {
    let mut source = source.clone();
    if !source.set.iter().any(|set| set.trim_start().starts_with("run.approximate")) {
        source.set.push("run.approximate={}".to_owned());
    }
    source
}

/// Opens the run directory, and checks its free space and its run before anything is run.
fn open(args: &Args, plan: RunPlan, out: &Path) -> anyhow::Result<RunDir> {
    if args.resume && RunDir::open(out).is_err() {
        return Err(anyhow!("{} holds no run to resume; omit `--resume` to start one", out.display()));
    }
    Ok(points::create(out, &plan, points::existing(args.force, args.repair))?)
}

/// Prints how many points were finished before, if any.
pub fn note_finished(dir: &RunDir, share: usize, todo: usize) {
    let there = share - todo;
    if there == 0 {
        return;
    }
    note!(
        "{there} of {share} points are finished already, in {}; `--force` runs them again",
        dir.path().display()
    );
}

/// Prints which points are finished, and how to resume.
pub fn stop(stopped: BatchStop, dir: &RunDir, share: &[&Point]) -> Done {
    let statuses = dir.status();
    let done = statuses.iter().filter(|(_, status)| matches!(status, Status::Done(_)));
    let done: BTreeSet<&PointKey> = done.map(|(point, _)| &point.key).collect();
    let complete: Vec<&Point> = share.iter().copied().filter(|point| done.contains(&key(point))).collect();
    let mut notes = format!("{} of {} points are complete", complete.len(), share.len());
    if !complete.is_empty() {
        let names = points::first(complete.iter().map(|point| label(point)).collect());
        notes.push_str(&format!(" and kept in {}:\n  {}", dir.path().display(), names.join("\n  ")));
    }
    match stopped {
        BatchStop::Signal(signal) => {
            note!("cancelled: {notes}\nTo resume, run the same command.");
            Ok(ExitCode::from(128 + signal))
        }
        BatchStop::Error(error, under_way) => {
            let at = match under_way.as_slice() {
                [] => String::new(),
                points => format!("\nUnder way: {}", points.join("; ")),
            };
            note!("error: {}{at}\n{notes}\nTo resume, run the same command.", output::reasons(&error));
            Ok(ExitCode::from(output::ERROR))
        }
    }
}

fn closing_notes(args: &Args, all: usize, dir: &RunDir) {
    output::note_places(dir.path(), args.shown);
    note!("Repeat   {}", dir.manifest().command);
    let open = dir.missing().len();
    if open > 0 && !args.variant.is_empty() {
        note!(
            "{open} of {all} points belong to other variants; without `--variant` the same command runs them too"
        );
    } else if open > 0 {
        note!("{open} of {all} points belong to other shards; `plimsoll merge OUT DIR...` merges them");
    }
}

/// Prints one line a point: its name, the digest of its input, whether it is finished, and a description.
fn list(question: &Question<'_>, out: &Path) -> Done {
    let run = RunDir::open(out).ok().filter(|run| question.is_of(run));
    let statuses = run.as_ref().map(RunDir::verify).unwrap_or_default();
    let statuses: BTreeMap<&PointKey, Status> =
        statuses.into_iter().map(|(point, status)| (&point.key, status)).collect();
    let mut rows = Vec::new();
    for point in question.share() {
        let state = match statuses.get(&key(point)) {
            Some(Status::Done(_)) => "done",
            Some(Status::Cut(_)) => "cut",
            Some(Status::Damaged(_)) => "damaged",
            Some(Status::Missing) | None => "open",
        };
        rows.push((point.id.clone(), format!("{:016x}", point.digest), state, label(point)));
    }
    let width = rows.iter().map(|(id, ..)| id.len()).max().unwrap_or(0).max(2);
    let mut text = format!("{:<width$}  {:<16}  {:<7}  what\n", "id", "digest", "state");
    for (id, digest, state, label) in rows {
        text.push_str(&format!("{id:<width$}  {digest}  {state:<7}  {label}\n"));
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
