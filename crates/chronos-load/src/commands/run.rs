//! `chronos-load run`: one load, one report.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;

use super::{Done, print, status};
use crate::endpoint::Endpoint;
use crate::options::{Belief, Clients, Format, Times, Timetable, Workload};
use crate::phase::{Crew, load_phase, phase};
use crate::report::Report;
use crate::setup::{Pace, Setup};

/// Put a load on servers and report latencies, rate and losses
#[derive(Debug, Args)]
pub struct Run {
    /// Where a server listens: HOST:PORT, udp:HOST:PORT, or unix:PATH; once for each server
    #[arg(long = "server", required = true, value_name = "SERVER")]
    servers: Vec<Endpoint>,
    #[command(flatten)]
    workload: Workload,
    #[command(flatten)]
    clients: Clients,
    #[command(flatten)]
    times: Times,
    /// Operations a second, whatever the servers do (open loop)
    #[arg(long, conflicts_with = "outstanding", value_parser = parse_rate)]
    rate: Option<f64>,
    /// Operations outstanding on each connection, each sent on a reply (closed loop)
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    outstanding: u32,
    #[command(flatten)]
    timetable: Timetable,
    #[command(flatten)]
    belief: Belief,
    #[command(flatten)]
    output: Output,
}

/// What becomes of the report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// What is printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Also write every number here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write all latencies here: an HDR interval log if it ends in .hlog, else the text of percentiles
    #[arg(long, value_name = "FILE")]
    hdr: Option<PathBuf>,
}

/// A rate from one operation a second.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    match text.replace('_', "").parse::<f64>() {
        Ok(rate) if (1e-3..=1e9).contains(&rate) => Ok(rate),
        _ => Err(format!("`{text}` is no rate; write operations a second, from 0.001 to 1000000000")),
    }
}

impl Run {
    /// Runs the load.
    ///
    /// # Errors
    /// If options contradict each other, or a server is not there.
    pub fn execute(&self) -> Done {
        let setup = self.workload.setup(&self.servers, self.clients.connections)?;
        let crew = self.clients.crew(self.servers.clone());
        if self.workload.loads() {
            load(&crew, &setup)?;
        }
        let pace = match self.rate {
            Some(rate) => Pace::Open(self.timetable.arrivals, rate),
            None => Pace::Closed(self.outstanding),
        };
        let phase = phase(1, pace, self.times.warm_up, self.times.time);
        let book = crew.run(&setup, phase, |_| ())?;
        let report = Report::new(&book, &phase, crew.threads, self.belief.doubts());
        let json = serde_json::to_string_pretty(&report)? + "\n";
        if let Some(path) = &self.output.json {
            fs::write(path, &json).with_context(|| format!("cannot write {}", path.display()))?;
        }
        if let Some(path) = &self.output.hdr {
            report.write_hdr(&book.latency, path)?;
        }
        match self.output.format {
            Format::Table => print(&report.to_string())?,
            Format::Json => print(&json)?,
        }
        Ok(status(!report.suspect.is_empty()))
    }
}

/// Stores all keys.
///
/// # Errors
/// If the server does not take one.
pub fn load(crew: &Crew, setup: &Arc<Setup>) -> anyhow::Result<()> {
    let book = crew.run(setup, load_phase(), |_| ())?;
    if book.counts.refused > 0 || book.counts.closed > 0 {
        bail!(
            "the server did not store all keys: {} of {} stored; {}",
            book.counts.completed,
            setup.choice.keys(),
            book.examples.join("; ")
        );
    }
    Ok(())
}
