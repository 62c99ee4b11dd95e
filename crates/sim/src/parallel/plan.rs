//! [`Plan`]: which part each host and switch belongs to.

use plimsoll_fabric::net::{Network, Node};
use plimsoll_units::Span;

use crate::Progress;
use crate::world::World;
use plimsoll_workloads::Reach;

/// A network in parts.
#[derive(Debug)]
pub(crate) struct Plan {
    /// How many there are, from 2.
    pub(crate) parts: u8,
    /// By host: its part.
    pub(crate) hosts: Vec<u8>,
    /// By switch: its part.
    pub(crate) switches: Vec<u8>,
    /// How long whatever leaves a part takes to have an effect in another.
    pub(crate) lookahead: Span,
}

impl Plan {
    /// At most `threads` parts; none where one thread must do, or the network is not worth two.
    pub(crate) fn new(world: &World, threads: usize) -> Option<Plan> {
        let network = &world.network;
        if obstacle(world).is_some() || network.switches() == 0 {
            return None;
        }
        let levels = Levels::of(network);
        let threads = threads.min(MAX_PARTS);
        let edges = levels.switches[0].len();
        let (parts, hosts, switches) = if hosts_are_apart(world) && edges > 1 {
            let parts = threads.min(edges);
            let switches = levels.shared_out(parts);
            let hosts = levels.edge_of.iter().map(|&edge| switches[edge as usize]).collect();
            (parts, hosts, switches)
        } else {
            let parts = threads.min(network.switches() as usize + 1);
            let mut switches = levels.shared_out(parts.saturating_sub(1).max(1));
            switches.iter_mut().for_each(|part| *part += 1);
            (parts, vec![0; network.hosts() as usize], switches)
        };
        let mut plan = Plan { parts: parts as u8, hosts, switches, lookahead: Span::MAX };
        let between = network.links().iter().filter(|link| plan.part(link.from) != plan.part(link.to));
        plan.lookahead = between.map(|link| link.propagation).min().unwrap_or(Span::MAX);
        if world.rules.stop_when_finished {
            // No part goes further than it could be told of the end.
            plan.lookahead = plan.lookahead.min(world.rules.grace);
        }
        (parts > 1 && !plan.lookahead.is_zero()).then_some(plan)
    }

    /// Whether a part has so much to do in a lookahead that waiting for the others costs little beside it.
    pub(super) fn is_worth_it(&self, so_far: Progress) -> bool {
        let lookaheads = so_far.now.as_ps() / self.lookahead.as_ps() + 1;
        so_far.events / lookaheads >= u64::from(self.parts) * EVENTS_MIN
    }

    /// The part of `node`.
    pub(crate) fn part(&self, node: Node) -> u8 {
        match node {
            Node::Host(host) => self.hosts[host.0 as usize],
            Node::Switch(switch) => self.switches[switch as usize],
        }
    }
}

/// What keeps a run on one thread: something that acts in several places at one instant.
pub(crate) fn obstacle(world: &World) -> Option<&'static str> {
    if world.selector.as_ref().is_some_and(|selector| !selector.is_local()) {
        Some("a path selector from outside may know the whole network")
    } else if world.wires.flow_control.is_some() {
        Some("flow control looks for deadlocks in the whole network")
    } else if world.tap.is_some() {
        Some("packets are captured or counted in the order of the whole network")
    } else if world.recorder.first_sample().is_some() {
        Some("`observe.flow_series` samples both ends of a connection at one instant")
    } else if world.workloads.iter().any(|workload| workload.reach() == Reach::Network) {
        Some("raw packets learn at once of their drops")
    } else {
        None
    }
}

/// Whether hosts may be in different parts.
fn hosts_are_apart(world: &World) -> bool {
    let rules = &world.rules;
    world.workloads.iter().all(|workload| workload.reach() == Reach::Receiver)
        && !rules.close_when_idle
        && !rules.completes_acknowledged
}

/// Switches by their distance from the hosts.
struct Levels {
    /// By level, in the order of their numbers: those with hosts, those next to these, and so on.
    switches: Vec<Vec<u32>>,
    /// By host: the switch that it hangs on.
    edge_of: Vec<u32>,
    /// By switch: how many hosts hang on it.
    hosts_at: Vec<u32>,
}

impl Levels {
    fn of(network: &Network) -> Levels {
        let count = network.switches() as usize;
        let (mut edge_of, mut hosts_at) = (vec![0; network.hosts() as usize], vec![0; count]);
        let mut next_to = vec![Vec::new(); count];
        for link in network.links() {
            match (link.from, link.to) {
                (Node::Host(host), Node::Switch(edge)) => {
                    edge_of[host.0 as usize] = edge;
                    hosts_at[edge as usize] += 1;
                }
                (Node::Switch(from), Node::Switch(to)) => next_to[from as usize].push(to),
                _ => {}
            }
        }
        let mut seen: Vec<bool> = hosts_at.iter().map(|&hosts| hosts > 0).collect();
        let mut level: Vec<u32> = (0..count as u32).filter(|&switch| seen[switch as usize]).collect();
        let mut switches = Vec::new();
        while !level.is_empty() {
            let mut next = Vec::new();
            for &switch in &level {
                for &other in &next_to[switch as usize] {
                    if !std::mem::replace(&mut seen[other as usize], true) {
                        next.push(other);
                    }
                }
            }
            next.sort_unstable();
            switches.push(std::mem::replace(&mut level, next));
        }
        Levels { switches, edge_of, hosts_at }
    }

    /// By switch: its part out of `parts`. Each level is cut into runs of numbers of about equal weight, so that
    /// pods, which are numbered together, stay together.
    fn shared_out(&self, parts: usize) -> Vec<u8> {
        let mut part_of = vec![0; self.hosts_at.len()];
        for level in &self.switches {
            let weight = |switch: &u32| u64::from(self.hosts_at[*switch as usize]) + 1;
            let total: u64 = level.iter().map(weight).sum();
            let mut before = 0;
            for switch in level {
                let middle = 2 * before + weight(switch);
                part_of[*switch as usize] = (middle * parts as u64 / (2 * total)) as u8;
                before += weight(switch);
            }
        }
        part_of
    }
}

/// Events of a part in a lookahead from which on it gains: measured on fat-trees of 16 to 1,024 hosts, two threads
/// are 1.3 times as fast with 40 and 1.8 times with 200, if both cores are idle.
const EVENTS_MIN: u64 = 100;

/// More threads than any of today's machines would give a run.
const MAX_PARTS: usize = 128;
