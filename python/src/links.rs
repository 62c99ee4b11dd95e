//! Links of approximate runs as tasks of an executor in Python.
//!
//! ```text
//! Round ──as text──> submit(point, tasks) ──> executor ──> run_links, in a worker ──> texts of the answers
//! ```

use plimsoll_experiment::question::number_of;
use plimsoll_scenario::{Point, Scenario};
use plimsoll_sim::RunError;
use plimsoll_sim::approximate::{Answer, Round, Task};
use plimsoll_sim::batch::{BatchError, Workers};
use pyo3::prelude::*;

use crate::errors;
use crate::scenario::PythonScenario;

/// The function that submits tasks to an executor, and the points whose links they are of.
pub(crate) struct PythonWorkers<'a> {
    submit: Py<PyAny>,
    /// By index of the run: the number of its point in the scenario.
    points: Vec<usize>,
    failure: &'a crate::mechanisms::Failure,
}

/// How long Python waits for tasks, in seconds, before it says how many are done.
const WAIT: f64 = 0.1;

impl<'a> PythonWorkers<'a> {
    /// Returns the workers of the runs of `todo`, all of which must be approximate.
    pub(crate) fn new(
        submit: Py<PyAny>,
        scenario: &Scenario,
        todo: &[&Point],
        failure: &'a crate::mechanisms::Failure,
    ) -> PyResult<PythonWorkers<'a>> {
        if let Some(whole) = todo.iter().find(|point| point.model.run.approximate().is_none()) {
            return Err(errors::PlimsollError::new_err(format!(
                "executor is for the links of approximate runs, and {:?} is a whole run: set run.approximate, or give \
                 the executor to `sweep`, whose tasks are points",
                whole.label()
            )));
        }
        let points = todo.iter().map(|point| number_of(point, scenario)).collect();
        Ok(PythonWorkers { submit, points, failure })
    }

    fn answers(
        &self,
        py: Python<'_>,
        index: usize,
        round: &Round,
        goes_on: &mut dyn FnMut(usize) -> bool,
    ) -> PyResult<Option<Vec<Answer>>> {
        let tasks: Vec<String> = round.tasks.iter().map(as_text).collect::<PyResult<_>>()?;
        let count = tasks.len();
        let submitted = self.submit.call1(py, (self.points[index], tasks))?;
        loop {
            let done: usize = submitted.call_method1(py, "wait", (WAIT,))?.extract(py)?;
            if !goes_on(done) {
                submitted.call_method0(py, "cancel")?;
                return Ok(None);
            }
            if done == count {
                let answers: Vec<String> = submitted.call_method0(py, "answers")?.extract(py)?;
                return answers.iter().map(|text| of_text(text)).collect::<PyResult<_>>().map(Some);
            }
        }
    }
}

impl Workers for PythonWorkers<'_> {
    fn carry_out(
        &self,
        index: usize,
        round: &Round,
        goes_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Vec<Answer>, BatchError> {
        Python::attach(|py| match self.answers(py, index, round, goes_on) {
            Ok(Some(answers)) => Ok(answers),
            Ok(None) => Err(BatchError::Run(RunError::Cancelled)),
            Err(raised) => {
                self.failure.set(raised);
                Err(BatchError::Run(RunError::Cancelled))
            }
        })
    }
}

fn as_text(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| errors::DefectError::new_err(error.to_string()))
}

fn of_text<T: serde::de::DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text)
        .map_err(|error| errors::PlimsollError::new_err(format!("not a task's text: {error}")))
}

/// Carries out tasks of point number `point`, which is what a worker does, and returns the texts of their answers.
#[pyfunction]
pub(crate) fn run_links(
    py: Python<'_>,
    scenario: &PythonScenario,
    point: usize,
    tasks: Vec<String>,
) -> PyResult<Vec<String>> {
    let of = scenario.scenario.points().get(point);
    let of = of.ok_or_else(|| errors::PlimsollError::new_err(format!("there is no point {point}")))?;
    let answer = |text: &String| {
        let task: Task = of_text(text)?;
        let answer = task.run(&of.model, &mut |_| true);
        as_text(&answer.map_err(|error| errors::PlimsollError::new_err(error.to_string()))?)
    };
    py.detach(|| tasks.iter().map(answer).collect())
}
