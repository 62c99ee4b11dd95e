//! Implements `chronos-load openflow` and `compare-openflow`: switches that query a controller, or two in turn.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use plimsoll_process::note;
use plimsoll_units::{Span, whole};
use serde::Serialize;

use super::{CommandResult, print, status};
use crate::drive::IdleWait;
use crate::endpoint::ServerAddress;
use crate::openflow::SwitchLoad;
use crate::openflow::compare::compare;
use crate::openflow::wire::ProtocolVersion;
use crate::options::{Format, Times};
use crate::process::Recipe;

/// Emulate switches that query an OpenFlow controller about packets, as cbench does
#[derive(Debug, Args)]
pub struct OpenFlowArguments {
    /// Address of the controller: HOST:PORT or unix:PATH
    #[arg(help_heading = "Controller", long)]
    controller: ServerAddress,
    #[command(flatten)]
    switches: SwitchArguments,
    #[command(flatten)]
    output: Output,
}

/// Compare two OpenFlow controllers in interleaved pairs
#[derive(Debug, Args)]
pub struct CompareOpenFlow {
    /// A controller, as NAME=COMMAND with {port} in it; twice. Ratios are of the second to the first
    #[arg(help_heading = "Controllers", long = "server", required = true, value_name = "NAME=COMMAND",
          value_parser = Recipe::parse)]
    servers: Vec<Recipe>,
    /// Processors of the controllers, such as 0 or 0,1
    #[arg(help_heading = "Controllers", long, value_delimiter = ',')]
    server_cpus: Vec<usize>,
    /// Pairs, in the order A B, B A, A B
    #[arg(help_heading = "Comparison", long, default_value_t = 7, value_parser = whole::<u32>(1..=1000))]
    pairs: u32,
    #[command(flatten)]
    switches: SwitchArguments,
    #[command(flatten)]
    output: Output,
}

/// The switches, and how long they send.
#[derive(Debug, Args)]
struct SwitchArguments {
    /// OpenFlow version of the switches
    #[arg(help_heading = "Switches", long, value_enum, default_value_t = ProtocolVersion::V13)]
    openflow_version: ProtocolVersion,
    /// Number of emulated switches
    #[arg(help_heading = "Switches", long, default_value_t = 16, value_parser = whole::<u32>(1..=10_000))]
    switches: u32,
    /// One packet-in outstanding at each switch, or many
    #[arg(help_heading = "Load", long, value_enum, default_value_t = OutstandingMode::Latency)]
    mode: OutstandingMode,
    /// Packet-ins outstanding at each switch in throughput mode
    #[arg(help_heading = "Load", long, default_value_t = 256, value_parser = whole::<u32>(1..=1_000_000))]
    outstanding: u32,
    /// Number of source addresses in the packets of a switch
    #[arg(help_heading = "Switches", long, default_value_t = 1_000_000,
          value_parser = whole::<u64>(2..=1 << 24))]
    macs: u64,
    /// Send packet-ins without a buffer; a packet-out then answers the oldest
    #[arg(help_heading = "Switches", long)]
    unbuffered: bool,
    /// How long to wait for an answer
    #[arg(help_heading = "Time", long, default_value = "1s")]
    timeout: Span,
    #[command(flatten)]
    times: Times,
    /// Processor to run on; one thread runs all switches
    #[arg(help_heading = "Clients", long = "cpus", alias = "cpu", value_name = "CPU")]
    cpu: Option<usize>,
    /// How to wait when there is no work
    #[arg(help_heading = "Clients", long, value_enum, default_value_t = IdleWait::Spin)]
    wait: IdleWait,
}

/// The form of the report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
struct Output {
    /// Form of the printed report
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Also write the complete results to this JSON file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The number of packet-ins that a switch has outstanding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum OutstandingMode {
    /// One packet-in is outstanding at a time.
    Latency,
    /// Many packet-ins are outstanding.
    Throughput,
}

impl SwitchArguments {
    fn plan(&self) -> SwitchLoad {
        SwitchLoad {
            version: self.openflow_version,
            switches: self.switches,
            outstanding: match self.mode {
                OutstandingMode::Latency => 1,
                OutstandingMode::Throughput => self.outstanding as usize,
            },
            macs: self.macs,
            buffered: !self.unbuffered,
            cpu: self.cpu,
            wait: self.wait,
            warm_up: self.times.warm_up,
            time: self.times.time,
            timeout: self.timeout,
        }
    }
}

impl Output {
    fn put(&self, table: &str, report: &impl Serialize) -> anyhow::Result<()> {
        let json = serde_json::to_string_pretty(report)? + "\n";
        if let Some(path) = &self.json {
            fs::write(path, &json).with_context(|| format!("cannot write {}", path.display()))?;
        }
        print(if self.format == Format::Table { table } else { &json })
    }
}

impl OpenFlowArguments {
    /// Runs the load and prints its report.
    ///
    /// # Errors
    /// Returns an error if the controller cannot be reached, or speaks another version of OpenFlow.
    pub fn execute(&self) -> CommandResult {
        let report = self.switches.plan().run(&self.controller, |_| ())?;
        self.output.put(&report.to_string(), &report)?;
        Ok(status(!report.suspect.is_empty()))
    }
}

impl CompareOpenFlow {
    /// Runs the comparison and prints its report.
    ///
    /// # Errors
    /// Returns an error if a controller cannot be started, or speaks another version of OpenFlow.
    pub fn execute(&self) -> CommandResult {
        let [first, second] = &self.servers[..] else {
            bail!("--server: {} controllers; expected two", self.servers.len());
        };
        let recipes = [first.clone(), second.clone()];
        let plan = self.switches.plan();
        let found = compare(&plan, &recipes, &self.server_cpus, self.pairs, |turn| note!("{turn}"))?;
        self.output.put(&found.to_string(), &found)?;
        Ok(status(!found.suspect.is_empty()))
    }
}
