//! Implements `chronos-load saturate`, which searches the highest rate of operations that servers sustain.

use std::fmt::Write as _;

use clap::Args;
use plimsoll_units::whole;

use super::target::Target;
use super::{CommandResult, print, status};
use crate::options::Format;
use crate::report::Report;
use crate::setup::Pace;

/// Find the highest rate of operations: a closed loop with ever more outstanding on each connection
#[derive(Debug, Args)]
pub struct Saturate {
    #[command(flatten)]
    target: Target,
    /// The most outstanding on each connection; 1, 2, 4 and so on are tried up to it
    #[arg(help_heading = "Load", long, default_value_t = 16, value_parser = whole::<u32>(1..=10_000))]
    outstanding: u32,
    /// Form of the printed report
    #[arg(help_heading = "Output", long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

impl Saturate {
    /// Runs the search and prints its results.
    ///
    /// # Errors
    /// Returns an error if options contradict each other, or a server cannot be reached.
    pub fn execute(&self) -> CommandResult {
        let mut ready = self.target.prepare()?;
        let steps = std::iter::successors(Some(1), |outstanding| Some(outstanding * 2));
        let mut found: Vec<(u32, Report)> = Vec::new();
        for (index, outstanding) in
            (1..).zip(steps.take_while(|&outstanding| outstanding <= self.outstanding))
        {
            let measured = ready.run(index, Pace::Closed(outstanding))?;
            found.push((outstanding, measured.report));
        }
        let suspect = found.iter().any(|(_, report)| !report.suspect.is_empty());
        match self.format {
            Format::Table => print(&table(&found))?,
            Format::Json => print(&(serde_json::to_string_pretty(&found)? + "\n"))?,
        }
        Ok(status(suspect))
    }
}

fn table(found: &[(u32, Report)]) -> String {
    let mut out = String::from("outstanding  operations/s    p50 us    p99 us  generator\n");
    for (outstanding, report) in found {
        let Report { rate, latency, generator_busy, suspect, .. } = report;
        let _ = writeln!(
            out,
            "{outstanding:11}  {rate:12.0} {:9.1} {:9.1}  {:3.0} % busy{}",
            latency.p50,
            latency.p99,
            100.0 * generator_busy,
            if suspect.is_empty() { "" } else { "  SUSPECT" },
        );
        suspect.iter().for_each(|reason| {
            let _ = writeln!(out, "  SUSPECT: {reason}");
        });
    }
    let most = found.iter().map(|(_, report)| report.rate).fold(0.0, f64::max);
    let _ = writeln!(out, "most: {most:.0} operations/s");
    out
}
