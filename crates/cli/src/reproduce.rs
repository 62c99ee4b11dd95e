//! `plimsoll reproduce`: a paper's experiments, measured beside their published values.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::output::{Done, Format};

/// Run a paper's experiments and print measured beside published.
#[derive(clap::Args)]
pub struct Args {
    /// Which study.
    study: Study,
    /// Fewer and shorter runs: minutes instead of hours, with wider intervals.
    #[arg(long)]
    quick: bool,
    /// In which form to print.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Where to keep the runs.
    #[arg(long, value_name = "DIR", default_value = "results/reproduce")]
    out: PathBuf,
    /// Runs at a time; all cores by default.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// A study whose values are known.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Study {
    /// Phantom queues, DCTCP and pacing.
    Hull,
}

pub fn reproduce(args: &Args) -> Done {
    let Args { study, quick: _, format: _, out: _, threads: _ } = args;
    anyhow::bail!("reproducing {study:?} is not in this build")
}
