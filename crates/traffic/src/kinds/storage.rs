//! `storage`: replicated writes, and reads and writes of erasure-coded parts.
//!
//! ```text
//! replicas, write: client ──> primary ──> other replicas ──> primary ──> client    read: client ──> replica ──> client
//! parts, write:    client ──> all parts ──> client                              read: client ──> data parts ──> client
//! ```
//!
//! An operation is complete when every server that the client has asked has answered.

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::quantity::Load;
use plimsoll_units::{Bytes, Span, Stream, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{WorkloadCheck, WorkloadDemand};
use crate::distribution::{Sampler, SizeDistribution, exponential};
use crate::draw::{stretched, uniform_choice};
use crate::exchange::{OutgoingMessage, WorkloadConnections};
use crate::facts::NetworkFacts;
use crate::hosts::HostSet;
use crate::kind::{Context, ExpectedRecords, Input, Kind, LoadKey, cdf_inputs, host_count, number};
use crate::record::{MessageRecord, QueryRecord, Split, Supply};
use crate::slab::Slab;
use crate::source::{Actions, Arrival, Opened, Source, pairs};

/// Reads and writes of a storage cluster, whose objects have replicas or erasure-coded parts on servers that are drawn
/// for each operation. An operation is a query, and each server that its client asks a message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// The hosts that read and write. Default all.
    #[serde(default = "HostSet::all")]
    pub clients: HostSet,
    /// The hosts that hold objects. Default all.
    #[serde(default = "HostSet::all")]
    pub servers: HostSet,
    /// The size of an object, or its distribution.
    pub size: SizeDistribution,
    /// Bytes of objects that each client reads and writes per second: a rate, or a share of its link.
    pub load: Load,
    /// The share of operations that are reads: 0 to 1. Default 0.5.
    #[serde(default = "Storage::default_reads")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub reads: f64,
    /// The replicas of an object, the first of which sends a write to the others: 1 to 64. Default 3. With `data_parts`
    /// it has no effect.
    #[serde(default = "Storage::default_replicas")]
    pub replicas: u32,
    /// The parts of which a read needs all (k of an erasure code): 1 to 64. Default absent: objects have replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_parts: Option<u32>,
    /// The further parts that a write has (m of an erasure code): 0 to 64. Default 0.
    #[serde(default)]
    pub parity_parts: u32,
    /// The payload of a request for a read, and of the answer to a write. Default 100 B.
    #[serde(default = "Storage::default_request")]
    pub request: Bytes,
    /// The number of operations, after which the workload stops. Default: no limit but `run.duration`.
    #[serde(default)]
    pub count: Option<u64>,
    /// The time from which on operations may start.
    #[serde(default)]
    pub start: Span,
}

impl Storage {
    fn default_reads() -> f64 {
        0.5
    }

    fn default_replicas() -> u32 {
        3
    }

    fn default_request() -> Bytes {
        Bytes::new(100)
    }

    /// Returns the servers of a read, and of a write.
    fn asked(&self) -> (u32, u32) {
        match self.data_parts {
            Some(data) => (data, data + self.parity_parts),
            None => (1, 1),
        }
    }

    /// Returns the servers that hold an object.
    fn holders(&self) -> u32 {
        self.data_parts.map_or(self.replicas, |data| data + self.parity_parts)
    }
}

/// The most replicas, or parts of one kind.
const HOLDERS_MAX: u32 = 64;

