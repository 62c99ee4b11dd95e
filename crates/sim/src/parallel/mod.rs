//! One run on many cores.
//!
//! ```text
//! plan       which part each host and switch belongs to; every part has a thread and a world of its own
//! part       its world handles events up to a bound: the slowest part's clock plus the lookahead
//! border     what leaves a part on a link that ends in another: packets, and what hosts tell each other of
//! exchange   clocks and letters: a part reads all clocks, then its letters, then has the next bound
//! merge      the worlds become one again
//! ```
//!
//! This is conservative: nothing is ever undone. A packet that is sent at some time arrives a propagation later
//! at the earliest, so all that can reach a part before *the slowest clock + the shortest propagation of a link
//! between parts* (its lookahead) has already been posted to it. Events at one instant are ordered by their
//! owners, not by who was faster; every part builds the same world and draws from the same named streams; and
//! connections have the same numbers everywhere, because what opens them is done in every part that has hosts. So
//! an outcome is the same, byte for byte, on any number of threads.
//!
//! Hosts are shared out with the switch that they hang on, if all workloads send flows at times of their own,
//! which nobody answers. Any other workload acts for all hosts at once; then all hosts are one part, and the
//! switches are shared out. What couples the whole network at once ([`plan::obstacle`]) runs on one thread.

mod border;
mod exchange;
mod merge;
mod part;
mod plan;

use std::thread;

use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::model::Model;

pub(crate) use border::{Border, Letter};
use exchange::Exchange;
use plan::Plan;

use crate::build::{Build, build};
use crate::{Extensions, Progress, RunError};

/// Runs `model` on up to `threads` threads, where that is likely to be faster: the first million events, on one
/// thread, tell how many there are in a lookahead. The outcome is that of [`run`](crate::run).
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
    let mut build = build(model, Extensions::default())?;
    let plan = if threads > 1 { Plan::new(&build.world, threads) } else { None };
    let mut is_dense = None;
    let end = build.world.run(&mut |now| {
        let dense = *is_dense.get_or_insert_with(|| plan.as_ref().is_some_and(|plan| plan.is_worth_it(now)));
        !dense && progress(now)
    });
    match (plan, is_dense) {
        (Some(plan), Some(true)) => {
            drop(build);
            run_plan(model, plan, progress)
        }
        _ => Ok(build.finish(end?)),
    }
}

/// Why runs of `model` stay on one thread, if they do.
///
/// # Errors
/// If the model cannot be built.
pub fn obstacle(model: &Model) -> Result<Option<&'static str>, RunError> {
    Ok(plan::obstacle(&build(model, Extensions::default())?.world))
}

/// Runs `model` in as many parts as its network allows, `threads` at most, worth it or not; for tests.
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
    let plan = Plan::new(&build(model, Extensions::default())?.world, threads);
    match plan {
        Some(plan) => run_plan(model, plan, progress),
        None => crate::run(model, progress),
    }
}

fn run_plan(
    model: &Model,
    plan: Plan,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, RunError> {
    let mut first = build(model, Extensions::default())?;
    let exchange =
        Exchange::new(plan.parts, plan.lookahead, first.world.rules.horizon, first.world.rules.grace);
    let others = thread::scope(|scope| {
        let others: Vec<_> = (1..plan.parts)
            .map(|part| {
                let (plan, exchange) = (&plan, &exchange);
                scope.spawn(move || {
                    let watch = exchange.watch();
                    let mut build = build(model, Extensions::default())?;
                    build.world.become_part(plan, part);
                    build.world.run_part(exchange, part, &mut |_| true)?;
                    watch.ended_well();
                    Ok::<Build, RunError>(build)
                })
            })
            .collect();
        let watch = exchange.watch();
        first.world.become_part(&plan, 0);
        let own = first.world.run_part(&exchange, 0, progress);
        if own.is_ok() {
            watch.ended_well();
        }
        drop(watch);
        let others = others.into_iter().map(|other| other.join().expect("a part of a run does not panic"));
        own.and(others.collect::<Result<Vec<Build>, RunError>>())
    })?;
    Ok(merge::merge(first, others, exchange, &plan))
}
