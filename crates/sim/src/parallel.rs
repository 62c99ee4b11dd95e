//! One run on many cores.
//!
//! ```text
//! plan         which logical process simulates each host and switch; each has a thread and a world of its own
//! load         the events of each host and switch at the start of a run, for equal shares
//! run          a process handles events up to a bound: the slowest process's clock plus the lookahead
//! process      what leaves a process at its boundary: packets, pauses, and what hosts tell each other of
//! exchange     clocks and messages: a process reads all clocks, then its messages, then has the next bound
//! merge        the worlds become one again
//! parallelism  what more threads could gain, for `plimsoll run --plan`
//! ```
//!
//! This is conservative: nothing is ever undone. A packet or a pause that is sent at some time arrives a propagation
//! later at the earliest, so all that can reach a process before *the slowest clock + the lookahead*, the shortest
//! propagation of a link between processes, has already been posted to it. Events at one instant are ordered by
//! their owners, not by which thread was faster; every process builds the same world and draws from the same named
//! streams; and connections have the same numbers everywhere, because what opens them is done in every process that
//! has hosts. So an outcome is the same, byte for byte, on any number of threads.
//!
//! Hosts are divided along with the switch that they are connected to, if all workloads send flows at times of their
//! own, which nothing answers. Any other workload acts for all hosts at once; then all hosts are in one process, with
//! some of the switches next to them, and the other switches are divided. What couples the whole network at once
//! ([`plan::obstacle`]) runs on one thread.

mod exchange;
mod load;
mod merge;
mod parallelism;
mod plan;
pub(crate) mod process;
mod run;

use std::thread;

use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::model::Model;
use plimsoll_units::Time;

use exchange::Exchange;
use load::NodeLoad;
pub use parallelism::{DividedLoad, Parallelism, ProcessLoad, plan};
use plan::LpPlan;

use crate::approximate;
use crate::build::{BuiltWorld, build};
use crate::error::RunError;
use crate::progress::Progress;

/// The events on one thread within which it must show that there are many in a lookahead.
const FIRST_EVENTS: u64 = 1 << 20;

