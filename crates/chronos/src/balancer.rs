//! [`Balancer`]: measures each partition's load over an epoch, and publishes the owners for the next.
//!
//! It runs on the first thread, between two turns. An epoch ends when its time is over, every thread has settled on the
//! present owners, and the load is enough to judge by; until then the epoch is extended, and its load keeps counting.
//! It is also extended, for as many epochs as the policy allows, while the policy finds nothing to move.

use std::path::Path;
use std::time::Duration;

use plimsoll_mechanisms::partition_balancer::{Balance, GreedyBalance, NodeBalance, SplitBalance};

use crate::nodes;
use crate::shared::Shared;
use crate::{AcrossNodes, Balancing, Config, Poll, RuntimeStats};

/// The policy that the configuration asks for; `folder` is [`nodes::FOLDER`].
pub(crate) fn policy(config: &Config, folder: &Path) -> Box<dyn Balance> {
    let Some(Balancing { deviations, split, across_nodes, .. }) = config.balancing else {
        return Box::new(GreedyBalance::default());
    };
    let plain = || GreedyBalance::beyond_noise(deviations);
    let splitting = |ways| move || SplitBalance::new(ways, deviations);
    let (asks, across) = match across_nodes {
        AcrossNodes::Freely => (false, None),
        AcrossNodes::Overloaded => (true, Some(deviations)),
        AcrossNodes::Never => (true, None),
    };
    let nodes = asks.then(|| nodes::of_threads(folder, &config.processors, config.threads)).flatten();
    match (nodes, split) {
        (None, None) => Box::new(plain()),
        (None, Some(ways)) => Box::new(splitting(ways)()),
        (Some(nodes), None) => Box::new(NodeBalance::new(&nodes, across, plain)),
        (Some(nodes), Some(ways)) => Box::new(NodeBalance::new(&nodes, across, splitting(ways))),
    }
}

/// The load balancer of a server.
pub(crate) struct Balancer {
    policy: Box<dyn Balance>,
    load_min: u64,
    epoch_min: Duration,
    epoch_max: Duration,
    epoch: Duration,
    ends: Duration,
    /// Each partition's load since the start, at the beginning of the epoch.
    before: Vec<u64>,
    load: Vec<u64>,
    /// Requests of all threads since the start, at the beginning of the epoch.
    requests_before: u64,
    /// Number of epochs that this one lasts.
    epochs: u32,
    owners: Vec<u32>,
}

impl Balancer {
    pub(crate) fn new(
        policy: Box<dyn Balance>,
        settings: Balancing,
        poll: Poll,
        owners: Vec<u32>,
    ) -> Balancer {
        let (epoch_min, epoch_max) = match poll {
            Poll::Spin => (settings.epoch, settings.epoch),
            Poll::Block => (settings.epoch_blocking, settings.epoch_idle),
        };
        let count = owners.len();
        Balancer {
            policy,
            load_min: settings.load_min,
            epoch_min,
            epoch_max,
            epoch: epoch_min,
            ends: epoch_min,
            before: vec![0; count],
            load: vec![0; count],
            requests_before: 0,
            epochs: 0,
            owners,
        }
    }

    /// Returns the time of the next call.
    pub(crate) fn deadline(&self) -> Duration {
        self.ends
    }

    /// Ends the epoch, if it is over.
    pub(crate) fn on_turn(&mut self, now: Duration, shared: &Shared, stats: &RuntimeStats) {
        if now < self.ends {
            return;
        }
        self.ends = now.saturating_add(self.epoch);
        if !shared.all_settled() {
            return;
        }
        for (partition, (load, before)) in (0..).zip(self.load.iter_mut().zip(&self.before)) {
            *load = stats.partition(partition).load.get().wrapping_sub(*before);
        }
        if self.load.iter().sum::<u64>() < self.load_min {
            self.epoch = self.epoch.saturating_mul(2).min(self.epoch_max);
            return;
        }
        self.epoch = self.epoch_min;
        self.ends = now.saturating_add(self.epoch);
        self.epochs += 1;
        let requests = stats.requests();
        let old = self.owners.clone();
        let requests_now = requests.wrapping_sub(self.requests_before);
        self.policy.balance(&self.load, requests_now, shared.threads(), &mut self.owners);
        stats.set_balance(self.policy.counts());
        let has_moved = self.owners != old;
        if has_moved {
            shared.publish(&self.owners);
        }
        if has_moved || self.epochs >= self.policy.epochs_max() {
            for (before, load) in self.before.iter_mut().zip(&self.load) {
                *before = before.wrapping_add(*load);
            }
            (self.requests_before, self.epochs) = (requests, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns the owners after all load is on the first of two nodes with two threads each.
    fn owners(
        across_nodes: AcrossNodes,
        split: Option<u32>,
        processors: &[usize],
        nodes: &[&str],
    ) -> Vec<u32> {
        let folder = tempfile::tempdir().unwrap();
        for (number, list) in nodes.iter().enumerate() {
            let node = folder.path().join(format!("node{number}"));
            fs::create_dir(&node).unwrap();
            fs::write(node.join("cpulist"), list).unwrap();
        }
        let balancing = Balancing { deviations: 0, split, across_nodes, ..Balancing::default() };
        let config = Config {
            threads: 4,
            balancing: Some(balancing),
            processors: processors.to_vec(),
            ..Config::default()
        };
        let mut policy = policy(&config, folder.path());
        let mut owners = policy.first_owners(16, 4);
        let load: Vec<u64> = owners.iter().map(|&owner| u64::from(owner < 2)).collect();
        policy.balance(&load, load.iter().sum(), 4, &mut owners);
        owners
    }

    #[test]
    fn partitions_cross_nodes_as_the_configuration_says() {
        let (two, pinned) = (["0,1", "2,3"], [0, 1, 2, 3]);
        let first = |owners: &[u32]| owners.iter().filter(|&&owner| owner < 2).count();
        for split in [None, Some(2)] {
            let begin = owners(AcrossNodes::Never, split, &pinned, &two);
            assert_eq!(first(&begin), 8, "{begin:?}");
            let crossed = owners(AcrossNodes::Overloaded, split, &pinned, &two);
            assert!(first(&crossed) < 8, "{crossed:?}");
            // With one node, or with threads that are not pinned, nothing differs.
            let plain = owners(AcrossNodes::Freely, split, &pinned, &two);
            assert_ne!(plain, begin);
            for across in [AcrossNodes::Never, AcrossNodes::Overloaded] {
                assert_eq!(owners(across, split, &pinned, &["0-3"]), plain);
                assert_eq!(owners(across, split, &[], &two), plain);
                assert_eq!(owners(across, split, &[2, 3], &two), plain);
            }
        }
    }

    #[test]
    fn groups_begin_on_one_thread() {
        let begin = |split| {
            let balancing = Balancing { split, ..Balancing::default() };
            let config = Config { balancing: Some(balancing), ..Config::default() };
            policy(&config, Path::new("")).first_owners(8, 2)
        };
        assert_eq!(begin(None), [0, 1, 0, 1, 0, 1, 0, 1]);
        assert_eq!(begin(Some(4)), [0, 0, 0, 0, 1, 1, 1, 1]);
    }
}
