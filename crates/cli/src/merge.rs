//! Implements `plimsoll merge`, which merges the shards of one run.

use std::path::PathBuf;
use std::process::ExitCode;

use plimsoll_experiment::points;
use plimsoll_process::note;
use plimsoll_results::run_dir;
use plimsoll_scenario::Registry;

use crate::columns::ColumnForm;
use crate::memory::{Budget, Work};
use crate::output::{self, Done, Shown};

/// Merge the run directories of shards into one.
///
/// The shards are those of `plimsoll run --shard I/N`, made on any machine. Every finished point is checked against its
/// digest and copied; two shards that have a point must agree on it. OUT is a run directory like any other; its table
/// and page cover all shards, and missing points are listed with the command that runs them. The shards stay unchanged.
#[derive(clap::Args)]
pub struct Args {
    /// Run directory to create, or to extend.
    out: PathBuf,
    /// Run directories of the same scenario, seed and version.
    #[arg(required = true, value_name = "DIR")]
    parts: Vec<PathBuf>,
    /// Form of the tables of the points that are copied.
    #[arg(long, value_enum, default_value_t)]
    columns: ColumnForm,
    #[command(flatten)]
    shown: Shown,
    #[command(flatten)]
    budget: Budget,
    /// Suppress closing notes; warnings and errors remain.
    #[arg(long, short)]
    quiet: bool,
}

pub fn run(args: &Args, _: &Registry) -> Done {
    args.budget.watch(Work::Other)?;
    let merged = run_dir::merge(&args.out, &args.parts, args.columns.into()).map_err(output::with_repair)?;
    let summary = points::conclude(&merged, &output::read_points(&merged)?)?;
    let printed = output::print_summary(&summary, &[&merged], args.shown);
    if !args.quiet {
        output::note_places(merged.path(), args.shown);
    }
    let open = merged.missing();
    if !open.is_empty() {
        note!("warning: {} of {} points are missing:", open.len(), merged.manifest().points.len());
        open.iter().take(NAMED_AT_MOST).for_each(|key| note!("  {key}"));
        if open.len() > NAMED_AT_MOST {
            note!("  ...");
        }
        note!("Run them into {} with:\n  {} --out {0}", merged.path().display(), merged.manifest().command);
    }
    printed.map(|()| ExitCode::SUCCESS)
}

const NAMED_AT_MOST: usize = 20;
