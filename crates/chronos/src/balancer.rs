//! [`Balancer`]: measures each partition's load over an epoch, and publishes who is to own it in the next.
//!
//! It runs on the first thread, between two turns. An epoch ends when its time is over, every thread has settled on
//! the present owners, and there was enough load to judge by; until then it goes on and its load counts on. It also
//! goes on, for as many epochs as the policy allows, while the policy finds nothing to move.

use std::time::Duration;

use plimsoll_mechanisms::partition_balancer::Balance;

use crate::shared::Shared;
use crate::{Balancing, Poll, RuntimeStats};

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
    /// Epochs that count as this one.
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

    /// When it wants to be called next.
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
