//! [`LineBoard`]: the progress of a search on stderr. A terminal has it at the bottom; elsewhere a line is printed now
//! and then. Each load that is decided has a line of its own.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use plimsoll_experiment::bench::duration;
use plimsoll_line::so_far::Judged;
use plimsoll_line::{Over, SearchNews, SearchWatch, SoFar};
use plimsoll_process::note;
use plimsoll_text::printable;

use crate::memory::Memory;
use crate::progress::Show;
use crate::signals::Interrupt;

/// The progress of a search.
pub struct LineBoard<'a> {
    over: &'a Over,
    show: Show,
    pub bar: ProgressBar,
    began: Instant,
    /// The time that the search may take.
    budget: Option<Duration>,
    /// The time of the latest line or redrawing.
    drawn: Mutex<Instant>,
    /// The number of runs that are kept.
    kept: AtomicUsize,
    pub interrupt: Interrupt,
    pub memory: Memory,
}

/// The interval at which a terminal is redrawn.
const FRAME: Duration = Duration::from_millis(120);
/// The interval at which a search reports its progress without a terminal.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

impl<'a> LineBoard<'a> {
    pub fn new(
        show: Show,
        over: &'a Over,
        interrupt: Interrupt,
        memory: Memory,
        budget: Option<Duration>,
    ) -> LineBoard<'a> {
        let bar = match show.quiet || !std::io::stderr().is_terminal() {
            true => ProgressBar::hidden(),
            false => ProgressBar::new_spinner(),
        };
        let style = ProgressStyle::with_template("{spinner:.cyan} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        let began = Instant::now();
        LineBoard {
            over,
            show,
            bar,
            began,
            budget,
            drawn: Mutex::new(began),
            kept: AtomicUsize::new(0),
            interrupt,
            memory,
        }
    }

    /// Returns the number of runs that are kept.
    pub fn runs(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    fn say(&self, line: &str) {
        if !self.show.quiet {
            self.bar.suspend(|| note!("{line}"));
        }
    }

    fn in_words(&self, so_far: &SoFar) -> String {
        let known = so_far
            .lines
            .iter()
            .map(|(name, line)| format!("{} {}", printable(name), line.brief(|load| self.over.shown(load))));
        known.collect::<Vec<_>>().join(" · ")
    }
}

impl SearchWatch for LineBoard<'_> {
    fn on_news(&self, news: &SearchNews<'_>, so_far: &SoFar) {
        let took = || duration(self.began.elapsed());
        match news {
            SearchNews::Warning(warning) => self.bar.suspend(|| note!("warning: {warning}")),
            SearchNews::Begin => {
                self.kept.store(so_far.kept(), Ordering::Relaxed);
                if so_far.there > 0 {
                    self.say(&format!(
                        "{} runs are finished already; `--force` runs them again",
                        so_far.there
                    ));
                }
            }
            SearchNews::Cost { messages, run, search } => {
                let (run, whole) = (duration(*run), duration(*search));
                let way = match self.budget {
                    Some(_) => "",
                    None => "; `--budget 5m` chooses shorter ones, and ends in time",
                };
                self.say(&format!(
                    "a run of {messages} messages takes about {run}, the search about {whole}{way}"
                ));
            }
            SearchNews::Judged(Judged { variant, load, verdict, runs }) => {
                let s = if *runs == 1 { "" } else { "s" };
                self.say(&format!("{variant} at {load}: {verdict} ({runs} run{s}; {})", took()));
            }
            SearchNews::FirstLook => {
                self.say(&format!("first look, with one run a load: {} ({})", self.in_words(so_far), took()));
            }
            SearchNews::Round => {}
        }
    }

    /// Draws how far the search is, unless that has just been done.
    fn on_progress(&self, so_far: &SoFar) {
        self.kept.store(so_far.kept(), Ordering::Relaxed);
        let interval = if self.bar.is_hidden() { SIGN_OF_LIFE } else { FRAME };
        let Ok(mut drawn) = self.drawn.lock() else { return };
        if drawn.elapsed() < interval {
            return;
        }
        *drawn = Instant::now();
        let lines = if so_far.compares { "comparing variants".to_owned() } else { self.in_words(so_far) };
        let lines = if lines.is_empty() { lines } else { lines + " · " };
        let text = format!("{lines}{} runs kept, {}", so_far.kept(), so_far.rest(self.began.elapsed()));
        if self.bar.is_hidden() {
            self.say(&text);
        } else {
            self.bar.set_message(text);
            self.bar.tick();
        }
    }

    fn is_out_of_time(&self) -> bool {
        self.budget.is_some_and(|budget| self.began.elapsed() >= budget)
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn goes_on(&self) -> bool {
        self.interrupt.signal().is_none() && !self.memory.is_exceeded()
    }
}
