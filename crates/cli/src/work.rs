//! Implements `plimsoll work`, which carries out tasks of an approximate run for `plimsoll run --workers`.
//!
//! ```text
//! stdin:  {"scenario":"version = 1 ..","build":"0.9.0"}    once: what is run
//!         {"point":0}                                      the point of the tasks that follow
//!         {"task":{..}}                                    a line each
//! stdout: "ready"                                          once it has read the scenario
//!         {"answer":{..}} or {"error":".."}                a line for each task
//! ```

use std::io::{BufRead as _, stdin};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use plimsoll_scenario::{Overrides, Registry, Scenario};
use plimsoll_sim::approximate::{Answer, Task};
use serde::{Deserialize, Serialize};

use crate::output::{self, Done};

/// Carry out tasks of an approximate run, for `plimsoll run --workers N --worker-command COMMAND`.
///
/// Tasks come from stdin, and answers go to stdout, a line of JSON each. It ends with the run that has started it.
#[derive(clap::Args)]
pub struct Args {}

/// A line that the run writes to a worker.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// The scenario whose points are run.
    Scenario {
        /// The text, with all files.
        text: String,
        /// The version of the program that sends tasks.
        build: String,
    },
    /// The number of the point whose tasks follow.
    Point(usize),
    /// A task of that point, to be carried out.
    Task(Box<Task>),
}

/// A line from a worker: the first one, and one for each task.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// The scenario was read, and tasks may come.
    Ready,
    /// The completion times and losses of the task.
    Answer(Answer),
    /// The reason why there is none.
    Error(String),
}

pub fn run(_: &Args, registry: &Registry) -> Done {
    let mut scenario: Option<Scenario> = None;
    let mut point = 0;
    for line in stdin().lock().lines() {
        let line = line.context("cannot read a task from stdin")?;
        let request = serde_json::from_str(&line).context(
            "stdin has no task: `plimsoll run --workers` starts this command, and sends tasks to it",
        )?;
        match request {
            Request::Scenario { text, build } => {
                scenario = Some(read(registry, &text, &build)?);
                say(&Reply::Ready)?;
            }
            Request::Point(number) => point = number,
            Request::Task(task) => {
                let points = scenario.as_ref().map_or(&[][..], Scenario::points);
                let of = points
                    .get(point)
                    .ok_or_else(|| anyhow!("a task of point {point}, which is not there"))?;
                let reply = match task.run(&of.model, &mut |_| true) {
                    Ok(answer) => Reply::Answer(answer),
                    Err(error) => Reply::Error(output::reasons(&error.into())),
                };
                say(&reply)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn say(reply: &Reply) -> anyhow::Result<()> {
    output::print(&(serde_json::to_string(reply)? + "\n"))
}

/// Reads the scenario that the run has sent.
fn read(registry: &Registry, text: &str, build: &str) -> anyhow::Result<Scenario> {
    if build != output::VERSION {
        let own = output::VERSION;
        return Err(anyhow!(
            "this worker is plimsoll {own}, and the run is of plimsoll {build}: install the same"
        ));
    }
    let scenario =
        Scenario::parse_from(registry, "scenario.toml", text, Path::new("."), &Overrides::default());
    scenario.map_err(|errors| anyhow!(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))
}
