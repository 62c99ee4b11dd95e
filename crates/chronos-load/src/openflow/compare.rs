//! Compares two controllers under the same load on the same processors, in turn.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{OpenFlowReport, SwitchLoad};
use crate::compare::{ComparedFigure, in_pairs, write_figures};
use crate::process::{Recipe, ServerProcess, ServerTransport, Stopwatch};

/// The results of one controller's turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Turn {
    /// The results that the switches measured.
    pub report: OpenFlowReport,
    /// The controller's processor time per answer, in microseconds.
    pub server_us_per_answer: f64,
}

/// The results of all turns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ControllerComparison {
    /// The names of the controllers.
    pub names: [String; 2],
    /// The turns of both controllers, pair by pair.
    pub pairs: Vec<[Turn; 2]>,
    /// The reasons why a figure is suspect.
    pub suspect: Vec<String>,
}

/// Runs the turn of one controller, on `cpus`.
///
/// # Errors
/// Returns an error if it cannot be started, or does not answer.
pub fn turn(plan: &SwitchLoad, recipe: &Recipe, cpus: &[usize]) -> anyhow::Result<Turn> {
    let server = ServerProcess::start(recipe, ServerTransport::Tcp, cpus)?;
    let mut watch = Stopwatch::of(std::slice::from_ref(&server), &[]);
    let report = plan.run(&server.endpoint, |edge| watch.look(edge))?;
    let spent = watch.taken()?.ran.as_us_f64();
    let answers = report.replies.answered;
    let server_us_per_answer = if answers > 0 { spent / answers as f64 } else { 0.0 };
    Ok(Turn { report, server_us_per_answer })
}

/// Runs all pairs of `plan`, the controllers on `cpus`; `tell` is called before each turn.
///
/// # Errors
/// Returns an error if a controller cannot be started, or does not answer.
pub fn compare(
    plan: &SwitchLoad,
    recipes: &[Recipe; 2],
    cpus: &[usize],
    pairs: u32,
    tell: impl FnMut(&str),
) -> anyhow::Result<ControllerComparison> {
    let pairs = in_pairs(pairs, recipes, tell, |side| turn(plan, &recipes[side], cpus))?;
    let names = recipes.clone().map(|recipe| recipe.name);
    let mut suspect = Vec::new();
    for (pair, turns) in (1..).zip(&pairs) {
        for (name, turn) in names.iter().zip(turns) {
            suspect.extend(turn.report.suspect.iter().map(|reason| format!("pair {pair}, {name}: {reason}")));
        }
    }
    Ok(ControllerComparison { names, pairs, suspect })
}

impl fmt::Display for ControllerComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.suspect.iter().try_for_each(|reason| writeln!(f, "SUSPECT: {reason}"))?;
        write_figures(&self.names, &self.pairs, FIGURES, f)
    }
}

const FIGURES: &[ComparedFigure<Turn>] = &[
    ComparedFigure { title: "answers/s", of: |turn| Some(turn.report.rate) },
    ComparedFigure { title: "mean us", of: |turn| Some(turn.report.latency.mean) },
    ComparedFigure { title: "p99 us", of: |turn| Some(turn.report.latency.p99) },
    ComparedFigure {
        title: "controller's processor us per answer",
        of: |turn| Some(turn.server_us_per_answer),
    },
];
