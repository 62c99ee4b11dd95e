//! `flow-list`: flows from a file.
//!
//! ```text
//! start,source,destination,size,class
//! 0s,h1,client,10MB,background
//! ```

use std::ops::Range;
use std::sync::Arc;

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_text::counted;
use plimsoll_text::csv::{CsvRecord, rows};
use plimsoll_text::spelling::did_you_mean;
use plimsoll_units::{Bytes, ParseQuantityError, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{FilePlace, InvalidWorkload, WorkloadCheck, WorkloadDemand};
use crate::facts::NetworkFacts;
use crate::kind::{Context, ExpectedRecords, Input, Kind};
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
#[derive(Clone, PartialEq, Eq, Debug)]
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

/// Parses a list; host names are the network's.
fn parse(name: &str, text: &str, facts: &dyn NetworkFacts) -> Result<Vec<ListedFlow>, Vec<InvalidWorkload>> {
    let mut rows = rows(text, Some(b'#'));
    if rows.next().is_none_or(|row| row.cells().join(",") != HEADER) {
        // Without our columns it may be a file of any kind, of which nothing is quoted.
        let place = FilePlace { file: name.to_owned(), span: None };
        return Err(vec![at(place, "the columns are not known", Some(HEADER))]);
    }
    let mut errors = Vec::new();
    let mut flows = Vec::new();
    for row in rows {
        match (Listed { file: name, row: &row }).flow(facts) {
            Ok(flow) => flows.push(flow),
            Err(error) => errors.push(*error),
        }
    }
    if errors.is_empty() { Ok(flows) } else { Err(errors) }
}

/// Returns an error at a place of the file.
fn at(place: FilePlace, problem: impl Into<String>, allowed: Option<&str>) -> InvalidWorkload {
    let allowed = allowed.map(str::to_owned);
    InvalidWorkload { key: String::new(), problem: problem.into(), allowed, help: None, place: Some(place) }
}

/// A row of a flow list, with the name of its file.
struct Listed<'a> {
    file: &'a str,
    row: &'a CsvRecord<'a>,
}

/// The columns by their place in a row.
const START: usize = 0;
const SOURCE: usize = 1;
const DESTINATION: usize = 2;
const SIZE: usize = 3;

impl Listed<'_> {
    /// Returns an error that points at a part of the text.
    fn error(
        &self,
        span: Range<usize>,
        problem: impl Into<String>,
        allowed: Option<&str>,
    ) -> Box<InvalidWorkload> {
        Box::new(at(FilePlace { file: self.file.to_owned(), span: Some(span) }, problem, allowed))
    }

    fn flow(&self, facts: &dyn NetworkFacts) -> Result<ListedFlow, Box<InvalidWorkload>> {
        let cells = self.row.cells();
        let span = |column| self.row.span(column);
        let [start, _, _, size, class] = cells[..] else {
            let whole = self.row.start..self.row.start + self.row.text.len();
            return Err(self.error(whole, counted(cells.len() as u64, "column"), Some(HEADER)));
        };
        let host = |column: usize| {
            let name = cells[column];
            facts.host(name).ok_or_else(|| {
                let hosts = 0..facts.host_count().min(1000);
                let names: Vec<String> = hosts.map(|host| facts.host_name(host)).collect();
                let mut error = self.error(span(column), format!("there is no host \"{name}\""), None);
                error.help = did_you_mean(name, names.iter().map(String::as_str));
                error
            })
        };
        let quantity = |column, error: ParseQuantityError| self.error(span(column), error.to_string(), None);
        let flow = ListedFlow {
            start: start.parse().map_err(|error| quantity(START, error))?,
            source: host(SOURCE)?,
            destination: host(DESTINATION)?,
            size: size.parse().map_err(|error| quantity(SIZE, error))?,
            class: class.to_owned(),
        };
        if flow.source == flow.destination {
            return Err(self.error(span(DESTINATION), "a flow from a host to itself", None));
        }
        if flow.size == Bytes::ZERO {
            return Err(self.error(span(SIZE), "a flow without bytes", Some("at least 1B")));
        }
        Ok(flow)
    }
}
