//! The exceptions, one class for each kind of error.

use std::error::Error;
use std::iter;

use plimsoll_line::SearchStop;
use plimsoll_reproduce::ReproduceError;
use plimsoll_scenario::{Report, ScenarioError as Wrong};
use plimsoll_sim::RunError as Failed;
use plimsoll_sim::batch::BatchError;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTypeInfo, create_exception};

create_exception!(plimsoll, PlimsollError, PyException, "The base of all errors of Plimsoll.");
create_exception!(
    plimsoll,
    ScenarioError,
    PlimsollError,
    "A scenario is invalid. `file`, `line`, `column`, `key`, `value`, `allowed` and `hint` describe the first error, \
     and `errors` lists all."
);
create_exception!(plimsoll, RunError, PlimsollError, "A run failed.");
create_exception!(
    plimsoll,
    DeadlockError,
    RunError,
    "Flow control has paused links in a circle. `at` is the time in seconds, and `links` names the links."
);
create_exception!(
    plimsoll,
    TooLargeError,
    RunError,
    "A run needs more memory than it may use. `key` is the key of the scenario that asks for most of it."
);
create_exception!(plimsoll, Cancelled, RunError, "The progress function returned False.");
create_exception!(
    plimsoll,
    RunDirectoryError,
    PlimsollError,
    "A run directory cannot be written, read or resumed."
);
create_exception!(
    plimsoll,
    ObjectiveError,
    PlimsollError,
    "An objective, or the load of a search for the load line, is invalid."
);
create_exception!(plimsoll, ModelError, PlimsollError, "A parameter of a model or of a schedule is invalid.");
create_exception!(plimsoll, StudyError, PlimsollError, "A study is unknown, or cannot be reproduced here.");
create_exception!(
    plimsoll,
    DefectError,
    PlimsollError,
    "The simulator has a defect: please report it with the scenario."
);

/// Adds the exceptions to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    fn one<E: PyTypeInfo>(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let class = E::type_object(module.py());
        module.add(class.name()?, class)
    }
    one::<PlimsollError>(module)?;
    one::<ScenarioError>(module)?;
    one::<RunError>(module)?;
    one::<DeadlockError>(module)?;
    one::<TooLargeError>(module)?;
    one::<Cancelled>(module)?;
    one::<RunDirectoryError>(module)?;
    one::<ObjectiveError>(module)?;
    one::<ModelError>(module)?;
    one::<StudyError>(module)?;
    one::<DefectError>(module)
}

/// Creates the exception of an invalid scenario.
pub(crate) fn scenario(py: Python<'_>, errors: &[Wrong]) -> PyErr {
    let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let exception = ScenarioError::new_err(text.join("\n\n"));
    let described = || -> PyResult<()> {
        let all = errors.iter().map(|error| attributes(py, error)).collect::<PyResult<Vec<_>>>()?;
        let value = exception.value(py);
        if let Some(first) = all.first() {
            for (name, attribute) in first {
                value.setattr(name.cast::<pyo3::types::PyString>()?, attribute)?;
            }
        }
        value.setattr("errors", all)
    };
    described().map_or_else(|error| error, |()| exception)
}

/// Creates the exception of a field that a mechanism in Python sets to a value that is not allowed.
pub(crate) fn field(py: Python<'_>, key: &str, message: String, allowed: &str) -> PyErr {
    let allowed = Some(allowed.to_owned());
    scenario(py, &[Wrong(Report { key: key.to_owned(), message, allowed, ..Report::default() })])
}

fn attributes<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let place = |number: usize| (number > 0).then_some(number);
    let excerpt = report.source_line.chars().skip(report.column.saturating_sub(1)).take(report.width);
    let attributes = PyDict::new(py);
    attributes.set_item("message", &report.message)?;
    attributes.set_item("file", text(&report.file))?;
    attributes.set_item("line", place(report.line))?;
    attributes.set_item("column", place(report.column))?;
    attributes.set_item("key", text(&report.key))?;
    attributes.set_item("value", text(&excerpt.collect::<String>()))?;
    attributes.set_item("allowed", &report.allowed)?;
    attributes.set_item("hint", &report.help)?;
    attributes.set_item("notes", &report.notes)?;
    Ok(attributes)
}

/// Creates the exception of a run that failed.
pub(crate) fn run(py: Python<'_>, error: &Failed) -> PyErr {
    let text = error.to_string();
    let told = match error {
        Failed::Cancelled => Ok(Cancelled::new_err(text)),
        Failed::Deadlock { at, links } => {
            let exception = DeadlockError::new_err(text);
            let value = exception.value(py);
            value
                .setattr("at", at.as_secs_f64())
                .and_then(|()| value.setattr("links", links))
                .map(|()| exception)
        }
        Failed::TooLarge { key, .. } => {
            let exception = TooLargeError::new_err(text.replace("`--memory-max`", "`memory_max`"));
            exception.value(py).setattr("key", key).map(|()| exception)
        }
        Failed::Build { .. } => Ok(RunError::new_err(text)),
    };
    told.unwrap_or_else(|error| error)
}

/// Creates the exception of a batch that failed.
pub(crate) fn batch(py: Python<'_>, error: BatchError) -> PyErr {
    match error {
        BatchError::Run(error) => run(py, &error),
        BatchError::Owner(error) => RunDirectoryError::new_err(error.to_string()),
    }
}

/// Creates the exception of a run directory that cannot be used.
pub(crate) fn run_directory(error: &dyn Error) -> PyErr {
    RunDirectoryError::new_err(in_python(&chain(error)))
}

/// Creates the exception of an objective or a load that is not allowed.
pub(crate) fn objective(error: &dyn Error) -> PyErr {
    ObjectiveError::new_err(in_python(&chain(error)))
}

/// Creates the exception of a parameter of a model that is not allowed.
pub(crate) fn model(error: &dyn Error) -> PyErr {
    ModelError::new_err(in_python(&chain(error)))
}

/// Creates the exception of a search that ended without lines.
pub(crate) fn search(py: Python<'_>, error: SearchStop) -> PyErr {
    match error {
        SearchStop::Cancelled => Cancelled::new_err("the search was cancelled"),
        SearchStop::Scenario(errors) => scenario(py, &errors),
        SearchStop::Run(error) => run(py, &error),
        SearchStop::Journal(error) => RunDirectoryError::new_err(error.to_string()),
        other => ObjectiveError::new_err(in_python(&other.to_string())),
    }
}

/// Creates the exception of a study that was not reproduced.
pub(crate) fn study(py: Python<'_>, error: ReproduceError) -> PyErr {
    match error {
        ReproduceError::Batch(error) => batch(py, error),
        ReproduceError::Cancelled => Cancelled::new_err("cancelled"),
        other => StudyError::new_err(other.to_string()),
    }
}

/// Returns an error with its causes.
fn chain(error: &dyn Error) -> String {
    let mut text = String::new();
    for cause in iter::successors(Some(error), |&error| error.source()).map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Writes the options of the command line that a message names as the arguments of Python: `--replicates-max` is
/// `replicates_max`, and `--from` is `source`.
fn in_python(message: &str) -> String {
    let mut words = message.split("--");
    let mut out = words.next().unwrap_or_default().to_owned();
    for word in words {
        let end = word.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(word.len());
        let (option, rest) = word.split_at(end);
        out.push_str(&if option == "from" { "source".to_owned() } else { option.replace('-', "_") });
        out.push_str(rest);
    }
    out
}
