//! [`LpPlan`]: which logical process simulates each host and switch.

use plimsoll_fabric::net::topology::HostNics;
use plimsoll_fabric::net::{Network, Node};
use plimsoll_traffic::SourceReach;
use plimsoll_units::Span;

use super::load::{EVENT_WORK, HOSTS_WORK, NodeLoad};
use crate::build::BuiltWorld;
use crate::progress::Progress;

/// How a network is divided among logical processes.
#[derive(Debug)]
pub(crate) struct LpPlan {
    /// The number of processes, at least 2.
    pub(crate) processes: u8,
    /// The process of each host.
    pub(crate) hosts: Vec<u8>,
    /// The process of each switch.
    pub(crate) switches: Vec<u8>,
    /// The least time that a packet takes from one process to another.
    pub(crate) lookahead: Span,
    /// The reason why the first process has all hosts, if it has.
    pub(super) hosts_together: Option<String>,
}

impl LpPlan {
    /// Plans at most `threads` processes, with about equal shares of the `load`, if that was measured.
    ///
    /// # Errors
    /// Returns the reason where one thread must do.
    pub(super) fn new(built: &BuiltWorld, threads: usize, load: Option<&NodeLoad>) -> Result<LpPlan, String> {
        if threads < 2 {
            return Err("one thread was asked for".to_owned());
        }
        if let Some(obstacle) = obstacle(built) {
            return Err(obstacle);
        }
        let world = &built.world;
        let network = world.fabric.network();
        if network.switches() == 0 {
            return Err("the network has no switch".to_owned());
        }
        let levels = SwitchDistances::of(network, load);
        let threads = threads.min(PROCESSES_MAX);
        let edges = levels.switches[0].len();
        let hosts_together = hosts_together(built).or_else(|| {
            let one_switch = "every host is connected to one switch";
            (edges < 2).then(|| one_switch.to_owned())
        });
        let (processes, hosts, switches) = if hosts_together.is_none() {
            let processes = threads.min(edges);
            let switches = levels.divided(processes);
            let hosts = levels.edge_of.iter().map(|&edge| switches[edge as usize]).collect();
            (processes, hosts, switches)
        } else {
            let processes = threads.min(network.switches() as usize + 1);
            let hosts = vec![0; network.hosts() as usize];
            let switches = levels.divided_beside_hosts(processes, network, &hosts);
            (processes, hosts, switches)
        };
        let lookahead = lookahead(network, &hosts, &switches);
        let mut plan = LpPlan { processes: processes as u8, hosts, switches, lookahead, hosts_together };
        if let Some(lead) = world.fabric.circuit_lead() {
            // Each process has the demand of all others' hosts before the week begins that it is for.
            plan.lookahead = plan.lookahead.min(lead);
        }
        if world.rules.stop_when_finished {
            // A process stays so close to the others that it learns of the end in time.
            plan.lookahead = plan.lookahead.min(world.rules.grace);
        }
        if plan.lookahead.is_zero() {
            return Err("a link between processes has no propagation delay".to_owned());
        }
        Ok(plan)
    }

    /// Returns the plan by the measured `load`, if that leaves the busiest process a tenth less of it than this plan:
    /// of the first events alone, equal shares of switches are the better guess.
    pub(super) fn balanced(&self, built: &BuiltWorld, threads: usize, load: &NodeLoad) -> Option<LpPlan> {
        let plan = LpPlan::new(built, threads, Some(load)).ok()?;
        let is_better = 10 * self.busiest(load) > 11 * plan.busiest(load) && plan.lookahead >= self.lookahead;
        is_better.then_some(plan)
    }

    /// Returns the part of `load` that the busiest process has.
    fn busiest(&self, load: &NodeLoad) -> u64 {
        let mut work = vec![0; usize::from(self.processes)];
        for (process, of_node) in
            self.hosts.iter().zip(&load.hosts).chain(self.switches.iter().zip(&load.switches))
        {
            work[usize::from(*process)] += of_node;
        }
        work.into_iter().max().unwrap_or(0)
    }

