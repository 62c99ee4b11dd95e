//! `commit`: two-phase commit of a coordinator with its participants.
//!
//! ```text
//! prepare to all ──> each votes ──> all votes in: commit to all ──> each acknowledges ──> all in: done
//! ```
//!
//! Over single packets the sequence number of a message is its transaction, and the acknowledgement number holds
//! participant, phase and direction.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::{Bytes, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{WorkloadCheck, WorkloadDemand};
use crate::exchange::{OutgoingMessage, WorkloadConnections};
use crate::facts::NetworkFacts;
use crate::hosts::{HostName, HostSet};
use crate::kind::{Context, ExpectedRecords, Kind, number};
use crate::record::{ExtraLoad, QueryRecord, Supply};
use crate::source::{Actions, Arrival, Datagram, Opened, Source, pairs};

/// Two-phase commit: prepare and vote, commit and acknowledge. A transaction is a query, from its first
/// prepare to its last acknowledgement; every participant votes yes, at once.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// The host that begins transactions; default `client`.
    #[serde(default)]
    pub coordinator: HostName,
    /// The hosts that take part; default: all others.
    #[serde(default)]
    pub participants: HostSet,
    /// Payload of each of the four messages; in single packets `transport.header` is added to it.
    #[serde(default = "Commit::default_message")]
    pub message: Bytes,
    /// The transport of the messages: a connection, or single packets.
    #[serde(default)]
    pub over: CommitOver,
    /// After this time without an answer, `datagram` sends a message again, and `broadcast` gives its
    /// transaction up, which then counts as unfinished.
    #[serde(default = "Commit::default_timeout")]
    pub timeout: Span,
    /// The number of transactions that the coordinator keeps in progress at once.
    #[serde(default = "Commit::default_depth")]
    pub depth: u32,
    /// The number of transactions, after which the workload stops. Default: no limit but `run.duration`.
    #[serde(default)]
    pub count: Option<u64>,
    /// The time at which the first transactions start.
    #[serde(default)]
    pub start: Span,
}

/// The carrier of the messages of a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommitOver {
    /// The scenario's transport, on one connection to each participant.
    #[default]
    Tcp,
    /// Single packets made reliable by the application: to each participant one at a time, the next when the
    /// answer has come, and sent again after `timeout`.
    Datagram,
    /// Single packets back to back, each sent once, without waiting for earlier answers. That relies on a network that
    /// loses none of them, such as QJump's guaranteed level.
    Broadcast,
}

impl Commit {
    /// Returns the size of the messages of QJump's two-phase commit (`q2pc`).
    fn default_message() -> Bytes {
        Bytes::new(16)
    }

    /// Returns the timeout of QJump's reliable UDP.
    fn default_timeout() -> Span {
        Span::from_ms(200)
    }

    fn default_depth() -> u32 {
        1
    }
}

impl Kind for Commit {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        let coordinator = check.host("coordinator", &self.coordinator);
        check.members("participants", &self.participants, coordinator.as_slice());
        match self.over {
            CommitOver::Tcp => check.some_bytes("message", self.message),
            CommitOver::Datagram | CommitOver::Broadcast => check.one_packet("message", self.message),
        }
        check.timeout("timeout", self.timeout);
        check.at_least_one("depth", self.depth.into(), "no transaction at all");
        WorkloadDemand { ends: self.count.is_some(), start: self.start, ..WorkloadDemand::default() }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let coordinator = context.host(&self.coordinator, "coordinator")?;
        let packet = || context.packet(self.message, "message");
        let config = CommitConfig {
            workload: context.index,
            coordinator,
            participants: context.hosts(&self.participants, &[coordinator], "participants")?,
            bytes: self.message.get(),
            carrier: match self.over {
                CommitOver::Tcp => Carrier::Transport,
                CommitOver::Datagram => Carrier::Datagram(packet()?),
                CommitOver::Broadcast => Carrier::Broadcast(packet()?),
            },
            timeout: self.timeout,
            depth: self.depth,
            count: self.count,
            start: Time::ZERO + self.start,
            until: context.until,
            warmup: context.warmup,
            connection_per_message: !context.keeps_connections,
        };
        Ok(Box::new(CommitSource::new(config)))
    }

    fn supply(&self) -> Supply {
        Supply::counted(self.count)
    }

    fn uses_transport(&self) -> bool {
        self.over == CommitOver::Tcp
    }

    fn largest_packet(&self, header: Bytes) -> Bytes {
        if self.uses_transport() { Bytes::ZERO } else { self.message + header }
    }

    fn expected_records(&self, _: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        Some(ExpectedRecords::new("count", self.start).limit(number(self.count)).queries(0.0))
    }
}

/// The carrier of the messages, with the size of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Carrier {
    /// The transport carries them.
    Transport,
    /// Single packets, one in flight to each participant, are retransmitted after the timeout.
    Datagram(u16),
    /// Single packets are sent once each.
    Broadcast(u16),
}

