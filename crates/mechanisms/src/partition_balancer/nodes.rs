//! [`NodeBalance`]: partitions stay within the NUMA node of their thread, near the memory that they were built in.
//!
//! ```text
//!                 node 0: threads 0 1 ──> a policy of its own, over its partitions and its load
//! partitions ──┤      ^ │ only if all threads of a node together have too much, and only if it may be
//!                 node 1: threads 2 3 ──> a policy of its own
//! ```
//!
//! Not in the paper, which reports that the memory of another node doubles latency above a million requests a second.
//! A thread is due its part of its node's load, not of all load, so a node relieves its threads by itself. Across nodes
//! Algorithm 1 decides with nodes for threads: a node of t threads of T is due t / T of the load, has too much if it has
//! more than chance explains (of R requests it is given R t / T, give or take the square root of that), and what
//! comes after goes to the least loaded thread of the first node that has room. With one node nothing is different from
//! the policy within, with a node for each thread nothing is from Algorithm 1 over threads.
//!
//! What crosses does not come home by itself: memory stays where it was touched first, and a partition that went back as
//! soon as its node had room would go to and fro.

use super::{AWAY, Balance, BalanceCounts, Share, place};

/// A policy within each NUMA node, and Algorithm 1 across them.
#[derive(Clone, Debug)]
pub struct NodeBalance<B> {
    /// Each thread's node.
    node_of: Vec<u32>,
    /// Each thread's number within its node.
    number: Vec<u32>,
    nodes: Vec<Node<B>>,
    /// Deviations beyond which a node has too much; `None` lets nothing cross.
    across: Option<u32>,
    crossings: u64,
    units: Vec<Unit>,
    /// Load of each node so far, then of each thread.
    assigned: Vec<u64>,
    load: Vec<u64>,
    owner: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Node<B> {
    threads: Vec<u32>,
    policy: B,
}

/// Partitions that cross as one.
#[derive(Clone, Copy, Debug)]
struct Unit {
    load: u64,
    node: u32,
}

impl<B: Balance> NodeBalance<B> {
    /// `node_of[t]` is the node of thread t: a number below the number of nodes, and no node is without threads.
    /// `policy` makes what decides within a node; it must leave partitions alone that are [`AWAY`]. Partitions cross
    /// where a node has more than its due by more than `across` standard deviations of its number of requests, 0 as
    /// soon as it has more at all; `None` is never.
    ///
    /// # Panics
    /// If there is no thread, or a node without one.
    pub fn new(node_of: &[u32], across: Option<u32>, policy: impl Fn() -> B) -> NodeBalance<B> {
        let count = node_of.iter().max().expect("there is a thread") + 1;
        let threads = |node| (0..).zip(node_of).filter(|at| *at.1 == node).map(|at| at.0).collect();
        let nodes: Vec<Node<B>> =
            (0..count).map(|node| Node { threads: threads(node), policy: policy() }).collect();
        assert!(nodes.iter().all(|node| !node.threads.is_empty()), "every node has a thread");
        let mut number = vec![0; node_of.len()];
        for node in &nodes {
            (0..).zip(&node.threads).for_each(|(at, &thread)| number[thread as usize] = at);
        }
        NodeBalance {
            node_of: node_of.to_vec(),
            number,
            nodes,
            across,
            crossings: 0,
            units: Vec::new(),
            assigned: Vec::new(),
            load: Vec::new(),
            owner: Vec::new(),
        }
    }

    /// Takes partitions to other nodes, those that move as one together.
    fn cross(&mut self, load: &[u64], requests: u64, owner: &mut [u32]) {
        let ways = self.ways() as usize;
        let total = load.iter().map(|&load| u128::from(load)).sum();
        let node_of = &self.node_of;
        let units = load.chunks(ways).zip(owner.chunks(ways));
        self.units.clear();
        self.units.extend(
            units.map(|(load, owner)| Unit { load: load.iter().sum(), node: node_of[owner[0] as usize] }),
        );
        if let Some(deviations) = self.across {
            let of = self.node_of.len() as u32;
            let due = |node: &Node<B>| Share::of(total, requests, node.threads.len() as u32, of, deviations);
            let shares: Vec<Share> = self.nodes.iter().map(due).collect();
            self.assigned.clear();
            self.assigned.resize(self.nodes.len(), 0);
            let units = self.units.iter_mut().map(|unit| (unit.load, &mut unit.node));
            place(units, &mut self.assigned, |node| &shares[node]);
        }
        self.assigned.clear();
        self.assigned.resize(self.node_of.len(), 0);
        load.iter().zip(owner.iter()).for_each(|(load, &owner)| self.assigned[owner as usize] += load);
        for ((unit, load), owner) in self.units.iter().zip(load.chunks(ways)).zip(owner.chunks_mut(ways)) {
            // Also where the parts of a group began in several nodes.
            let strays = || owner.iter().filter(|&&owner| self.node_of[owner as usize] != unit.node).count();
            if strays() == 0 {
                continue;
            }
            self.crossings += strays() as u64;
            let threads = self.nodes[unit.node as usize].threads.iter();
            let least = threads.min_by_key(|&&thread| (self.assigned[thread as usize], thread));
            let &thread = least.expect("every node has a thread");
            for (&load, owner) in load.iter().zip(owner) {
                self.assigned[*owner as usize] -= load;
                self.assigned[thread as usize] += load;
                *owner = thread;
            }
        }
    }
}

impl<B: Balance> Balance for NodeBalance<B> {
    fn balance(&mut self, load: &[u64], requests: u64, threads: u32, owner: &mut [u32]) {
        assert_eq!(load.len(), owner.len(), "every partition has a load and an owner");
        assert_eq!(threads as usize, self.node_of.len(), "every thread has a node");
        self.cross(load, requests, owner);
        let total: u128 = load.iter().map(|&load| u128::from(load)).sum();
        for (number, node) in (0..).zip(&mut self.nodes) {
            self.load.clear();
            self.owner.clear();
            for (&load, &owner) in load.iter().zip(owner.iter()) {
                let is_here = self.node_of[owner as usize] == number;
                self.load.push(if is_here { load } else { 0 });
                self.owner.push(if is_here { self.number[owner as usize] } else { AWAY });
            }
            let own: u128 = self.load.iter().map(|&load| u128::from(load)).sum();
            let requests = (u128::from(requests) * own).checked_div(total).unwrap_or(0) as u64;
            node.policy.balance(&self.load, requests, node.threads.len() as u32, &mut self.owner);
            for (owner, &number) in owner.iter_mut().zip(&self.owner).filter(|at| *at.1 != AWAY) {
                *owner = node.threads[number as usize];
            }
        }
    }

    fn epochs_max(&self) -> u32 {
        self.nodes[0].policy.epochs_max()
    }

    fn ways(&self) -> u32 {
        self.nodes[0].policy.ways()
    }

    fn counts(&self) -> BalanceCounts {
        let mut counts = BalanceCounts { crossings: self.crossings, ..BalanceCounts::default() };
        for node in &self.nodes {
            let within = node.policy.counts();
            counts.splits += within.splits;
            counts.joins += within.joins;
        }
        counts
    }
}

#[cfg(test)]
#[path = "nodes_tests.rs"]
mod tests;
