//! Runs of a scenario, and their observations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_experiment::question::{Shard, key};
use plimsoll_experiment::{Bench, Measure, Question, bench, memory, points};
use plimsoll_report::{Format, TableStyle, html, table, verdict};
use plimsoll_results::curves::{Curves, Detail};
use plimsoll_results::run_dir::{self, Columns, RunPlan};
use plimsoll_results::side_by_side::side_by_side;
use plimsoll_results::summary::Options;
use plimsoll_results::{Digest, PointKey, PointOutcome, RunDir, Summary};
use plimsoll_scenario::model::Model;
use plimsoll_scenario::{Point, Scenario};
use plimsoll_sim::batch::Workers;
use pyo3::prelude::*;

use crate::links::PythonWorkers;
use crate::scenario::PythonScenario;
use crate::tables::{self, Table};
use crate::watch::{PythonBoard, supervise};
use crate::{errors, version};

/// A run as Python sees it: variant, swept keys with their values, replicate, seed and digest.
type Run = (String, Vec<(String, String)>, u32, u64, String);

/// The measure of a run as Python sees it: its value, its interval and the number of its samples.
type MeasuredNumber = (Option<f64>, Option<(f64, f64)>, u64);

/// What runs observed, and what is known of them.
#[pyclass(frozen, module = "plimsoll._plimsoll")]
pub(crate) struct Outcomes {
    points: Arc<Vec<PointOutcome>>,
    summary: Summary,
    about: RunPlan,
    #[pyo3(get)]
    path: Option<PathBuf>,
    /// Points of the scenario without a result.
    #[pyo3(get)]
    missing: usize,
}

/// Runs the points of a shard and of these variants that `out` does not have yet.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python has keywords for them")]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &PythonScenario,
    variants: Vec<String>,
    shard: Option<&str>,
    threads: Option<usize>,
    memory_max: Option<u64>,
    out: Option<PathBuf>,
    force: bool,
    command: Option<String>,
    submit: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Outcomes> {
    let checked = &scenario.scenario;
    let shard = shard.map(Shard::from_str).transpose().map_err(errors::PlimsollError::new_err)?;
    let question = Question::new(checked, shard, &variants)
        .map_err(|error| errors::PlimsollError::new_err(error.to_string()))?;
    let share = question.share();
    let command = command.unwrap_or_else(|| scenario.command("run", out.as_deref()));
    let plan = RunPlan { command, ..question.plan(String::new(), version::commit()) };
    let existing = points::existing(force, false);
    let dir = out.as_deref().map(|out| points::create(out, &plan, existing));
    let dir = dir.transpose().map_err(|error| errors::run_directory(&error))?;
    let todo = match &dir {
        Some(dir) => points::missing(dir, &share, false).map_err(|error| errors::run_directory(&error))?,
        None => share,
    };
    let models: Vec<&Model> = todo.iter().map(|point| &point.model).collect();
    let board = PythonBoard::of(todo.len(), &scenario.failure);
    let workers =
        submit.map(|submit| PythonWorkers::new(submit, checked, &todo, &scenario.failure)).transpose()?;
    let bench = Bench {
        threads: bench::threads(threads),
        memory_max: memory_max.unwrap_or_else(memory::default_limit),
        watch: &board,
        workers: workers.as_ref().map(|workers| workers as &dyn Workers),
    };
    let kept = Mutex::new(BTreeMap::new());
    let keep = |index: usize, outcome| {
        let point: &Point = todo[index];
        let outcome = match &dir {
            Some(dir) => points::keep(dir, point, outcome)?,
            None => PointOutcome::new(key(point), point.seed, outcome),
        };
        kept.lock().unwrap_or_else(PoisonError::into_inner).insert(outcome.key.clone(), outcome);
        Ok(())
    };
    let ended = supervise(py, &board, progress, || bench.run(&models, keep));
    if let Some(dir) = &dir {
        // Complete points are noted however the runs ended.
        dir.finish().map_err(|error| errors::run_directory(&error))?;
    }
    if let Some(raised) = scenario.failure.take() {
        return Err(raised);
    }
    ended?.map_err(|error| errors::batch(py, error))?;
    let kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    py.detach(|| conclude(dir, plan, checked.points(), kept))
}

