//! [`Calibration`]: parameters of the hosts from latencies that were measured at an idle load.
//!
//! ```text
//! values ──> scenario ──> runs with its seeds ──> quantiles ──> residuals = (measured - modelled) / error
//!   ^                                                              │
//!   └── Gauss-Newton step, halved until the residuals shrink <─────┘
//! ```
//!
//! All runs have the same seeds, so that the quantiles move smoothly with the values, and the same input gives the same
//! values. Two parameters that change the quantiles in the same proportions (a cosine of their effects of
//! [`SAME_EFFECT`] or more) cannot be distinguished: only the first one is fitted, and its value is the sum of both.

use std::sync::Mutex;

use plimsoll_experiment::bench::Bench;
use plimsoll_models::measured::MeasuredLatencies;
use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::model::Model;
use plimsoll_scenario::{Scenario, ScenarioError};
use plimsoll_sim::batch::BatchError;
use plimsoll_stats::samples_needed;
use plimsoll_units::Span;
use serde::Serialize;

use crate::modelled::ModelledLatencies;
use crate::parameter::{self, Parameter};
use crate::quantiles::{DEVIATIONS, measured};

/// The fitted quantiles.
const SHARES: [f64; 6] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.99];
/// The cosine of two effects from which on they count as the same.
pub const SAME_EFFECT: f64 = 0.99;
/// The first value of each parameter, and the step of its derivative, as a share of the measured median.
const FIRST: f64 = 0.05;
/// The least error of a quantile, as a share of it: data are rounded.
const ERROR_LEAST: f64 = 1e-3;
/// The most steps, and the most halvings of one.
const STEPS_MAX: usize = 8;
const HALVINGS_MAX: usize = 4;
/// The change of all values, as a share of the measured median, below which the search ends.
const SETTLED: f64 = 1e-3;
/// The largest cost of a host's stack, in us.
const COST_MAX_US: f64 = 1_000.0;

/// The reasons why a scenario cannot be calibrated.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// The scenario is invalid with a parameter or at the checked load.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n"))]
    Scenario(Vec<ScenarioError>),
    /// The scenario has several variants or swept values.
    #[error(
        "the scenario has several points: {0}; choose one with --variant, and a value of a swept key with --set"
    )]
    Points(String),
    /// No message of the workload completed.
    #[error("workload `{0}` has no completed message after the warm-up; allowed: a longer `--duration`")]
    NoMessages(String),
    /// The file has too few latencies, or does not state how many.
    #[error("the measurement has {0}; a fit needs at least {1}, which the file states")]
    TooFew(String, u64),
    /// A key is to be fitted twice.
    #[error("--fit {0}: the key is given twice; allowed: each key once")]
    Twice(String),
    /// No parameter changes the latency.
    #[error("{0}: no effect on the latency; name other keys with --fit")]
    NoEffect(String),
    /// A run of the scenario failed.
    #[error(transparent)]
    Run(#[from] BatchError),
}

/// A scenario, one of its points, and the runs of it.
pub struct Calibration<'a> {
    scenario: &'a Scenario,
    variant: String,
    workload: String,
    bench: Bench<'a>,
}

/// The values that reproduce a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct CalibratedFit {
    /// The fitted parameters.
    pub fitted: Vec<Fitted>,
    /// Parameters that cannot be distinguished from a fitted one, in sentences.
    pub merged: Vec<String>,
    /// The overrides that give the scenario its values.
    pub set: Vec<String>,
    /// The number of runs that the fit made.
    pub runs: u64,
}

/// A parameter with the value that was fitted.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Fitted {
    /// The key of the scenario.
    pub key: String,
    /// The fitted value of the key in us.
    pub us: f64,
    /// Half of its 95 % interval in us, from the errors of the quantiles.
    pub error_us: f64,
}

impl Fitted {
    /// Returns the ends of the 95 % interval in us.
    pub fn interval(&self) -> [f64; 2] {
        [(self.us - self.error_us).max(0.0), self.us + self.error_us]
    }
}

