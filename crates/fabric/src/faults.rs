//! [`Faults`]: links that degrade, fail and come back at given times.
//!
//! ```text
//! link      ── alive ──┤ at: rate, or dead ├── alive ──            the port's rules change, a dead one has no room
//! routing   ───────────────┤ at + convergence_delay: without it ├── until + convergence_delay: with it again
//! ```
//!
//! Everything follows from the [`Schedule`], which is known before the run: the state of a link is a function of the
//! time, routing reacts to the state of all links a while ago, and whether a packet is lost on its link is a function
//! of when it left and arrived. So each logical process of a parallel run changes its own ports from the schedule
//! alone.

mod follow;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_units::{Rate, Span, Time};

use crate::engine::{Owner, OwnerKind};
use crate::net::port::{BufferLimit, PortRules};
use crate::net::{Detours, Network, Port, PortId};

/// A fault of one direction of a link: the link is slow or dead for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkFault {
    /// The port that sends on the link.
    pub port: PortId,
    /// The port that sends in the opposite direction.
    pub back: Option<PortId>,
    /// When the fault begins.
    pub at: Time,
    /// When the link is as before again; `None` for never.
    pub until: Option<Time>,
    /// The remaining rate of the link; the link is dead if `None`.
    pub rate: Option<Rate>,
}

/// The state of a link between two changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LinkState {
    /// The link is as the topology says.
    Whole,
    /// The link has another rate.
    Rate(Rate),
    /// The link has failed and carries no packet.
    Dead,
}

/// A change of a link's state.
#[derive(Clone, Copy, Debug)]
struct LinkChange {
    /// The port that sends on the link.
    port: PortId,
    /// The port that sends in the opposite direction.
    back: Option<PortId>,
    /// The state from now on.
    state: LinkState,
    /// The link is dead or was, so that flow control begins anew.
    breaks: bool,
}

/// One direction of a link that changes.
#[derive(Clone, Debug)]
pub struct ScheduledLink {
    port: PortId,
    /// The port that sends in the opposite direction.
    back: Option<PortId>,
    /// The states in order, each with its first instant; the first begins with the run.
    steps: Vec<(Time, LinkState)>,
}

/// The changes of links, and their times.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// The changing links, by port.
    links: Vec<ScheduledLink>,
    convergence_delay: Span,
}

/// A schedule, and how far it has been followed.
#[derive(Debug)]
pub struct Faults {
    schedule: Schedule,
    /// The rules of the ports of scheduled links, as the topology has them.
    rules: BTreeMap<PortId, Arc<PortRules>>,
    /// The ports whose links are dead now.
    dead: BTreeSet<PortId>,
    /// The ports whose links routing takes for dead.
    known_dead: BTreeSet<PortId>,
    /// Events in which the schedule was followed; every logical process of a parallel run has them all.
    events: u64,
}

impl ScheduledLink {
    fn state_at(&self, now: Time) -> LinkState {
        let begun = self.steps.iter().take_while(|(from, _)| *from <= now);
        begun.last().map_or(LinkState::Whole, |(_, state)| *state)
    }

    /// Returns the rate at `now`, which is otherwise `whole`.
    pub(crate) fn rate_at(&self, now: Time, whole: Rate) -> Rate {
        match self.state_at(now) {
            LinkState::Rate(rate) => rate,
            LinkState::Whole | LinkState::Dead => whole,
        }
    }

    /// Returns whether a packet that left at `left`, to arrive at `arrives`, is lost because the link was dead
    /// meanwhile.
    pub fn loses(&self, left: Time, arrives: Time) -> bool {
        self.steps.iter().enumerate().any(|(index, (from, state))| {
            let until = self.steps.get(index + 1).map_or(Time::MAX, |(until, _)| *until);
            *state == LinkState::Dead && *from < arrives && left <= until
        })
    }
}

