//! `file-service`: clients that copy files from one server, whose disk reads ahead.
//!
//! ```text
//! client ──request──> server: disk reads batch by batch, clients in turn ──a whole read, or each batch──> client
//!    ^                                                                                                      │
//!    └─────────── the next request, when the last byte of a read has arrived ────────────────────────────────┘
//! ```
//!
//! BulletTrains (3.1.3) measures two such servers. An NFS server reads the whole read size of its client into memory
//! and then sends it; an HDFS DataNode sends by `sendfile()`, batch by batch of the disk's read-ahead. Data that the
//! server hands to its socket at once leaves as one burst if the network stack lets it.

use std::collections::{BTreeSet, VecDeque};

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::{Bytes, Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{WorkloadCheck, WorkloadDemand};
use crate::facts::NetworkFacts;
use crate::hosts::{HostName, HostSet};
use crate::kind::{Context, ExpectedRecords, Kind, host_count};
use crate::record::{MessageRecord, Supply};
use crate::source::{Actions, Arrival, ConnectionEnd, Source, Write};

/// Clients that copy a file each from one server, read by read, all from the same instant on. A message is the data
/// that the server sends at once, from then until the client has it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileService {
    /// The host that has the files and sends them.
    pub server: HostName,
    /// The hosts that copy; default: all others.
    #[serde(default)]
    pub clients: HostSet,
    /// The size of each client's file; without it, clients read until `run.duration`.
    #[serde(default)]
    pub size: Option<Bytes>,
    /// Bytes that a client requests at a time: 1 B to 1 GB. Default 1 MB (the most of the NFS client of the study).
    #[serde(default = "FileService::default_read")]
    pub read: Bytes,
    /// Requests that a client has under way, 1 to 1000. Default 2 (an assumption: reads are pipelined).
    #[serde(default = "FileService::default_outstanding")]
    pub outstanding: u32,
    /// Bytes that the disk reads at a time, for one client after the other: 1 B to 1 GB. Default 128 KB (Linux).
    #[serde(default = "FileService::default_read_ahead")]
    pub read_ahead: Bytes,
    /// The rate at which the disk reads. Default 1.2 Gb/s (an assumption: 150 MB/s).
    #[serde(default = "FileService::default_disk")]
    pub disk: Rate,
    /// When the server sends the data that the disk has read. Default `read`.
    #[serde(default)]
    pub send: SendWhen,
    /// The size of a request. Default 100 B.
    #[serde(default = "FileService::default_request")]
    pub request: Bytes,
    /// The time of the first requests, of all clients.
    #[serde(default)]
    pub start: Span,
}

/// When a file server sends the data that its disk has read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SendWhen {
    /// When all of a read is in memory (an NFS server).
    #[default]
    Read,
    /// Whenever a batch of the read-ahead is in memory (`sendfile()`, an HDFS DataNode).
    ReadAhead,
}

impl FileService {
    fn default_read() -> Bytes {
        Bytes::new(1_000_000)
    }

    fn default_outstanding() -> u32 {
        2
    }

    fn default_read_ahead() -> Bytes {
        Bytes::new(128_000)
    }

    fn default_disk() -> Rate {
        Rate::from_mbps(1_200)
    }

    fn default_request() -> Bytes {
        Bytes::new(100)
    }
}

impl Kind for FileService {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        let server = check.host("server", &self.server);
        check.hosts("clients", &self.clients, server);
        check.some_bytes("size", self.size.unwrap_or(Bytes::new(1)));
        check.some_bytes("request", self.request);
        for (key, bytes) in [("read", self.read), ("read_ahead", self.read_ahead)] {
            if !(1..=1_000_000_000).contains(&bytes.get()) {
                check.error(key, format!("{bytes} at a time"), "1B to 1GB");
            }
        }
        if !(1..=1_000).contains(&self.outstanding) {
            check.error("outstanding", format!("{} requests under way", self.outstanding), "1 to 1000");
        }
        if self.disk.as_bps() == 0 {
            check.error("disk", "a disk that reads nothing", "more than 0bps");
        }
        WorkloadDemand { ends: self.size.is_some(), start: self.start, ..WorkloadDemand::default() }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let server = context.host(&self.server, "server")?;
        let clients = context.hosts(&self.clients, &[server], "clients")?;
        let size = self.size.map_or(u64::MAX, Bytes::get);
        Ok(Box::new(FileServer {
            params: self.clone(),
            workload: context.index,
            server,
            readers: clients.into_iter().map(|host| Reader::new(host, size)).collect(),
            started: false,
            turn: 0,
            batch: None,
            until: context.until,
            warmup: context.warmup,
            asked: 0,
            sent: Vec::new(),
            open: BTreeSet::new(),
        }))
    }

    fn supply(&self) -> Supply {
        if self.size.is_some() { Supply::Fixed } else { Supply::Endless }
    }

    fn bounding_key(&self) -> &'static str {
        "size"
    }

    fn expected_records(&self, facts: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        let clients = host_count(facts, &self.clients, &[&self.server]);
        let at_once = if self.send == SendWhen::Read { self.read } else { self.read_ahead.min(self.read) };
        let messages = self.size.map(|size| clients * (size.get() as f64 / at_once.get() as f64).ceil());
        Some(ExpectedRecords::new("size", self.start).limit(messages))
    }

    fn lasting_connections(&self, facts: &dyn NetworkFacts, _kept: bool) -> f64 {
        host_count(facts, &self.clients, &[&self.server])
    }
}

