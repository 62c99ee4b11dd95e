//! `request-list`: requests from a file, as a capture has them.
//!
//! ```text
//! connection,start,think,client,server,request,response,service,class
//! 0,1ms,,h0,h3,100B,900B,20us,get        sent at 1 ms, whatever the client waits for
//! 0,,50us,h0,h3,100B,900B,20us,get       sent 50 us after the response to the row before it on connection 0
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::{Bytes, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{InvalidWorkload, WorkloadCheck, WorkloadDemand};
use crate::exchange::{Exchanges, PendingRequest, WorkloadConnections};
use crate::facts::NetworkFacts;
use crate::kind::{Context, ExpectedRecords, Input, Kind};
use crate::listed::{self, ListedRow};
use crate::record::Supply;
use crate::source::{Actions, Arrival, Hint, Opened, Source};

/// Requests listed in a file, each with its response: at their times, or so long after the response before it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestList {
    /// CSV with the columns connection, start or think (one of them, with unit), client, server, request, response
    /// (with unit), service (with unit), class; relative to the scenario. A server works on all its requests at once.
    pub path: String,
    /// The rows of the file, read when the scenario is checked.
    #[serde(skip)]
    pub requests: Arc<Vec<ListedRequest>>,
}

/// One request of a list: a row of its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedRequest {
    /// The number of the connection. Requests of one connection are in the order of their rows.
    pub connection: u32,
    /// When the request is sent.
    pub start: ListedStart,
    /// The number of the host that sends the request.
    pub client: u32,
    /// The number of the host that responds.
    pub server: u32,
    /// The payload of the request.
    pub request: Bytes,
    /// The payload of the response.
    pub response: Bytes,
    /// The time from the arrival of the request to the response.
    pub service: Span,
    /// A word by which requests are grouped; it may be empty.
    pub class: String,
}

/// The time at which a listed request is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListedStart {
    /// This long after the start of the run.
    At(Span),
    /// This long after the response to the request before it on its connection.
    After(Span),
}

impl Kind for RequestList {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        if let Some(text) = check.flow_list("path", &self.path) {
            match parse(&self.path, &text, check.facts()) {
                Ok(requests) => {
                    let sizes = requests.iter().map(|listed| listed.request.max(listed.response).get());
                    check.may_be_longest("path", sizes.max().unwrap_or(0) as f64);
                    self.requests = Arc::new(requests);
                }
                Err(mut errors) => check.errors.append(&mut errors),
            }
        }
        WorkloadDemand { ends: true, ..WorkloadDemand::default() }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        Ok(Box::new(ListedRequests::new(Arc::clone(&self.requests), context)))
    }

    fn supply(&self) -> Supply {
        Supply::Fixed
    }

    fn inputs(&self) -> Vec<Input<'_>> {
        vec![Input::Requests(&self.requests)]
    }

    fn expected_records(&self, _: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        Some(ExpectedRecords::new("path", Span::ZERO).limit(Some(self.requests.len() as f64)))
    }
}

const HEADER: &str = "connection,start,think,client,server,request,response,service,class";

/// The columns by their place in a row.
const CONNECTION: usize = 0;
const START: usize = 1;
const THINK: usize = 2;
const CLIENT: usize = 3;
const SERVER: usize = 4;
const REQUEST: usize = 5;
const RESPONSE: usize = 6;
const SERVICE: usize = 7;

/// Parses a list; host names are the network's.
fn parse(
    name: &str,
    text: &str,
    facts: &dyn NetworkFacts,
) -> Result<Vec<ListedRequest>, Vec<InvalidWorkload>> {
    // The hosts of each connection.
    let mut known: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    listed::parse(name, text, HEADER, facts, |row| {
        let listed = request(row)?;
        let hosts = (listed.client, listed.server);
        let before = known.get(&listed.connection).copied();
        if before.is_none() && matches!(listed.start, ListedStart::After(_)) {
            let problem = format!("connection {} has no request before this one", listed.connection);
            return Err(row.error(row.span(THINK), problem, Some("a start for the first of a connection")));
        }
        if before.is_some_and(|before| before != hosts) {
            let problem = format!("connection {} is between other hosts", listed.connection);
            return Err(row.error(row.span(CONNECTION), problem, Some("one client and one server")));
        }
        known.insert(listed.connection, hosts);
        Ok(listed)
    })
}

