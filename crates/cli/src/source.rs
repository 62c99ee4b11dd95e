//! The scenario of a command, and the overrides on its command line.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use plimsoll_experiment::question;
use plimsoll_process::note;
use plimsoll_scenario::{Overrides, Point, Registry, Scenario, ScenarioError};
use plimsoll_text::counted;
use plimsoll_units::whole;

/// A scenario file with overrides.
#[derive(Args, Clone, Debug)]
pub struct Source {
    /// Scenario file, or the name of a built-in scenario such as `quickstart`: `plimsoll scenario list` prints them.
    #[arg(value_name = "SCENARIO")]
    pub path: PathBuf,
    /// Override a key: `--set workload.background.load=0.4`; may be repeated. A key that is set is not swept. `plimsoll
    /// config` lists the keys.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Replace the file's `run.duration`, such as by `2s`.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<String>,
    /// Seed of every random stream, instead of the file's `run.seed`.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(..))]
    pub seed: Option<u64>,
    /// Run each point N times with different seeds; from three on, intervals are those of the spread between them. By
    /// default the file's `replicates`, or one.
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..))]
    pub replicates: Option<u32>,
}

impl Source {
    /// Reads and checks the file; its warnings go to stderr.
    ///
    /// # Errors
    /// [`BadScenario`], with all its errors.
    pub fn load(&self, registry: &Registry) -> anyhow::Result<Scenario> {
        self.load_with(registry, self.replicates.unwrap_or(0))
    }

    /// Reads and checks the file for `replicates` runs of each point; its warnings go to stderr.
    ///
    /// # Errors
    /// [`BadScenario`], with all its errors.
    pub fn load_with(&self, registry: &Registry, replicates: u32) -> anyhow::Result<Scenario> {
        let overrides = Overrides { replicates, ..self.overrides() };
        let scenario =
            plimsoll_shipped::load(registry, &self.path, &overrides).map_err(|errors| self.bad(errors))?;
        for warning in scenario.warnings() {
            note!("{warning}\n");
        }
        Ok(scenario)
    }

    /// Returns the error of a command that cannot run the scenario.
    pub fn bad(&self, errors: Vec<ScenarioError>) -> BadScenario {
        BadScenario::new(self.path.display().to_string(), "run", errors)
    }

    /// Returns the command that repeats a subcommand with the `points` of this scenario, quoted for a shell. Without
    /// points it has the seed that was given, else theirs.
    pub fn command_of(&self, subcommand: &str, points: &[Point]) -> String {
        question::command(subcommand, &self.path, &self.overrides(), points)
    }

    fn overrides(&self) -> Overrides {
        let replicates = self.replicates.unwrap_or(0);
        let duration = self.duration.iter().map(|duration| format!("run.duration={duration}"));
        let set = self.set.iter().cloned().chain(duration).collect();
        Overrides { set, seed: self.seed, replicates, ..Overrides::default() }
    }
}

/// All errors of a scenario, or of a file to convert into one.
#[derive(Debug)]
pub struct BadScenario {
    name: String,
    /// The operation that is impossible: run, imported.
    done: &'static str,
    errors: Vec<ScenarioError>,
}

impl BadScenario {
    /// Creates the errors of the file of that name, which cannot be `done`: run, imported.
    pub fn new(name: String, done: &'static str, errors: Vec<ScenarioError>) -> BadScenario {
        BadScenario { name, done, errors }
    }
}

impl fmt::Display for BadScenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [error] = &self.errors[..]
            && error.line == 0
        {
            // The error does not belong to a file, so no count is printed.
            return error.fmt(f);
        }
        for error in self.errors.iter().take(SHOWN_MAX) {
            writeln!(f, "{error}\n")?;
        }
        if let Some(more @ 1..) = self.errors.len().checked_sub(SHOWN_MAX) {
            writeln!(f, "and {} further\n", counted(more as u64, "error"))?;
        }
        match self.errors.len() {
            1 => write!(f, "error: {} cannot be {}: 1 error", self.name, self.done),
            many => write!(f, "error: {} cannot be {}: {many} errors", self.name, self.done),
        }
    }
}

impl std::error::Error for BadScenario {}

/// The most errors of a file that are shown.
const SHOWN_MAX: usize = 20;
