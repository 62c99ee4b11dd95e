//! Implements `chronos-load line`, which searches the highest rate at which servers meet an objective.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Args;
use plimsoll_process::note;
use plimsoll_stats::search::{SearchAxis, SearchRange};
use plimsoll_units::whole;

use super::run::parse_rate;
use super::target::Target;
use super::{CommandResult, print};
use crate::line::search;
use crate::objective::Objective;
use crate::options::{Format, OperationSchedule};
use crate::setup::Pace;

/// Search the highest rate at which servers meet an objective, such as p99 < 1ms: their load line
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 (a rate meets every objective), 1 (none is known to), 2 (an error).")]
pub struct LoadLine {
    #[command(flatten)]
    target: Target,
    /// Objective: 'p99 < 1ms', or mean or any pN. May be given several times; a rate has to meet all
    #[arg(help_heading = "Search", long = "slo", value_name = "OBJECTIVE", required = true)]
    slos: Vec<Objective>,
    /// Lowest rate to try, in operations a second; a hundredth of --to by default
    #[arg(help_heading = "Search", long, value_name = "RATE", value_parser = parse_rate)]
    from: Option<f64>,
    /// Highest rate to try; by default that of a closed loop with 16 operations outstanding on each connection
    #[arg(help_heading = "Search", long, value_name = "RATE", value_parser = parse_rate)]
    to: Option<f64>,
    /// Largest width of the line's interval, as a share of the rate
    #[arg(help_heading = "Search", long, value_name = "SHARE", default_value = "5%",
          value_parser = parse_resolution)]
    resolution: f64,
    /// Most rounds of one rate. A rate that they leave undecided is within the noise of the line
    #[arg(help_heading = "Search", long, default_value_t = 16, value_parser = whole::<u32>(4..=ROUNDS_MAX))]
    rounds: u32,
    #[command(flatten)]
    timetable: OperationSchedule,
    /// Form of the printed line
    #[arg(help_heading = "Output", long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Also write the complete results to this JSON file
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl LoadLine {
    /// Runs the search and prints the line.
    ///
    /// # Errors
    /// Returns an error if options contradict each other, a server cannot be reached or returns wrong values, or an
    /// agent is lost.
    pub fn execute(&self) -> CommandResult {
        if let (Some(from), Some(to)) = (self.from, self.to) {
            ensure!(from < to, "--from {from} is not below --to {to}");
        }
        let mut ready = self.target.prepare()?;
        let to = match self.to {
            Some(to) => to,
            None => {
                let most = ready.run(CLOSED_INDEX, Pace::Closed(CLOSED_OUTSTANDING))?.report.rate;
                note!(
                    "a closed loop with {CLOSED_OUTSTANDING} outstanding on each connection: {most:.0} operations/s"
                );
                ensure!(most > 0.0, "no operation ended in a closed loop: give --to");
                most
            }
        };
        let from = self.from.unwrap_or(to / 100.0);
        ensure!(
            from < to,
            "--from {from} is not below {to:.0} operations/s, the rate of a closed loop: give --to"
        );
        let range = SearchRange {
            low: from,
            start: (from * to).sqrt().max(to / 2.0),
            high: to,
            expected: None,
            precision: self.resolution,
            replicates_max: self.rounds,
            axis: SearchAxis::LOAD,
        };
        if let Some(limit) = self.slos.iter().map(|slo| slo.limit).min() {
            ready.compare_with(limit);
        }
        let arrivals = self.timetable.arrivals;
        let measure = |index, rate| ready.run(index, Pace::Open(arrivals, rate));
        let line = search(&self.slos, range, measure, |decided| note!("{decided}"))?;
        let json = serde_json::to_string_pretty(&line)? + "\n";
        if let Some(path) = &self.json {
            fs::write(path, &json).with_context(|| format!("cannot write {}", path.display()))?;
        }
        match self.format {
            Format::Table => print(&format!("Load line of {}\n{line}", self.target.servers()))?,
            Format::Json => print(&json)?,
        }
        Ok(if line.is_met() { ExitCode::SUCCESS } else { ExitCode::from(NOT_MET) })
    }
}

fn parse_resolution(text: &str) -> Result<f64, String> {
    let share = plimsoll_units::parse_share(text).ok().filter(|share| (0.001..=1.0).contains(share));
    share.ok_or_else(|| format!("the resolution `{text}` is not from 0.1% to 100%"))
}

/// The exit status where no rate is known to meet every objective.
const NOT_MET: u8 = 1;
/// Most rounds of a rate: their indexes are indexes of phases, from 1.
const ROUNDS_MAX: u32 = 200;
/// The index of the phase that measures the highest rate.
const CLOSED_INDEX: u8 = 255;
const CLOSED_OUTSTANDING: u32 = 16;
