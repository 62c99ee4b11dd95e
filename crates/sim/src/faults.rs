//! [`Faults`]: links that degrade, fail and come back at given times.
//!
//! ```text
//! link      ── alive ──┤ at: rate, or dead ├── alive ──            the port's rules change, a dead one has no room
//! routing   ───────────────┤ at + convergence_delay: without it ├── until + convergence_delay: with it again
//! ```
//!
//! Everything follows from the [`Schedule`], which is known before the run: the state of a link is a function of
//! the time, what routing knows is the state of all links a while ago, and whether a packet is lost on its link is
//! a function of when it left and arrived. So whoever has the schedule can see to its own ports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::port::{BufferLimit, PortRules};
use plimsoll_fabric::net::{Detours, HostId, Network, Node, Packet, Port, PortId};
use plimsoll_mechanisms::pfc::{Priorities, Signal};
use plimsoll_results::outcome;
use plimsoll_scenario::model::{Direction, End, Fault, Model};
use plimsoll_units::{Rate, Span, Time};

use crate::RunError;
use crate::world::World;

/// What a link is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LinkState {
    /// As the topology says.
    Whole,
    /// Slower.
    Rate(Rate),
    /// Nothing passes.
    Dead,
}

/// A link that is another from now on.
#[derive(Clone, Copy, Debug)]
struct Change {
    port: PortId,
    /// The port that sends the other way.
    back: Option<PortId>,
    state: LinkState,
    /// It is dead or was, so that flow control begins anew.
    breaks: bool,
}

/// One direction of a link that changes.
#[derive(Clone, Debug)]
pub(crate) struct ScheduledLink {
    port: PortId,
    /// The port that sends the other way.
    back: Option<PortId>,
    /// From when on it is in which state, in order; the first from the beginning.
    steps: Vec<(Time, LinkState)>,
}

/// What happens to links, and when.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    /// By port.
    links: Vec<ScheduledLink>,
    convergence_delay: Span,
}

/// A schedule, and how far it has been followed.
#[derive(Debug)]
pub(crate) struct Faults {
    schedule: Schedule,
    /// The rules of the ports of scheduled links, as the topology has them.
    rules: BTreeMap<PortId, Arc<PortRules>>,
    /// The ports whose links are dead now.
    dead: BTreeSet<PortId>,
    /// Those that routing knows of.
    known_dead: BTreeSet<PortId>,
}

impl ScheduledLink {
    fn state_at(&self, now: Time) -> LinkState {
        let begun = self.steps.iter().take_while(|(from, _)| *from <= now);
        begun.last().map_or(LinkState::Whole, |(_, state)| *state)
    }

    /// Whether a packet is lost that has left at `left`, to arrive at `arrives`: the link was dead meanwhile.
    fn loses(&self, left: Time, arrives: Time) -> bool {
        self.steps.iter().enumerate().any(|(index, (from, state))| {
            let until = self.steps.get(index + 1).map_or(Time::MAX, |(until, _)| *until);
            *state == LinkState::Dead && *from < arrives && left <= until
        })
    }
}

impl Schedule {
    /// The schedule of `model`; what is only slow all the time is a slower link of `network`.
    pub(crate) fn new(model: &Model, network: &mut Network) -> Result<Schedule, RunError> {
        let mut links: BTreeMap<PortId, ScheduledLink> = BTreeMap::new();
        for (index, fault) in model.fault.iter().enumerate() {
            let pairs = ports_of(model, network, fault);
            if pairs.is_empty() {
                let problem = format!("there is no link between `{}` and `{}`", fault.from, fault.to);
                return Err(RunError::Build { key: format!("fault.{index}"), problem });
            }
            for (port, back) in pairs {
                match fault.rate.filter(|_| !fault.is_scheduled()) {
                    Some(rate) => network.set_rate(port, rate),
                    None => {
                        let whole =
                            || ScheduledLink { port, back, steps: vec![(Time::ZERO, LinkState::Whole)] };
                        links.entry(port).or_insert_with(whole).add(fault);
                    }
                }
            }
        }
        let convergence_delay = model.paths.convergence_delay;
        Ok(Schedule { links: links.into_values().collect(), convergence_delay })
    }

    fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// The link that `port` sends on, if it changes.
    pub(crate) fn link(&self, port: PortId) -> Option<&ScheduledLink> {
        let place = self.links.binary_search_by_key(&port, |link| link.port).ok()?;
        Some(&self.links[place])
    }