/// The coordinator, its participants, and their messages.
#[derive(Debug)]
struct CommitConfig {
    workload: u16,
    coordinator: HostId,
    participants: Vec<HostId>,
    /// The payload of each message.
    bytes: u64,
    carrier: Carrier,
    timeout: Span,
    /// The number of transactions in flight.
    depth: u32,
    count: Option<u64>,
    start: Time,
    until: Time,
    warmup: Time,
    connection_per_message: bool,
}

/// A message of a transaction, as a packet carries it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct CommitMessage {
    /// The transaction's index modulo 2^32.
    transaction: u32,
    participant: u32,
    /// Whether it belongs to the second phase.
    commit: bool,
    /// Whether it is from the participant.
    reply: bool,
}

impl CommitMessage {
    fn detail(self) -> u32 {
        self.participant << 2 | u32::from(self.commit) << 1 | u32::from(self.reply)
    }

    fn new(transaction: u32, detail: u32) -> CommitMessage {
        CommitMessage {
            transaction,
            participant: detail >> 2,
            commit: detail & 2 != 0,
            reply: detail & 1 != 0,
        }
    }
}

/// A transaction in flight.
#[derive(Debug)]
struct Transaction {
    index: u64,
    created: Time,
    commit: bool,
    /// Whether each participant has answered in this phase.
    answered: Vec<bool>,
    left: u32,
    /// The sum of the times of acknowledgements since the transaction began.
    sum: Span,
    fastest: Span,
}

/// The messages that a participant has not answered, where one is in flight at a time.
#[derive(Debug, Default)]
struct Lane {
    /// The first one is in flight.
    messages: VecDeque<CommitMessage>,
    /// The time at which the first one is retransmitted.
    again: Time,
}

/// The source: a coordinator and its participants.
#[derive(Debug)]
struct CommitSource {
    config: CommitConfig,
    pool: WorkloadConnections,
    start: Time,
    created: u64,
    open: BTreeMap<u32, Transaction>,
    lanes: Vec<Lane>,
    /// The times at which a participant's message is retransmitted or a transaction is abandoned; some are obsolete.
    timers: BinaryHeap<Reverse<(Time, u32)>>,
    extra: ExtraLoad,
}

impl CommitSource {
    fn new(config: CommitConfig) -> CommitSource {
        CommitSource {
            pool: WorkloadConnections::new(config.connection_per_message),
            start: if config.start < config.until { config.start } else { Time::MAX },
            created: 0,
            open: BTreeMap::new(),
            lanes: config.participants.iter().map(|_| Lane::default()).collect(),
            timers: BinaryHeap::new(),
            extra: ExtraLoad { workload: config.workload, ..ExtraLoad::default() },
            config,
        }
    }

    /// Begins transactions until `depth` are in flight.
    fn begin(&mut self, now: Time, actions: &mut Actions) {
        while self.open.len() < self.config.depth as usize
            && now < self.config.until
            && self.config.count.is_none_or(|count| self.created < count)
        {
            let index = self.created;
            self.created += 1;
            let participants = self.config.participants.len();
            let transaction = Transaction {
                index,
                created: now,
                commit: false,
                answered: vec![false; participants],
                left: participants as u32,
                sum: Span::ZERO,
                fastest: Span::MAX,
            };
            self.open.insert(index as u32, transaction);
            if let Carrier::Broadcast(_) = self.config.carrier {
                self.timers.push(Reverse((now.saturating_add(self.config.timeout), index as u32)));
            }
            self.tell_all(now, index as u32, false, actions);
        }
    }

    fn tell_all(&mut self, now: Time, transaction: u32, commit: bool, actions: &mut Actions) {
        for participant in 0..self.config.participants.len() as u32 {
            let word = CommitMessage { transaction, participant, commit, reply: false };
            if let Carrier::Datagram(_) = self.config.carrier {
                let lane = &mut self.lanes[participant as usize];
                lane.messages.push_back(word);
                if lane.messages.len() == 1 {
                    self.send_first(now, participant, actions);
                }
            } else {
                self.carry(now, word, actions);
            }
        }
    }

    /// Sends the first message of a participant's lane and sets its timer.
    fn send_first(&mut self, now: Time, participant: u32, actions: &mut Actions) {
        let again = now.saturating_add(self.config.timeout);
        let lane = &mut self.lanes[participant as usize];
        if let Some(&word) = lane.messages.front() {
            lane.again = again;
            self.timers.push(Reverse((again, participant)));
            self.carry(now, word, actions);
        }
    }

    /// Sends a message by the carrier of the commit.
    fn carry(&mut self, now: Time, word: CommitMessage, actions: &mut Actions) {
        let there = (self.config.coordinator, self.config.participants[word.participant as usize]);
        let (from, to) = if word.reply { (there.1, there.0) } else { there };
        let tag = u64::from(word.transaction) << 32 | u64::from(word.detail());
        match self.config.carrier {
            Carrier::Transport => {
                let message = OutgoingMessage { from, to, bytes: self.config.bytes, tag };
                if word.reply {
                    self.pool.answer(now, message, actions);
                } else {
                    self.pool.send(now, message, actions);
                }
            }
            // Level and limit of a broadcast are the host's, which recognizes the packets by their workload.
            Carrier::Datagram(size) | Carrier::Broadcast(size) => {
                actions.datagrams.push(Datagram { from, to, size, tag });
            }
        }
    }

