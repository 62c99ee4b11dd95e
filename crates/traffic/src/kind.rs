//! [`Kind`]: the interface that every kind of workload implements, in its one file.

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::quantity::Load;
use plimsoll_units::{Bytes, Span, Streams, Time};

use crate::cdf::CdfTable;
use crate::check::{WorkloadCheck, WorkloadDemand};
use crate::facts::NetworkFacts;
use crate::hosts::{HostName, HostSet};
use crate::jobs::graph::JobGraph;
use crate::kinds::flow_list::ListedFlow;
use crate::kinds::request_list::ListedRequest;
use crate::record::Supply;
use crate::source::Source;
use crate::weights::HostWeights;

/// The parameters of one kind of workload: a table `[workload.NAME]` of a scenario.
pub trait Kind {
    /// Checks the parameters and loads the files that they name.
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand;

    /// Builds the source that generates the traffic.
    ///
    /// # Errors
    /// Names the key whose value no source can be built from.
    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable>;

    /// Returns the limit of the number of messages.
    fn supply(&self) -> Supply;

    /// Returns the key that bounds the number of messages.
    fn bounding_key(&self) -> &'static str {
        "count"
    }

    /// Returns the key that a load line varies, and its value; `None` if the kind has no load.
    fn load(&self) -> Option<LoadKey> {
        None
    }

    /// Returns the payload that the workload offers in bits per second, on average over its senders together; `None`
    /// where its own completions pace it.
    fn offered_bps(&self, _facts: &dyn NetworkFacts) -> Option<f64> {
        None
    }

    /// Returns the host whose link carries all of the offered payload; `None` if no single link does.
    fn shared_link(&self) -> Option<&HostName> {
        None
    }

    /// Returns the deadline of responses.
    fn deadline(&self) -> Option<Span> {
        None
    }

    /// Returns the name of the kind's observations.
    fn observed(&self) -> Option<&'static str> {
        None
    }

    /// Returns the operations of a job; `None` for other kinds.
    fn job(&self) -> Option<&JobGraph> {
        None
    }

    /// Returns whether rounds of a job are replayed.
    fn repeats(&self) -> bool {
        false
    }

    /// Returns whether a connection of the transport carries the messages, rather than single packets.
    fn uses_transport(&self) -> bool {
        true
    }

    /// Returns the size of the largest single packet on the wire, where the transport adds `header` to it; 0 B where a
    /// connection carries all messages.
    fn largest_packet(&self, _header: Bytes) -> Bytes {
        Bytes::ZERO
    }

    /// Returns whether the sizes of single packets are sizes of whole frames, header included.
    fn sizes_are_of_frames(&self) -> bool {
        false
    }

    /// Returns the inputs that were read from files, for the digest of a run.
    fn inputs(&self) -> Vec<Input<'_>> {
        Vec::new()
    }

    /// Returns how many records a run will keep, as far as the scenario says so; `has_duration` is whether the run
    /// has a fixed length.
    fn expected_records(&self, _facts: &dyn NetworkFacts, _has_duration: bool) -> Option<ExpectedRecords> {
        None
    }

    /// Returns the number of connections that stay open for the whole run; `kept` is whether the transport keeps
    /// connections.
    fn lasting_connections(&self, _facts: &dyn NetworkFacts, _kept: bool) -> f64 {
        0.0
    }
}

/// The load of a workload, under the key that a load line varies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LoadKey {
    /// The key `load`: a share of a link, or a rate.
    Load(Load),
    /// A key that is a number of events per second.
    PerSecond {
        /// The key within the workload's table.
        key: &'static str,
        /// The value of the key.
        per_second: f64,
    },
}

/// An input that a workload read from a file.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// The points of a distribution.
    Cdf(&'a CdfTable),
    /// The rows of a flow list.
    Flows(&'a [ListedFlow]),
    /// The rows of a request list.
    Requests(&'a [ListedRequest]),
    /// The operations of a job.
    Job(&'a JobGraph),
    /// The weights of hosts.
    Weights(&'a [HostWeights]),
}

/// Returns the inputs of some distributions, in their order.
pub(crate) fn cdf_inputs<'a>(tables: impl IntoIterator<Item = Option<&'a CdfTable>>) -> Vec<Input<'a>> {
    tables.into_iter().flatten().map(Input::Cdf).collect()
}

/// The number of records that a workload makes, as far as it is known before the run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ExpectedRecords {
    /// The key that determines the number.
    pub key: &'static str,
    /// Arrivals per second; `None` where they come as fast as the network permits.
    pub per_second: Option<f64>,
    /// The number of all arrivals, if it is limited.
    pub limit: Option<f64>,
    /// The time of the first arrival.
    pub start: Span,
    /// The mean number of message records of each arrival.
    pub messages: f64,
    /// The mean number of query records of each arrival.
    pub queries: f64,
    /// The mean number of observations of each arrival.
    pub observations: f64,
    /// Working memory that the source needs beside the records.
    pub working: Option<WorkingMemory>,
}

/// Memory that a source needs while it runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkingMemory {
    /// The name of the kept things, in the plural.
    pub things: &'static str,
    /// The number of things that the source keeps.
    pub count: f64,
    /// The bytes that each of them takes.
    pub bytes: f64,
    /// The key that determines the number.
    pub key: &'static str,
}

