//! [`Board`]: the progress of a search on stderr. A terminal has it at the bottom; elsewhere a line is printed now and
//! then. Each load that is decided has a line of its own.

use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use plimsoll_line::pace::Pace;
use plimsoll_line::search::Line;
use plimsoll_line::{Over, Round, Watch};
use plimsoll_process::note;
use plimsoll_text::printable;

use crate::memory::Memory;
use crate::progress::{Show, duration};
use crate::signals::Interrupt;

/// The progress of a search.
pub struct Board<'a> {
    over: &'a Over,
    show: Show,
    pub bar: ProgressBar,
    began: Instant,
    state: Mutex<State>,
    pub interrupt: Interrupt,
    pub memory: Memory,
}

struct State {
    pace: Pace,
    /// The number of runs that were kept before.
    there: usize,
    /// The lines so far, in words.
    lines: String,
    /// The time of the latest line or redrawing.
    drawn: Instant,
}

/// The interval at which a terminal is redrawn.
const FRAME: Duration = Duration::from_millis(120);
/// The interval at which a search says how far it is where there is no terminal.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

impl<'a> Board<'a> {
    pub fn new(show: Show, over: &'a Over, interrupt: Interrupt, memory: Memory) -> Board<'a> {
        let bar = match show.quiet || !std::io::stderr().is_terminal() {
            true => ProgressBar::hidden(),
            false => ProgressBar::new_spinner(),
        };
        let style = ProgressStyle::with_template("{spinner:.cyan} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        let began = Instant::now();
        let state = State { pace: Pace::default(), there: 0, lines: String::new(), drawn: began };
        Board { over, show, bar, began, state: Mutex::new(state), interrupt, memory }
    }

    /// Returns the number of runs that are kept.
    pub fn runs(&self) -> usize {
        let state = self.state();
        state.there + state.pace.done()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, line: &str) {
        if !self.show.quiet {
            self.bar.suspend(|| note!("{line}"));
        }
    }

    /// Draws how far the search is, unless that has just been done.
    fn draw(&self) {
        let interval = if self.bar.is_hidden() { SIGN_OF_LIFE } else { FRAME };
        let mut state = self.state();
        if state.drawn.elapsed() < interval {
            return;
        }
        state.drawn = Instant::now();
        let text = self.so_far(&state);
        drop(state);
        if self.bar.is_hidden() {
            self.say(&text);
        } else {
            self.bar.set_message(text);
            self.bar.tick();
        }
    }

    fn so_far(&self, state: &State) -> String {
        let left = state.pace.time_left(self.began.elapsed());
        let left = left.map_or_else(String::new, |left| format!(", about {} left", duration(left)));
        let lines = if state.lines.is_empty() { "" } else { " · " };
        let (kept, rest) = (state.there + state.pace.done(), state.pace.runs_left());
        format!("{}{lines}{kept} runs kept, about {rest} to go{left}", state.lines)
    }

    fn in_words(&self, lines: &[(String, Line)]) -> String {
        let known = |(name, line): &(String, Line)| {
            format!("{} {}", printable(name), line.brief(|load| self.over.shown(load)))
        };
        lines.iter().map(known).collect::<Vec<_>>().join(" · ")
    }
}

impl Watch for Board<'_> {
    fn on_warning(&self, warning: &str) {
        self.bar.suspend(|| note!("warning: {warning}"));
    }

    fn on_begin(&self, there: usize) {
        self.state().there = there;
        if there > 0 {
            self.say(&format!("{there} runs are finished already; `--force` runs them again"));
        }
    }

    fn on_judged(&self, variant: &str, load: &str, verdict: &str, runs: usize) {
        let (took, s) = (duration(self.began.elapsed()), if runs == 1 { "" } else { "s" });
        self.say(&format!("{variant} at {load}: {verdict} ({runs} run{s}; {took})"));
    }

    fn on_first_look(&self, lines: &[(String, Line)]) {
        let took = duration(self.began.elapsed());
        self.say(&format!("first look, with one run a load: {} ({took})", self.in_words(lines)));
    }

    fn on_round(&self, round: &Round<'_>) {
        let mut state = self.state();
        state.pace.on_round(round);
        state.lines = match round.lines.is_empty() {
            true => "comparing variants".to_owned(),
            false => self.in_words(round.lines),
        };
    }

    fn on_progress(&self, run: usize, share: f64) {
        self.state().pace.on_progress(run, share);
    }

    fn on_run(&self, run: usize) {
        self.state().pace.on_run(run);
    }

    fn goes_on(&self) -> bool {
        // The display changes here, without a thread.
        self.draw();
        self.interrupt.signal().is_none() && !self.memory.is_exceeded()
    }

    fn memory_max(&self) -> u64 {
        self.memory.limit()
    }
}
