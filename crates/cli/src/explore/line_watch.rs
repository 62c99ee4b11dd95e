//! [`LineWatch`]: shows the search for a load line while it goes on, and ends it when something newer is wanted.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_line::pace::Pace;
use plimsoll_line::search::Line;
use plimsoll_line::{Over, Round, Slo, Watch};
use plimsoll_report::chart::Schemes;
use plimsoll_report::html::{self, Article, Section};
use plimsoll_report::table::{Cell, Column, Grid, Row};
use plimsoll_scenario::Scenario;

use super::session::Session;
use crate::output;
use crate::progress::duration;

/// The watch of one search.
pub struct LineWatch<'a> {
    session: &'a Session,
    turn: u64,
    scenario: &'a Scenario,
    over: &'a Over,
    slo: &'a Slo,
    command: &'a str,
    began: Instant,
    state: Mutex<State>,
}

struct State {
    pace: Pace,
    /// The loads that are decided, in their order: variant, load, verdict and number of runs.
    rows: Vec<[String; 4]>,
    /// The lines so far, in words.
    lines: Vec<String>,
    said: Instant,
}

/// The interval at which the estimate of the time is renewed.
const RENEWED: Duration = Duration::from_millis(500);

impl<'a> LineWatch<'a> {
    pub fn new(
        (session, turn): (&'a Session, u64),
        scenario: &'a Scenario,
        (over, slo): (&'a Over, &'a Slo),
        command: &'a str,
    ) -> LineWatch<'a> {
        let began = Instant::now();
        let state = State { pace: Pace::default(), rows: Vec::new(), lines: Vec::new(), said: began };
        LineWatch { session, turn, scenario, over, slo, command, began, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes how far the search is: `searching: 12 runs done, about 80 to go, about 20 s left`.
    fn so_far(&self, state: &State) -> String {
        let left = state.pace.time_left(self.began.elapsed());
        let left = left.map_or_else(String::new, |left| format!(", about {} left", duration(left)));
        format!("searching: {} runs done, about {} to go{left}", state.pace.done(), state.pace.runs_left())
    }

    fn page(&self, state: &State) -> String {
        let columns = ["load", "verdict", "runs"].map(|name| Column::new("", name)).to_vec();
        let rows = state.rows.iter().map(|[variant, load, verdict, runs]| Row {
            label: variant.clone(),
            cells: [load, verdict, runs].map(|text| Cell::plain(text.clone())).to_vec(),
            ..Row::default()
        });
        let grid = Grid {
            title: format!("Loads of {} tried so far for {}", self.over.key, self.slo.text),
            corner: "variant".to_owned(),
            rows: rows.collect(),
            columns,
            notes: Vec::new(),
        };
        let section = Section {
            id: "tried",
            name: "The search",
            lead: "The loads that are decided; the lines lie between those that are met and those that are violated.",
            figures: Vec::new(),
            tables: vec![grid],
        };
        let variants = self.scenario.points().iter().map(|point| point.variant.as_str());
        html::article(&Article {
            kind: "Plimsoll line",
            title: self.scenario.title(),
            description: "",
            found: &state.lines,
            warnings: &[],
            sections: &[section],
            schemes: &Schemes::of([variants]),
            command: self.command,
            seed: self.scenario.points().first().map(|point| point.seed),
            version: env!("CARGO_PKG_VERSION"),
            commit: output::commit(),
            runs: state.pace.done(),
            scenario: "",
        })
    }
}

impl Watch for LineWatch<'_> {
    fn on_judged(&self, variant: &str, load: &str, verdict: &str, runs: usize) {
        let mut state = self.state();
        state.rows.push([variant.to_owned(), load.to_owned(), verdict.to_owned(), runs.to_string()]);
        let (page, so_far) = (self.page(&state), self.so_far(&state));
        self.session.show_line(self.turn, Some(page), so_far);
    }

    fn on_round(&self, round: &Round<'_>) {
        let mut state = self.state();
        state.pace.on_round(round);
        if !round.lines.is_empty() {
            let in_words = |(name, line): &(String, Line)| {
                format!("{name}: {} so far", line.brief(|load| self.over.shown(load)))
            };
            state.lines = round.lines.iter().map(in_words).collect();
        }
    }

    fn on_progress(&self, run: usize, share: f64) {
        let mut state = self.state();
        state.pace.on_progress(run, share);
        if state.said.elapsed() >= RENEWED {
            state.said = Instant::now();
            self.session.show_line(self.turn, None, self.so_far(&state));
        }
    }

    fn on_run(&self, run: usize) {
        self.state().pace.on_run(run);
    }

    fn memory_max(&self) -> u64 {
        self.session.memory_limit()
    }

    fn goes_on(&self) -> bool {
        self.session.goes_on(self.turn, false)
    }
}
