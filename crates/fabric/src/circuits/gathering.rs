//! [`DemandGathering`]: the demand of all hosts, in a parallel run whose logical processes read it in parts.
//!
//! ```text
//! reading at t: the demand of own hosts ──> a share for each other process
//!               shares of all processes ──> the schedule, before its week begins at t + lead
//! ```
//!
//! Each process has a controller of its own, and all make the same schedule of the same demand. A process that handles
//! the begin of a week has all shares of its demand, because the lead is at least the lookahead.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_circuits::Demand;
use plimsoll_units::Time;

use crate::net::PortId;

/// The demand of the hosts of one logical process, for the others.
#[derive(Clone, Debug)]
pub struct DemandShare {
    read: Time,
    demand: Demand,
}

/// The demand of all hosts, and the links that routing took for dead when it was read.
#[derive(Debug)]
pub(super) struct GatheredDemand {
    pub(super) demand: Demand,
    pub(super) dead: BTreeSet<PortId>,
}

/// The shares of the demand of all hosts that have come.
#[derive(Debug)]
pub(super) struct DemandGathering {
    processes: usize,
    /// By the time of the reading. A process that is ahead may have sent the share of the next one.
    readings: BTreeMap<Time, Reading>,
    /// The share that is to be sent to the others.
    own: Option<DemandShare>,
}

#[derive(Debug, Default)]
struct Reading {
    shares: usize,
    demand: Option<Demand>,
    /// The dead links, once this process has read its own hosts' demand.
    dead: Option<BTreeSet<PortId>>,
}

impl DemandGathering {
    /// Gathers the shares of `processes` processes.
    pub(super) fn new(processes: usize) -> DemandGathering {
        DemandGathering { processes, readings: BTreeMap::new(), own: None }
    }

    /// Adds the demand of own hosts that was read at `read`. Returns the demand of all, if it is complete.
    pub(super) fn read(
        &mut self,
        read: Time,
        demand: Demand,
        dead: BTreeSet<PortId>,
    ) -> Option<GatheredDemand> {
        self.own = Some(DemandShare { read, demand: demand.clone() });
        self.readings.entry(read).or_default().dead = Some(dead);
        self.add(DemandShare { read, demand })
    }

    /// Adds the share of a process. Returns the demand of all, if it is complete.
    pub(super) fn add(&mut self, share: DemandShare) -> Option<GatheredDemand> {
        let DemandShare { read, demand } = share;
        let reading = self.readings.entry(read).or_default();
        reading.shares += 1;
        match &mut reading.demand {
            Some(sum) => sum.add(&demand),
            none => *none = Some(demand),
        }
        if reading.shares < self.processes {
            return None;
        }
        let Reading { demand, dead, .. } = self.readings.remove(&read)?;
        Some(GatheredDemand { demand: demand?, dead: dead? })
    }

    /// Returns the share that is to be sent to the other processes, once.
    pub(super) fn take_own(&mut self) -> Option<DemandShare> {
        self.own.take()
    }

    /// Returns whether this process waits for others' shares of a demand that it has read.
    pub(super) fn is_waiting(&self) -> bool {
        self.readings.values().any(|reading| reading.dead.is_some())
    }
}
