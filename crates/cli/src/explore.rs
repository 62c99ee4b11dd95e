//! Implements `plimsoll explore`, which serves a page on which one turns a scenario's knobs.

use std::process::ExitCode;

use anyhow::Context as _;
use plimsoll_experiment::bench;
use plimsoll_explore::{ExploreError, Explorer};
use plimsoll_process::note;
use plimsoll_scenario::Registry;
use plimsoll_units::whole;

use crate::memory::{Budget, Work};
use crate::output::{self, Done};
use crate::signals::Interrupt;
use crate::source::{BadScenario, Source};

/// Explore a scenario in the browser: turn its keys as knobs, and see tail, breakdown, load line and packets at once.
///
/// Serves one page on this machine only, at the address that it prints, until Ctrl-C. A first look takes about a
/// second; longer runs follow until the scenario has been run as it is. What is shown can be saved as a scenario, and
/// repeats with the same digest.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: Source,
    /// Port of the page; any free one by default.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = whole::<u16>(..))]
    port: u16,
    /// Number of concurrent runs; all cores by default. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    budget: Budget,
}

pub fn run(args: &Args, registry: &Registry) -> Done {
    let memory = args.budget.watch(Work::Explore)?;
    let scenario = args.source.load(registry)?;
    let name = scenario.name().to_owned();
    let threads = bench::threads(args.threads.map(usize::from));
    let interrupt = Interrupt::watch().context("cannot watch for Ctrl-C")?;
    let explorer = Explorer::new(&args.source.path, scenario, args.port, threads, memory, output::commit());
    let explorer = explorer.map_err(|error| match error {
        ExploreError::Scenario(errors) => BadScenario::new(name, "run", errors).into(),
        other => anyhow::Error::from(other),
    })?;
    output::print(&format!("{}\n", explorer.address()))?;
    note!("Open this address in a browser on this machine. Ctrl-C ends it.");
    explorer.wait(|| interrupt.signal().is_none())?;
    Ok(ExitCode::SUCCESS)
}
