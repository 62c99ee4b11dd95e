//! `commit`: two-phase commit of a coordinator with its participants.
//!
//! ```text
//! prepare to all ──> each votes ──> all votes in: commit to all ──> each acknowledges ──> all in: done
//! ```
//!
//! Over single packets a message is known by its transaction (the sequence number), and by participant, phase
//! and direction (the acknowledgement number).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use plimsoll_fabric::net::{HostId, Packet};
use plimsoll_results::outcome::{ExtraLoad, Query, Split};
use plimsoll_units::{Span, Time};

use super::exchange::{Letter, Pool};
use super::raw::raw_packet;
use super::{Actions, Arrival, Opened, Workload};

/// What carries the messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carrier {
    /// The transport.
    Transport,
    /// Single packets of so many bytes, one at a time to each participant, sent again after the timeout.
    Datagram(u16),
    /// Single packets of so many bytes, each sent once.
    Broadcast(u16),
}

/// Who commits with whom.
#[derive(Debug)]
pub(crate) struct CommitConfig {
    pub(crate) workload: u16,
    pub(crate) coordinator: HostId,
    pub(crate) participants: Vec<HostId>,
    /// Payload of each message.
    pub(crate) bytes: u64,
    pub(crate) carrier: Carrier,
    pub(crate) timeout: Span,
    /// Transactions at once.
    pub(crate) depth: u32,
    pub(crate) count: Option<u64>,
    pub(crate) start: Time,
    pub(crate) until: Time,
    pub(crate) warmup: Time,
    pub(crate) connection_per_message: bool,
}

/// A message of a transaction, as it goes on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Word {
    /// The transaction's index modulo 2^32.
    transaction: u32,
    participant: u32,
    /// Of the second phase.
    commit: bool,
    /// From the participant.
    reply: bool,
}

impl Word {
    fn detail(self) -> u32 {
        self.participant << 2 | u32::from(self.commit) << 1 | u32::from(self.reply)
    }

    fn new(transaction: u32, detail: u32) -> Word {
        Word { transaction, participant: detail >> 2, commit: detail & 2 != 0, reply: detail & 1 != 0 }
    }
}

/// A transaction under way.
#[derive(Debug)]
struct Transaction {
    index: u64,
    created: Time,
    commit: bool,
    /// By participant: it has answered in this phase.
    answered: Vec<bool>,
    left: u32,
    /// Of acknowledgements, from the transaction's beginning.
    sum: Span,
    fastest: Span,
}

/// What a participant has not answered, where that is one message at a time.
#[derive(Debug, Default)]
struct Lane {
    /// The first one is out.
    messages: VecDeque<Word>,
    /// When the first one is sent again.
    again: Time,
}

/// A coordinator and its participants.
#[derive(Debug)]
pub(crate) struct Commits {
    config: CommitConfig,
    pool: Pool,
    start: Time,
    created: u64,
    open: BTreeMap<u32, Transaction>,
    lanes: Vec<Lane>,
    /// When which participant's message is sent again, or which transaction is given up; some are out of date.
    timers: BinaryHeap<Reverse<(Time, u32)>>,
    extra: ExtraLoad,
}

impl Commits {
    pub(crate) fn new(config: CommitConfig) -> Commits {
        Commits {
            pool: Pool::new(config.connection_per_message),
            start: if config.start < config.until { config.start } else { Time::MAX },
            created: 0,
            open: BTreeMap::new(),
            lanes: config.participants.iter().map(|_| Lane::default()).collect(),
            timers: BinaryHeap::new(),
            extra: ExtraLoad { workload: config.workload, ..ExtraLoad::default() },
            config,
        }
    }

    /// Begins as many transactions as there is room for.
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
            let word = Word { transaction, participant, commit, reply: false };
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

    /// Sends the first message of a participant's lane, and sees to its timer.
    fn send_first(&mut self, now: Time, participant: u32, actions: &mut Actions) {
        let again = now.saturating_add(self.config.timeout);
        let lane = &mut self.lanes[participant as usize];
        if let Some(&word) = lane.messages.front() {
            lane.again = again;
            self.timers.push(Reverse((again, participant)));
            self.carry(now, word, actions);
        }
    }

    /// Hands a message to the network.
    fn carry(&mut self, now: Time, word: Word, actions: &mut Actions) {
        let there = (self.config.coordinator, self.config.participants[word.participant as usize]);
        let (from, to) = if word.reply { (there.1, there.0) } else { there };
        match self.config.carrier {
            Carrier::Transport => {
                let tag = u64::from(word.transaction) << 32 | u64::from(word.detail());
                let letter = Letter { from, to, bytes: self.config.bytes, tag };
                if word.reply {
                    self.pool.answer(now, letter, actions);
                } else {
                    self.pool.send(now, letter, actions);
                }
            }
            // Level and limit of a broadcast are the host's affair: it knows the packets by their workload.
            Carrier::Datagram(size) | Carrier::Broadcast(size) => {
                let mut packet = raw_packet(self.config.workload, from, to, size);
                (packet.seq, packet.ack) = (word.transaction, word.detail());
                actions.packets.push(packet);
            }
        }
    }

    fn on_word(&mut self, now: Time, word: Word, actions: &mut Actions) {
        if word.reply {
            self.on_reply(now, word, actions);
        } else {
            // A participant votes yes and acknowledges, at once and however often it is asked.
            self.carry(now, Word { reply: true, ..word }, actions);
        }
    }

    fn on_reply(&mut self, now: Time, word: Word, actions: &mut Actions) {
        let lane = &mut self.lanes[word.participant as usize];
        if lane.messages.front().is_some_and(|first| (Word { reply: true, ..*first }) == word) {
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
            actions.queries.extend(self.record(&transaction, Some(now)));
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
                actions.queries.extend(self.record(&transaction, None));
            }
            return self.begin(now, actions);
        }
        self.extra.retries += 1;
        self.extra.bytes += self.config.bytes;
        self.send_first(now, number, actions);
    }

    fn record(&self, transaction: &Transaction, completed: Option<Time>) -> Option<Query> {
        let participants = self.config.participants.len() as u32;
        let done = if transaction.commit { participants - transaction.left } else { 0 };
        (transaction.created >= self.config.warmup).then_some(Query {
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

impl Workload for Commits {
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
        let word = Word::new((arrival.tag >> 32) as u32, arrival.tag as u32);
        self.on_word(arrival.now, word, actions);
    }

    fn on_packet(&mut self, now: Time, packet: &Packet, _: Split, actions: &mut Actions) {
        self.on_word(now, Word::new(packet.seq, packet.ack), actions);
    }

    fn kept_connections(&self) -> Vec<Opened> {
        let CommitConfig { coordinator, participants, carrier, connection_per_message, .. } = &self.config;
        let kept = *carrier == Carrier::Transport && !connection_per_message;
        super::pairs(&[*coordinator], participants).filter(|_| kept).collect()
    }

    fn is_finished(&self) -> bool {
        self.start == Time::MAX && self.open.is_empty()
    }

    fn on_end(&mut self, actions: &mut Actions) {
        actions.queries.extend(self.open.values().filter_map(|open| self.record(open, None)));
        if let Carrier::Datagram(_) = self.config.carrier {
            actions.extra.push(self.extra);
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
                let word = Word { transaction: 7, participant, commit: bits & 2 != 0, reply: bits & 1 != 0 };
                assert_eq!(Word::new(7, word.detail()), word);
            }
        }
    }
}
