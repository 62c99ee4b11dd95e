//! The worlds of a run's parts become one.

use plimsoll_fabric::net::Node;
use plimsoll_results::outcome::Outcome;
use plimsoll_units::Time;

use super::exchange::Exchange;
use super::plan::Plan;
use crate::build::Build;
use crate::connection::{Connection, End};
use crate::world::World;

/// The outcome of the whole run.
pub(super) fn merge(mut first: Build, mut others: Vec<Build>, exchange: Exchange, plan: &Plan) -> Outcome {
    let worlds = std::iter::once(&mut first.world).chain(others.iter_mut().map(|other| &mut other.world));
    for (world, letters) in worlds.zip(exchange.into_letters()) {
        letters.into_iter().for_each(|letter| world.take(letter));
    }
    let all = || std::iter::once(&first.world).chain(others.iter().map(|other| &other.world));
    let end = if all().all(|world| world.wires.events.is_empty()) {
        all().map(|world| world.now).max().unwrap_or(Time::ZERO)
    } else {
        let finished = all().map(|world| world.finished).collect::<Option<Vec<Time>>>();
        if let Some(last) = finished.and_then(|times| times.into_iter().max()) {
            first.world.rules.end_after(last);
        }
        first.world.rules.horizon
    };
    first.world.settle(end);
    for (part, other) in (1..).zip(others) {
        let mut other = other.world;
        other.settle(end);
        first.world.absorb(other, plan, part);
    }
    first.finish_settled(end)
}

impl World {
    /// Takes what `part` was responsible for from its world. Both are settled.
    fn absorb(&mut self, mut other: World, plan: &Plan, part: u8) {
        for (port, link) in other.network.links().iter().enumerate() {
            if plan.part(link.from) == part {
                std::mem::swap(&mut self.ports[port], &mut other.ports[port]);
                if let (Node::Host(_), Some(pacer)) = (link.from, self.pacers.get_mut(port)) {
                    std::mem::swap(pacer, &mut other.pacers[port]);
                }
            }
        }
        let connections = std::mem::take(&mut other.connections);
        if self.connections.len() < connections.len() {
            self.connections.resize_with(connections.len(), || None);
        }
        for (own, other) in self.connections.iter_mut().zip(connections) {
            match (own.as_deref_mut(), other) {
                (Some(own), Some(other)) => {
                    own.absorb(*other, |end, other| plan.part(Node::Host(other.host(end))) == part)
                }
                (None, other) => *own = other,
                (Some(_), None) => {}
            }
        }
        other.wires.counters.events -= other.replicated_events;
        self.wires.counters += other.wires.counters;
        self.recorder.absorb(other.recorder);
    }
}

impl Connection {
    /// Takes the ends for which `other` is responsible.
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
