//! The worlds of the logical processes become one.

use plimsoll_fabric::net::Node;
use plimsoll_results::outcome::Outcome;
use plimsoll_units::Time;

use super::exchange::Exchange;
use super::plan::LpPlan;
use crate::build::Build;
use crate::hosts::connection::{Connection, End};
use crate::world::World;

/// Merges the worlds of the logical processes, and returns the outcome of the whole run.
pub(super) fn merge(mut first: Build, mut others: Vec<Build>, exchange: Exchange, plan: &LpPlan) -> Outcome {
    let worlds = std::iter::once(&mut first.world).chain(others.iter_mut().map(|other| &mut other.world));
    for (world, mail) in worlds.zip(exchange.into_mail()) {
        mail.into_iter().for_each(|mut mail| world.take(&mut mail));
    }
    let all = || std::iter::once(&first.world).chain(others.iter().map(|other| &other.world));
    let end = if all().all(|world| world.fabric.next_event_time().is_none()) {
        all().map(|world| world.now).max().unwrap_or(Time::ZERO)
    } else {
        let finished = all().map(|world| world.finished).collect::<Option<Vec<Time>>>();
        if let Some(last) = finished.and_then(|times| times.into_iter().max()) {
            first.world.rules.end_after(last);
        }
        first.world.rules.horizon
    };
    first.world.settle(end);
    for (process, other) in (1..).zip(others) {
        let mut other = other.world;
        other.settle(end);
        first.world.absorb(other, plan, process);
    }
    first.finish_settled(end)
}

impl World {
    /// Takes from the world of `process` what that was responsible for. Both are settled.
    fn absorb(&mut self, mut other: World, plan: &LpPlan, process: u8) {
        let connections = std::mem::take(&mut other.hosts.connections);
        self.hosts.connections.absorb(connections, |own, other| {
            own.absorb(other, |end, other| plan.process_of(Node::Host(other.host(end))) == process);
        });
        let links = other.fabric.network().links().iter();
        let is_other: Vec<bool> = links.map(|link| plan.process_of(link.from) == process).collect();
        self.fabric.absorb(other.fabric, other.sources.events, |port| is_other[port.0 as usize]);
        self.recorder.absorb(other.recorder);
    }
}

impl Connection {
    /// Takes the ends of `other` for which that is responsible.
    fn absorb(&mut self, mut other: Connection, is_responsible: impl Fn(End, &Connection) -> bool) {
        for end in [End::Client, End::Server] {
            if is_responsible(end, &other) {
                std::mem::swap(self.half(end), other.half(end));
            }
        }
        self.active = match (self.active, other.active) {
            (Some(own), Some(other)) => Some((own.0.min(other.0), own.1.max(other.1))),
            (own, other) => own.or(other),
        };
    }
}