fn request(row: &ListedRow<'_>) -> Result<ListedRequest, Box<InvalidWorkload>> {
    let [connection, start, think, _, _, _, _, _, class] = row.cells()?;
    let start = match (start, think) {
        (_, "") => ListedStart::At(row.quantity(START)?),
        ("", _) => ListedStart::After(row.quantity(THINK)?),
        _ => {
            return Err(row.error(row.span(THINK), "both a start and a think time", Some("one of them")));
        }
    };
    let client = row.host(CLIENT)?;
    Ok(ListedRequest {
        connection: connection.parse().map_err(|_| {
            let problem = format!("\"{connection}\" is no number of a connection");
            row.error(row.span(CONNECTION), problem, Some("0 to 4294967295"))
        })?,
        start,
        client,
        server: row.other_host(SERVER, client, "a request")?,
        request: row.size(REQUEST, "a request")?,
        response: row.size(RESPONSE, "a response")?,
        service: row.quantity(SERVICE)?,
        class: class.to_owned(),
    })
}

/// The source: the requests at known times, and which request follows a response.
#[derive(Debug)]
struct ListedRequests {
    requests: Arc<Vec<ListedRequest>>,
    /// The requests at known times that have not been sent: the time, and the row.
    due: BinaryHeap<Reverse<(Time, u32)>>,
    /// The row that waits for the response to each row.
    followers: Vec<Option<u32>>,
    pool: WorkloadConnections,
    exchanges: Exchanges,
    until: Time,
    warmup: Time,
    keeps_connections: bool,
}

impl ListedRequests {
    fn new(requests: Arc<Vec<ListedRequest>>, context: &Context<'_>) -> ListedRequests {
        let mut due = BinaryHeap::new();
        let mut followers = vec![None; requests.len()];
        let mut last: BTreeMap<u32, usize> = BTreeMap::new();
        for (number, listed) in (0..).zip(requests.iter()) {
            let before = last.insert(listed.connection, number as usize);
            match listed.start {
                ListedStart::At(start) => {
                    let at = Time::ZERO.saturating_add(start);
                    due.extend((at < context.until).then_some(Reverse((at, number))));
                }
                ListedStart::After(_) => {
                    before.into_iter().for_each(|before| followers[before] = Some(number));
                }
            }
        }
        ListedRequests {
            due,
            followers,
            pool: WorkloadConnections::new(!context.keeps_connections),
            exchanges: Exchanges::unlimited(context.index),
            until: context.until,
            warmup: context.warmup,
            keeps_connections: context.keeps_connections,
            requests,
        }
    }

    fn ask(&mut self, now: Time, row: u32, actions: &mut Actions) {
        let listed = &self.requests[row as usize];
        let (client, server) = (HostId(listed.client), HostId(listed.server));
        let ask = PendingRequest {
            index: u64::from(row),
            query: None,
            owner: u64::from(row),
            client,
            server,
            queue: 0,
            connection: self.pool.connection(client, server, listed.connection, actions),
            request_bytes: listed.request.get(),
            response_bytes: listed.response.get(),
            service: listed.service,
        };
        self.exchanges.ask(now, ask, actions);
    }
}

impl Source for ListedRequests {
    fn next_due(&self) -> Time {
        let listed = self.due.peek().map_or(Time::MAX, |Reverse((at, _))| *at);
        listed.min(self.exchanges.next_due())
    }

    fn on_due(&mut self, now: Time, actions: &mut Actions) {
        self.exchanges.on_due(now, actions);
        while let Some(&Reverse((at, row))) = self.due.peek()
            && at <= now
        {
            self.due.pop();
            self.ask(now, row, actions);
        }
    }

    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions) {
        let Some(done) = self.exchanges.on_message(arrival, actions) else { return };
        if done.message.created >= self.warmup {
            actions.records.messages.push(done.message);
        }
        let Some(next) = self.followers[done.owner as usize] else { return };
        let ListedStart::After(think) = self.requests[next as usize].start else { return };
        let at = arrival.now.saturating_add(think);
        if at == arrival.now && at < self.until {
            self.ask(at, next, actions);
        } else if at < self.until {
            self.due.push(Reverse((at, next)));
        }
    }

    fn kept_connections(&self) -> Vec<Opened> {
        if !self.keeps_connections {
            return Vec::new();
        }
        let opened =
            |listed: &ListedRequest| Opened { client: HostId(listed.client), server: HostId(listed.server) };
        let all = self.requests.iter().map(|listed| (listed.connection, opened(listed)));
        all.collect::<BTreeMap<u32, Opened>>().into_values().collect()
    }

    fn hints(&self, tell: &mut dyn FnMut(Hint)) {
        self.exchanges.hints(tell);
    }

    fn is_finished(&self) -> bool {
        self.due.is_empty() && self.exchanges.is_empty()
    }

    fn on_end(&mut self, actions: &mut Actions) {
        let unfinished = self.exchanges.unfinished().map(|done| done.message);
        actions.records.messages.extend(unfinished.filter(|message| message.created >= self.warmup));
    }
}
