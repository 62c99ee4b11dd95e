//! The progress of a batch, on stderr: a bar on a terminal, a line a finished point elsewhere.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_experiment::BenchWatch;
use plimsoll_experiment::bench::duration;
use plimsoll_experiment::question::label;
use plimsoll_process::note;
use plimsoll_scenario::Point;
use plimsoll_sim::Progress;
use plimsoll_units::Time;

use crate::memory::Memory;
use crate::signals::Interrupt;

/// The interval at which a long point reports its progress without a bar.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);

/// The number of the bar's steps a point.
const STEPS: f64 = 1_000.0;

/// The verbosity of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Show {
    /// Suppresses all progress.
    pub quiet: bool,
    /// Prints a line for each finished point, besides the bar.
    pub verbose: bool,
}

/// The display of a batch.
#[derive(Debug)]
pub struct Board<'a> {
    points: &'a [&'a Point],
    show: Show,
    bar: ProgressBar,
    began: Instant,
    state: Mutex<State>,
    pub interrupt: Interrupt,
    pub memory: Memory,
}

thread_local! {
    /// The point that this thread runs, for the message of a panic.
    pub static POINT: RefCell<String> = const { RefCell::new(String::new()) };
}

#[derive(Debug, Default)]
struct State {
    running: BTreeMap<usize, RunningPoint>,
    done: usize,
    done_hops: u64,
}

#[derive(Clone, Copy, Debug)]
struct RunningPoint {
    began: Instant,
    said: Instant,
    share: Option<f64>,
    now: Time,
    hops: u64,
}

impl<'a> Board<'a> {
    /// Creates the display of these points.
    pub fn new(points: &'a [&'a Point], show: Show, interrupt: Interrupt, memory: Memory) -> Board<'a> {
        let target = match show.quiet || !std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let bar = ProgressBar::with_draw_target(Some(points.len() as u64 * STEPS as u64), target);
        let style = ProgressStyle::with_template("{bar:24.cyan/dim} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─"));
        Board { points, show, bar, began: Instant::now(), state: Mutex::default(), interrupt, memory }
    }

    /// Removes the bar; printed lines stay.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Returns the points that are running.
    pub fn under_way(&self) -> Vec<String> {
        self.state().running.keys().map(|&index| self.name(index)).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn has_no_bar(&self) -> bool {
        self.bar.is_hidden()
    }

    fn say(&self, line: &str) {
        if !self.show.quiet {
            self.bar.suspend(|| note!("{line}"));
        }
    }

    fn name(&self, index: usize) -> String {
        self.points.get(index).map_or_else(String::new, |point| label(point))
    }

    fn draw(&self, state: &State) {
        if self.has_no_bar() {
            return;
        }
        let shares: f64 = state.running.values().filter_map(|running| running.share).sum();
        let done = state.done as f64 + shares;
        let took = self.began.elapsed();
        let hops = state.done_hops + state.running.values().map(|running| running.hops).sum::<u64>();
        let mut message = format!("{} of {} points · {}", state.done, self.points.len(), speed(hops, took));
        if done > 0.0 {
            let left = took.mul_f64((self.points.len() as f64 - done).max(0.0) / done);
            message.push_str(&format!(" · {} left", duration(left)));
        }
        if let Some((&index, running)) = state.running.first_key_value() {
            message.push_str(&format!(" · {} of {}", running.so_far(), self.name(index)));
        }
        self.bar.set_position((done * STEPS) as u64);
        self.bar.set_message(message);
    }
}

impl BenchWatch for Board<'_> {
    fn on_start(&self, run: usize) {
        POINT.with_borrow_mut(|name| *name = self.name(run));
        let now = Instant::now();
        let running = RunningPoint { began: now, said: now, share: None, now: Time::ZERO, hops: 0 };
        let mut state = self.state();
        state.running.insert(run, running);
        self.draw(&state);
    }

    fn on_progress(&self, run: usize, share: Option<f64>, progress: Progress) {
        let mut state = self.state();
        let Some(running) = state.running.get_mut(&run) else { return };
        running.share = share;
        running.now = progress.now;
        running.hops = progress.packet_hops;
        if self.has_no_bar() && running.said.elapsed() >= SIGN_OF_LIFE {
            running.said = Instant::now();
            self.say(&format!("{} is at {}", self.name(run), running.so_far()));
        }
        self.draw(&state);
    }

    fn on_run(&self, run: usize, packet_hops: u64) {
        let mut state = self.state();
        let Some(running) = state.running.remove(&run) else { return };
        state.done += 1;
        state.done_hops += packet_hops;
        let took = running.began.elapsed();
        if self.show.verbose || self.has_no_bar() {
            let (done, of, name) = (state.done, self.points.len(), self.name(run));
            self.say(&format!("[{done}/{of}] {name}: {}, {}", duration(took), speed(packet_hops, took)));
        }
        self.draw(&state);
    }

    fn goes_on(&self) -> bool {
        self.interrupt.signal().is_none() && !self.memory.is_exceeded()
    }
}

impl RunningPoint {
    fn so_far(&self) -> String {
        match self.share {
            Some(share) => format!("{:.0} %", share * 100.0),
            None => format!("{:.3} s simulated", self.now.as_secs_f64()),
        }
    }
}

/// Formats a speed: `11.2 M packet-hops/s`.
fn speed(hops: u64, took: Duration) -> String {
    let seconds = took.as_secs_f64().max(1e-6);
    format!("{:.1} M packet-hops/s", hops as f64 / seconds / 1e6)
}
