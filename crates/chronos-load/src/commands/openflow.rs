//! `chronos-load openflow` and `compare-openflow`: switches that ask a controller, or two in turn.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use plimsoll_stdio::note;
use plimsoll_units::{Span, whole};
use serde::Serialize;

use super::{Done, print, status};
use crate::drive::Wait;
use crate::endpoint::Endpoint;
use crate::openflow::Plan;
use crate::openflow::compare::compare;
use crate::openflow::wire::Version;
use crate::options::{Format, Times};
use crate::process::Recipe;

/// Be switches that ask an OpenFlow controller about packets, as cbench does
#[derive(Debug, Args)]
pub struct OpenFlow {
    /// Where the controller listens: HOST:PORT or unix:PATH
    #[arg(help_heading = "Controller", long)]
    controller: Endpoint,
    #[command(flatten)]
    switches: Switches,
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
    switches: Switches,
    #[command(flatten)]
    output: Output,
}

/// Switches, and for how long they ask.
#[derive(Debug, Args)]
struct Switches {
    /// The version that switches speak
    #[arg(help_heading = "Switches", long, value_enum, default_value_t = Version::V13)]
    openflow_version: Version,
    /// Number of switches
    #[arg(help_heading = "Switches", long, default_value_t = 16, value_parser = whole::<u32>(1..=10_000))]
    switches: u32,
    /// One packet-in outstanding at each switch, or many
    #[arg(help_heading = "Load", long, value_enum, default_value_t = Mode::Latency)]
    mode: Mode,
    /// Packet-ins outstanding at each switch in throughput mode
    #[arg(help_heading = "Load", long, default_value_t = 256, value_parser = whole::<u32>(1..=1_000_000))]
    outstanding: u32,
    /// Addresses that the packets of a switch come from
    #[arg(help_heading = "Switches", long, default_value_t = 1_000_000,
          value_parser = whole::<u64>(2..=1 << 24))]
    macs: u64,
    /// Packet-ins name no buffer, and a packet-out answers the oldest
    #[arg(help_heading = "Switches", long)]
    unbuffered: bool,
    /// How long an answer is waited for
    #[arg(help_heading = "Time", long, default_value = "1s")]
    timeout: Span,
    #[command(flatten)]
    times: Times,
    /// Processor to run on: all switches are one thread's
    #[arg(help_heading = "Clients", long = "cpus", alias = "cpu", value_name = "CPU")]
    cpu: Option<usize>,
    /// What to do when there is nothing to do
    #[arg(help_heading = "Clients", long, value_enum, default_value_t = Wait::Spin)]
    wait: Wait,
}

/// What becomes of the report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
struct Output {
    /// What is printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Also write every number here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// How much a switch asks at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Mode {
    /// One packet-in at a time.
    Latency,
    /// Many.
    Throughput,
}

impl Switches {
    fn plan(&self) -> Plan {
        Plan {
            version: self.openflow_version,
            switches: self.switches,
            outstanding: match self.mode {
                Mode::Latency => 1,
                Mode::Throughput => self.outstanding as usize,
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

impl OpenFlow {
    /// Runs the load.
    ///
    /// # Errors
    /// If the controller is not there, or speaks no OpenFlow of this version.
    pub fn execute(&self) -> Done {
        let report = self.switches.plan().run(&self.controller, |_| ())?;
        self.output.put(&report.to_string(), &report)?;
        Ok(status(!report.suspect.is_empty()))
    }
}

impl CompareOpenFlow {
    /// Runs the comparison.
    ///
    /// # Errors
    /// If a controller does not run, or speaks no OpenFlow of this version.
    pub fn execute(&self) -> Done {
        let [first, second] = &self.servers[..] else {
            bail!("--server: {} controllers; a comparison is of two", self.servers.len());
        };
        let recipes = [first.clone(), second.clone()];
        let plan = self.switches.plan();
        let found = compare(&plan, &recipes, &self.server_cpus, self.pairs, |turn| note!("{turn}"))?;
        self.output.put(&found.to_string(), &found)?;
        Ok(status(!found.suspect.is_empty()))
    }
}