/// Runs of the workload with some values.
struct Evaluated {
    us: Vec<f64>,
    errors: Vec<f64>,
}

impl<'a> Calibration<'a> {
    /// Prepares runs of one point of a scenario. `variant` may be left out if there is one.
    ///
    /// # Errors
    /// Returns an error if the scenario has several points.
    pub fn new(
        scenario: &'a Scenario,
        variant: Option<&str>,
        workload: &str,
        bench: Bench<'a>,
    ) -> Result<Calibration<'a>, CalibrateError> {
        let points = scenario.points().iter();
        let mut labels: Vec<String> = points
            .filter(|point| variant.is_none_or(|variant| point.variant == variant))
            .map(plimsoll_scenario::Point::label)
            .collect();
        labels.dedup();
        if labels.len() != 1 {
            let all = scenario.points().iter().map(plimsoll_scenario::Point::label);
            let mut all: Vec<String> = all.collect();
            all.dedup();
            return Err(CalibrateError::Points(all.join("; ")));
        }
        let first = scenario.points().iter().find(|p| variant.is_none_or(|variant| p.variant == variant));
        let variant = first.map_or_else(String::new, |point| point.variant.clone());
        Ok(Calibration { scenario, variant, workload: workload.to_owned(), bench })
    }

    /// Runs the scenario with the overrides `set`, after the settings `at`.
    ///
    /// # Errors
    /// Returns the errors of the scenario or of a run.
    pub fn run(&self, set: &[String], at: &[String]) -> Result<ModelledLatencies, CalibrateError> {
        let scenario = self.scenario.with_overrides(&parameter::with(self.scenario, set, at));
        let scenario = scenario.map_err(CalibrateError::Scenario)?;
        let points = scenario.points().iter().filter(|point| point.variant == self.variant);
        let models: Vec<&Model> = points.map(|point| &point.model).collect();
        let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(models.iter().map(|_| None).collect());
        self.bench.run(&models, |index, outcome| {
            outcomes.lock().map_err(|_| "a thread of the bench has ended")?[index] = Some(outcome);
            Ok(())
        })?;
        let outcomes = outcomes.into_inner().unwrap_or_default();
        let outcomes: Vec<&Outcome> = outcomes.iter().flatten().collect();
        ModelledLatencies::of(&outcomes, &self.workload)
            .ok_or_else(|| CalibrateError::NoMessages(self.workload.clone()))
    }

    /// Fits the parameters `keys`, or the default ones if it is empty.
    ///
    /// # Errors
    /// Returns an error for a key that the scenario does not have, for too few latencies, and for parameters without an
    /// effect.
    pub fn fit(
        &self,
        latencies: &MeasuredLatencies,
        keys: &[String],
    ) -> Result<CalibratedFit, CalibrateError> {
        let mut parameters = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            if keys[..at].contains(key) {
                return Err(CalibrateError::Twice(key.clone()));
            }
            parameters.push(Parameter::new(self.scenario, key).map_err(CalibrateError::Scenario)?);
        }
        if keys.is_empty() {
            parameters = parameter::by_default(self.scenario, &self.workload);
        }
        let shares: Vec<f64> = SHARES
            .into_iter()
            .filter(|share| measured(latencies, *share).is_some_and(|found| found.interval.is_some()))
            .collect();
        if shares.len() <= parameters.len() {
            let has =
                latencies.samples.map_or("no stated number of latencies".to_owned(), |n| format!("{n}"));
            return Err(CalibrateError::TooFew(has, samples_needed(0.9)));
        }
        let mut search = FitSearch { calibration: self, latencies, shares, parameters, runs: 0 };
        search.fit()
    }
}

/// A fit that is under way.
struct FitSearch<'a> {
    calibration: &'a Calibration<'a>,
    latencies: &'a MeasuredLatencies,
    shares: Vec<f64>,
    parameters: Vec<Parameter>,
    runs: u64,
}

