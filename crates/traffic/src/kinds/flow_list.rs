//! `flow-list`: flows from a file.
//!
//! ```text
//! start,source,destination,size,class
//! 0s,h1,client,10MB,background
//! ```

use std::sync::Arc;

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::{Bytes, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{InvalidWorkload, WorkloadCheck, WorkloadDemand};
use crate::facts::NetworkFacts;
use crate::kind::{Context, ExpectedRecords, Input, Kind};
use crate::listed;
use crate::one_way::{OneWay, PendingFlow};
use crate::record::Supply;
use crate::source::Source;

/// Flows listed in a file: start, source, destination, size, class.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowList {
    /// CSV with the columns start (with unit), source, destination, size (with unit), class;
    /// relative to the scenario.
    pub path: String,
    /// The rows of the file, read when the scenario is checked.
    #[serde(skip)]
    pub flows: Arc<Vec<ListedFlow>>,
}

/// One flow of a list: a row of its file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ListedFlow {
    /// The time at which the flow starts, since the start of the run.
    pub start: Span,
    /// The number of the host that sends the flow.
    pub source: u32,
    /// The number of the host that receives the flow.
    pub destination: u32,
    /// The size of the flow, in bytes of payload.
    pub size: Bytes,
    /// A word by which flows are grouped; it may be empty.
    pub class: String,
}

impl Kind for FlowList {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        if let Some(text) = check.flow_list("path", &self.path) {
            match parse(&self.path, &text, check.facts()) {
                Ok(flows) => {
                    let longest = flows.iter().map(|flow| flow.size.get()).max().unwrap_or(0);
                    check.may_be_longest("path", longest as f64);
                    self.flows = Arc::new(flows);
                }
                Err(mut errors) => check.errors.append(&mut errors),
            }
        }
        WorkloadDemand { ends: true, ..WorkloadDemand::default() }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let flow = |flow: &ListedFlow| PendingFlow {
            start: Time::ZERO + flow.start,
            source: HostId(flow.source),
            destination: HostId(flow.destination),
            bytes: Some(flow.size.get()),
        };
        let flows = self.flows.iter().map(flow).filter(|flow| flow.start < context.until).collect();
        let source = OneWay::list(context.index, context.warmup, flows);
        Ok(Box::new(source.sharing_connections(context.keeps_connections)))
    }

    fn supply(&self) -> Supply {
        Supply::Fixed
    }

    fn inputs(&self) -> Vec<Input<'_>> {
        vec![Input::Flows(&self.flows)]
    }

    fn expected_records(&self, _: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        Some(ExpectedRecords::new("path", Span::ZERO).limit(Some(self.flows.len() as f64)))
    }
}

const HEADER: &str = "start,source,destination,size,class";

/// The columns by their place in a row.
const START: usize = 0;
const SOURCE: usize = 1;
const DESTINATION: usize = 2;
const SIZE: usize = 3;

/// Parses a list; host names are the network's.
fn parse(name: &str, text: &str, facts: &dyn NetworkFacts) -> Result<Vec<ListedFlow>, Vec<InvalidWorkload>> {
    listed::parse(name, text, HEADER, facts, |row| {
        let [_, _, _, _, class] = row.cells()?;
        let source = row.host(SOURCE)?;
        Ok(ListedFlow {
            start: row.quantity(START)?,
            source,
            destination: row.other_host(DESTINATION, source, "a flow")?,
            size: row.size(SIZE, "a flow")?,
            class: class.to_owned(),
        })
    })
}
