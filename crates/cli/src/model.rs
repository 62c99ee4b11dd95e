//! Implements `plimsoll model`, which evaluates formulas without a simulation.

mod fan_out;
mod law;
mod page;
mod qjump;
mod redundancy;
mod sequential;
mod stragglers;

use std::process::ExitCode;

use clap::Subcommand;
use plimsoll_scenario::Registry;

use crate::output::{self, Done, Format};

/// Evaluate formulas of a mechanism or of the tail, without a simulation.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    model: ModelCommand,
}

#[derive(Subcommand)]
enum ModelCommand {
    Qjump(qjump::QjumpArguments),
    #[command(name = "fanout")]
    FanOut(Formatted<fan_out::FanOutArguments>),
    Sequential(Formatted<sequential::Sequential>),
    Page(Formatted<page::Page>),
    Replicas(Formatted<redundancy::Replicas>),
    Hedge(Formatted<redundancy::Hedge>),
    Retry(Formatted<redundancy::Retry>),
    Stragglers(Formatted<stragglers::Stragglers>),
}

// A doc comment would be the help of every model whose result is one table of numbers.
#[derive(clap::Args)]
struct Formatted<M: clap::Args> {
    #[command(flatten)]
    of: M,
    /// Form of the printed table.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(args: &Args, _: &Registry) -> Done {
    output::print(&printed(args)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the output of the subcommand.
pub fn printed(args: &Args) -> anyhow::Result<String> {
    let (table, format) = match &args.model {
        ModelCommand::Qjump(qjump) => return qjump.printed(),
        ModelCommand::FanOut(model) => (model.of.table(), model.format),
        ModelCommand::Sequential(model) => (model.of.table(), model.format),
        ModelCommand::Page(model) => (model.of.table(), model.format),
        ModelCommand::Replicas(model) => (model.of.table(), model.format),
        ModelCommand::Hedge(model) => (model.of.table(), model.format),
        ModelCommand::Retry(model) => (model.of.table(), model.format),
        ModelCommand::Stragglers(model) => (model.of.table(), model.format),
    };
    Ok(table?.written(format.of_report()))
}

#[cfg(test)]
mod tests;