impl Kind for Storage {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        let clients = check.members("clients", &self.clients, &[]);
        let servers = check.members("servers", &self.servers, &[]);
        check.distribution("size", &mut self.size);
        check.load("load", self.load, Some(check.facts().host_rate(clients.first().copied().unwrap_or(0))));
        if !(0.0..=1.0).contains(&self.reads) {
            check.error("reads", format!("{} of all operations", self.reads), "0 to 1");
        }
        for (key, number, least) in [
            ("replicas", self.replicas, 1),
            ("data_parts", self.data_parts.unwrap_or(1), 1),
            ("parity_parts", self.parity_parts, 0),
        ] {
            if !(least..=HOLDERS_MAX).contains(&number) {
                check.error(key, number.to_string(), format!("{least} to {HOLDERS_MAX}"));
            }
        }
        if self.data_parts.is_none() && self.parity_parts > 0 {
            check.error("parity_parts", "objects have replicas", "0, or `data_parts` beside it");
        }
        check.some_bytes("request", self.request);
        // A client may be among the servers, and is none of its own.
        let others = servers.len() as u32 - u32::from(clients.iter().any(|client| servers.contains(client)));
        if self.holders() > others && !servers.is_empty() {
            let problem = format!("{others} other servers for the {} holders of an object", self.holders());
            check.error("servers", problem, "a server for each replica or part");
        }
        WorkloadDemand { ends: self.count.is_some(), start: self.start, ..WorkloadDemand::default() }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let clients = context.hosts(&self.clients, &[], "clients")?;
        let servers = context.hosts(&self.servers, &[], "servers")?;
        let size = self.size.sampler();
        let mut source = StorageSource {
            workload: context.index,
            params: self.clone(),
            mean_gap: context.mean_gap(self.load, clients[0], size.mean()) / clients.len() as f64,
            clients,
            servers,
            size,
            until: context.until,
            warmup: context.warmup,
            pool: WorkloadConnections::new(!context.keeps_connections),
            per_message: !context.keeps_connections,
            draws: context.streams.word(&format!("workload/{}/draws", context.name)),
            gaps: context.streams.stream(&format!("workload/{}/gaps", context.name)),
            next: Time::ZERO + self.start,
            drawn: 0,
            open: Slab::default(),
        };
        source.draw_gap();
        Ok(Box::new(source))
    }

    fn supply(&self) -> Supply {
        Supply::counted(self.count)
    }

    fn load(&self) -> Option<LoadKey> {
        Some(LoadKey::Load(self.load))
    }

    fn offered_bps(&self, facts: &dyn NetworkFacts) -> Option<f64> {
        let clients = host_count(facts, &self.clients, &[]);
        Some(self.load.bits_per_second(facts.host_rate(0)) * clients)
    }

    fn inputs(&self) -> Vec<Input<'_>> {
        cdf_inputs([self.size.table()])
    }

    fn expected_records(&self, facts: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        let per_second = self.offered_bps(facts)? / 8.0 / self.size.sampler().mean();
        let (read, write) = self.asked();
        let messages = self.reads * f64::from(read) + (1.0 - self.reads) * f64::from(write);
        let records = ExpectedRecords::new("load", self.start).per_second(per_second);
        Some(records.limit(number(self.count)).queries(messages))
    }
}

/// The source: clients, and the servers of their objects.
#[derive(Debug)]
struct StorageSource {
    workload: u16,
    params: Storage,
    clients: Vec<HostId>,
    servers: Vec<HostId>,
    size: Sampler<Bytes>,
    /// The mean seconds between operations of all clients.
    mean_gap: f64,
    until: Time,
    warmup: Time,
    pool: WorkloadConnections,
    per_message: bool,
    /// The family of the keyed streams.
    draws: u64,
    gaps: Stream,
    next: Time,
    drawn: u64,
    open: Slab<StorageOperation>,
}

/// An operation that is not complete.
#[derive(Clone, Debug)]
struct StorageOperation {
    index: u64,
    client: HostId,
    is_read: bool,
    created: Time,
    /// The servers that the client has asked; of a write to replicas the first alone.
    parts: Vec<StoragePart>,
    /// The other replicas, and how many of them have a write to acknowledge.
    replicas: Vec<HostId>,
    copies_left: u32,
    left: u32,
    sum: Span,
    first: Span,
}

/// What one server has of an operation.
#[derive(Clone, Copy, Debug)]
struct StoragePart {
    server: HostId,
    /// The payload of the object's part.
    bytes: u64,
    /// When the request, or the data, has reached it.
    reached: Time,
    split: Split,
    ideal: Span,
}

/// The step of a message, in the low bits of its tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StorageStep {
    /// From the client to a server: a request, or data.
    Up,
    /// Back: data, or the answer to a write.
    Down,
    /// From the first replica to another.
    Copy,
    /// Back: the replica has written it.
    Copied,
}

impl StorageStep {
    const ALL: [StorageStep; 4] =
        [StorageStep::Up, StorageStep::Down, StorageStep::Copy, StorageStep::Copied];
}