/// Runs `model` on up to `threads` threads, where that is likely to be faster: the first events, on one thread, tell
/// how many there are in a lookahead, and where. As soon as they are many, after a hundred thousand events or up to a
/// million, the run begins anew on all threads. The outcome is that of [`run`](crate::run).
///
/// # Errors
/// As [`run`](crate::run).
///
/// # Panics
/// As [`run`](crate::run).
pub fn run_on(
    model: &Model,
    threads: usize,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, RunError> {
    if let Some(size) = model.run.approximate() {
        return approximate::run(model, *size, threads, progress);
    }
    let mut alone = build(model)?;
    let Ok(plan) = LpPlan::new(&alone, threads, None) else {
        let end = alone.world.run(progress)?;
        return Ok(alone.finish(end));
    };
    let first = FirstEvents::run(&mut alone, plan, threads, progress)?;
    if let Some(end) = first.end {
        return Ok(alone.finish(end));
    }
    if first.is_dense {
        drop(alone);
        return run_plan(model, build(model)?, first.plan, progress);
    }
    let end = alone.world.run_to_end(progress, None)?;
    Ok(alone.finish(end))
}

/// What the first events of a run tell, on one thread.
struct FirstEvents {
    /// How the run is to be divided.
    plan: LpPlan,
    /// They are so many in a lookahead that more threads pay.
    is_dense: bool,
    /// The end of the run, if it has no further events.
    end: Option<Time>,
}

impl FirstEvents {
    /// Begins a run, until it is dense enough for `plan`, or certainly not. If the work until then is uneven, it goes
    /// on, since a few large flows may be most of it: the plan by the work is used if that is uneven in all of
    /// [`FIRST_EVENTS`], too.
    fn run(
        built: &mut BuiltWorld,
        plan: LpPlan,
        threads: usize,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<FirstEvents, RunError> {
        let mut load = NodeLoad::new(built.world.fabric.network());
        let mut begun = FirstEvents { plan, is_dense: false, end: None };
        built.world.begin();
        begun.is_dense = begun.run_until(LpPlan::is_worth_it, built, &mut load, progress)?;
        let mut balanced = begun.plan.balanced(built, threads, &load);
        if begun.is_dense && begun.end.is_none() && balanced.is_some() {
            begun.run_until(|_, _| false, built, &mut load, progress)?;
            balanced = begun.plan.balanced(built, threads, &load);
        }
        begun.plan = balanced.unwrap_or(begun.plan);
        Ok(begun)
    }

    /// Runs on until there were as many events as [`FIRST_EVENTS`], or these are enough. Returns whether they are.
    fn run_until(
        &mut self,
        is_enough: impl Fn(&LpPlan, Progress) -> bool,
        built: &mut BuiltWorld,
        load: &mut NodeLoad,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<bool, RunError> {
        let (mut enough, mut is_cancelled) = (false, false);
        let mut watched = |now: Progress| {
            enough = is_enough(&self.plan, now);
            is_cancelled = !enough && !progress(now);
            !enough && !is_cancelled && now.events < FIRST_EVENTS
        };
        match built.world.run_to_end(&mut watched, Some(load)) {
            Err(RunError::Cancelled) if !is_cancelled => {}
            end => self.end = Some(end?),
        }
        Ok(enough)
    }
}

/// Returns why runs of `model` stay on one thread, if they do.
///
/// # Errors
/// If the model cannot be built.
pub fn obstacle(model: &Model) -> Result<Option<String>, RunError> {
    Ok(plan::obstacle(&build(model)?))
}

/// Runs `model` in as many logical processes as its network allows, `threads` at most, worth it or not; for tests.
///
/// # Errors
/// As [`run`](crate::run).
///
/// # Panics
/// As [`run`](crate::run).
pub fn run_in_parts(
    model: &Model,
    threads: usize,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, RunError> {
    let mut first = build(model)?;
    match LpPlan::new(&first, threads, None) {
        Ok(plan) => run_plan(model, first, plan, progress),
        Err(_) => {
            let end = first.world.run(progress)?;
            Ok(first.finish(end))
        }
    }
}

/// Runs `model` as `plan` says; the first process has the world of `first`, which has not begun. Where the system
/// cannot start the threads, the model is run on one; also where links have paused each other in a circle, since one
/// thread finds the first circle, and finds it at the same event in every run.
fn run_plan(
    model: &Model,
    mut first: BuiltWorld,
    plan: LpPlan,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, RunError> {
    let rules = first.world.rules;
    let exchange = Exchange::new(plan.processes, plan.lookahead, rules.horizon, rules.grace);
    let worlds = run_processes(model, &mut first, &plan, &exchange, progress)?;
    let merged = worlds.and_then(|others| merge::merge(first, others, exchange, &plan));
    merged.map_or_else(|| crate::run(model, progress), Ok)
}

/// Runs all logical processes, and returns the worlds of those beside `first`, unmerged; `None` if they cannot be
/// started, or links have paused each other in a circle.
fn run_processes(
    model: &Model,
    first: &mut BuiltWorld,
    plan: &LpPlan,
    exchange: &Exchange,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Option<Vec<BuiltWorld>>, RunError> {
    thread::scope(|scope| {
        let guard = exchange.guard();
        let mut others = Vec::new();
        for here in 1..plan.processes {
            let work = move || {
                let guard = exchange.guard();
                let mut build = build(model)?;
                build.world.become_process(plan, here);
                build.world.run_process(exchange, here, &mut |_| true)?;
                guard.ended_well();
                Ok::<BuiltWorld, RunError>(build)
            };
            // The guard stops the threads that have started.
            let Ok(other) = thread::Builder::new().spawn_scoped(scope, work) else { return Ok(None) };
            others.push(other);
        }
        first.world.become_process(plan, 0);
        let own = first.world.run_process(exchange, 0, progress);
        if own.is_ok() {
            guard.ended_well();
        }
        drop(guard);
        let others = others.into_iter().map(|other| other.join().expect("a logical process does not panic"));
        let mut others: Vec<Result<BuiltWorld, RunError>> = others.collect();
        let is_deadlock = |error: Option<&RunError>| matches!(error, Some(RunError::Deadlock { .. }));
        if is_deadlock(own.as_ref().err()) || others.iter().any(|other| is_deadlock(other.as_ref().err())) {
            // The other processes were stopped for it.
            return Ok(None);
        }
        own?;
        others.drain(..).collect::<Result<Vec<BuiltWorld>, RunError>>().map(Some)
    })
}

/// Returns the worlds of a run in `threads` logical processes at its end, for tests.
#[cfg(test)]
pub(crate) fn worlds_of(model: &Model, threads: usize) -> Vec<BuiltWorld> {
    let mut first = build(model).expect("it is built");
    let plan = LpPlan::new(&first, threads, None).expect("it is divided");
    let rules = first.world.rules;
    let exchange = Exchange::new(plan.processes, plan.lookahead, rules.horizon, rules.grace);
    let others = run_processes(model, &mut first, &plan, &exchange, &mut |_| true).expect("it runs");
    std::iter::once(first).chain(others.into_iter().flatten()).collect()
}
