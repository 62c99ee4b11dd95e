//! [`NodeBalance`]: partitions stay within the NUMA node of their thread, near the memory that they were built in.
//!
//! ```text
//!                 node 0: threads 0 1 ──> a policy of its own, over its partitions and its load
//! partitions ──┤      ^ │ only if all threads of a node together have too much, and only if it may be
//!                 node 1: threads 2 3 ──> a policy of its own
//! ```
//!
//! This policy is not in the paper, which reports that the memory of another node doubles latency above a million
//! requests a second. A thread's fair share is its part of its node's load, not of all load, so a node relieves its
//! threads by itself. Across nodes Algorithm 1 runs with nodes in place of threads: the fair share of a node of t
//! threads of T is t / T of the load; the node is overloaded if it has more than chance explains (of R requests it is
//! given R t / T, give or take the square root of that); and the following partitions move to the least loaded thread
//! of the first node that has room. With one node the result is the same as with the policy within it, with a node for
//! each thread the same as with Algorithm 1 over threads.
//!
//! A partition that has moved to another node does not return by itself: memory stays where it was touched first, and a
//! partition that returned as soon as its node had room would oscillate.

use super::{AWAY, Balance, BalanceCounts, Share, place};

/// A policy within each NUMA node, and Algorithm 1 across them.
#[derive(Clone, Debug)]
pub struct NodeBalance<B> {
    /// The node of each thread.
    node_of: Vec<u32>,
    nodes: Vec<NumaNode<B>>,
    /// Deviations beyond which a node is overloaded; with `None` no partition changes its node.
    across: Option<u32>,
    crossings: u64,
    /// True once each unit of placement is within one node.
    has_begun: bool,
    /// The load of the partitions that each thread has.
    assigned: Vec<u64>,
    owner: Vec<u32>,
}

#[derive(Clone, Debug)]
struct NumaNode<B> {
    threads: Vec<u32>,
    /// Each thread's number among these, or [`AWAY`].
    numbers: Vec<u32>,
    policy: B,
}

impl<B: Balance> NodeBalance<B> {
    /// `node_of[t]` is the node of thread t: a number below the number of nodes, and every node has a thread. `policy`
    /// makes the policy within a node; it must leave partitions unchanged that are [`AWAY`], with any load. Partitions
    /// move to another node where a node exceeds its fair share by more than `across` standard deviations of its number
    /// of requests, with 0 as soon as it exceeds it; with `None` never.
    ///
    /// # Panics
    /// If there are no threads, or a node without one.
    pub fn new(node_of: &[u32], across: Option<u32>, policy: impl Fn() -> B) -> NodeBalance<B> {
        let count = node_of.iter().max().expect("there is a thread") + 1;
        let node = |node| {
            let threads: Vec<u32> = (0..).zip(node_of).filter(|at| *at.1 == node).map(|at| at.0).collect();
            assert!(!threads.is_empty(), "every node has a thread");
            let mut numbers = vec![AWAY; node_of.len()];
            (0..).zip(&threads).for_each(|(number, &thread)| numbers[thread as usize] = number);
            NumaNode { threads, numbers, policy: policy() }
        };
        NodeBalance {
            node_of: node_of.to_vec(),
            nodes: (0..count).map(node).collect(),
            across,
            crossings: 0,
            has_begun: false,
            assigned: Vec::new(),
            owner: Vec::new(),
        }
    }

    /// Moves partitions to other nodes, each unit of placement as a whole.
    fn cross(&mut self, load: &[u64], requests: u64, owner: &mut [u32]) {
        self.assigned.clear();
        self.assigned.resize(self.node_of.len(), 0);
        load.iter().zip(owner.iter()).for_each(|(load, &owner)| self.assigned[owner as usize] += load);
        if !std::mem::replace(&mut self.has_begun, true) {
            self.place(load, owner, |_, _| {});
        }
        let Some(deviations) = self.across else { return };
        let total = self.assigned.iter().map(|&load| u128::from(load)).sum();
        let of = self.node_of.len() as u32;
        let due = |node: &NumaNode<B>| Share::of(total, requests, node.threads.len() as u32, of, deviations);
        let shares: Vec<Share> = self.nodes.iter().map(due).collect();
        // Algorithm 1 compares a node's load before the last partition: a node that is not overloaded with all of its
        // load never is.
        let mut nodes = self.nodes.iter().zip(&shares);
        if nodes.any(|(node, share)| share.has_too_much(node.load(&self.assigned))) {
            let mut assigned = vec![0; shares.len()];
            self.place(load, owner, |load, node| {
                place(std::iter::once((load, node)), &mut assigned, |node| &shares[node]);
            });
        }
    }

    /// Calls `on` for each unit of placement, with its load and the node of its first partition, to choose its node,
    /// and moves it to the least loaded thread there if any of its partitions is elsewhere: it may also have begun on
    /// several nodes.
    fn place(&mut self, load: &[u64], owner: &mut [u32], mut on: impl FnMut(u64, &mut u32)) {
        let ways = self.ways() as usize;
        for (load, owner) in load.chunks(ways).zip(owner.chunks_mut(ways)) {
            let mut node = self.node_of[owner[0] as usize];
            on(load.iter().sum(), &mut node);
            let strays = owner.iter().filter(|&&owner| self.node_of[owner as usize] != node).count();
            if strays == 0 {
                continue;
            }
            self.crossings += strays as u64;
            let threads = self.nodes[node as usize].threads.iter();
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

impl<B> NumaNode<B> {
    /// Returns the load of a node, the sum over its threads.
    fn load(&self, assigned: &[u64]) -> u64 {
        self.threads.iter().map(|&thread| assigned[thread as usize]).sum()
    }
}

impl<B: Balance> Balance for NodeBalance<B> {
    fn balance(&mut self, load: &[u64], requests: u64, threads: u32, owner: &mut [u32]) {
        assert_eq!(load.len(), owner.len(), "every partition has a load and an owner");
        assert_eq!(threads as usize, self.node_of.len(), "every thread has a node");
        self.cross(load, requests, owner);
        let total: u128 = self.assigned.iter().map(|&load| u128::from(load)).sum();
        for node in &mut self.nodes {
            self.owner.clear();
            self.owner.extend(owner.iter().map(|&owner| node.numbers[owner as usize]));
            let own = u128::from(node.load(&self.assigned));
            let requests = (u128::from(requests) * own).checked_div(total).unwrap_or(0) as u64;
            node.policy.balance(load, requests, node.threads.len() as u32, &mut self.owner);
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
