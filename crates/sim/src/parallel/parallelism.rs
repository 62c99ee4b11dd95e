//! [`plan`]: what dividing a run among threads can gain, measured in a run on one thread.
//!
//! ```text
//! window     begins with the first event after the window before, and lasts a lookahead
//! work       of an event: 1 at a switch, 2.3 for a packet at its host
//! imbalance  sum over windows of the busiest process's work * processes / work of all processes
//! bound      work of the run on one thread / sum over windows of the busiest process's work
//! ```
//!
//! The bound is the speed-up of processes that wait for each other at the end of each window, if messages and waiting
//! cost nothing.

use plimsoll_fabric::engine::Owner;
use plimsoll_scenario::model::Model;
use plimsoll_units::{Span, Time};

use super::FirstEvents;
use super::load::{EVENT_WORK, EventPlace, work_of};
use super::plan::LpPlan;
use crate::build::build;
use crate::error::RunError;
use crate::progress::Progress;
use crate::world::{EventObserver, World};

/// What dividing a run among threads can gain.
#[derive(Clone, PartialEq, Debug)]
pub enum Parallelism {
    /// The run stays on one thread, for this reason.
    Whole(String),
    /// The run can be divided, and this is the load of its processes.
    Divided(DividedLoad),
}

/// The load of the logical processes of a run, window by window.
#[derive(Clone, PartialEq, Debug)]
pub struct DividedLoad {
    /// The logical processes, by number.
    pub processes: Vec<ProcessLoad>,
    /// The links between processes, each direction counted.
    pub cut_links: u64,
    /// The length of a window: the least time that a packet takes from one process to another.
    pub lookahead: Span,
    /// The events of the run on one thread.
    pub events: u64,
    /// Packets that completed a link.
    pub packet_hops: u64,
    /// The number of windows, without those in which nothing happened.
    pub windows: u64,
    /// Packets and pauses between processes.
    pub messages: u64,
    /// The work of the run on one thread, in tenths of that of an event at a switch.
    pub work: u64,
    /// The sum over windows of the work of the busiest process.
    pub busiest_work: u64,
    /// By number of events: how often a process had so many in a window.
    window_counts: Vec<u64>,
    /// The reason why the first process has all hosts, if it has.
    pub hosts_together: Option<String>,
    /// The run has enough events in a lookahead to be divided by [`run_on`](super::run_on).
    pub is_worth_it: bool,
}

/// The part of a network that a logical process simulates, and its load.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ProcessLoad {
    /// The number of hosts; of NICs, where hosts have several.
    pub hosts: u64,
    /// The number of switches.
    pub switches: u64,
    /// The number of events.
    pub events: u64,
    /// The work of these events, in tenths of that of an event at a switch.
    pub work: u64,
}

impl DividedLoad {
    /// Returns the mean number of events of a process in a window.
    pub fn window_events(&self) -> f64 {
        let events: u64 = self.processes.iter().map(|process| process.events).sum();
        events as f64 / (self.windows.max(1) * self.processes.len() as u64) as f64
    }

    /// Returns the number of events that a process has in nine of ten windows, or more.
    pub fn window_events_p10(&self) -> u64 {
        let all: u64 = self.window_counts.iter().sum();
        let mut below = 0;
        let reached = self.window_counts.iter().position(|times| {
            below += times;
            below * 10 > all
        });
        reached.unwrap_or(0) as u64
    }

    /// Returns the work of the busiest process of each window, of an equal share of all work; 1 if all are equal.
    pub fn imbalance(&self) -> f64 {
        let work: u64 = self.processes.iter().map(|process| process.work).sum();
        self.busiest_work as f64 * self.processes.len() as f64 / work.max(1) as f64
    }

    /// Returns the packets and pauses between processes in a window.
    pub fn window_messages(&self) -> f64 {
        self.messages as f64 / self.windows.max(1) as f64
    }

    /// Returns the bound on the speed-up.
    pub fn speed_up_bound(&self) -> f64 {
        self.work as f64 / self.busiest_work.max(1) as f64
    }
}

