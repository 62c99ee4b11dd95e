//! `job`: the operations of a GOAL file.

use std::sync::Arc;

use plimsoll_fabric::Unbuildable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{FilePlace, InvalidWorkload, WorkloadCheck, WorkloadDemand};
use crate::facts::NetworkFacts;
use crate::jobs::goal;
use crate::jobs::graph::{JobGraph, OperationAction};
use crate::jobs::run::JobRun;
use crate::jobs::size::JobSize;
use crate::kind::{Context, ExpectedRecords, Input, Kind};
use crate::record::Supply;
use crate::source::Source;

/// A job whose ranks send, receive and compute as a file in GOAL's format says, each operation when those are done that
/// it waits for. An iteration is a query; its latency breakdown is that of the critical path.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The file, relative to the scenario.
    pub path: String,
    /// Where and how it runs.
    #[serde(default, skip_serializing_if = "JobRun::is_default")]
    pub run: JobRun,
    /// The operations, read when the scenario is checked.
    #[serde(skip)]
    pub graph: Arc<JobGraph>,
}

impl Kind for Job {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        let hosts = self.run.check(check);
        if let Some(input) = check.job_file("path", &self.path) {
            match goal::read_goal(input) {
                Ok(graph) => {
                    let sizes = graph.operations().iter().map(|operation| match operation.action {
                        OperationAction::Send { bytes, .. } => bytes,
                        _ => 0,
                    });
                    check.may_be_longest("path", sizes.max().unwrap_or(0) as f64);
                    self.run.check_ranks(check, graph.ranks(), hosts);
                    self.graph = Arc::new(graph);
                }
                Err(bad) => check.errors.push(InvalidWorkload {
                    key: "path".to_owned(),
                    problem: bad.problem,
                    allowed: bad.allowed.map(str::to_owned),
                    help: None,
                    place: Some(FilePlace { file: self.path.clone(), span: bad.at, line: bad.line }),
                }),
            }
        }
        self.run.demand()
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        self.run.source(&self.graph, JobSize::of(&self.graph), context)
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
        vec![Input::Job(&self.graph)]
    }

    fn expected_records(&self, _: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        Some(self.run.expected_records(&self.graph))
    }

    fn lasting_connections(&self, _: &dyn NetworkFacts, kept: bool) -> f64 {
        self.run.lasting_connections(&self.graph, kept)
    }
}