    /// The slowest rate that the link of `port` ever has while it is alive, of rate `whole` as a rule.
    pub(crate) fn slowest(&self, port: PortId, whole: Rate) -> Rate {
        let steps = self.link(port).into_iter().flat_map(|link| &link.steps);
        let rates = steps.filter_map(|(_, state)| match state {
            LinkState::Rate(rate) => Some(*rate),
            _ => None,
        });
        rates.fold(whole, Rate::min)
    }

    /// The ports that routing takes for dead at `now`.
    fn known_dead_at(&self, now: Time) -> BTreeSet<PortId> {
        let then = Time::ZERO + now.saturating_since(Time::ZERO).saturating_sub(self.convergence_delay);
        let dead = self.links.iter().filter(|link| link.state_at(then) == LinkState::Dead);
        dead.map(|link| link.port).collect()
    }

    /// When next after `now` a link changes or routing follows.
    fn next_after(&self, now: Time) -> Option<Time> {
        let steps = self.links.iter().flat_map(|link| &link.steps).map(|(at, _)| *at);
        let all = steps.flat_map(|at| [at, at.saturating_add(self.convergence_delay)]);
        all.filter(|at| *at > now && *at < Time::MAX).min()
    }
}

impl ScheduledLink {
    /// Faults of a link do not overlap, but one may begin when another ends.
    fn add(&mut self, fault: &Fault) {
        let state = fault.rate.map_or(LinkState::Dead, LinkState::Rate);
        let at = Time::ZERO + fault.at;
        self.steps.retain(|(from, _)| *from != at);
        self.steps.push((at, state));
        if let Some(until) = fault.until.map(|until| Time::ZERO + until)
            && !self.steps.iter().any(|(from, _)| *from == until)
        {
            self.steps.push((until, LinkState::Whole));
        }
        self.steps.sort_unstable_by_key(|(from, _)| *from);
    }
}

impl Faults {
    /// Follows `schedule` from the beginning; `None` if there is nothing to follow.
    pub(crate) fn new(schedule: Schedule, ports: &mut [Port]) -> Option<Box<Faults>> {
        if schedule.is_empty() {
            return None;
        }
        let rules = |link: &ScheduledLink| (link.port, Arc::clone(ports[link.port.0 as usize].rules()));
        let rules = schedule.links.iter().map(rules).collect();
        let known_dead = schedule.known_dead_at(Time::ZERO);
        let mut faults = Faults { schedule, rules, dead: BTreeSet::new(), known_dead };
        for Change { port, state, .. } in faults.advance(Time::ZERO) {
            ports[port.0 as usize].set_rules(faults.rules_in(port, state));
        }
        Some(Box::new(faults))
    }

    /// The link that `port` sends on, if it changes.
    pub(crate) fn link(&self, port: PortId) -> Option<&ScheduledLink> {
        self.schedule.link(port)
    }

    /// Whether the link that `port` sends on is dead now.
    pub(crate) fn is_dead(&self, port: PortId) -> bool {
        self.dead.contains(&port)
    }

    /// The ways around the links that routing takes for dead; `None` if there are none.
    pub(crate) fn detours(&self, network: &Network) -> Option<Detours> {
        (!self.known_dead.is_empty()).then(|| Detours::around(network, &self.known_dead))
    }

    /// The first event, if there is one.
    pub(crate) fn next_event(&self, now: Time) -> Option<(Time, Owner)> {
        self.schedule.next_after(now).map(|at| (at, Owner::new(OwnerKind::Clock, FAULTS_CLOCK)))
    }

    /// The links that change at `now`.
    fn advance(&mut self, now: Time) -> Vec<Change> {
        let changes = |link: &&ScheduledLink| link.steps.iter().any(|(at, _)| *at == now);
        let dead = &mut self.dead;
        let change = |link: &ScheduledLink| {
            let (port, back, state) = (link.port, link.back, link.state_at(now));
            let was_dead = dead.remove(&port);
            let is_dead = state == LinkState::Dead && dead.insert(port);
            Change { port, back, state, breaks: was_dead || is_dead }
        };
        self.schedule.links.iter().filter(changes).map(change).collect()
    }

    fn rules_in(&self, port: PortId, state: LinkState) -> Arc<PortRules> {
        let whole = &self.rules[&port];
        match state {
            LinkState::Whole => Arc::clone(whole),
            LinkState::Rate(rate) => Arc::new(PortRules { byte_time: rate.byte_time(), ..(**whole).clone() }),
            LinkState::Dead => Arc::new(PortRules { limit: BufferLimit::NOTHING, ..(**whole).clone() }),
        }
    }
}

