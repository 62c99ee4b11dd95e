//! [`Faults`]: links that degrade, fail and come back at given times.
//!
//! ```text
//! link      ── alive ──┤ at: rate, or dead ├── alive ──            the port's rules change, a dead one has no room
//! routing   ───────────────┤ at + convergence_delay: without it ├── until + convergence_delay: with it again
//! ```
//!
//! Everything follows from the [`Schedule`], which is known before the run: the state of a link is a function of
//! the time, what routing knows is the state of all links a while ago, and whether a packet is lost on its link is
//! a function of when it left and arrived. So whoever has the schedule can see to its own ports: [`follow`].

mod follow;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::port::{BufferLimit, PortRules};
use plimsoll_fabric::net::{Detours, HostId, Network, Node, Port, PortId};
use plimsoll_scenario::model::{Direction, End, Fault, Model};
use plimsoll_units::{Rate, Span, Time};

use crate::Unbuildable;

pub use follow::{FaultedSink, follow};

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
    /// The port that sends on it.
    port: PortId,
    /// The port that sends the other way.
    back: Option<PortId>,
    /// What it is like from now on.
    state: LinkState,
    /// It is dead or was, so that flow control begins anew.
    breaks: bool,
}

/// One direction of a link that changes.
#[derive(Clone, Debug)]
pub struct ScheduledLink {
    port: PortId,
    /// The port that sends the other way.
    back: Option<PortId>,
    /// From when on it is in which state, in order; the first from the beginning.
    steps: Vec<(Time, LinkState)>,
}

/// What happens to links, and when.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// By port.
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
    /// Those that routing knows of.
    known_dead: BTreeSet<PortId>,
}

impl ScheduledLink {
    fn state_at(&self, now: Time) -> LinkState {
        let begun = self.steps.iter().take_while(|(from, _)| *from <= now);
        begun.last().map_or(LinkState::Whole, |(_, state)| *state)
    }

    /// Whether a packet is lost that has left at `left`, to arrive at `arrives`: the link was dead meanwhile.
    pub fn loses(&self, left: Time, arrives: Time) -> bool {
        self.steps.iter().enumerate().any(|(index, (from, state))| {
            let until = self.steps.get(index + 1).map_or(Time::MAX, |(until, _)| *until);
            *state == LinkState::Dead && *from < arrives && left <= until
        })
    }
}

