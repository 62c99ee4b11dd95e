//! Implements `plimsoll circuits`, which schedules the circuits of a hybrid network.

mod common;
mod compare;
mod demand;
mod figure;
mod grid;
mod schedule;

use std::process::ExitCode;

use clap::Subcommand;
use plimsoll_scenario::Registry;

use crate::output::{self, Done};

/// Schedule the circuits of a hybrid circuit and packet network.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Schedule(schedule::Schedule),
    Compare(compare::Compare),
    Demand(demand::Generate),
}

pub fn run(args: &Args, _: &Registry) -> Done {
    output::print(&printed(args)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns what the subcommand prints.
pub fn printed(args: &Args) -> anyhow::Result<String> {
    match &args.what {
        What::Schedule(schedule) => schedule.printed(),
        What::Compare(compare) => compare.printed(),
        What::Demand(generate) => generate.printed(),
    }
}
