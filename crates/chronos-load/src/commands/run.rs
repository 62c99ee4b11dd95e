//! Implements `chronos-load run`: one load and its report.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use plimsoll_units::whole;

use super::target::Target;
use super::{CommandResult, print, status};
use crate::line::MeasuredPhase;
use crate::options::{Format, OperationSchedule};
use crate::setup::Pace;

/// Put a load on servers and report latencies, rate and losses
#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    target: Target,
    /// Operations a second, whatever the servers do (open loop)
    #[arg(help_heading = "Load", long, conflicts_with = "outstanding", value_parser = parse_rate)]
    rate: Option<f64>,
    /// Operations outstanding on each connection, each sent on a reply (closed loop)
    #[arg(help_heading = "Load", long, default_value_t = 1, value_parser = whole::<u32>(1..=10_000))]
    outstanding: u32,
    #[command(flatten)]
    timetable: OperationSchedule,
    #[command(flatten)]
    output: Output,
}

/// The form of the report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Form of the printed report
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Also write the complete results to this JSON file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write all latencies here: an HDR interval log if it ends in .hlog, else the text of percentiles
    #[arg(long, value_name = "FILE")]
    hdr: Option<PathBuf>,
}

/// Parses a rate of at least one operation in 1000 s.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    match text.replace('_', "").parse::<f64>() {
        Ok(rate) if (1e-3..=1e9).contains(&rate) => Ok(rate),
        _ => Err(format!("`{text}` is not a rate; write operations a second, from 0.001 to 1000000000")),
    }
}

impl Run {
    /// Runs the load and prints its report.
    ///
    /// # Errors
    /// Returns an error if options contradict each other, or a server cannot be reached.
    pub fn execute(&self) -> CommandResult {
        let pace = match self.rate {
            Some(rate) => Pace::Open(self.timetable.arrivals, rate),
            None => Pace::Closed(self.outstanding),
        };
        let MeasuredPhase { book, report, .. } = self.target.prepare()?.run(1, pace)?;
        let json = serde_json::to_string_pretty(&report)? + "\n";
        if let Some(path) = &self.output.json {
            fs::write(path, &json).with_context(|| format!("cannot write {}", path.display()))?;
        }
        if let Some(path) = &self.output.hdr {
            report.write_hdr(&book.waits(), path)?;
        }
        match self.output.format {
            Format::Table => print(&report.to_string())?,
            Format::Json => print(&json)?,
        }
        Ok(status(!report.suspect.is_empty()))
    }
}
