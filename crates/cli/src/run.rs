//! Implements `plimsoll run`, which runs all points of a scenario into a run directory, and prints a table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use plimsoll_process::note;
use plimsoll_results::run_dir::{self, Existing, Plan, Status};
use plimsoll_results::{PointKey, RunDir};
use plimsoll_scenario::{Point, Registry};
use plimsoll_sim::estimate;
use plimsoll_units::whole;

use crate::batch::{self, Stopped};
use crate::columns::Columns;
use crate::job::{self, Job, Shard, key};
use crate::memory::{self, Budget, Work};
use crate::output::{self, Done, Shown};
use crate::progress::Show;
use crate::source::Source;

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
    budget: Budget,
    #[command(flatten)]
    shown: Shown,
    /// Run directory; results/SCENARIO-DIGEST by default.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Form of the tables in the run directory.
    #[arg(long, value_enum, default_value_t)]
    columns: Columns,
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
    /// Also write a timeline of each point for ui.perfetto.dev, below perfetto/ in the run directory.
    #[arg(long)]
    perfetto: bool,
}

pub fn run(args: &Args, registry: &Registry) -> Done {
    let memory = args.budget.watch(Work::Points)?;
    let source = with_capture(args);
    let scenario = source.load(registry)?;
    let job = Job::new(&source, &scenario, args.shard, &args.variant)?;
    let out = args.out.clone().unwrap_or_else(|| job.default_dir());
    if args.list {
        return list(&job, &out);
    }
    let share = job.share();
    for point in &share {
        estimate::check(&point.model, memory.limit()).with_context(|| job::label(point))?;
    }
    let dir = open(args, &job, &out)?;
    let todo = missing(&dir, &share, args.repair)?;
    if !args.quiet {
        tell_what_is_there(&dir, share.len(), todo.len());
    }
    if let Some(warning) = dir.other_build() {
        note!("warning: {warning}");
    }
    let show = Show { quiet: args.quiet, verbose: args.verbose };
    let ended = batch::run(&dir, &todo, batch::threads(args.threads.map(usize::from)), memory, show);
    if let Err(stopped) = ended {
        // On a full disk this fails as the write before did; complete points are reported anyway.
        let noted = dir.finish().context("cannot note what is complete");
        let said = stop(stopped, &dir, &share);
        return noted.and(said);
    }
    memory::begin(Work::Summary);
    let summary = batch::conclude(&dir, args.perfetto)?;
    // All results are on disk by now, and the notes say where: a full stdout prevents neither.
    let printed = output::print_summary(&summary, &[&dir], args.shown);
    if !args.quiet {
        closing_notes(args, &job, &dir);
    }
    printed.map(|()| ExitCode::SUCCESS)
}

/// Makes the capture part of the scenario, so that it is repeated with the run.
fn with_capture(args: &Args) -> Source {
    let mut source = args.source.clone();
    let key = "observe.packets=";
    if args.pcap && !source.set.iter().any(|set| set.trim_start().starts_with(key)) {
        source.set.push(format!("{key}{CAPTURED_PACKETS}"));
    }
    source
}

const CAPTURED_PACKETS: u64 = 100_000;

/// Opens the run directory, and checks its free space and its run before anything is run.
fn open(args: &Args, job: &Job<'_>, out: &Path) -> anyhow::Result<RunDir> {
    if args.resume && RunDir::open(out).is_err() {
        return Err(anyhow!("{} holds no run to resume; omit `--resume` to start one", out.display()));
    }
    let plan = Plan { columns: args.columns.into(), ..job.plan().clone() };
    create(out, &plan, existing(args.force, args.repair))
}

/// Returns how to treat an existing run.
pub fn existing(force: bool, repair: bool) -> Existing {
    match (force, repair) {
        (true, _) => Existing::Replace,
        (false, true) => Existing::Repair,
        (false, false) => Existing::Resume,
    }
}

/// Creates a run directory; where it holds another run, the error names the flags that help.
pub fn create(out: &Path, plan: &Plan, existing: Existing) -> anyhow::Result<RunDir> {
    RunDir::create(out, plan, existing, 0).map_err(|error| match error {
        run_dir::Error::Conflict { path, why } => anyhow!(
            "{} holds another run: {why}. Choose another place with `--out DIR`, or remove that run and \
             begin anew with `--force`",
            path.display()
        ),
        damaged @ run_dir::Error::Damaged { .. } => anyhow!("{damaged}; {REPAIR}"),
        other => other.into(),
    })
}

/// The advice after damage.
const REPAIR: &str = "the same command with `--repair` runs only the damaged points again";

