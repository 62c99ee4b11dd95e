//! [`JobRun`]: where and how a job runs, for all kinds of workload that are jobs.

use std::sync::Arc;

use plimsoll_fabric::Unbuildable;
use plimsoll_units::{Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::costs::{JobNetwork, MessageCosts, ScaleUp};
use super::engine::{JobConfig, JobSource};
use super::graph::JobGraph;
use super::placement::Placement;
use super::repeat::{Repeat, RepeatMode};
use super::size::JobSize;
use crate::check::{WorkloadCheck, WorkloadDemand};
use crate::hosts::HostSet;
use crate::kind::{Context, ExpectedRecords, WorkingMemory};
use crate::source::Source;

/// Where the ranks of a job are, how often it runs, and what its messages cost.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JobRun {
    /// The hosts, as many as ranks or more; each has the NIC of one rank. Default all.
    pub hosts: HostSet,
    /// The order in which ranks take them: `packed`, `random` or `rail`. Default `packed`.
    pub placement: Placement,
    /// How often the job runs: 1 or more. An iteration begins when the one before it has ended at all ranks, and is a
    /// query. Default 1.
    pub iterations: u64,
    /// The time between two iterations: 0 or more. Default 0 s.
    pub pause: Span,
    /// When the first iteration begins. Default 0 s.
    pub start: Span,
    /// The carrier of messages between servers: `packets`, the network of the scenario, or `loggops`, the times of
    /// `costs` alone. Default `packets`.
    pub network: JobNetwork,
    /// The costs of a message for its ranks, and with `network = "loggops"` the network. Default nothing.
    #[serde(skip_serializing_if = "MessageCosts::is_default")]
    pub costs: MessageCosts,
    /// Whether a run keeps the times of each operation (`operations.csv`), which its report draws. Default false.
    pub timeline: bool,
    /// Replays rounds and iterations that repeat in place of simulating them. Default `off`: all are simulated.
    #[serde(skip_serializing_if = "is_off")]
    pub repeat: RepeatMode,
    /// With `repeat = "detect"`, up to how many rounds (or iterations) stand for each one simulated: 2 to 1000000.
    /// Default 16.
    #[serde(skip_serializing_if = "is_default_every")]
    pub repeat_every: u32,
    /// The links inside a server. Default absent: each rank is a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_up: Option<ScaleUp>,
}

impl Default for JobRun {
    fn default() -> JobRun {
        JobRun {
            hosts: HostSet::all(),
            placement: Placement::Packed,
            iterations: 1,
            pause: Span::ZERO,
            start: Span::ZERO,
            network: JobNetwork::Packets,
            costs: MessageCosts::default(),
            timeline: false,
            repeat: RepeatMode::Off,
            repeat_every: REPEAT_EVERY,
            scale_up: None,
        }
    }
}

impl JobRun {
    /// Returns whether every key has its default.
    pub(crate) fn is_default(&self) -> bool {
        *self == JobRun::default()
    }

    /// Returns the ranks of a server.
    pub(crate) fn per_server(&self) -> u32 {
        self.scale_up.map_or(1, |inside| inside.ranks)
    }

    /// Checks the keys, and returns the number of hosts.
    pub(crate) fn check(&self, check: &mut WorkloadCheck<'_>) -> u32 {
        let hosts = check.members("run.hosts", &self.hosts, &[]).len() as u32;
        check.at_least_one("run.iterations", self.iterations, "no iteration at all");
        for (key, time, most) in [
            ("run.costs.latency", self.costs.latency, LONG),
            ("run.costs.overhead", self.costs.overhead, LONG),
            ("run.costs.gap", self.costs.gap, LONG),
            ("run.costs.overhead_per_byte", self.costs.overhead_per_byte, LONG_PER_BYTE),
            ("run.costs.gap_per_byte", self.costs.gap_per_byte, LONG_PER_BYTE),
        ] {
            if time > most {
                check.error(key, format!("{time}"), format!("at most {most}"));
            }
        }
        let per_server = self.per_server();
        check.at_least_one("run.scale_up.ranks", per_server.into(), "a server without ranks");
        if self.scale_up.is_some_and(|inside| inside.rate == Rate::ZERO) {
            check.error("run.scale_up.rate", "links without a rate", "more than 0");
        }
        self.check_repeat(check);
        if self.placement == Placement::Rail && !hosts.is_multiple_of(per_server.max(1)) {
            let problem = format!("{hosts} hosts on {per_server} rails");
            check.error(
                "run.placement",
                problem,
                "as many hosts on each rail; `run.scale_up.ranks` is their number",
            );
        }
        hosts
    }

