//! Checks of `shuffle`, `barrier` and `commit`.

use super::Demand;
use crate::check::Checker;
use crate::model::{Barrier, BarrierPattern, Commit, CommitOver, Shuffle, Topology};

impl Checker<'_> {
    pub(super) fn shuffle(&mut self, name: &str, shuffle: &mut Shuffle, topology: &Topology) -> Demand {
        let at = |key| ["workload", name, key];
        let mappers = self.members(&at("mappers"), &shuffle.mappers, topology, &[]);
        let reducers = self.members(&at("reducers"), &shuffle.reducers, topology, &[]);
        if mappers.len() == 1 && mappers == reducers {
            self.error(&at("reducers"), "nothing leaves its host", "another host than the only mapper");
        }
        self.distribution(&at("size"), &mut shuffle.size);
        self.distribution(&at("request"), &mut shuffle.request);
        self.at_least_one(&at("parallel"), shuffle.parallel.into(), "no transfer at all");
        self.at_least_one(&at("waves"), shuffle.waves.unwrap_or(1), "no wave at all");
        Demand { ends: shuffle.waves.is_some(), start: shuffle.start, towards: None }
    }

    pub(super) fn barrier(&mut self, name: &str, barrier: &mut Barrier, topology: &Topology) -> Demand {
        let at = |key| ["workload", name, key];
        match barrier.pattern {
            BarrierPattern::Coordinator => {
                let coordinator = self.host_named(&at("coordinator"), &barrier.coordinator.0, topology);
                self.members(&at("workers"), &barrier.workers, topology, coordinator.as_slice());
            }
            BarrierPattern::AllToAll => {
                let workers = self.members(&at("workers"), &barrier.workers, topology, &[]);
                if workers.len() == 1 {
                    self.error(&at("workers"), "one worker waits for nobody", "at least two hosts");
                }
            }
        }
        self.some_bytes(&at("size"), barrier.size);
        self.distribution(&at("compute"), &mut barrier.compute);
        self.at_least_one(&at("rounds"), barrier.rounds.unwrap_or(1), "no round at all");
        Demand { ends: barrier.rounds.is_some(), start: barrier.start, towards: None }
    }

    pub(super) fn commit(&mut self, name: &str, commit: &Commit, topology: &Topology) -> Demand {
        let at = |key| ["workload", name, key];
        let coordinator = self.host_named(&at("coordinator"), &commit.coordinator.0, topology);
        self.members(&at("participants"), &commit.participants, topology, coordinator.as_slice());
        match commit.over {
            CommitOver::Tcp => self.some_bytes(&at("message"), commit.message),
            CommitOver::Datagram | CommitOver::Broadcast => self.one_packet(&at("message"), commit.message),
        }
        if commit.timeout.is_zero() {
            self.error(&at("timeout"), "every answer is late", "more than 0s");
        }
        self.at_least_one(&at("depth"), commit.depth.into(), "no transaction at all");
        Demand { ends: commit.count.is_some(), start: commit.start, towards: None }
    }
}
