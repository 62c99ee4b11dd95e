//! The search for the load line.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_cli::library::{self, Question};
use plimsoll_line::search::Line;
use plimsoll_line::{Options, Round, Watch};
use plimsoll_report::Style;
use plimsoll_results::run_dir::Existing;
use pyo3::prelude::*;

use crate::errors;
use crate::mechanisms::Failure;
use crate::runs::{form, json, place};
use crate::scenario::Scenario;
use crate::watch::{Board, supervise};

/// The lines of all variants.
#[pyclass(frozen, module = "plimsoll._plimsoll")]
pub(crate) struct Lines {
    lines: plimsoll_line::Lines,
    page: String,
}

/// Finds the highest load at which every objective is met, for every variant.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python has keywords for them")]
pub(crate) fn line(
    py: Python<'_>,
    scenario: &Scenario,
    slo: Vec<String>,
    over: Option<String>,
    at: Option<String>,
    within: Option<String>,
    precision: f64,
    replicates_max: u32,
    messages: Option<u64>,
    threads: Option<usize>,
    memory_max: Option<u64>,
    out: Option<PathBuf>,
    force: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Lines> {
    let question =
        Question { slo, over, at, within, precision, replicates_max, messages, variant: Vec::new() };
    let checked = &scenario.scenario;
    let asked = || -> anyhow::Result<_> {
        let over = question.over(checked)?;
        let options = question.options(&over, library::threads(threads))?;
        Ok((question.objectives(checked)?, over, Options { anew: force, ..options }))
    };
    let (slos, over, options) = asked().map_err(|error| errors::objective(&error))?;
    let command = scenario.command("line", out.as_deref());
    let plan = library::line_plan(&question, checked, &slos, &over, command);
    let (folder, temporary) = place(out.as_deref())?;
    let existing = if force { Existing::Replace } else { Existing::Resume };
    let dir = library::create(&folder, &plan, existing).map_err(|error| errors::run_directory(&error))?;
    let board = SearchBoard {
        board: Board::default(),
        memory_max: memory_max.unwrap_or_else(library::default_limit),
        done: AtomicUsize::new(0),
        over: &over,
        failure: &scenario.failure,
    };
    let draw = || plimsoll_line::draw(checked, &over, &slos, &options, Some(dir.path()), &board);
    let ended = supervise(py, &board.board, progress, draw);
    if let Some(raised) = scenario.failure.take() {
        return Err(raised);
    }
    let lines = ended?.map_err(|error| errors::search(py, error))?;
    let page = library::keep_lines(&dir, checked, &lines).map_err(|error| errors::run_directory(&error))?;
    drop(temporary);
    Ok(Lines { lines, page })
}

struct SearchBoard<'a> {
    board: Board,
    memory_max: u64,
    done: AtomicUsize,
    over: &'a plimsoll_line::Over,
    failure: &'a Failure,
}

impl Watch for SearchBoard<'_> {
    fn on_begin(&self, there: usize) {
        self.done.store(there, Ordering::Relaxed);
        self.board.count(there, 0, 0);
    }

    fn on_round(&self, round: &Round<'_>) {
        let known =
            |(name, line): &(String, Line)| format!("{name} {}", line.brief(|load| self.over.shown(load)));
        self.board.say(round.lines.iter().map(known).collect::<Vec<_>>().join(", "));
    }

    fn on_run(&self, _run: usize) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.board.count(done, 0, 0);
    }

    fn memory_max(&self) -> u64 {
        self.memory_max
    }

    fn goes_on(&self) -> bool {
        self.board.goes_on() && !self.failure.is_set()
    }
}

#[pymethods]
impl Lines {
    fn json(&self) -> PyResult<String> {
        json(&self.lines)
    }

    fn table_text(&self, format: &str, width: usize) -> PyResult<String> {
        Ok(self.lines.render(form(format)?, &Style { width, ..Style::default() }))
    }

    /// The report as a page.
    #[getter]
    fn report_html(&self) -> &str {
        &self.page
    }

    /// The sentences that describe the lines.
    #[getter]
    fn sentences(&self) -> Vec<String> {
        self.lines.sentences()
    }

    /// The variants whose objectives today's load violates.
    #[getter]
    fn overloaded(&self) -> Vec<String> {
        self.lines.overloaded().into_iter().map(|variant| variant.name.clone()).collect()
    }
}