impl Schedule {
    /// Builds the schedule of `faults`. Faults of a link do not overlap, but one may begin when another ends.
    pub fn new(faults: &[LinkFault], convergence_delay: Span) -> Schedule {
        let mut links: BTreeMap<PortId, ScheduledLink> = BTreeMap::new();
        for fault in faults {
            let &LinkFault { port, back, .. } = fault;
            let whole = || ScheduledLink { port, back, steps: vec![(Time::ZERO, LinkState::Whole)] };
            links.entry(port).or_insert_with(whole).add(fault);
        }
        Schedule { links: links.into_values().collect(), convergence_delay }
    }

    fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Returns the link that `port` sends on, if it changes.
    pub fn link(&self, port: PortId) -> Option<&ScheduledLink> {
        let place = self.links.binary_search_by_key(&port, |link| link.port).ok()?;
        Some(&self.links[place])
    }

    /// Returns the slowest rate that the link of `port`, otherwise of rate `whole`, ever has while it is alive.
    pub fn slowest(&self, port: PortId, whole: Rate) -> Rate {
        let steps = self.link(port).into_iter().flat_map(|link| &link.steps);
        let rates = steps.filter_map(|(_, state)| match state {
            LinkState::Rate(rate) => Some(*rate),
            _ => None,
        });
        rates.fold(whole, Rate::min)
    }

    /// Returns the ports whose links routing takes for dead at `now`.
    fn known_dead_at(&self, now: Time) -> BTreeSet<PortId> {
        let then = Time::ZERO + now.saturating_since(Time::ZERO).saturating_sub(self.convergence_delay);
        let dead = self.links.iter().filter(|link| link.state_at(then) == LinkState::Dead);
        dead.map(|link| link.port).collect()
    }

    /// Returns when next after `now` a link changes or routing follows.
    fn next_after(&self, now: Time) -> Option<Time> {
        let steps = self.links.iter().flat_map(|link| &link.steps).map(|(at, _)| *at);
        let all = steps.flat_map(|at| [at, at.saturating_add(self.convergence_delay)]);
        all.filter(|at| *at > now && *at < Time::MAX).min()
    }
}

impl ScheduledLink {
    fn add(&mut self, fault: &LinkFault) {
        let state = fault.rate.map_or(LinkState::Dead, LinkState::Rate);
        self.steps.retain(|(from, _)| *from != fault.at);
        self.steps.push((fault.at, state));
        if let Some(until) = fault.until
            && !self.steps.iter().any(|(from, _)| *from == until)
        {
            self.steps.push((until, LinkState::Whole));
        }
        self.steps.sort_unstable_by_key(|(from, _)| *from);
    }
}

impl Faults {
    /// Follows `schedule` from the beginning of the run; returns `None` if it has no change.
    pub fn new(schedule: Schedule, ports: &mut [Port]) -> Option<Box<Faults>> {
        if schedule.is_empty() {
            return None;
        }
        let rules = |link: &ScheduledLink| (link.port, Arc::clone(ports[link.port.0 as usize].rules()));
        let rules = schedule.links.iter().map(rules).collect();
        let known_dead = schedule.known_dead_at(Time::ZERO);
        let mut faults = Faults { schedule, rules, dead: BTreeSet::new(), known_dead, events: 0 };
        for LinkChange { port, state, .. } in faults.advance(Time::ZERO) {
            ports[port.0 as usize].set_rules(faults.rules_in(port, state));
        }
        Some(Box::new(faults))
    }

    /// Returns the link that `port` sends on, if it changes.
    pub fn link(&self, port: PortId) -> Option<&ScheduledLink> {
        self.schedule.link(port)
    }

    /// Returns whether the link that `port` sends on is dead now.
    pub fn is_dead(&self, port: PortId) -> bool {
        self.dead.contains(&port)
    }

    /// Returns whether the link that `port` sends on, or the one back, fails or comes back after `now`.
    pub(crate) fn breaks_after(&self, port: PortId, now: Time) -> bool {
        let is_of_port = |link: &&ScheduledLink| link.port == port || link.back == Some(port);
        self.schedule.links.iter().filter(is_of_port).any(|link| {
            let mut changes = link.steps.windows(2).filter(|steps| steps[1].0 > now);
            changes.any(|steps| steps.iter().any(|(_, state)| *state == LinkState::Dead))
        })
    }