/// Returns the points that must be run.
///
/// # Errors
/// Returns an error if finished points are damaged, unless they are to be repaired; the error names their files.
pub fn missing<'a>(dir: &RunDir, share: &[&'a Point], repair: bool) -> anyhow::Result<Vec<&'a Point>> {
    let statuses: BTreeMap<&PointKey, Status> =
        dir.verify().into_iter().map(|(point, status)| (&point.key, status)).collect();
    let mut damaged = Vec::new();
    let mut todo = Vec::new();
    for &point in share {
        match statuses.get(&key(point)) {
            Some(Status::Done(_)) => continue,
            Some(Status::Damaged(what)) if !repair => damaged.push(what.as_str()),
            Some(Status::Damaged(what) | Status::Cut(what)) => {
                note!("warning: {}: {what}; it runs again", job::label(point));
            }
            Some(Status::Missing) | None => {}
        }
        todo.push(point);
    }
    if damaged.is_empty() {
        return Ok(todo);
    }
    let more = if damaged.len() > NAMED_AT_MOST { "\n  ..." } else { "" };
    let named = &damaged[..damaged.len().min(NAMED_AT_MOST)];
    Err(anyhow!("finished points have been changed since:\n  {}{more}\n{REPAIR}", named.join("\n  ")))
}

/// Prints how many points were finished before, if any.
pub fn tell_what_is_there(dir: &RunDir, share: usize, todo: usize) {
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
pub fn stop(stopped: Stopped, dir: &RunDir, share: &[&Point]) -> Done {
    let statuses = dir.status();
    let done = statuses.iter().filter(|(_, status)| matches!(status, Status::Done(_)));
    let done: BTreeSet<&PointKey> = done.map(|(point, _)| &point.key).collect();
    let complete: Vec<&Point> = share.iter().copied().filter(|point| done.contains(&key(point))).collect();
    let mut notes = format!("{} of {} points are complete", complete.len(), share.len());
    if !complete.is_empty() {
        let names: Vec<String> = complete.iter().map(|point| job::label(point)).collect();
        let named: Vec<&str> = names.iter().take(NAMED_AT_MOST).map(String::as_str).collect();
        let more = if names.len() > named.len() { "\n  ..." } else { "" };
        notes.push_str(&format!(" and kept in {}:\n  {}{more}", dir.path().display(), named.join("\n  ")));
    }
    match stopped {
        Stopped::Signal(signal) => {
            note!("cancelled: {notes}\nTo resume, run the same command.");
            Ok(ExitCode::from(128 + signal))
        }
        Stopped::Error(error, under_way) => {
            let at = match under_way.as_slice() {
                [] => String::new(),
                points => format!("\nUnder way: {}", points.join("; ")),
            };
            note!("error: {}{at}\n{notes}\nTo resume, run the same command.", output::reasons(&error));
            Ok(ExitCode::from(output::ERROR))
        }
    }
}

/// The most finished points that are listed when a run stops; `--list` lists all.
const NAMED_AT_MOST: usize = 20;

fn closing_notes(args: &Args, job: &Job<'_>, dir: &RunDir) {
    output::note_places(dir.path(), args.shown);
    note!("Repeat   {}", job.plan().command);
    let open = dir.missing().len();
    let all = job.points().len();
    if open > 0 && !job.variants().is_empty() {
        note!(
            "{open} of {all} points belong to other variants; without `--variant` the same command runs them too"
        );
    } else if open > 0 {
        note!("{open} of {all} points belong to other shards; `plimsoll merge OUT DIR...` merges them");
    }
}

/// Prints one line a point: its name, the digest of its input, whether it is finished, and a description.
fn list(job: &Job<'_>, out: &Path) -> Done {
    let run = RunDir::open(out).ok().filter(|run| job.is_of(run));
    let statuses = run.as_ref().map(RunDir::verify).unwrap_or_default();
    let statuses: BTreeMap<&PointKey, Status> =
        statuses.into_iter().map(|(point, status)| (&point.key, status)).collect();
    let mut rows = Vec::new();
    for point in job.share() {
        let state = match statuses.get(&key(point)) {
            Some(Status::Done(_)) => "done",
            Some(Status::Cut(_)) => "cut",
            Some(Status::Damaged(_)) => "damaged",
            Some(Status::Missing) | None => "open",
        };
        rows.push((point.id.clone(), format!("{:016x}", point.digest), state, job::label(point)));
    }
    let width = rows.iter().map(|(id, ..)| id.len()).max().unwrap_or(0).max(2);
    let mut text = format!("{:<width$}  {:<16}  {:<7}  what\n", "id", "digest", "state");
    for (id, digest, state, label) in rows {
        text.push_str(&format!("{id:<width$}  {digest}  {state:<7}  {label}\n"));
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
