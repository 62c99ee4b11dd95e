//! The search for the load line.

use std::path::PathBuf;

use plimsoll_experiment::{BenchWatch as _, bench, memory, points};
use plimsoll_line::search::Line;
use plimsoll_line::{LineQuestion, Room, SearchNews, SearchWatch, SoFar};
use plimsoll_report::TableStyle;
use pyo3::prelude::*;

use crate::runs::{form, json, place};
use crate::scenario::PythonScenario;
use crate::watch::{PythonBoard, supervise};
use crate::{errors, version};

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
    scenario: &PythonScenario,
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
        LineQuestion { slo, over, at, within, precision, replicates_max, messages, variants: Vec::new() };
    let asked = question.ask(&scenario.scenario).map_err(|error| errors::objective(&error))?;
    let plan = asked.plan(scenario.command("line", out.as_deref()), version::commit());
    let (folder, temporary) = place(out.as_deref())?;
    let existing = points::existing(force, false);
    let dir = points::create(&folder, &plan, existing).map_err(|error| errors::run_directory(&error))?;
    let room = Room {
        threads: bench::threads(threads),
        memory_max: memory_max.unwrap_or_else(memory::default_limit),
    };
    let board = SearchBoard { board: PythonBoard::of(0, &scenario.failure), over: &asked.over };
    let draw = || plimsoll_line::draw(&asked, Some(dir.path()), existing, room, &board);
    let ended = supervise(py, &board.board, progress, draw);
    if let Some(raised) = scenario.failure.take() {
        return Err(raised);
    }
    let lines = ended?.map_err(|error| errors::search(py, error))?;
    let page = lines.keep(&dir, &scenario.scenario).map_err(|error| errors::run_directory(&error))?;
    drop(temporary);
    Ok(Lines { lines, page })
}

struct SearchBoard<'a> {
    board: PythonBoard<'a>,
    over: &'a plimsoll_line::Over,
}

impl SearchWatch for SearchBoard<'_> {
    fn on_news(&self, _news: &SearchNews<'_>, so_far: &SoFar) {
        let known =
            |(name, line): &(String, Line)| format!("{name} {}", line.brief(|load| self.over.shown(load)));
        let lines = if so_far.compares { &[][..] } else { &so_far.lines };
        self.board.say(lines.iter().map(known).collect::<Vec<_>>().join(", "));
        self.board.count(so_far.kept(), 0, 0);
    }

    fn on_progress(&self, so_far: &SoFar) {
        self.board.count(so_far.kept(), 0, 0);
    }

    fn goes_on(&self) -> bool {
        self.board.goes_on()
    }
}

#[pymethods]
impl Lines {
    fn json(&self) -> PyResult<String> {
        json(&self.lines)
    }

    fn table_text(&self, format: &str, width: usize) -> PyResult<String> {
        Ok(self.lines.render(form(format)?, &TableStyle { width, ..TableStyle::default() }))
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