/// Puts points in the scenario's order, with the points that the run directory had before, and summarizes them.
fn conclude(
    dir: Option<RunDir>,
    plan: RunPlan,
    points: &[Point],
    mut kept: BTreeMap<PointKey, PointOutcome>,
) -> PyResult<Outcomes> {
    let Some(dir) = dir else {
        let order = points.iter().filter_map(|point| kept.remove(&key(point)));
        let points: Vec<PointOutcome> = order.collect();
        let missing = plan.points.len() - points.len();
        let summary = Summary::of(&points, &Options::default());
        return Ok(Outcomes { points: Arc::new(points), summary, about: plan, path: None, missing });
    };
    let finished = finished(&dir, kept)?;
    let summary = points::conclude(&dir, &finished).map_err(|error| errors::run_directory(&error))?;
    Ok(Outcomes {
        missing: dir.missing().len(),
        points: Arc::new(finished),
        summary,
        about: RunPlan { warnings: dir.manifest().warnings.clone(), ..plan },
        path: Some(dir.path().to_owned()),
    })
}

/// Returns the finished points of a run directory; points that were just stored are not read again.
fn finished(dir: &RunDir, mut kept: BTreeMap<PointKey, PointOutcome>) -> PyResult<Vec<PointOutcome>> {
    let mut points = Vec::new();
    for (planned, status) in dir.status() {
        if let Some(point) = kept.remove(&planned.key) {
            points.push(point);
        } else if let run_dir::Status::Done(_) = status {
            points.push(dir.read_point(&planned.key).map_err(|error| errors::run_directory(&error))?);
        }
    }
    Ok(points)
}

/// Reads the finished points of a run directory.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, path: PathBuf) -> PyResult<Outcomes> {
    py.detach(|| {
        let dir = RunDir::open(&path).map_err(|error| errors::run_directory(&error))?;
        let points = dir.read_points().map_err(|error| errors::run_directory(&error))?;
        let scenario = dir.scenario().map_err(|error| errors::run_directory(&error))?;
        Ok(loaded(&dir, points, scenario))
    })
}

fn loaded(dir: &RunDir, points: Vec<PointOutcome>, scenario: String) -> Outcomes {
    let manifest = dir.manifest();
    let about = RunPlan {
        title: manifest.title.clone(),
        description: manifest.description.clone(),
        carrier: manifest.carrier.clone(),
        version: manifest.plimsoll.clone(),
        commit: manifest.commit.clone(),
        command: manifest.command.clone(),
        seed: manifest.seed,
        scenario,
        shard: manifest.shard,
        points: Vec::new(),
        warnings: manifest.warnings.clone(),
        columns: Columns::Csv,
    };
    Outcomes {
        missing: dir.missing().len(),
        summary: Summary::of(&points, &Options::default()),
        points: Arc::new(points),
        about,
        path: Some(dir.path().to_owned()),
    }
}

/// Merges run directories of the same scenario into `out`. Points are checked against their digests; two directories
/// that have a point must agree on it.
#[pyfunction]
pub(crate) fn merge(py: Python<'_>, out: PathBuf, parts: Vec<PathBuf>) -> PyResult<()> {
    py.detach(|| run_dir::merge(&out, &parts, Columns::Csv))
        .map_err(|error| errors::run_directory(&error))?;
    Ok(())
}

#[pymethods]
impl Outcomes {
    #[getter]
    fn title(&self) -> &str {
        &self.about.title
    }

    #[getter]
    fn command(&self) -> &str {
        &self.about.command
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.about.seed
    }

    #[getter]
    fn scenario(&self) -> &str {
        &self.about.scenario
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        let of_summary = self.summary.warnings.iter().map(ToString::to_string);
        self.about.warnings.iter().cloned().chain(of_summary).collect()
    }

    /// The digest of all runs in their order: the same digest means the same results.
    #[getter]
    fn digest(&self) -> String {
        points::digest(&self.summary).to_string()
    }

    #[getter]
    fn points(&self) -> Vec<Run> {
        let points = self.points.iter();
        points
            .map(|PointOutcome { key, seed, digest, .. }| {
                (key.variant.clone(), key.sweep.clone(), key.replicate, *seed, digest.to_string())
            })
            .collect()
    }

    /// The sentences that compare the variants.
    #[getter]
    fn verdicts(&self) -> Vec<String> {
        verdict::sentences(&self.summary)
    }

    fn summary_json(&self) -> PyResult<String> {
        json(&self.summary)
    }

