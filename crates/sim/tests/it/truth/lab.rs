//! Runs a scenario that is written in a test, and shows it if the test then fails.
#![allow(clippy::print_stderr, reason = "a test; its runner shows it where it fails")]

use std::ops::Deref;
use std::path::Path;

use plimsoll_results::Digest;
use plimsoll_results::outcome::{MessageRecord, Outcome, QueueObservation};
use plimsoll_scenario::model::Model;
use plimsoll_scenario::{Overrides, Scenario};

/// A scenario that a failing test prints, with the command that repeats the test.
pub struct Shown(String);

impl Shown {
    pub fn new(text: &str) -> Shown {
        Shown(text.to_owned())
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let thread = std::thread::current();
            let test = thread.name().filter(|name| *name != "main").unwrap_or("");
            eprintln!("--- the scenario ---\n{}\n--- repeat with ---", self.0.trim());
            eprintln!("cargo test -p plimsoll-sim --test it -- {test}");
        }
    }
}

/// The outcome of a run, and its scenario.
pub struct Run {
    pub outcome: Outcome,
    _shown: Shown,
}

impl Deref for Run {
    type Target = Outcome;
    fn deref(&self) -> &Outcome {
        &self.outcome
    }
}

impl Run {
    pub fn digest(&self) -> Digest {
        Digest::of(&self.outcome)
    }

    /// Messages of the workload called `name`, in order of their index.
    pub fn of<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a MessageRecord> + use<'a> {
        let number = self.workloads.iter().position(|info| info.name == name).expect("a workload's name");
        self.messages.iter().filter(move |message| usize::from(message.workload) == number)
    }

    /// The watched queue called `name`.
    pub fn queue(&self, name: &str) -> &QueueObservation {
        self.queues.iter().find(|queue| queue.name == name).expect("a watched queue's name")
    }
}

/// Where paths in scenarios start: the directory of fixtures.
fn base() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files"))
}

/// The only model of `text`, or the one of the variant that is named.
#[track_caller]
pub fn model(text: &str, variant: Option<&str>, seed: Option<u64>) -> Model {
    let overrides = Overrides { seed, ..Overrides::default() };
    let scenario = Scenario::parse_with("inline", text, base(), &overrides).unwrap_or_else(|errors| {
        panic!("{}\n{text}", errors.iter().map(|error| format!("{error}\n")).collect::<String>())
    });
    let mut points =
        scenario.points().iter().filter(|point| variant.is_none_or(|name| point.variant == name));
    let point = points.next().expect("a variant of that name");
    assert!(points.next().is_none(), "one run expected:\n{text}");
    point.model.clone()
}

/// Runs the only point of `text`.
#[track_caller]
pub fn run(text: &str) -> Run {
    run_model(&model(text, None, None), text)
}

/// Runs the only point of `text` with another seed.
#[track_caller]
pub fn run_with_seed(text: &str, seed: u64) -> Run {
    run_model(&model(text, None, Some(seed)), &format!("{text}\n# with the seed {seed}"))
}

/// Runs the variant of `text` called `name`.
#[track_caller]
pub fn run_variant(text: &str, name: &str) -> Run {
    run_model(&model(text, Some(name), None), &format!("{text}\n# the variant {name}"))
}

#[track_caller]
fn run_model(model: &Model, text: &str) -> Run {
    let shown = Shown::new(text);
    let outcome = plimsoll_sim::run(model, &mut |_| true).expect("the scenario can be run");
    Run { outcome, _shown: shown }
}