    /// Returns the ports whose links routing takes for dead.
    pub(crate) fn known_dead(&self) -> &BTreeSet<PortId> {
        &self.known_dead
    }

    /// Returns in how many events the schedule was followed.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Computes the detours around the links that routing takes for dead; `None` if no link is.
    pub fn detours(&self, network: &Network) -> Option<Detours> {
        (!self.known_dead.is_empty()).then(|| Detours::around(network, &self.known_dead))
    }

    /// Returns the next event after `now`, if there is one.
    pub fn next_event(&self, now: Time) -> Option<(Time, Owner)> {
        self.schedule.next_after(now).map(|at| (at, Owner::new(OwnerKind::Clock, FAULTS_CLOCK)))
    }

    /// Updates routing's view of the links at `now`; returns whether it changed.
    fn learn(&mut self, now: Time) -> bool {
        let known_dead = self.schedule.known_dead_at(now);
        let news = known_dead != self.known_dead;
        self.known_dead = known_dead;
        news
    }

    /// Updates the set of dead links and returns the changes at `now`.
    fn advance(&mut self, now: Time) -> Vec<LinkChange> {
        let changes = |link: &&ScheduledLink| link.steps.iter().any(|(at, _)| *at == now);
        let dead = &mut self.dead;
        let change = |link: &ScheduledLink| {
            let (port, back, state) = (link.port, link.back, link.state_at(now));
            let was_dead = dead.remove(&port);
            let is_dead = state == LinkState::Dead && dead.insert(port);
            LinkChange { port, back, state, breaks: was_dead || is_dead }
        };
        self.schedule.links.iter().filter(changes).map(change).collect()
    }

    /// Returns the rules of `port` while its link is in `state`.
    fn rules_in(&self, port: PortId, state: LinkState) -> Arc<PortRules> {
        let whole = &self.rules[&port];
        match state {
            LinkState::Whole => Arc::clone(whole),
            LinkState::Rate(rate) => {
                Arc::new(PortRules { byte_time: rate.byte_time(), rate, ..(**whole).clone() })
            }
            LinkState::Dead => Arc::new(PortRules { limit: BufferLimit::NOTHING, ..(**whole).clone() }),
        }
    }
}

/// The number, among the owners of kind [`OwnerKind::Clock`], of the clock that changes links.
pub const FAULTS_CLOCK: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// The link is slow from 10 us, and dead from 20 us to 30 us.
    #[test]
    fn states_follow_each_other() {
        let us = |us| Time::ZERO + Span::from_us(us);
        let fault = |at, until, rate| LinkFault {
            port: PortId(0),
            back: Some(PortId(3)),
            at: us(at),
            until: Some(us(until)),
            rate,
        };
        let slow = fault(10, 20, Some(Rate::from_mbps(1)));
        let dead = fault(20, 30, None);
        for faults in [[slow, dead], [dead, slow]] {
            let schedule = Schedule::new(&faults, Span::ZERO);
            let link = schedule.link(PortId(0)).unwrap();
            let slow = LinkState::Rate(Rate::from_mbps(1));
            let states = [0, 10, 19, 20, 29, 30].map(|at| link.state_at(us(at)));
            let whole = LinkState::Whole;
            assert_eq!(states, [whole, slow, slow, LinkState::Dead, LinkState::Dead, whole]);
            let lost = [(15, 20), (15, 21), (25, 26), (30, 31), (31, 32)];
            assert_eq!(lost.map(|(left, at)| link.loses(us(left), us(at))), [false, true, true, true, false]);
            assert_eq!(schedule.slowest(PortId(0), Rate::from_gbps(1)), Rate::from_mbps(1));
            assert_eq!(
                [0, 10, 25].map(|at| schedule.next_after(us(at))),
                [10, 20, 30].map(|at| Some(us(at)))
            );
            assert_eq!(schedule.next_after(us(30)), None);
        }
    }
}