/// The source: the server, its disk, and its clients.
#[derive(Debug)]
struct FileServer {
    params: FileService,
    workload: u16,
    server: HostId,
    readers: Vec<Reader>,
    /// The clients have sent their first requests.
    started: bool,
    /// The reader that the disk serves next.
    turn: usize,
    /// The reader for which the disk reads, how much, and when that is in memory.
    batch: Option<(usize, u64, Time)>,
    until: Time,
    warmup: Time,
    /// The number of requests that the server has not received.
    asked: u64,
    /// The pieces that the server has sent, by number.
    sent: Vec<ServerBatch>,
    /// The numbers of the pieces that have not arrived.
    open: BTreeSet<usize>,
}

/// A client, and the server's work for it.
#[derive(Debug)]
struct Reader {
    host: HostId,
    /// The number of its connection, once that is open.
    connection: u32,
    /// The bytes that it has not requested.
    unasked: u64,
    /// The requests that the server has: of each, the bytes that the disk has not read, and the bytes that wait in
    /// memory.
    reads: VecDeque<(u64, u64)>,
}

/// A piece that the server has sent at once.
#[derive(Clone, Copy, Debug)]
struct ServerBatch {
    reader: usize,
    bytes: u64,
    created: Time,
    /// True if it is the end of a read.
    ends_read: bool,
}

impl Reader {
    fn new(host: HostId, size: u64) -> Reader {
        Reader { host, connection: 0, unasked: size, reads: VecDeque::new() }
    }
}

impl FileServer {
    /// Sends a client's request for its next read, if there is one.
    fn ask(&mut self, now: Time, reader: usize, actions: &mut Actions) {
        let of = &mut self.readers[reader];
        if now >= self.until {
            of.unasked = 0;
        }
        let bytes = self.params.read.get().min(of.unasked);
        if bytes == 0 {
            return;
        }
        of.unasked -= bytes;
        self.asked += 1;
        actions.writes.push(Write {
            connection: of.connection,
            end: ConnectionEnd::Client,
            bytes: self.params.request.get(),
            tag: REQUEST | bytes << READER_BITS | reader as u64,
            created: now,
        });
    }

    /// The disk begins its next batch, if it is idle and some client waits.
    fn read_on(&mut self, now: Time) {
        let count = self.readers.len();
        if self.batch.is_some() || count == 0 {
            return;
        }
        let waiting = (0..count).map(|step| (self.turn + step) % count);
        let Some(reader) = waiting.into_iter().find(|&reader| !self.readers[reader].reads.is_empty()) else {
            return;
        };
        let (unread, _) = self.readers[reader].reads[0];
        let bytes = unread.min(self.params.read_ahead.get());
        self.turn = (reader + 1) % count;
        let takes = self.params.disk.byte_time().span(bytes);
        self.batch = Some((reader, bytes, now.saturating_add(takes)));
    }

    /// A batch is in memory: the server sends it, or all of the read that it completes.
    fn on_read(&mut self, now: Time, reader: usize, bytes: u64, actions: &mut Actions) {
        let Reader { connection, reads, .. } = &mut self.readers[reader];
        let Some((unread, held)) = reads.front_mut() else { return };
        *unread -= bytes;
        *held += bytes;
        let ends_read = *unread == 0;
        if ends_read || self.params.send == SendWhen::ReadAhead {
            let bytes = std::mem::take(held);
            let tag = self.sent.len() as u64;
            let end = ConnectionEnd::Server;
            actions.writes.push(Write { connection: *connection, end, bytes, tag, created: now });
            self.open.insert(self.sent.len());
            self.sent.push(ServerBatch { reader, bytes, created: now, ends_read });
        }
        if ends_read {
            reads.pop_front();
        }
    }

    fn message(&self, number: usize) -> MessageRecord {
        let ServerBatch { reader, bytes, created, .. } = self.sent[number];
        MessageRecord {
            workload: self.workload,
            index: number as u64,
            query: None,
            source: self.server.0,
            destination: self.readers[reader].host.0,
            bytes,
            created,
            completed: None,
            ideal: Span::ZERO,
            split: Default::default(),
        }
    }
}

