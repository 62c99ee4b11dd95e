//! `collective`: one collective operation of all ranks, such as an all-reduce, again and again.

use std::sync::Arc;

use plimsoll_fabric::Unbuildable;
use plimsoll_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{InvalidWorkload, WorkloadCheck, WorkloadDemand};
use crate::facts::NetworkFacts;
use crate::jobs::graph::{GraphBuilder, JobGraph};
use crate::jobs::matrix;
use crate::jobs::run::JobRun;
use crate::jobs::schedule::{self, Algorithm, CollectiveOperation};
use crate::jobs::size::JobSize;
use crate::kind::{Context, ExpectedRecords, Input, Kind};
use crate::record::Supply;
use crate::source::Source;

/// A collective operation of the ranks of a job, on as many hosts, as training jobs have them. An iteration is a query;
/// its latency breakdown is that of the critical path.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Collective {
    /// `all-reduce`, `reduce-scatter`, `all-gather`, `all-to-all`, `broadcast`, `reduce` or `barrier`.
    pub operation: CollectiveOperation,
    /// The schedule. Default absent: `ring`; `shift` of an all-to-all, `tree` of a broadcast or reduce, `dissemination`
    /// of a barrier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    /// The size, as nccl-tests counts it: the array of a rank, of which a reduce-scatter leaves it a part, an
    /// all-gather brings it the parts of all, and an all-to-all has a block for each rank. A barrier has none.
    #[serde(default)]
    pub size: Bytes,
    /// CSV with the blocks of an `all-to-all` in place of `size` (all-to-all-v), relative to the scenario: a row for
    /// each rank with the bytes that it sends to each, of which its own stay with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<String>,
    /// The parts that run the schedule beside each other (channels): 1 or more. Default 1.
    #[serde(default = "Collective::default_chunks")]
    pub chunks: u32,
    /// The time of a rank to add a byte to its own: 0 or more. Default 0 s.
    #[serde(default)]
    pub reduce_per_byte: Span,
    /// Where and how it runs.
    #[serde(default, skip_serializing_if = "JobRun::is_default")]
    pub run: JobRun,
    /// The operations, made when the scenario is checked.
    #[serde(skip)]
    pub graph: Arc<JobGraph>,
}

impl Collective {
    fn default_chunks() -> u32 {
        1
    }

    /// Returns the schedule that is given, or the default of the operation.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm.unwrap_or(self.operation.algorithms()[0])
    }

    /// Reports servers that a hierarchical schedule cannot have.
    fn check_servers(&self, check: &mut WorkloadCheck<'_>, ranks: u32) {
        let allowed = "2 or more ranks a server, which divide all ranks";
        let per_server = self.run.per_server();
        if self.run.scale_up.is_none() {
            let problem = "`hierarchical` has rings inside servers, and `run.scale_up` is missing, so that each rank \
                           is a server";
            let fitting = (2..=8).rev().find(|count| ranks.is_multiple_of(*count)).unwrap_or(ranks);
            let help =
                format!("add run.scale_up = {{ ranks = {fitting}, rate = \"3200Gbps\", delay = \"500ns\" }}");
            check.errors.push(InvalidWorkload::new(
                "algorithm",
                problem,
                Some(allowed.to_owned()),
                Some(help),
            ));
        } else if per_server < 2 || !ranks.is_multiple_of(per_server) {
            check.error("run.scale_up.ranks", format!("{ranks} ranks in servers of {per_server}"), allowed);
        }
    }

    /// Returns the bytes of each rank for each, row by row, where a file has them.
    fn read_matrix(&self, check: &mut WorkloadCheck<'_>, ranks: u32) -> Option<Vec<u64>> {
        let file = self.matrix.as_ref()?;
        if self.operation != CollectiveOperation::AllToAll {
            check.error("matrix", "blocks of another operation than an all-to-all", "`size`");
        }
        if self.size != Bytes::ZERO {
            check.error("size", "a size beside `matrix`", "one of the two");
        }
        match matrix::parse(file, &check.flow_list("matrix", file)?, ranks) {
            Ok(blocks) => {
                let sent = (0..).zip(&blocks).filter(|(place, _)| place % (u64::from(ranks) + 1) > 0);
                let longest = sent.map(|(_, bytes)| *bytes).max().unwrap_or(0);
                if longest == 0 {
                    check.error("matrix", "no rank sends a byte to another", "a size of 1B or more");
                }
                check.may_be_longest("matrix", longest as f64);
                Some(blocks)
            }
            Err(mut errors) => {
                check.errors.append(&mut errors);
                None
            }
        }
    }
}

