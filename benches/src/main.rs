//! `plimsoll-benches`: how fast, in how much memory, and with what result, beside ns-3.
//!
//! ```text
//! plimsoll-benches                 both simulators on S1, S2, S3, in turns; growth; memory (Markdown)
//! plimsoll-benches instructions    instructions per packet-hop beside instructions.json
//! plimsoll-benches one S3          one run, in its own process, as JSON: what the others start
//! ```
//!
//! Every run has a process of its own, so that CPU time and peak memory are its alone.

mod cases;
mod compare;
mod growth;
mod instructions;
mod markdown;
mod ns3;
mod one;
mod process;

use anyhow::Result;
use clap::{Parser, Subcommand};

use cases::Case;

#[derive(Parser)]
#[command(about = "Plimsoll beside ns-3 on equal work, as Markdown")]
struct Arguments {
    /// Timed runs of each simulator and scenario, in turns; the table shows medians.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Only this scenario.
    #[arg(long, value_enum, ignore_case = true)]
    only: Option<Case>,
    /// One round of short runs: does it work at all?
    #[arg(long)]
    quick: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Instructions per packet-hop, counted by valgrind, beside the committed table. Exit status 1
    /// when one is more than 5 % above it.
    Instructions {
        /// Write the table instead of comparing with it.
        #[arg(long)]
        update: bool,
    },
    /// One run of a scenario, as JSON.
    #[command(hide = true)]
    One(one::OneArguments),
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    match arguments.command {
        Some(Command::One(one)) => one.run(),
        Some(Command::Instructions { update }) => instructions::run(update),
        None => {
            let plan = compare::Plan {
                rounds: if arguments.quick { 1 } else { arguments.rounds },
                only: arguments.only,
                quick: arguments.quick,
            };
            compare::run(&plan)?;
            growth::run(&plan)
        }
    }
}