impl ExpectedRecords {
    /// Returns one message an arrival, from `start` on, whose number `key` determines.
    pub fn new(key: &'static str, start: Span) -> ExpectedRecords {
        ExpectedRecords {
            key,
            per_second: None,
            limit: None,
            start,
            messages: 1.0,
            queries: 0.0,
            observations: 0.0,
            working: None,
        }
    }

    /// Sets the mean number of arrivals per second.
    pub fn per_second(self, per_second: f64) -> ExpectedRecords {
        ExpectedRecords { per_second: Some(per_second), ..self }
    }

    /// Sets the number of all arrivals; `None` without a limit.
    pub fn limit(self, limit: Option<f64>) -> ExpectedRecords {
        ExpectedRecords { limit, ..self }
    }

    /// Makes every arrival a query of `messages` messages.
    pub fn queries(self, messages: f64) -> ExpectedRecords {
        ExpectedRecords { messages, queries: 1.0, ..self }
    }
}

/// Returns a count as a floating-point number, for estimates.
pub(crate) fn number(count: Option<u64>) -> Option<f64> {
    count.map(|count| count as f64)
}

/// Returns the number of hosts of a selection that leaves out the hosts at the other end, for estimates.
pub(crate) fn host_count(facts: &dyn NetworkFacts, hosts: &HostSet, others: &[&HostName]) -> f64 {
    let others: Vec<u32> = others.iter().filter_map(|name| facts.host(&name.0)).collect();
    hosts.resolve_except(facts, &others).map_or(0.0, |hosts| hosts.len() as f64)
}

/// Returns the bits per second of `load` on the link of a host.
pub(crate) fn bits_per_second(facts: &dyn NetworkFacts, load: Load, host: &HostName) -> f64 {
    load.bits_per_second(facts.host_rate(facts.host(&host.0).unwrap_or(0)))
}

/// Returns the messages per second of `mean_bytes` that offer `load` on the link of a host, for estimates.
pub(crate) fn messages_per_second(
    facts: &dyn NetworkFacts,
    load: Load,
    host: &HostName,
    mean_bytes: f64,
) -> f64 {
    bits_per_second(facts, load, host) / 8.0 / mean_bytes
}

/// The inputs of a source beside its parameters.
pub struct Context<'a> {
    /// The facts about the network.
    pub facts: &'a dyn NetworkFacts,
    /// The random streams of the run.
    pub streams: &'a Streams,
    /// The name of the workload.
    pub name: &'a str,
    /// The index of the workload in the run.
    pub index: u16,
    /// The time from which on no new message is sent.
    pub until: Time,
    /// The time before which messages do not count.
    pub warmup: Time,
    /// The transport's header, which single packets have as well.
    pub header: Bytes,
    /// Whether connections are kept, rather than opened for each message.
    pub keeps_connections: bool,
}

impl Context<'_> {
    /// Returns the error that no source can be built from the value of `key`.
    pub fn unbuildable(&self, key: &str, problem: impl ToString) -> Unbuildable {
        Unbuildable::new(format!("workload.{}.{key}", self.name), problem)
    }

    /// Returns the number of a host.
    ///
    /// # Errors
    /// Fails if no host has the name.
    pub fn host(&self, name: &HostName, key: &str) -> Result<HostId, Unbuildable> {
        let number = self.facts.host(&name.0);
        number.map(HostId).ok_or_else(|| self.unbuildable(key, format!("there is no host `{}`", name.0)))
    }

    /// Returns the hosts of a selection; `others` are the hosts at the other end.
    ///
    /// # Errors
    /// Fails if no host has one of the names, or the selection is empty.
    pub fn hosts(&self, hosts: &HostSet, others: &[HostId], key: &str) -> Result<Vec<HostId>, Unbuildable> {
        let others: Vec<u32> = others.iter().map(|host| host.0).collect();
        let numbers = hosts.resolve_except(self.facts, &others);
        let numbers = numbers.map_err(|unknown| self.unbuildable(key, unknown))?;
        if numbers.is_empty() {
            return Err(self.unbuildable(key, "no hosts"));
        }
        Ok(numbers.into_iter().map(HostId).collect())
    }

    /// Returns the mean seconds between messages of `mean_bytes` that offer `load` on the link of `host`.
    pub fn mean_gap(&self, load: Load, host: HostId, mean_bytes: f64) -> f64 {
        mean_bytes * 8.0 / load.bits_per_second(self.facts.host_rate(host.0))
    }

    /// Returns the size of a message as a single packet on the wire.
    ///
    /// # Errors
    /// Fails if the message does not fit into one packet.
    pub fn packet(&self, payload: Bytes, key: &str) -> Result<u16, Unbuildable> {
        let bytes = payload.get().saturating_add(self.header.get());
        u16::try_from(bytes).map_err(|_| self.unbuildable(key, format!("{bytes} B in one packet")))
    }
}
