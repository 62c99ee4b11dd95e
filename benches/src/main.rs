//! `plimsoll-benches`: speed, memory and results beside ns-3.
//!
//! ```text
//! plimsoll-benches                 both simulators on S1, S2, S3, in turns; growth; memory (Markdown)
//! plimsoll-benches instructions    instructions per packet-hop beside instructions.json
//! plimsoll-benches ports           each kind of port beside an express port, on fat-trees of 128 and 8,192 hosts
//! plimsoll-benches transports      transports of NICs beside S3, on fat-trees of 128 and 1,024 hosts
//! plimsoll-benches scaling         fat-trees of 128 to 65,536 hosts, on one thread and on several
//! plimsoll-benches approximate     approximate runs beside whole ones
//! plimsoll-benches one s3          one run, in its own process, as JSON: the other commands start it
//! ```
//!
//! Every run has a process of its own, so that CPU time and peak memory are its alone.

mod approximate;
mod cases;
mod compare;
mod growth;
mod instructions;
mod markdown;
mod ns3;
mod one;
mod ports;
mod process;
mod scaling;
mod transports;

use anyhow::Result;
use clap::{Parser, Subcommand};

use cases::Case;
use plimsoll_memory::LargePages;
use plimsoll_units::whole;

#[global_allocator]
static ALLOCATOR: LargePages = LargePages;

#[derive(Parser)]
#[command(about = "Plimsoll beside ns-3 on equal work, as Markdown")]
struct Arguments {
    /// Timed runs of each simulator and scenario, in turns; the table shows medians.
    #[arg(long, default_value_t = 5, value_parser = whole::<u32>(1..))]
    rounds: u32,
    /// Measure only this scenario.
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
    /// The cost of a packet-hop by the kind of port, beside an express port's (Markdown).
    Ports {
        /// Timed pairs of runs of each; the table shows the medians of their ratios. With 0 only instructions are
        /// counted.
        #[arg(long, default_value_t = 5)]
        rounds: u32,
        /// Measure only this variant of `scenarios/ports.toml`.
        #[arg(long)]
        only: Option<String>,
    },
    /// The speed of a packet-hop by transport, beside S3's (Markdown).
    Transports {
        /// Timed pairs of runs of each; the table shows medians. With 0 only instructions are counted.
        #[arg(long, default_value_t = 5)]
        rounds: u32,
        /// Measure only this variant of `scenarios/transports.toml`.
        #[arg(long)]
        only: Option<String>,
    },
    /// Fat-trees of 128 to 65,536 hosts: time, memory, and the speed-up by threads (Markdown).
    Scaling {
        /// Threads to compare with one.
        #[arg(long, default_value_t = 2)]
        threads: usize,
        /// Timed runs of each, in turns; the table shows medians.
        #[arg(long, default_value_t = 3, value_parser = whole::<u32>(1..))]
        rounds: u32,
    },
    /// Approximate runs beside whole ones, on a grid of sizes, oversubscription and load (Markdown). Exit
    /// status 1 when the bias that runs print is another.
    Approximate {
        /// The number of pods, which have 32 hosts, of each network.
        #[arg(long, value_delimiter = ',', default_values_t = approximate::PODS, value_parser = whole::<u32>(2..))]
        pods: Vec<u32>,
        #[arg(long, default_value_t = 2)]
        threads: usize,
    },
    /// One run of a scenario, as JSON.
    #[command(hide = true)]
    One(one::OneArguments),
}

fn main() -> Result<()> {
    let arguments =
        Arguments::try_parse().unwrap_or_else(|said| plimsoll_process::end(said.print(), said.exit_code()));
    match arguments.command {
        Some(Command::One(one)) => one.run(),
        Some(Command::Scaling { threads, rounds }) => scaling::run(rounds, threads),
        Some(Command::Approximate { pods, threads }) => approximate::run(&pods, threads),
        Some(Command::Ports { rounds, only }) => ports::run(rounds, only.as_deref()),
        Some(Command::Transports { rounds, only }) => transports::run(rounds, only.as_deref()),
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