/// The ports of a fault's link in the directions that it concerns, each with the one that sends the other way.
fn ports_of(model: &Model, network: &Network, fault: &Fault) -> Vec<(PortId, Option<PortId>)> {
    let node = |name: &str| {
        model.topology.end(name).map(|end| match end {
            End::Host(host) => Node::Host(HostId(host)),
            End::Switch(switch) => Node::Switch(switch),
        })
    };
    let Some((from, to)) = node(&fault.from).zip(node(&fault.to)) else { return Vec::new() };
    let forward: Vec<PortId> = network.ports_between(from, to).collect();
    let backward: Vec<PortId> = network.ports_between(to, from).collect();
    // Of several links between two nodes the first port belongs to the first port back.
    let with_back = |ports: &[PortId], backs: &[PortId]| -> Vec<(PortId, Option<PortId>)> {
        ports.iter().enumerate().map(|(index, port)| (*port, backs.get(index).copied())).collect()
    };
    let mut pairs = Vec::new();
    if fault.direction != Direction::Backward {
        pairs.extend(with_back(&forward, &backward));
    }
    if fault.direction != Direction::Forward {
        pairs.extend(with_back(&backward, &forward));
    }
    pairs
}

/// The faults of `model` as the outcome lists them.
pub(crate) fn listed(model: &Model) -> Vec<outcome::Fault> {
    let listed = |fault: &Fault| {
        let (a, b) = (&fault.from, &fault.to);
        outcome::Fault {
            link: match fault.direction {
                Direction::Both => format!("{a} - {b}"),
                Direction::Forward => format!("{a} -> {b}"),
                Direction::Backward => format!("{b} -> {a}"),
            },
            from: Time::ZERO + fault.at,
            until: fault.until.map(|until| Time::ZERO + until),
            rate: fault.rate,
        }
    };
    model.fault.iter().map(listed).collect()
}

impl World {
    /// Links change, or routing learns that they have.
    #[cold]
    pub(crate) fn on_faults_due(&mut self, now: Time) {
        let Some(faults) = &mut self.wires.faults else { return };
        let changed = faults.advance(now);
        if let Some((at, owner)) = faults.next_event(now) {
            self.wires.events.push(at, owner);
        }
        for change in &changed {
            self.change_link(now, change.port, change.state);
        }
        for Change { port, back, .. } in changed.into_iter().filter(|change| change.breaks) {
            self.forget_pauses(now, port);
            back.into_iter().for_each(|back| self.forget_pauses(now, back));
        }
        self.reroute(now);
        self.offer_room(now);
    }

    fn change_link(&mut self, now: Time, port: PortId, state: LinkState) {
        let Some(faults) = &self.wires.faults else { return };
        let rules = faults.rules_in(port, state);
        let number = port.0 as usize;
        self.ports[number].set_rules(rules);
        if state == LinkState::Dead {
            self.ports[number].flush(port, now, &mut self.wires);
        } else if number < self.waiting_for_room.len() {
            self.wires.room.push(port);
        }
    }

    /// Flow control on the link of `port` begins anew.
    fn forget_pauses(&mut self, now: Time, port: PortId) {
        let Some(control) = &mut self.wires.flow_control else { return };
        control.forget(port);
        self.ports[port.0 as usize].on_signal(port, now, Signal::Resume(Priorities::ALL), &mut self.wires);
    }

    fn reroute(&mut self, now: Time) {
        let Some(faults) = &mut self.wires.faults else { return };
        let known_dead = faults.schedule.known_dead_at(now);
        if known_dead == faults.known_dead {
            return;
        }
        faults.known_dead = known_dead;
        let detours = faults.detours(&self.network);
        if let Some(selector) = &mut self.selector {
            selector.set_detours(detours);
        }
    }

    /// `packet` has come to the end of the link of `port`, in a world where paths may change. Whether it is
    /// still there.
    pub(crate) fn crosses(&mut self, now: Time, port: PortId, packet: &mut Packet) -> bool {
        let link = self.network.link(port);
        match self.wires.faults.as_ref().and_then(|faults| faults.link(port)) {
            // Its port knew what the link would take.
            Some(scheduled) => !scheduled.loses(now - link.propagation, now),
            None => {
                packet.add_transit(link.rate.byte_time().span(u64::from(packet.size)) + link.propagation);
                true
            }
        }
    }
}

/// The number of the faults' clock.
pub(crate) const FAULTS_CLOCK: u32 = 1;