impl Source for FileServer {
    fn next_due(&self) -> Time {
        if !self.started {
            return Time::ZERO + self.params.start;
        }
        self.batch.map_or(Time::MAX, |(_, _, due)| due)
    }

    fn on_due(&mut self, now: Time, actions: &mut Actions) {
        if !self.started {
            self.started = true;
            for reader in 0..self.readers.len() {
                self.readers[reader].connection = actions.open(self.readers[reader].host, self.server);
                for _ in 0..self.params.outstanding {
                    self.ask(now, reader, actions);
                }
            }
        }
        if let Some((reader, bytes, _)) = self.batch.take_if(|(_, _, due)| *due <= now) {
            self.on_read(now, reader, bytes, actions);
            self.read_on(now);
        }
    }

    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions) {
        let Arrival { now, tag, split, ideal, .. } = arrival;
        if tag & REQUEST != 0 {
            let reader = (tag & ((1 << READER_BITS) - 1)) as usize;
            self.asked -= 1;
            self.readers[reader].reads.push_back(((tag & !REQUEST) >> READER_BITS, 0));
            return self.read_on(now);
        }
        let number = tag as usize;
        self.open.remove(&number);
        if self.sent[number].created >= self.warmup {
            actions.records.messages.push(MessageRecord {
                completed: Some(now),
                ideal,
                split,
                ..self.message(number)
            });
        }
        if self.sent[number].ends_read {
            self.ask(now, self.sent[number].reader, actions);
        }
    }

    fn is_finished(&self) -> bool {
        let has_read = |reader: &Reader| reader.unasked == 0 && reader.reads.is_empty();
        let has_sent = self.started && self.asked == 0 && self.batch.is_none();
        has_sent && self.open.is_empty() && self.readers.iter().all(has_read)
    }

    fn on_end(&mut self, actions: &mut Actions) {
        let open = self.open.iter().filter(|number| self.sent[**number].created >= self.warmup);
        actions.records.messages.extend(open.map(|number| self.message(*number)));
    }
}

/// The bit of a request's tag; the requested bytes follow, and then the number of its client.
const REQUEST: u64 = 1 << 63;
const READER_BITS: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{errors, parsed, traffic_of};

    fn arrival(now: Time, tag: u64) -> Arrival {
        Arrival {
            now,
            tag,
            from: HostId(0),
            bytes: 0,
            split: Default::default(),
            ideal: Span::ZERO,
            waits: Default::default(),
        }
    }

    /// Runs a server and its clients over a network that takes no time; returns when the server sent how many bytes to
    /// which connection.
    fn sent(more: &str) -> Vec<(u64, u32, u64)> {
        let text = format!(
            "kind = 'file-service'\nserver = 'h0'\nclients = ['h1', 'h2']\nsize = '250KB'\nread = '100KB'\n\
             read_ahead = '50KB'\ndisk = '400Mbps'\n{more}"
        );
        let mut traffic = traffic_of(3, &parsed(&text), 1, true);
        let source = &mut traffic.sources[0];
        let mut seen = Vec::new();
        while source.next_due() < Time::MAX {
            let now = source.next_due();
            let mut actions = Actions::default();
            source.on_due(now, &mut actions);
            while !actions.writes.is_empty() {
                for write in std::mem::take(&mut actions.writes) {
                    if write.end == ConnectionEnd::Server {
                        seen.push((now.as_ps() / 1_000_000_000, write.connection, write.bytes));
                    }
                    source.on_message(arrival(now, write.tag), &mut actions);
                }
            }
        }
        assert!(source.is_finished());
        seen
    }

    #[test]
    fn an_nfs_server_sends_whole_reads() {
        // A batch of 50 KB takes 1 ms, clients have turns; the last read has 50 KB.
        let expected = [
            (3, 0, 100_000),
            (4, 1, 100_000),
            (7, 0, 100_000),
            (8, 1, 100_000),
            (9, 0, 50_000),
            (10, 1, 50_000),
        ];
        assert_eq!(sent(""), expected);
        assert_eq!(sent("outstanding = 1"), expected);
    }

    #[test]
    fn sendfile_sends_each_batch() {
        let batches = sent("send = 'read-ahead'");
        let expected: Vec<_> = (0..10).map(|batch| (batch + 1, batch as u32 % 2, 50_000)).collect();
        assert_eq!(batches, expected);
    }

    #[test]
    fn what_cannot_be_is_an_error() {
        for (key, value) in [
            ("read", "'0B'"),
            ("read_ahead", "'2GB'"),
            ("outstanding", "0"),
            ("disk", "'0bps'"),
            ("size", "'0B'"),
        ] {
            let workload = parsed(&format!("kind = 'file-service'\nserver = 'h0'\n{key} = {value}\n"));
            assert_eq!(errors(3, &workload), [key]);
        }
    }
}