impl FitSearch<'_> {
    fn fit(&mut self) -> Result<CalibratedFit, CalibrateError> {
        let median = self.latencies.distribution.quantile(0.5);
        let mut values = vec![(FIRST * median).min(COST_MAX_US / 2.0); self.parameters.len()];
        let mut here = self.evaluate(&values)?;
        let mut effects = self.effects(&values, &here, median)?;
        let merged = self.merge(&mut values, &effects)?;
        if effects.len() > values.len() {
            here = self.evaluate(&values)?;
            effects = self.effects(&values, &here, median)?;
        }
        for step in 0..STEPS_MAX {
            if step > 0 {
                effects = self.effects(&values, &here, median)?;
            }
            let Some(whole) = solve(&normal(&effects), &right(&effects, &here.us)) else { break };
            let mut factor = 1.0;
            let mut moved = None;
            for _ in 0..=HALVINGS_MAX {
                let next: Vec<f64> = values
                    .iter()
                    .zip(&whole)
                    .map(|(value, step)| self.bounded(value + factor * step))
                    .collect();
                let there = self.evaluate(&next)?;
                if cost(&there.us) < cost(&here.us) {
                    moved = Some((next, there));
                    break;
                }
                factor /= 2.0;
            }
            let Some((next, there)) = moved else { break };
            let change: f64 = values.iter().zip(&next).map(|(old, new)| (old - new).abs()).sum();
            (values, here) = (next, there);
            if change < SETTLED * median {
                break;
            }
        }
        let errors = deviations(&normal(&effects));
        let fitted = self.parameters.iter().zip(&values).zip(errors);
        let fitted = fitted.map(|((parameter, us), error)| Fitted {
            key: parameter.key.clone(),
            us: span(*us).as_us_f64(),
            error_us: 1.96 * error,
        });
        Ok(CalibratedFit { fitted: fitted.collect(), merged, set: self.set(&values), runs: self.runs })
    }

    fn bounded(&self, us: f64) -> f64 {
        let has_cost = self.parameters.iter().any(|parameter| parameter.key.starts_with("host.processor."));
        us.clamp(0.0, if has_cost { COST_MAX_US } else { f64::MAX })
    }

    fn set(&self, values: &[f64]) -> Vec<String> {
        self.parameters.iter().zip(values).map(|(parameter, us)| parameter.set(span(*us))).collect()
    }

    /// Runs the scenario with these values; returns the weighted residual of each quantile, and its error in us.
    fn evaluate(&mut self, values: &[f64]) -> Result<Evaluated, CalibrateError> {
        let modelled = self.calibration.run(&self.set(values), &[])?;
        self.runs += 1;
        let (mut us, mut errors) = (Vec::new(), Vec::new());
        for share in &self.shares {
            let seen = measured(self.latencies, *share).expect("only quantiles that are known are fitted");
            let found = modelled.quantile(*share);
            let half = |estimate: &plimsoll_stats::Estimate| {
                estimate.interval.map_or(0.0, |interval| (interval.high - interval.low) / (2.0 * DEVIATIONS))
            };
            let error = half(&seen).hypot(half(&found)).max(ERROR_LEAST * seen.value);
            us.push((seen.value - found.value) / error);
            errors.push(error);
        }
        Ok(Evaluated { us, errors })
    }

    /// Returns the change of every weighted quantile with each parameter, a list a parameter.
    fn effects(
        &mut self,
        values: &[f64],
        here: &Evaluated,
        median: f64,
    ) -> Result<Vec<Vec<f64>>, CalibrateError> {
        let step = FIRST * median;
        let mut effects = Vec::new();
        for parameter in 0..values.len() {
            let mut beside = values.to_vec();
            beside[parameter] = self.bounded(beside[parameter] + step);
            let moved = (beside[parameter] - values[parameter]).max(1e-3);
            let there = self.evaluate(&beside)?;
            let change = |at: usize| {
                let in_us = here.us[at] * here.errors[at] - there.us[at] * there.errors[at];
                in_us / (moved * here.errors[at])
            };
            effects.push((0..here.us.len()).map(change).collect());
        }
        Ok(effects)
    }

    /// Removes parameters that cannot be distinguished from an earlier one; returns a sentence for each.
    fn merge(&mut self, values: &mut Vec<f64>, effects: &[Vec<f64>]) -> Result<Vec<String>, CalibrateError> {
        let mut kept: Vec<usize> = Vec::new();
        let mut sentences = Vec::new();
        for (at, effect) in effects.iter().enumerate() {
            let key = &self.parameters[at].key;
            if dot(effect, effect) < 1e-6 {
                sentences.push(format!("{key} has no effect on the latency and is left as it is"));
                continue;
            }
            let same = kept.iter().find(|&&other| cosine(effect, &effects[other]) >= SAME_EFFECT);
            match same {
                Some(&other) => {
                    let ratio = dot(effect, &effects[other]) / dot(&effects[other], &effects[other]);
                    sentences.push(format!(
                        "{key} cannot be told from {first} by these latencies: 1 us of it has the effect of {ratio:.2} \
                         us of {first}, whose value is the sum; a measurement inside the server tells them apart",
                        first = self.parameters[other].key
                    ));
                }
                None => kept.push(at),
            }
        }
        if kept.is_empty() {
            let keys: Vec<&str> = self.parameters.iter().map(|parameter| parameter.key.as_str()).collect();
            return Err(CalibrateError::NoEffect(keys.join(", ")));
        }
        self.parameters = kept.iter().map(|&at| self.parameters[at].clone()).collect();
        *values = kept.iter().map(|&at| values[at]).collect();
        Ok(sentences)
    }
}

