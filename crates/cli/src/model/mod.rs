//! Implements `plimsoll model`, which evaluates formulas without a simulation.

mod fan_out;
mod qjump;
mod quantity;
mod sequential;
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
}

pub fn run(args: &Args, _: &Registry) -> Done {
    let text = match &args.model {
        Model::Qjump(qjump) => qjump.printed(),
        Model::FanOut(fan_out) => fan_out.printed(),
        Model::Sequential(sequential) => sequential.printed(),
    };
    output::print(&text?)?;
    Ok(ExitCode::SUCCESS)
}