impl Kind for Collective {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        let ranks = self.run.check(check);
        let (algorithm, allowed) = (self.algorithm(), self.operation.algorithms());
        let errors = check.errors.len();
        if !allowed.contains(&algorithm) {
            let names: Vec<String> =
                allowed.iter().map(|algorithm| format!("`{}`", algorithm.name())).collect();
            let problem = format!("`{}` does not carry out this operation", algorithm.name());
            check.error("algorithm", problem, names.join(", "));
        } else if algorithm.needs_power_of_two() && !ranks.is_power_of_two() {
            check.error(
                "algorithm",
                format!("{ranks} ranks, which are no power of two"),
                "2, 4, 8, ... hosts, or `ring`",
            );
        } else if algorithm == Algorithm::Hierarchical && ranks > 1 {
            self.check_servers(check, ranks);
        }
        if ranks == 1 {
            check.error("run.hosts", "one rank has nobody to send to", "at least two hosts");
        }
        check.at_least_one("chunks", self.chunks.into(), "no part at all");
        let blocks = self.read_matrix(check, ranks);
        if self.operation == CollectiveOperation::Barrier {
            check.may_be_longest("size", 1.0);
        } else if self.matrix.is_none() {
            check.some_bytes("size", self.size);
        }
        let messages = u64::from(ranks) * u64::from(ranks) * u64::from(self.chunks);
        if messages > MESSAGES_MAX {
            check.error("chunks", format!("about {messages} messages"), format!("at most {MESSAGES_MAX}"));
        }
        if check.errors.len() == errors && ranks > 1 {
            let members: Vec<u32> = (0..ranks).collect();
            let mut builder = GraphBuilder::new(ranks);
            let collective = schedule::Collective {
                operation: self.operation,
                algorithm,
                bytes: self.size.get(),
                chunks: self.chunks,
                per_server: self.run.per_server(),
                reduce_per_byte: self.reduce_per_byte,
            };
            let begin = vec![None; members.len()];
            match blocks {
                Some(blocks) => {
                    let block = |from, to| blocks[from * members.len() + to];
                    collective.add_blocks(&mut builder, &members, &begin, &mut 0, block)
                }
                None => collective.add(&mut builder, &members, &begin, &mut 0),
            };
            match builder.finish() {
                Ok(graph) => self.graph = Arc::new(graph),
                Err(bad) => check.error("operation", bad.to_string(), "another operation"),
            }
        }
        self.run.demand()
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let bytes = self.size.get();
        let bus_bytes = (bytes as f64 * self.operation.bus_factor(self.graph.ranks())).round() as u64;
        let size = match self.matrix {
            Some(_) => JobSize::of(&self.graph),
            None => JobSize { bytes, bus_bytes },
        };
        self.run.source(&self.graph, size, context)
    }

    fn supply(&self) -> Supply {
        Supply::Fixed
    }

    fn bounding_key(&self) -> &'static str {
        "run.iterations"
    }

    fn repeats(&self) -> bool {
        self.run.repeats()
    }

    fn job(&self) -> Option<&JobGraph> {
        Some(&self.graph)
    }

    fn inputs(&self) -> Vec<Input<'_>> {
        self.matrix.iter().map(|_| Input::Job(&self.graph)).collect()
    }

    fn expected_records(&self, _: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        Some(self.run.expected_records(&self.graph))
    }

    fn lasting_connections(&self, _: &dyn NetworkFacts, kept: bool) -> f64 {
        self.run.lasting_connections(&self.graph, kept)
    }
}

/// The most messages of an iteration.
const MESSAGES_MAX: u64 = 20_000_000;