    /// The number of each run that the measure asks for, such as `p99(small)`.
    fn measure(&self, py: Python<'_>, text: &str) -> PyResult<Vec<MeasuredNumber>> {
        let measure = Measure::parse(text).map_err(|error| errors::objective(&error))?;
        // A scenario with mechanisms of Python is not read without them; its runs have no sample of unknown names.
        let scenario = Scenario::parse("scenario.toml", &self.about.scenario, Path::new("."));
        if let Some(point) = scenario.as_ref().ok().and_then(|scenario| scenario.points().first()) {
            measure.check(text, &point.model).map_err(|error| errors::objective(&error))?;
        }
        Ok(py.detach(|| {
            let estimates = self.points.iter().map(|point| {
                let outcome = &point.outcome;
                let estimate = measure.estimate(outcome, outcome.warmup);
                estimate.map_or((None, None, 0), |estimate| {
                    let interval = estimate.interval.map(|interval| (interval.low, interval.high));
                    (Some(estimate.value), interval, estimate.samples)
                })
            });
            estimates.collect()
        }))
    }

    fn curves_json(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| json(&Curves::of(&self.points, Detail::for_runs(self.points.len()))))
    }

    fn table_text(&self, format: &str, width: usize) -> PyResult<String> {
        Ok(table::render(&self.summary, form(format)?, &TableStyle { width, ..TableStyle::default() }))
    }

    fn report_html(&self, py: Python<'_>) -> String {
        let about = &self.about;
        py.detach(|| {
            html::render(&html::Page {
                title: &about.title,
                description: &about.description,
                summary: &self.summary,
                curves: &Curves::of(&self.points, Detail::for_runs(self.points.len())),
                command: &about.command,
                carrier: &about.carrier,
                seed: about.seed,
                version: &about.version,
                commit: about.commit.as_deref(),
                scenario: &about.scenario,
                warnings: &about.warnings,
            })
        })
    }

    /// The records of one kind: `messages`, `queues`, ...
    fn table(&self, py: Python<'_>, kind: &str) -> PyResult<Table> {
        py.detach(|| tables::of(&self.points, kind))
    }
}

/// The summary of several results side by side.
#[pyclass(frozen, name = "Compared", module = "plimsoll._plimsoll")]
pub(crate) struct ComparedRuns {
    summary: Summary,
}

/// Compares each variant of the first outcomes with the same variant of the others. A run that is in several counts
/// once, in the first.
#[pyfunction]
pub(crate) fn compare(
    py: Python<'_>,
    all: Vec<PyRef<'_, Outcomes>>,
    names: Vec<String>,
) -> PyResult<ComparedRuns> {
    let all: Vec<Arc<Vec<PointOutcome>>> = all.iter().map(|outcomes| outcomes.points.clone()).collect();
    py.detach(|| {
        let mut seen: Vec<(&PointKey, u64, Digest)> = Vec::new();
        let mut runs = Vec::new();
        for points in &all {
            let is_new = |point: &&PointOutcome| !seen.contains(&(&point.key, point.seed, point.digest));
            let new: Vec<&PointOutcome> = points.iter().filter(is_new).collect();
            seen.extend(new.iter().map(|point| (&point.key, point.seed, point.digest)));
            runs.push(new.into_iter().cloned().collect());
        }
        let compared = side_by_side(runs, &names);
        let (summary, _) = compared.map_err(|error| errors::PlimsollError::new_err(error.to_string()))?;
        Ok(ComparedRuns { summary })
    })
}

#[pymethods]
impl ComparedRuns {
    #[getter]
    fn verdicts(&self) -> Vec<String> {
        verdict::sentences(&self.summary)
    }

    fn summary_json(&self) -> PyResult<String> {
        json(&self.summary)
    }

    fn table_text(&self, format: &str, width: usize) -> PyResult<String> {
        Ok(table::render_compared(
            &self.summary,
            form(format)?,
            &TableStyle { width, ..TableStyle::default() },
        ))
    }
}

/// Returns a form by its name.
pub(crate) fn form(name: &str) -> PyResult<Format> {
    Ok(match name {
        "table" => Format::Table,
        "json" => Format::Json,
        "csv" => Format::Csv,
        "md" => Format::Md,
        other => {
            let message = format!("there is no form {other:?}; allowed: table, json, csv, md");
            return Err(errors::PlimsollError::new_err(message));
        }
    })
}

pub(crate) fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| errors::DefectError::new_err(error.to_string()))
}

/// Returns the path of a run directory that lasts until the guard is dropped, where none is given.
pub(crate) fn place(out: Option<&Path>) -> PyResult<(PathBuf, Option<tempfile::TempDir>)> {
    match out {
        Some(out) => Ok((out.to_owned(), None)),
        None => {
            let folder = tempfile::tempdir()?;
            Ok((folder.path().to_owned(), Some(folder)))
        }
    }
}