    /// Returns whether a process has so much to do in a lookahead that waiting for the others costs little beside it.
    pub(super) fn is_worth_it(&self, so_far: Progress) -> bool {
        let lookaheads = so_far.now.as_ps() / self.lookahead.as_ps() + 1;
        so_far.events / lookaheads >= u64::from(self.processes) * EVENTS_MIN
    }

    /// Returns the process that simulates `node`.
    pub(crate) fn process_of(&self, node: Node) -> u8 {
        process_of(node, &self.hosts, &self.switches)
    }
}

fn process_of(node: Node, hosts: &[u8], switches: &[u8]) -> u8 {
    match node {
        Node::Host(host) => hosts[host.0 as usize],
        Node::Switch(switch) => switches[switch as usize],
    }
}

/// Returns the shortest propagation of a link between processes, by the processes of hosts and switches.
fn lookahead(network: &Network, hosts: &[u8], switches: &[u8]) -> Span {
    let process_of = |node| process_of(node, hosts, switches);
    let between = network.links().iter().filter(|link| process_of(link.from) != process_of(link.to));
    between.map(|link| link.propagation).min().unwrap_or(Span::MAX)
}

/// Returns what keeps a run on one thread, if anything does: something that acts in several places at one instant. It
/// names the key.
pub(super) fn obstacle(built: &BuiltWorld) -> Option<String> {
    let world = &built.world;
    if world.fabric.selector().is_some_and(|selector| !selector.is_local()) {
        Some("`paths`: a path selector from outside may know the whole network".to_owned())
    } else if world.fabric.hooks().capture.is_some() {
        Some("`observe.packets`: packets are captured in the order of the whole network".to_owned())
    } else if world.recorder.first_sample().is_some() {
        Some("`observe.flow_series` samples both ends of a connection at one instant".to_owned())
    } else if let Some(obstacle) = world.hosts.obstacle() {
        Some(obstacle.to_owned())
    } else {
        let mut workloads = world.sources.workloads.iter();
        let raw = workloads.position(|workload| workload.reach() == SourceReach::Network)?;
        let name = built.workload_name(raw);
        Some(format!("`workload.{name}`: raw packets learn at once of their drops"))
    }
}

/// Returns what keeps all hosts in one process, if anything does, with the key.
fn hosts_together(built: &BuiltWorld) -> Option<String> {
    let world = &built.world;
    let mut workloads = world.sources.workloads.iter();
    if *world.fabric.network().nics() != HostNics::One {
        // A workload's state of a host is in one process, and the NICs of a host may be far apart.
        Some("hosts have several NICs".to_owned())
    } else if let Some(acts) = workloads.position(|workload| workload.reach() != SourceReach::Receiver) {
        let name = built.workload_name(acts);
        Some(format!("`workload.{name}` acts at other hosts when a message has arrived"))
    } else {
        world.hosts.ends_together().map(str::to_owned)
    }
}

/// The switches by their distance from the hosts.
struct SwitchDistances {
    /// By level, in the order of their numbers: those with hosts, those next to these, and so on.
    switches: Vec<Vec<u32>>,
    /// By host: the switch that it is connected to.
    edge_of: Vec<u32>,
    /// By switch: the work of it and its hosts, in any unit. One more than its hosts, until it was measured.
    weights: Vec<u64>,
    /// The work of each switch and of all hosts, where it was measured.
    measured: Option<(Vec<u64>, u64)>,
}

impl SwitchDistances {
    fn of(network: &Network, load: Option<&NodeLoad>) -> SwitchDistances {
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
        let mut weights: Vec<u64> = hosts_at.iter().map(|&hosts| hosts + 1).collect();
        let measured = load.map(|load| {
            weights = load.switches.iter().map(|work| work + 1).collect();
            for (work, edge) in load.hosts.iter().zip(&edge_of) {
                weights[*edge as usize] += work;
            }
            (load.switches.clone(), load.hosts.iter().sum())
        });
        SwitchDistances { switches, edge_of, weights, measured }
    }

