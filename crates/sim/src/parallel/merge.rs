//! The worlds of the logical processes become one.

use plimsoll_fabric::net::Node;
use plimsoll_results::outcome::Outcome;
use plimsoll_units::Time;

use super::exchange::Exchange;
use super::plan::LpPlan;
use crate::build::BuiltWorld;
use crate::world::World;

/// Merges the worlds of the logical processes, and returns the outcome of the whole run; `None` if links have paused
/// each other in a circle.
pub(super) fn merge(
    mut first: BuiltWorld,
    mut others: Vec<BuiltWorld>,
    exchange: Exchange,
    plan: &LpPlan,
) -> Option<Outcome> {
    let worlds = std::iter::once(&mut first.world).chain(others.iter_mut().map(|other| &mut other.world));
    for (world, mail) in worlds.zip(exchange.into_mail()) {
        mail.into_iter().for_each(|mut mail| world.take(&mut mail));
    }
    let others: Vec<World> = others.into_iter().map(|other| other.world).collect();
    let all = || std::iter::once(&first.world).chain(&others);
    let end = if all().all(|world| world.fabric.next_event_time().is_none()) {
        all().map(|world| world.now).max().unwrap_or(Time::ZERO)
    } else {
        let finished = all().map(|world| world.finished).collect::<Option<Vec<Time>>>();
        let mut rules = first.world.rules;
        if let Some(last) = finished.and_then(|times| times.into_iter().max()) {
            rules.end_after(last);
        }
        rules.horizon
    };
    let held = all().flat_map(|world| world.fabric.held_ports(end)).collect();
    if first.world.fabric.find_deadlock(held).is_some() {
        return None;
    }
    first.world.settle(end);
    for (process, mut other) in (1..).zip(others) {
        other.settle(end);
        absorb(&mut first.world, other, end, plan, process);
    }
    Some(first.finish_settled(end))
}

/// Merges the part for which the world of `process` was responsible into `world`. Both are settled.
fn absorb(world: &mut World, other: World, end: Time, plan: &LpPlan, process: u8) {
    world.hosts.absorb(other.hosts, |host| plan.process_of(Node::Host(host)) == process);
    world.fabric.hooks_mut().absorb(other.fabric.hooks());
    let links = other.fabric.network().links().iter();
    let is_other: Vec<bool> = links.map(|link| plan.process_of(link.from) == process).collect();
    world.fabric.absorb(other.fabric, other.sources.events, end, |port| is_other[port.0 as usize]);
    world.recorder.take(&mut { other.recorder }.records);
}
