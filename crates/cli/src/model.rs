//! Implements `plimsoll model`, which evaluates formulas without a simulation.

use std::process::ExitCode;

use clap::Subcommand;
use plimsoll_models::questions::{
    BadModel, FanOutArguments, Hedge, ModelQuestion as _, Page, QjumpArguments, Replicas, Retry, Sequential,
    Stragglers,
};
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
    Qjump(Formatted<QjumpArguments>),
    #[command(name = "fanout")]
    FanOut(Formatted<FanOutArguments>),
    Sequential(Formatted<Sequential>),
    Page(Formatted<Page>),
    Replicas(Formatted<Replicas>),
    Hedge(Formatted<Hedge>),
    Retry(Formatted<Retry>),
    Stragglers(Formatted<Stragglers>),
}

// A doc comment would be the help of every model.
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
fn printed(args: &Args) -> anyhow::Result<String> {
    let (table, format) = match &args.model {
        ModelCommand::Qjump(model) => {
            return model.of.written(model.format.of_report()).map_err(with_repair);
        }
        ModelCommand::FanOut(model) => (model.of.table(), model.format),
        ModelCommand::Sequential(model) => (model.of.table(), model.format),
        ModelCommand::Page(model) => (model.of.table(), model.format),
        ModelCommand::Replicas(model) => (model.of.table(), model.format),
        ModelCommand::Hedge(model) => (model.of.table(), model.format),
        ModelCommand::Retry(model) => (model.of.table(), model.format),
        ModelCommand::Stragglers(model) => (model.of.table(), model.format),
    };
    Ok(table.map_err(with_repair)?.written(format.of_report()))
}

/// Adds the command that repairs a damaged run directory.
fn with_repair(error: BadModel) -> anyhow::Error {
    match error {
        BadModel::Run { name, error } => output::with_repair(error).context(format!("--from {name}")),
        BadModel::Option(text) => anyhow::Error::msg(text),
    }
}

#[cfg(test)]
mod tests;