    /// Returns the process of each switch, out of `processes`. Each level is cut into runs of numbers of about equal
    /// weight, so that pods, which are numbered together, stay together.
    fn divided(&self, processes: usize) -> Vec<u8> {
        let mut process_of = vec![0; self.weights.len()];
        for level in &self.switches {
            let weight = |switch: &u32| self.weights[*switch as usize];
            let total: u64 = level.iter().map(weight).sum();
            let mut before = 0;
            for switch in level {
                let middle = 2 * before + weight(switch);
                process_of[*switch as usize] = (middle * processes as u64 / (2 * total)) as u8;
                before += weight(switch);
            }
        }
        process_of
    }

    /// Returns the process of each switch where the first one has all hosts. It also has as many of the switches next
    /// to them as make its work that of another, unless links that are shorter would then be between processes.
    fn divided_beside_hosts(&self, processes: usize, network: &Network, hosts: &[u8]) -> Vec<u8> {
        let mut apart = self.divided(processes.saturating_sub(1).max(1));
        apart.iter_mut().for_each(|process| *process += 1);
        let mut balanced = apart.clone();
        for edge in &self.switches[0][..self.edges_beside_hosts(processes)] {
            balanced[*edge as usize] = 0;
        }
        if lookahead(network, hosts, &balanced) < lookahead(network, hosts, &apart) {
            apart
        } else {
            balanced
        }
    }

    /// Returns how many of the switches next to the hosts make the work of a process that has all hosts that of another
    /// one of `processes`.
    fn edges_beside_hosts(&self, processes: usize) -> usize {
        let edges = &self.switches[0];
        if let Some((of_switches, of_hosts)) = &self.measured {
            let share = (of_hosts + of_switches.iter().sum::<u64>()) / processes as u64;
            let mut left = share.saturating_sub(*of_hosts);
            let fits = |edge: &&u32| {
                let work = of_switches[**edge as usize];
                let fits = work <= left;
                left = left.saturating_sub(work);
                fits
            };
            return edges.iter().take_while(fits).count();
        }
        // A packet passes each level twice, on its way up and on its way down, and the highest once.
        let passes = |levels: usize| EVENT_WORK * (2 * levels as u64).saturating_sub(1);
        let share = (HOSTS_WORK + passes(self.switches.len())) / processes as u64;
        let of_first_level = if self.switches.len() > 1 { 2 * EVENT_WORK } else { EVENT_WORK };
        (edges.len() as u64 * share.saturating_sub(HOSTS_WORK) / of_first_level) as usize
    }
}

/// Events of a process in a lookahead from which on it gains: measured on fat-trees of 16 to 1,024 hosts, two threads
/// are 1.3 times as fast with 40 and 1.8 times with 200, if both cores are idle.
const EVENTS_MIN: u64 = 100;

/// The most logical processes: they are numbered by bytes, of which one more counts them.
const PROCESSES_MAX: usize = u8::MAX as usize;

#[cfg(test)]
mod tests {
    use plimsoll_fabric::net::topology::LinkClass;
    use plimsoll_units::Rate;

    use super::*;

    /// Returns how many switches each of `processes` has, where the first one has all hosts.
    fn counts(network: &Network, processes: usize) -> Vec<usize> {
        let hosts = vec![0; network.hosts() as usize];
        let process_of = SwitchDistances::of(network, None).divided_beside_hosts(processes, network, &hosts);
        (0..processes)
            .map(|here| process_of.iter().filter(|&&process| process as usize == here).count())
            .collect()
    }

    #[test]
    fn the_process_of_all_hosts_has_as_much_to_do_as_the_others() {
        let link = |ns| LinkClass { rate: Rate::from_gbps(10), propagation: Span::from_ns(ns) };
        // 32 switches next to hosts, of which it has 20, 32 above them, and 16 at the top.
        assert_eq!(counts(&Network::fat_tree(8, link(1_000)), 2), [20, 60]);
        // A third of all work is little more than that of the hosts.
        assert_eq!(counts(&Network::fat_tree(8, link(1_000)), 3), [1, 39, 40]);
        assert_eq!(counts(&Network::rack(8, link(1_000)), 2), [0, 1]);
        let leaf_spine = |above| Network::leaf_spine(16, 4, 8, link(1_000), link(above));
        assert_eq!(counts(&leaf_spine(1_000), 2), [2, 18]);
        // Shorter links between processes would cost more than an equal share gains.
        assert_eq!(counts(&leaf_spine(200), 2), [0, 20]);
    }
}