    /// Returns whether rounds and iterations may be replayed.
    pub(crate) fn repeats(&self) -> bool {
        self.repeat != RepeatMode::Off
    }

    fn check_repeat(&self, check: &mut WorkloadCheck<'_>) {
        if !self.repeats() {
            if self.repeat_every != REPEAT_EVERY {
                check.error("run.repeat_every", "nothing repeats", "`repeat = \"detect\"` beside it");
            }
            return;
        }
        if self.repeat == RepeatMode::Exact && self.network == JobNetwork::Packets {
            let problem = "over packets the state of queues and transports is not compared";
            check.error("run.repeat", problem, "`\"detect\"`, or `network = \"loggops\"`");
        }
        if !(2..=REPEAT_EVERY_MAX).contains(&self.repeat_every) {
            let allowed = format!("2 to {REPEAT_EVERY_MAX}");
            check.error("run.repeat_every", format!("one of {} is simulated", self.repeat_every), allowed);
        }
        if self.timeline {
            let problem = "operations that are replayed have no times";
            check.error("run.timeline", problem, "`timeline` without `repeat`, or `repeat` without it");
        }
    }

    /// Reports a job of more ranks than hosts.
    pub(crate) fn check_ranks(&self, check: &mut WorkloadCheck<'_>, ranks: u32, hosts: u32) {
        if ranks > hosts && hosts > 0 {
            check.error(
                "run.hosts",
                format!("{hosts} hosts for {ranks} ranks"),
                "a host for each rank, or more",
            );
        }
    }

    pub(crate) fn demand(&self) -> WorkloadDemand {
        WorkloadDemand { ends: true, start: self.start, ..WorkloadDemand::default() }
    }

    /// Returns the source of `graph`.
    pub(crate) fn source(
        &self,
        graph: &Arc<JobGraph>,
        size: JobSize,
        context: &Context<'_>,
    ) -> Result<Box<dyn Source>, Unbuildable> {
        let hosts = context.hosts(&self.hosts, &[], "run.hosts")?;
        if hosts.len() < graph.ranks() as usize {
            return Err(context.unbuildable("run.hosts", format!("fewer than {} hosts", graph.ranks())));
        }
        let placement = self.placement;
        let hosts = placement.place(&hosts, graph.ranks(), self.per_server(), context.streams, context.name);
        let rates = hosts.iter().map(|host| context.facts.host_rate(host.0)).collect();
        Ok(Box::new(JobSource::new(JobConfig {
            workload: context.index,
            graph: Arc::clone(graph),
            hosts,
            rates,
            size,
            iterations: self.iterations,
            pause: self.pause,
            start: Time::ZERO + self.start,
            until: context.until,
            warmup: context.warmup,
            connection_per_message: !context.keeps_connections,
            network: self.network,
            costs: self.costs,
            scale_up: self.scale_up,
            timeline: self.timeline,
            repeat: self.repeats().then_some(Repeat { mode: self.repeat, every: self.repeat_every }),
        })))
    }

    pub(crate) fn expected_records(&self, graph: &JobGraph) -> ExpectedRecords {
        let working = WorkingMemory {
            things: "operations",
            count: graph.operations().len() as f64,
            bytes: OPERATION_BYTES,
            key: "run.hosts",
        };
        let records = ExpectedRecords::new("run.iterations", self.start).limit(Some(self.iterations as f64));
        ExpectedRecords { working: Some(working), ..records.queries(graph.messages() as f64) }
    }

    /// Returns the connections that stay open, one for each pair of ranks that sends.
    pub(crate) fn lasting_connections(&self, graph: &JobGraph, kept: bool) -> f64 {
        if kept && self.network == JobNetwork::Packets { graph.pairs() as f64 } else { 0.0 }
    }
}

fn is_off(mode: &RepeatMode) -> bool {
    *mode == RepeatMode::Off
}

fn is_default_every(every: &u32) -> bool {
    *every == REPEAT_EVERY
}

/// Up to how many rounds stand for each one simulated by default, and the most that may be asked for.
const REPEAT_EVERY: u32 = 16;
const REPEAT_EVERY_MAX: u32 = 1_000_000;

/// The longest times of a message, and of a byte of it.
const LONG: Span = Span::from_secs(1);
const LONG_PER_BYTE: Span = Span::from_us(1);

/// The memory of an operation with its dependents and its state.
const OPERATION_BYTES: f64 = 64.0;