fn tag(slot: usize, place: usize, step: StorageStep) -> u64 {
    (slot as u64) << 16 | (place as u64) << 2 | step as u64
}

impl StorageSource {
    fn draw_gap(&mut self) {
        self.next = self.next.saturating_add(stretched(self.mean_gap, exponential(&mut self.gaps)));
    }

    fn is_over(&self) -> bool {
        self.params.count.is_some_and(|count| self.drawn >= count) || self.next >= self.until
    }

    /// Draws an operation and begins it.
    fn begin(&mut self, now: Time, actions: &mut Actions) {
        let mut stream = Streams::keyed(self.draws, self.drawn);
        let client = self.clients[uniform_choice(&mut stream, self.clients.len() as u64) as usize];
        let is_read =
            (uniform_choice(&mut stream, 1 << 32) as f64) < self.params.reads * (1_u64 << 32) as f64;
        let bytes = self.size.sample(&mut stream).get().max(1);
        let mut holders: Vec<HostId> = Vec::new();
        while holders.len() < self.params.holders() as usize {
            let server = self.servers[uniform_choice(&mut stream, self.servers.len() as u64) as usize];
            if server != client && !holders.contains(&server) {
                holders.push(server);
            }
        }
        let (read, write) = self.params.asked();
        let asked = if is_read { read } else { write } as usize;
        let data = u64::from(self.params.data_parts.unwrap_or(1));
        let part = |&server: &HostId| StoragePart {
            server,
            bytes: bytes.div_ceil(data),
            reached: now,
            split: Split::default(),
            ideal: Span::ZERO,
        };
        let replicas = match self.params.data_parts {
            None if !is_read => holders[1..].to_vec(),
            _ => Vec::new(),
        };
        let operation = StorageOperation {
            index: self.drawn,
            client,
            is_read,
            created: now,
            parts: holders[..asked].iter().map(part).collect(),
            copies_left: replicas.len() as u32,
            replicas,
            left: asked as u32,
            sum: Span::ZERO,
            first: Span::MAX,
        };
        self.drawn += 1;
        self.draw_gap();
        let parts = operation.parts.clone();
        let slot = self.open.insert(operation);
        for (place, part) in parts.iter().enumerate() {
            let bytes = if is_read { self.params.request.get() } else { part.bytes };
            let letter = OutgoingMessage {
                from: client,
                to: part.server,
                bytes,
                tag: tag(slot, place, StorageStep::Up),
            };
            self.pool.send(now, letter, actions);
        }
    }

    /// A server can answer its client.
    fn answer(&mut self, now: Time, slot: usize, place: usize, actions: &mut Actions) {
        let request = self.params.request.get();
        let StorageOperation { client, is_read, ref mut parts, .. } = *self.open.get_mut(slot);
        let part = &mut parts[place];
        part.split.service += now - part.reached;
        part.ideal += now - part.reached;
        let bytes = if is_read { part.bytes } else { request };
        let letter = OutgoingMessage {
            from: part.server,
            to: client,
            bytes,
            tag: tag(slot, place, StorageStep::Down),
        };
        self.pool.answer(now, letter, actions);
    }

    /// A server has a request, or data, of a client.
    fn on_up(&mut self, arrival: &Arrival, slot: usize, place: usize, actions: &mut Actions) {
        let operation = self.open.get_mut(slot);
        let part = &mut operation.parts[place];
        part.reached = arrival.now;
        part.split = arrival.split;
        part.ideal = arrival.ideal;
        let (from, bytes, replicas) = (part.server, part.bytes, operation.replicas.clone());
        if replicas.is_empty() {
            return self.answer(arrival.now, slot, place, actions);
        }
        for (replica, &to) in replicas.iter().enumerate() {
            let letter = OutgoingMessage { from, to, bytes, tag: tag(slot, replica, StorageStep::Copy) };
            self.pool.send(arrival.now, letter, actions);
        }
    }