    fn on_word(&mut self, now: Time, word: CommitMessage, actions: &mut Actions) {
        if word.reply {
            self.on_reply(now, word, actions);
        } else {
            // A participant votes yes and acknowledges, at once and at every repetition of the request.
            self.carry(now, CommitMessage { reply: true, ..word }, actions);
        }
    }

    fn on_reply(&mut self, now: Time, word: CommitMessage, actions: &mut Actions) {
        let lane = &mut self.lanes[word.participant as usize];
        if lane.messages.front().is_some_and(|first| (CommitMessage { reply: true, ..*first }) == word) {
            lane.messages.pop_front();
            lane.again = Time::MAX;
            self.send_first(now, word.participant, actions);
        }
        let Some(transaction) = self.open.get_mut(&word.transaction) else { return };
        let answered = &mut transaction.answered[word.participant as usize];
        if transaction.commit != word.commit || std::mem::replace(answered, true) {
            return;
        }
        transaction.left -= 1;
        if word.commit {
            let latency = now - transaction.created;
            transaction.sum += latency;
            transaction.fastest = transaction.fastest.min(latency);
        }
        if transaction.left == 0 {
            self.on_phase_done(now, word.transaction, actions);
        }
    }

    fn on_phase_done(&mut self, now: Time, number: u32, actions: &mut Actions) {
        let Some(transaction) = self.open.get_mut(&number) else { return };
        if !transaction.commit {
            transaction.commit = true;
            transaction.answered.fill(false);
            transaction.left = transaction.answered.len() as u32;
            self.tell_all(now, number, true, actions);
        } else if let Some(transaction) = self.open.remove(&number) {
            actions.records.queries.extend(self.record(&transaction, Some(now)));
            self.begin(now, actions);
        }
        self.forget_old_timers();
    }

    fn is_old(&self, at: Time, number: u32) -> bool {
        match self.config.carrier {
            Carrier::Broadcast(_) => !self.open.contains_key(&number),
            _ => self.lanes[number as usize].again != at,
        }
    }

    fn forget_old_timers(&mut self) {
        while let Some(&Reverse((at, number))) = self.timers.peek()
            && self.is_old(at, number)
        {
            self.timers.pop();
        }
    }

    fn on_timer(&mut self, now: Time, number: u32, actions: &mut Actions) {
        if let Carrier::Broadcast(_) = self.config.carrier {
            if let Some(transaction) = self.open.remove(&number) {
                actions.records.queries.extend(self.record(&transaction, None));
            }
            return self.begin(now, actions);
        }
        self.extra.retries += 1;
        self.extra.bytes += self.config.bytes;
        self.send_first(now, number, actions);
    }

    fn record(&self, transaction: &Transaction, completed: Option<Time>) -> Option<QueryRecord> {
        let participants = self.config.participants.len() as u32;
        let done = if transaction.commit { participants - transaction.left } else { 0 };
        (transaction.created >= self.config.warmup).then_some(QueryRecord {
            workload: self.config.workload,
            index: transaction.index,
            created: transaction.created,
            completed,
            servers: participants,
            in_deadline: done,
            response_mean: transaction.sum / u64::from(done.max(1)),
            response_min: transaction.fastest,
        })
    }
}

impl Source for CommitSource {
    fn next_due(&self) -> Time {
        self.start.min(self.timers.peek().map_or(Time::MAX, |Reverse((at, _))| *at))
    }

    fn on_due(&mut self, now: Time, actions: &mut Actions) {
        if self.start <= now {
            self.start = Time::MAX;
            self.begin(now, actions);
        }
        while let Some(&Reverse((at, number))) = self.timers.peek()
            && at <= now
        {
            self.timers.pop();
            if !self.is_old(at, number) {
                self.on_timer(now, number, actions);
            }
        }
        self.forget_old_timers();
    }

    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions) {
        let word = CommitMessage::new((arrival.tag >> 32) as u32, arrival.tag as u32);
        self.on_word(arrival.now, word, actions);
    }

    fn kept_connections(&self) -> Vec<Opened> {
        let CommitConfig { coordinator, participants, carrier, connection_per_message, .. } = &self.config;
        let kept = *carrier == Carrier::Transport && !connection_per_message;
        pairs(&[*coordinator], participants).filter(|_| kept).collect()
    }

    fn is_finished(&self) -> bool {
        self.start == Time::MAX && self.open.is_empty()
    }

    fn on_end(&mut self, actions: &mut Actions) {
        actions.records.queries.extend(self.open.values().filter_map(|open| self.record(open, None)));
        if let Carrier::Datagram(_) = self.config.carrier {
            actions.records.extra.push(self.extra);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_over_the_wire_and_back() {
        for participant in [0, 1, 6, (1 << 30) - 1] {
            for bits in 0..4 {
                let word = CommitMessage {
                    transaction: 7,
                    participant,
                    commit: bits & 2 != 0,
                    reply: bits & 1 != 0,
                };
                assert_eq!(CommitMessage::new(7, word.detail()), word);
            }
        }
    }
}