impl Schedule {
    /// The schedule of `model`; what is only slow all the time is a slower link of `network`.
    ///
    /// # Errors
    /// If a fault names a link that there is not.
    pub fn new(model: &Model, network: &mut Network) -> Result<Schedule, Unbuildable> {
        let mut links: BTreeMap<PortId, ScheduledLink> = BTreeMap::new();
        for (index, fault) in model.fault.iter().enumerate() {
            let pairs = ports_of(model, network, fault);
            if pairs.is_empty() {
                let problem = format!("there is no link between `{}` and `{}`", fault.from, fault.to);
                return Err(Unbuildable { key: format!("fault.{index}"), problem });
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
    pub fn link(&self, port: PortId) -> Option<&ScheduledLink> {
        let place = self.links.binary_search_by_key(&port, |link| link.port).ok()?;
        Some(&self.links[place])
    }

    /// The slowest rate that the link of `port` ever has while it is alive, of rate `whole` as a rule.
    pub fn slowest(&self, port: PortId, whole: Rate) -> Rate {
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
    pub fn new(schedule: Schedule, ports: &mut [Port]) -> Option<Box<Faults>> {
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
    pub fn link(&self, port: PortId) -> Option<&ScheduledLink> {
        self.schedule.link(port)
    }

    /// Whether the link that `port` sends on is dead now.
    pub fn is_dead(&self, port: PortId) -> bool {
        self.dead.contains(&port)
    }

    /// The ways around the links that routing takes for dead; `None` if there are none.
    pub fn detours(&self, network: &Network) -> Option<Detours> {
        (!self.known_dead.is_empty()).then(|| Detours::around(network, &self.known_dead))
    }

    /// The first event, if there is one.
    pub fn next_event(&self, now: Time) -> Option<(Time, Owner)> {
        self.schedule.next_after(now).map(|at| (at, Owner::new(OwnerKind::Clock, FAULTS_CLOCK)))
    }

    /// Routing learns at `now` what it knows by then. Whether that is anything new.
    fn learn(&mut self, now: Time) -> bool {
        let known_dead = self.schedule.known_dead_at(now);
        let news = known_dead != self.known_dead;
        self.known_dead = known_dead;
        news
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

    /// The rules of `port` while its link is in `state`.
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

/// The number of the faults' clock.
pub const FAULTS_CLOCK: u32 = 1;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use plimsoll_scenario::Scenario;

    use super::*;
    use crate::network;

    const TOPOLOGIES: [&str; 6] = [
        "kind = 'rack'\nhosts = 3\nrate = '1Gbps'\ndelay = '1us'",
        "kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 2\nrate = '1Gbps'\ndelay = '1us'",
        "kind = 'fat-tree'\nk = 4\nrate = '1Gbps'\ndelay = '1us'",
        "kind = 'clos'\npods = 3\nedges = 2\naggregations = 3\ncores = 2\nhosts_per_edge = 1\nrate = '1Gbps'\n\
         delay = '1us'",
        "kind = 'dumbbell'\nleft = 2\nright = 1\nrate = '1Gbps'\ndelay = '1us'\nbottleneck_rate = '1Gbps'",
        "kind = 'file'\npath = 'leaf-spine.toml'",
    ];

    fn parse(topology: &str, faults: &str) -> Option<Model> {
        let text = format!(
            "version = 1\ntitle = 'links'\n[topology]\n{topology}\n{faults}\
             [workload.all]\nkind = 'all-to-all'\nsize = '1KB'\nload = 0.1\ncount = 1\n"
        );
        let files = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/tests/files"));
        let scenario = Scenario::parse("links", &text, files).ok()?;
        Some(scenario.points()[0].model.clone())
    }

    /// The scenario takes exactly those links that the network has.
    #[test]
    fn scenario_and_network_have_the_same_links() {
        for topology in TOPOLOGIES {
            let whole = parse(topology, "").unwrap();
            let network = network(&whole.topology).unwrap();
            let hosts = (0..network.hosts()).map(|host| (Node::Host(HostId(host)), End::Host(host)));
            let switches = (0..network.switches()).map(|switch| (Node::Switch(switch), End::Switch(switch)));
            let nodes: Vec<_> = hosts.chain(switches).collect();
            for (from, from_end) in &nodes {
                for (to, to_end) in &nodes {
                    let name = |end: &End| whole.topology.end_name(*end);
                    let (a, b) = (name(from_end), name(to_end));
                    let fault = format!("[[fault]]\nfrom = '{a}'\nto = '{b}'\ndown = true\nat = '1us'\n");
                    let there = network.ports_between(*from, *to).next().is_some();
                    assert_eq!(parse(topology, &fault).is_some(), there, "{a} and {b} of {topology}");
                }
            }
        }
    }

    /// Slow from 10 us, dead from 20 us to 30 us.
    #[test]
    fn states_follow_each_other() {
        let us = |us| Time::ZERO + Span::from_us(us);
        let fault = |at: &str, until: &str, what: &str| {
            format!("[[fault]]\nfrom = 'h0'\nto = 'tor0'\nat = '{at}'\nuntil = '{until}'\n{what}\n")
        };
        let slow = fault("10us", "20us", "rate = '1Mbps'");
        let dead = fault("20us", "30us", "down = true");
        for faults in [format!("{slow}{dead}"), format!("{dead}{slow}")] {
            let model = parse(TOPOLOGIES[0], &faults).unwrap();
            let schedule = Schedule::new(&model, &mut network(&model.topology).unwrap()).unwrap();
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
