//! Implements `chronos-load compare`: two servers, in turn, on the same processors.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use plimsoll_process::note;
use plimsoll_units::whole;

use super::run::parse_rate;
use super::{CommandResult, print, status};
use crate::arrivals::parse_share;
use crate::compare::{ComparisonPlan, OpenLoop, OpenRate};
use crate::options::{Format, LoadOptions, Times};
use crate::process::{Recipe, ServerTransport};

/// Compare two servers in interleaved pairs: rate and processor time at saturation, latency below it
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// A server, as NAME=COMMAND with {port} or {socket} in it; twice. Ratios are of the second to the first
    #[arg(help_heading = "Servers", long = "server", required = true, value_name = "NAME=COMMAND",
          value_parser = Recipe::parse)]
    servers: Vec<Recipe>,
    /// Transport of the requests
    #[arg(help_heading = "Servers", long, value_enum, default_value_t = ServerTransport::Tcp)]
    transport: ServerTransport,
    /// Processors of the servers, such as 0 or 0,1
    #[arg(help_heading = "Servers", long, value_delimiter = ',')]
    server_cpus: Vec<usize>,
    /// Pairs, in the order A B, B A, A B
    #[arg(help_heading = "Comparison", long, default_value_t = 7, value_parser = whole::<u32>(1..=1000))]
    pairs: u32,
    /// Operations outstanding on each connection at saturation
    #[arg(help_heading = "Load", long, default_value_t = 1, value_parser = whole::<u32>(1..=10_000))]
    outstanding: u32,
    /// Skip the measurement of saturation (then --rate sets the load)
    #[arg(help_heading = "Load", long, requires = "rate")]
    no_saturation: bool,
    /// Then run an open loop at this share of the first server's rate in the first pair
    #[arg(help_heading = "Load", long, conflicts_with = "rate", value_parser = parse_share)]
    at: Option<f64>,
    /// Then run an open loop of this many operations a second
    #[arg(help_heading = "Load", long, value_parser = parse_rate)]
    rate: Option<f64>,
    #[command(flatten)]
    load: LoadOptions,
    #[command(flatten)]
    times: Times,
    /// Form of the printed report
    #[arg(help_heading = "Output", long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Also write the complete results to this JSON file
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl CompareArguments {
    /// Runs the comparison and prints its report.
    ///
    /// # Errors
    /// Returns an error if options contradict each other, or a server cannot be started.
    pub fn execute(&self) -> CommandResult {
        let [first, second] = &self.servers[..] else {
            bail!("--server: {} servers; expected two", self.servers.len());
        };
        let rate = match (self.rate, self.at) {
            (Some(rate), _) => Some(OpenRate::Fixed(rate)),
            (None, at) => at.map(OpenRate::OfFirst),
        };
        let plan = ComparisonPlan {
            recipes: [first.clone(), second.clone()],
            transport: self.transport,
            server_cpus: self.server_cpus.clone(),
            workload: self.load.workload.clone(),
            clients: self.load.clients.clone(),
            warm_up: self.times.warm_up,
            time: self.times.time,
            outstanding: (!self.no_saturation).then_some(self.outstanding),
            open: rate.map(|rate| OpenLoop { arrivals: self.load.timetable.arrivals, rate }),
            pairs: self.pairs,
            validity: self.load.validity,
        };
        let comparison = plan.run(|turn| note!("{turn}"))?;
        let json = serde_json::to_string_pretty(&comparison)? + "\n";
        if let Some(path) = &self.json {
            fs::write(path, &json).with_context(|| format!("cannot write {}", path.display()))?;
        }
        match self.format {
            Format::Table => print(&comparison.to_string())?,
            Format::Json => print(&json)?,
        }
        Ok(status(!comparison.suspect.is_empty()))
    }
}