/// Returns a length of time in whole nanoseconds.
fn span(us: f64) -> Span {
    Span::from_ps((us.max(0.0) * 1e3).round() as u64 * 1_000)
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

fn cosine(one: &[f64], other: &[f64]) -> f64 {
    dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
}

fn cost(residuals: &[f64]) -> f64 {
    dot(residuals, residuals)
}

fn normal(effects: &[Vec<f64>]) -> Vec<Vec<f64>> {
    effects.iter().map(|one| effects.iter().map(|other| dot(one, other)).collect()).collect()
}

fn right(effects: &[Vec<f64>], residuals: &[f64]) -> Vec<f64> {
    effects.iter().map(|effect| dot(effect, residuals)).collect()
}

/// Solves a symmetric positive system by elimination; `None` if it is singular.
fn solve(matrix: &[Vec<f64>], right: &[f64]) -> Option<Vec<f64>> {
    let count = right.len();
    let mut rows: Vec<Vec<f64>> =
        matrix.iter().zip(right).map(|(row, value)| row.iter().copied().chain([*value]).collect()).collect();
    for pivot in 0..count {
        let best = (pivot..count).max_by(|a, b| rows[*a][pivot].abs().total_cmp(&rows[*b][pivot].abs()))?;
        rows.swap(pivot, best);
        let chosen = rows[pivot].clone();
        if chosen[pivot].abs() < 1e-12 {
            return None;
        }
        for (_, row) in rows.iter_mut().enumerate().filter(|(at, _)| *at != pivot) {
            let factor = row[pivot] / chosen[pivot];
            row.iter_mut().zip(&chosen).for_each(|(cell, of_pivot)| *cell -= factor * of_pivot);
        }
    }
    Some((0..count).map(|at| rows[at][count] / rows[at][at]).collect())
}

/// Returns the standard deviations of the solution: the roots of the diagonal of the inverse.
fn deviations(matrix: &[Vec<f64>]) -> Vec<f64> {
    let unit =
        |at: usize| (0..matrix.len()).map(|other| f64::from(u8::from(other == at))).collect::<Vec<f64>>();
    (0..matrix.len())
        .map(|at| solve(matrix, &unit(at)).map_or(f64::INFINITY, |column| column[at].sqrt()))
        .collect()
}