    fn on_down(&mut self, arrival: &Arrival, slot: usize, place: usize, actions: &mut Actions) {
        let operation = self.open.get_mut(slot);
        let took = arrival.now - operation.created;
        let part = &mut operation.parts[place];
        part.split = part.split + arrival.split;
        part.ideal += arrival.ideal;
        operation.left -= 1;
        operation.sum += took;
        operation.first = operation.first.min(took);
        let (is_done, counts) = (operation.left == 0, operation.created >= self.warmup);
        if counts {
            let operation = self.open.get_mut(slot).clone();
            actions.records.messages.push(self.message(&operation, place, Some(arrival.now)));
        }
        if is_done {
            let operation = self.open.remove(slot);
            if counts {
                actions.records.queries.push(self.query(&operation, Some(arrival.now)));
            }
        }
    }

    fn message(&self, operation: &StorageOperation, place: usize, completed: Option<Time>) -> MessageRecord {
        let part = &operation.parts[place];
        MessageRecord {
            workload: self.workload,
            index: operation.index * u64::from(2 * HOLDERS_MAX) + place as u64,
            query: Some(operation.index),
            source: operation.client.0,
            destination: part.server.0,
            bytes: part.bytes,
            created: operation.created,
            completed,
            ideal: part.ideal,
            split: part.split,
        }
    }

    fn query(&self, operation: &StorageOperation, completed: Option<Time>) -> QueryRecord {
        let servers = operation.parts.len() as u32;
        let answered = servers - operation.left;
        QueryRecord {
            workload: self.workload,
            index: operation.index,
            created: operation.created,
            completed,
            servers,
            in_deadline: answered,
            response_mean: operation.sum / u64::from(answered.max(1)),
            response_min: operation.first,
        }
    }
}

impl Source for StorageSource {
    fn next_due(&self) -> Time {
        if self.is_over() { Time::MAX } else { self.next }
    }

    fn on_due(&mut self, now: Time, actions: &mut Actions) {
        while !self.is_over() && self.next <= now {
            self.begin(now, actions);
        }
    }

    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions) {
        let (slot, place) = ((arrival.tag >> 16) as usize, (arrival.tag >> 2 & 0x3fff) as usize);
        match StorageStep::ALL[(arrival.tag & 3) as usize] {
            StorageStep::Up => self.on_up(&arrival, slot, place, actions),
            StorageStep::Down => self.on_down(&arrival, slot, place, actions),
            StorageStep::Copy => {
                let operation = self.open.get_mut(slot);
                let (from, to) = (operation.replicas[place], operation.parts[0].server);
                let bytes = self.params.request.get();
                let letter = OutgoingMessage { from, to, bytes, tag: tag(slot, place, StorageStep::Copied) };
                self.pool.answer(arrival.now, letter, actions);
            }
            StorageStep::Copied => {
                let operation = self.open.get_mut(slot);
                operation.copies_left -= 1;
                if operation.copies_left == 0 {
                    self.answer(arrival.now, slot, 0, actions);
                }
            }
        }
    }

    fn kept_connections(&self) -> Vec<Opened> {
        if self.per_message {
            return Vec::new();
        }
        let between = pairs(&self.servers, &self.servers).filter(|_| self.params.data_parts.is_none());
        let mut all: Vec<Opened> = pairs(&self.clients, &self.servers).chain(between).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn is_finished(&self) -> bool {
        self.is_over() && self.open.is_empty()
    }

    fn on_end(&mut self, actions: &mut Actions) {
        for operation in self.open.iter().filter(|operation| operation.created >= self.warmup) {
            actions.records.queries.push(self.query(operation, None));
            // Which of its servers have answered is not kept, so the operation alone is open.
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{errors, parsed};

    #[test]
    fn an_object_needs_as_many_servers_as_it_has_holders() {
        for (keys, wrong) in [
            ("", &[][..]),
            ("replicas = 5", &[]),
            ("replicas = 6", &["servers"]),
            ("servers = 'h4..h5'\nclients = 'h0..h3'\nreplicas = 2", &[]),
            ("servers = 'h4..h5'\nclients = 'h0..h4'\nreplicas = 2", &["servers"]),
            ("data_parts = 4\nparity_parts = 2", &["servers"]),
            ("parity_parts = 2", &["parity_parts"]),
            ("reads = 1.5", &["reads"]),
            ("replicas = 0", &["replicas"]),
        ] {
            let text = format!("kind = 'storage'\nsize = {{ constant = '1MB' }}\nload = 0.1\n{keys}");
            assert_eq!(errors(6, &parsed(&text)), wrong, "{keys}");
        }
    }
}
