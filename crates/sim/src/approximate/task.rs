//! [`Task`]: a small run that answers a part of an approximate run, and its [`Answer`].
//!
//! ```text
//! Model + Task ──Task::run, on any thread or machine──> Answer: completion times, losses
//! ```
//!
//! Both are plain data, which serde writes and reads again.

use std::sync::Arc;

use indexmap::IndexMap;
use plimsoll_fabric::net::topology::file::File;
use plimsoll_results::outcome::MessageRecord;
use plimsoll_scenario::model::{Graph, ListedFlow, Model, Observe, Ports, Run, Topology, Workload};
use plimsoll_traffic::flow_list::FlowList;
use plimsoll_units::Span;
use serde::{Deserialize, Serialize};

use crate::build::run_whole;
use crate::{Progress, RunError};

/// Listed flows on a network of their own, with the transports and queues of the approximate run's scenario.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Task {
    graph: Graph,
    /// The tier whose ports the switches have.
    tier: String,
    /// The flows of each workload, in the order of their starts.
    flows: Vec<Vec<ListedFlow>>,
    pub(super) seed: u64,
    pub(super) warmup: Span,
    pub(super) duration: Option<Span>,
    drain: Span,
}

/// The outcome of a task: how long its messages took, and what it lost.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answer {
    pub(super) messages: Vec<AnsweredMessage>,
    pub(crate) packet_hops: u64,
    pub(crate) events: u64,
    /// Packets that were sent, and those of them that were lost.
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) timeouts: u64,
}

/// The completion time of a message.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct AnsweredMessage {
    pub(super) workload: u16,
    /// Its number among the flows of the workload.
    pub(super) index: u64,
    /// Completion time minus ideal time, in picoseconds; none if it was not completed.
    pub(super) extra: Option<i64>,
}

impl Task {
    /// Returns the run of `flows`, a list for each workload of `model`, on a network whose switches have the ports of
    /// `tier`. It ends when `model` does, and flows that come after its `duration` start, too.
    pub(super) fn new(model: &Model, graph: Graph, tier: &str, flows: Vec<Vec<ListedFlow>>) -> Task {
        let behind_last =
            flows.iter().flatten().map(|flow| flow.start + Span::from_ps(1)).max().unwrap_or_default();
        let duration = model.run.duration.map(|duration| duration.max(behind_last));
        let longer = duration.zip(model.run.duration).map_or(Span::ZERO, |(to, from)| to - from);
        let drain = model.run.drain.saturating_sub(longer);
        let (seed, warmup) = (model.run.seed, model.run.warmup);
        Task { graph, tier: tier.to_owned(), flows, seed, warmup, duration, drain }
    }

    /// Carries out the task for an approximate run of `model`. `progress` is called as in [`run`](crate::run).
    ///
    /// # Errors
    /// As [`run`](crate::run).
    pub fn run(&self, model: &Model, progress: &mut dyn FnMut(Progress) -> bool) -> Result<Answer, RunError> {
        let outcome = run_whole(&self.model(model), progress)?;
        let counters = &outcome.counters;
        let message = |message: &MessageRecord| AnsweredMessage {
            workload: message.workload,
            index: message.index,
            extra: message
                .completed
                .map(|at| difference(at.saturating_since(message.created), message.ideal)),
        };
        Ok(Answer {
            messages: outcome.messages.iter().map(message).collect(),
            packet_hops: counters.packet_hops,
            events: counters.events,
            sent: counters.packets_sent,
            lost: counters.nic_drops + counters.switch_drops,
            timeouts: counters.timeouts,
        })
    }

    /// Returns the scenario of the task.
    pub(super) fn model(&self, model: &Model) -> Model {
        let topology = File { path: String::new(), graph: Some(Arc::new(self.graph.clone())) };
        let workload: IndexMap<String, Workload> = model
            .workload
            .keys()
            .zip(&self.flows)
            .map(|(name, flows)| {
                let list = FlowList { path: String::new(), flows: Arc::new(flows.clone()) };
                (name.clone(), Workload::FlowList(list))
            })
            .collect();
        Model {
            topology: Topology::File(topology),
            fault: Vec::new(),
            port: Ports {
                host: model.port.host.clone(),
                switch: model.port.of_tier(&self.tier).clone(),
                tier: IndexMap::new(),
            },
            workload,
            observe: Observe::default(),
            run: Run {
                approximate: None,
                seed: self.seed,
                warmup: self.warmup,
                duration: self.duration,
                drain: self.drain,
            },
            ..model.clone()
        }
    }
}

/// Returns `took - ideal` in picoseconds.
fn difference(took: Span, ideal: Span) -> i64 {
    took.as_ps() as i64 - ideal.as_ps() as i64
}
