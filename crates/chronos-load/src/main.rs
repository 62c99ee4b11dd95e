//! The `chronos-load` command.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use plimsoll_chronos_load::commands::{
    compare::Compare,
    openflow::{CompareOpenFlow, OpenFlow},
    run::Run,
    saturate::Saturate,
};
use plimsoll_stdio::note;

/// Load for memcached, chronos-memcached, chronos-search and OpenFlow controllers, measured from the time at which each
/// request should have been sent.
#[derive(Parser)]
#[command(name = "chronos-load", version, arg_required_else_help = true)]
#[command(after_help = "\
Results go to stdout, progress and messages to stderr.
Exit status: 0, 1 (a run is SUSPECT: it says why), 2 (an error).")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Run),
    Saturate(Saturate),
    Compare(Compare),
    #[command(name = "openflow")]
    OpenFlow(OpenFlow),
    #[command(name = "compare-openflow")]
    CompareOpenFlow(CompareOpenFlow),
}

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|said| plimsoll_stdio::end(said.print(), said.exit_code()));
    let done = match cli.command {
        Command::Run(run) => run.execute(),
        Command::Saturate(saturate) => saturate.execute(),
        Command::Compare(compare) => compare.execute(),
        Command::OpenFlow(openflow) => openflow.execute(),
        Command::CompareOpenFlow(compare) => compare.execute(),
    };
    done.unwrap_or_else(|error| {
        note!("error: {error:#}");
        ExitCode::from(ERROR)
    })
}

/// Exit status of an error.
const ERROR: u8 = 2;
