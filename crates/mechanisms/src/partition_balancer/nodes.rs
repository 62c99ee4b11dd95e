//! [`NodeBalance`]: partitions stay within the NUMA node of their thread, near the memory that they were built in.
//!
//! ```text
//!                 node 0: threads 0 1 ──> a policy of its own, over its partitions and its load
//! partitions ──┤      ^ │ only if all threads of a node together have too much, and only if it may be
//!                 node 1: threads 2 3 ──> a policy of its own
//! ```
//!
//! Not in the paper, which reports that the memory of another node doubles latency above a million requests a second. A
//! thread is due its part of its node's load, not of all load, so a node relieves its threads by itself. Across nodes
//! Algorithm 1 decides with nodes for threads: a node of t threads of T is due t / T of the load, has too much if it
//! has more than chance explains (of R requests it is given R t / T, give or take the square root of that), and what
//! comes after goes to the least loaded thread of the first node that has room. With one node nothing is different from
//! the policy within, with a node for each thread nothing is from Algorithm 1 over threads.
//!
//! What crosses does not come home by itself: memory stays where it was touched first, and a partition that went back
//! as soon as its node had room would go to and fro.

use super::{AWAY, Balance, BalanceCounts, Share, place};

/// A policy within each NUMA node, and Algorithm 1 across them.
#[derive(Clone, Debug)]
pub struct NodeBalance<B> {
    /// The node of each thread.
    node_of: Vec<u32>,
    nodes: Vec<Node<B>>,
    /// Deviations beyond which a node has too much; `None` lets nothing cross.
    across: Option<u32>,
    crossings: u64,
    /// Whether what moves as one is in one node.
    has_begun: bool,
    /// The load of the partitions that each thread has.
    assigned: Vec<u64>,
    owner: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Node<B> {
    threads: Vec<u32>,
    /// Each thread's number among these, or [`AWAY`].
    numbers: Vec<u32>,
    policy: B,
}

impl<B: Balance> NodeBalance<B> {
    /// `node_of[t]` is the node of thread t: a number below the number of nodes, and no node is without threads.
    /// `policy` makes what decides within a node; it must leave partitions alone that are [`AWAY`], whatever their
    /// load. Partitions cross where a node has more than its due by more than `across` standard deviations of its
    /// number of requests, 0 as soon as it has more at all; `None` is never.
    ///
    /// # Panics
    /// If there is no thread, or a node without one.
    pub fn new(node_of: &[u32], across: Option<u32>, policy: impl Fn() -> B) -> NodeBalance<B> {
        let count = node_of.iter().max().expect("there is a thread") + 1;
        let node = |node| {
            let threads: Vec<u32> = (0..).zip(node_of).filter(|at| *at.1 == node).map(|at| at.0).collect();
            assert!(!threads.is_empty(), "every node has a thread");
            let mut numbers = vec![AWAY; node_of.len()];
            (0..).zip(&threads).for_each(|(number, &thread)| numbers[thread as usize] = number);
            Node { threads, numbers, policy: policy() }
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

    /// Takes partitions to other nodes, those that move as one together.
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
        let due = |node: &Node<B>| Share::of(total, requests, node.threads.len() as u32, of, deviations);
        let shares: Vec<Share> = self.nodes.iter().map(due).collect();
        // Algorithm 1 asks of what a node has before the last: with all of it not too much is never too much.
        let mut nodes = self.nodes.iter().zip(&shares);
        if nodes.any(|(node, share)| share.has_too_much(node.load(&self.assigned))) {
            let mut assigned = vec![0; shares.len()];
            self.place(load, owner, |load, node| {
                place(std::iter::once((load, node)), &mut assigned, |node| &shares[node]);
            });
        }
    }

    /// Asks of what moves as one, with its load and the node of its first, which node it is to be on, and takes it to
    /// the least loaded thread there if any of it is not: it may also have begun on several nodes.
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

impl<B> Node<B> {
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