/// Runs `model` on one thread, and measures the load of the logical processes into which [`run_on`](super::run_on)
/// would divide it for `threads` threads.
///
/// # Errors
/// As [`run`](crate::run).
///
/// # Panics
/// As [`run`](crate::run).
pub fn plan(
    model: &Model,
    threads: usize,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Parallelism, RunError> {
    if model.run.approximate().is_some() {
        let reason = "`run.approximate`: threads simulate links beside each other, each on one thread";
        return Ok(Parallelism::Whole(reason.to_owned()));
    }
    let mut built = build(model)?;
    let plan = match LpPlan::new(&built, threads, None) {
        Ok(plan) => plan,
        Err(reason) => return Ok(Parallelism::Whole(reason)),
    };
    let first = FirstEvents::run(&mut build(model)?, plan, threads, progress)?;
    let mut meter = LoadMeter::new(&first.plan, &built.world);
    built.world.begin();
    built.world.run_to_end(progress, Some(&mut meter))?;
    let counters = built.world.fabric.counters();
    let (events, packet_hops) = (counters.events, counters.packet_hops);
    Ok(Parallelism::Divided(DividedLoad {
        events,
        packet_hops,
        is_worth_it: first.is_dense,
        ..meter.finish()
    }))
}

/// Counts the events of each logical process of a plan in a run on one thread.
struct LoadMeter<'a> {
    plan: &'a LpPlan,
    /// By link: whether it is between processes.
    is_cut: Vec<bool>,
    /// The end of the current window.
    window_end: Time,
    /// By process: its events and their work in the current window.
    window: Vec<(u64, u64)>,
    load: DividedLoad,
}

impl LoadMeter<'_> {
    fn new<'a>(plan: &'a LpPlan, world: &World) -> LoadMeter<'a> {
        let count = usize::from(plan.processes);
        let mut processes = vec![ProcessLoad::default(); count];
        plan.hosts.iter().for_each(|&process| processes[usize::from(process)].hosts += 1);
        plan.switches.iter().for_each(|&process| processes[usize::from(process)].switches += 1);
        let links = world.fabric.network().links().iter();
        let is_cut: Vec<bool> =
            links.map(|link| plan.process_of(link.from) != plan.process_of(link.to)).collect();
        LoadMeter {
            plan,
            window_end: Time::ZERO,
            window: vec![(0, 0); count],
            load: DividedLoad {
                processes,
                cut_links: is_cut.iter().filter(|is_cut| **is_cut).count() as u64,
                lookahead: plan.lookahead,
                events: 0,
                packet_hops: 0,
                windows: 0,
                messages: 0,
                work: 0,
                busiest_work: 0,
                hosts_together: plan.hosts_together.clone(),
                window_counts: Vec::new(),
                is_worth_it: false,
            },
            is_cut,
        }
    }

    fn close_window(&mut self) {
        let busiest = |of: fn(&(u64, u64)) -> u64| self.window.iter().map(of).max().unwrap_or(0);
        let (most_events, most_work) = (busiest(|(events, _)| *events), busiest(|(_, work)| *work));
        if most_events == 0 {
            return;
        }
        let load = &mut self.load;
        load.windows += 1;
        load.busiest_work += most_work;
        load.window_counts.resize(load.window_counts.len().max(most_events as usize + 1), 0);
        for (process, window) in load.processes.iter_mut().zip(&mut self.window) {
            let (events, work) = std::mem::take(window);
            load.window_counts[events as usize] += 1;
            process.events += events;
            process.work += work;
        }
    }

    fn add(&mut self, process: usize, work: u64) {
        let (events, of_window) = &mut self.window[process];
        *events += 1;
        *of_window += work;
    }

    fn finish(mut self) -> DividedLoad {
        self.close_window();
        self.load
    }
}

impl EventObserver for LoadMeter<'_> {
    fn on_event(&mut self, now: Time, owner: Owner, world: &World) {
        let place = EventPlace::of(owner, world);
        if place == EventPlace::Uncounted {
            return;
        }
        if now >= self.window_end {
            self.close_window();
            self.window_end = now.saturating_add(self.plan.lookahead);
        }
        if let EventPlace::At(node, link) = place {
            let work = work_of(owner, node);
            self.load.work += work;
            self.load.messages += u64::from(link.is_some_and(|link| self.is_cut[link.0 as usize]));
            return self.add(usize::from(self.plan.process_of(node)), work);
        }
        self.load.work += EVENT_WORK;
        for process in 0..self.window.len() {
            if place == EventPlace::Everywhere || self.load.processes[process].hosts > 0 {
                self.add(process, EVENT_WORK);
            }
        }
    }
}
