//! Implements `plimsoll model`, which evaluates formulas without a simulation.

mod fan_out;
mod law;
mod page;
mod qjump;
mod quantity;
mod redundancy;
mod run_latencies;
mod sequential;
mod stragglers;
mod table;

use std::process::ExitCode;

use clap::Subcommand;
use plimsoll_scenario::Registry;

use crate::output::{self, Done};

/// Evaluate formulas of a mechanism or of the tail, without a simulation.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    model: Model,
}

#[derive(Subcommand)]
enum Model {
    Qjump(qjump::Qjump),
    #[command(name = "fanout")]
    FanOut(fan_out::FanOut),
    Sequential(sequential::Sequential),
    Page(page::Page),
    Replicas(redundancy::Replicas),
    Hedge(redundancy::Hedge),
    Retry(redundancy::Retry),
    Stragglers(stragglers::Stragglers),
}

pub fn run(args: &Args, _: &Registry) -> Done {
    output::print(&printed(args)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns what the subcommand prints.
pub fn printed(args: &Args) -> anyhow::Result<String> {
    match &args.model {
        Model::Qjump(qjump) => qjump.printed(),
        Model::FanOut(fan_out) => fan_out.printed(),
        Model::Sequential(sequential) => sequential.printed(),
        Model::Page(page) => page.printed(),
        Model::Replicas(replicas) => replicas.printed(),
        Model::Hedge(hedge) => hedge.printed(),
        Model::Retry(retry) => retry.printed(),
        Model::Stragglers(stragglers) => stragglers.printed(),
    }
}
