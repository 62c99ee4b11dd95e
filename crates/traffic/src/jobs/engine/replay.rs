//! [`Replay`]: moves the state of a job on by rounds, or by iterations, that take as long as those before them.
//!
//! ```text
//! ends of operations ──> Mark, one a round ──like one some rounds ago?──> state of later rounds ──┐
//!                                                                            └── holds together? ──> JobSource
//! ```
//!
//! The network is not touched: messages under way belong to later rounds from then on, and go on as they were. What is
//! replayed takes time of the job, not of the run.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_units::{Span, Time};

use super::{ENDED, Happening, JobConfig, JobSource, PathTo};
use crate::jobs::accounts::RankAccounts;
use crate::jobs::graph::OperationAction;
use crate::jobs::matching::MatchKey;
use crate::jobs::repeat::{Repeat, RepeatMode, Trust, difference};
use crate::jobs::rounds::Chains;
use crate::record::{QueryRecord, Records, RepeatRecord, Split};
use crate::source::Actions;

mod state;

use state::State;

/// What a job replays, and what was measured for it.
#[derive(Debug)]
pub(super) struct Replay {
    repeat: Repeat,
    trust_in_rounds: Trust,
    trust_in_iterations: Trust,
    chains: Option<Chains>,
    /// By chain: its first operation, and the number of its operations.
    heads: Vec<u32>,
    lengths: Vec<u32>,
    /// By chain: the first operation that has not ended, and its place.
    reached: Vec<(Option<u32>, u32)>,
    /// The number of operations of chains that have ended in this iteration, and that at which a round has.
    ended: u64,
    due: u64,
    /// When the last operation of a chain has ended, and the critical path to it.
    last: (Time, Split),
    /// The ends of the last rounds.
    marks: VecDeque<Mark>,
    /// The number of rounds that were replayed last, and how long they took each time.
    replayed: Option<(usize, Span)>,
    /// How long the last iteration took, and whether iterations were replayed since.
    iteration_before: Option<(Span, bool)>,
    /// The time that was replayed.
    time: Span,
    /// The operations whose messages are under way by the number of an earlier round.
    renamed: BTreeMap<u32, u32>,
    record: RepeatRecord,
}

/// What was so at the end of a round.
#[derive(Debug)]
struct Mark {
    at: Time,
    path: Split,
    ideal: Span,
    accounts: RankAccounts,
    /// The numbers of the chains under way, which have to be the same for rounds to be alike.
    under_way: Vec<usize>,
    /// All of the job's state, where it has to be the same again.
    state: Option<State>,
}

/// A chain of which some operations have ended, or have begun, and some have not.
#[derive(Debug)]
pub(super) struct ChainUnderWay {
    /// Its place among all chains.
    chain: usize,
    /// The place in it of the first operation that has not ended.
    place: u32,
    /// The operations from that one on that have begun, or have a part of what they wait for.
    known: Vec<u32>,
}

impl Replay {
    pub(super) fn new(repeat: Repeat, config: &JobConfig) -> Replay {
        let chains = Chains::of(&config.graph);
        let heads: Vec<u32> = chains.iter().flat_map(Chains::heads).collect();
        let length = |chains: &Chains| -> Vec<u32> {
            heads.iter().map(|&head| chains.chain(head).count() as u32).collect()
        };
        let lengths = chains.as_ref().map_or_else(Vec::new, length);
        let is_exact = repeat.mode == RepeatMode::Exact;
        Replay {
            repeat,
            trust_in_rounds: Trust::new(repeat),
            trust_in_iterations: Trust::new(repeat),
            lengths,
            reached: Vec::new(),
            chains,
            heads,
            ended: 0,
            due: 0,
            last: (Time::ZERO, Split::default()),
            marks: VecDeque::new(),
            replayed: None,
            iteration_before: None,
            time: Span::ZERO,
            renamed: BTreeMap::new(),
            record: RepeatRecord {
                workload: config.workload,
                is_exact,
                iterations: 0,
                replayed_iterations: 0,
                rounds: 0,
                replayed_rounds: 0,
                largest_difference: 0.0,
            },
        }
    }

    pub(super) fn begin_iteration(&mut self) {
        (self.ended, self.due) = (0, self.heads.len() as u64);
        self.reached = self.heads.iter().map(|&head| (Some(head), 0)).collect();
        self.marks.clear();
        self.replayed = None;
        self.renamed.clear();
        self.record.rounds += u64::from(self.lengths.iter().copied().max().unwrap_or(0));
    }

    /// Counts an operation that has ended, if it belongs to a chain.
    pub(super) fn ended(&mut self, operation: u32, now: Time, path: PathTo) {
        if self.chains.as_ref().is_some_and(|chains| chains.has(operation)) {
            self.ended += 1;
            self.last = (now, path.split);
        }
    }

    /// Returns the operation that sent the message which the network knows by a number.
    pub(super) fn operation_of(&mut self, tag: u32) -> u32 {
        self.renamed.remove(&tag).unwrap_or(tag)
    }

    /// Returns the time that was replayed.
    pub(super) fn time(&self) -> Span {
        self.time
    }

    pub(super) fn record(&self) -> RepeatRecord {
        self.record
    }

    /// Notes that what took `replayed` each time took `now` when it was simulated again. Returns whether they agree.
    fn note(&mut self, replayed: Span, now: Span) -> bool {
        self.record.largest_difference = self.record.largest_difference.max(difference(replayed, now));
        self.repeat.agree(replayed, now)
    }

    /// Returns the number of the last rounds that repeat those before them, with `mark` at their end.
    fn period(&mut self, mark: &Mark) -> Option<usize> {
        let back = |rounds: usize| self.marks.iter().rev().nth(rounds - 1);
        if let Some((rounds, took)) = self.replayed {
            let from = back(rounds)?;
            // Where chains have ended since, rounds are others.
            let again = (from.under_way == mark.under_way).then(|| mark.at - from.at);
            self.replayed = None;
            let agrees = again.is_some_and(|again| self.note(took, again));
            self.trust_in_rounds.note(agrees);
            return agrees.then_some(rounds);
        }
        let is_as = |from: &&Mark| from.under_way == mark.under_way;
        if self.repeat.mode == RepeatMode::Exact {
            let is_moved = |rounds: &usize| {
                let states =
                    back(*rounds).filter(is_as).and_then(|from| from.state.as_ref().zip(mark.state.as_ref()));
                let states = states.zip(self.chains.as_ref());
                states.is_some_and(|((from, to), chains)| from.is_moved(to, *rounds as u32, chains))
            };
            return (1..=MARKS).find(is_moved);
        }
        // Of the periods that agree the one that does best, as rounds may come back after several only.
        let differs = |rounds: usize| {
            let from = back(rounds).filter(is_as)?;
            let before = back(2 * rounds).filter(is_as)?;
            let [before, now] = [from.at - before.at, mark.at - from.at];
            self.repeat.agree(before, now).then(|| (difference(before, now), rounds))
        };
        let has_all = self.marks.len() == MARKS;
        let all = (ROUNDS_LEAST..=MARKS / 2).filter(|_| has_all).filter_map(differs);
        all.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, rounds)| rounds)
    }

    /// Returns the chains of which a part has ended or begun, and a part has not.
    fn chains_under_way(&mut self, open_waits: &[u32], waits: &[u32]) -> Vec<ChainUnderWay> {
        let Some(chains) = &self.chains else { return Vec::new() };
        let state = |operation: u32| open_waits[operation as usize];
        let mut under_way = Vec::new();
        for (chain, (first, place)) in self.reached.iter_mut().enumerate() {
            while let Some(operation) = first.filter(|&operation| state(operation) == ENDED) {
                (*first, *place) = (chains.further(operation, 1), *place + 1);
            }
            let Some(first) = *first else { continue };
            let is_known =
                |operation: &u32| state(*operation) == 0 || state(*operation) != waits[*operation as usize];
            let known: Vec<u32> = chains.chain(first).take_while(is_known).collect();
            if *place > 0 || !known.is_empty() {
                under_way.push(ChainUnderWay { chain, place: *place, known });
            }
        }
        under_way
    }
}

impl JobSource {
    /// Replays rounds if those that have just ended repeat the ones before.
    pub(super) fn replay_rounds(&mut self, now: Time) {
        let Some(mut replay) = self.replay.take_if(|replay| replay.ended >= replay.due) else { return };
        if self.begun.is_some() && !replay.heads.is_empty() {
            self.end_round(now, &mut replay);
        }
        self.replay = Some(replay);
    }

    fn end_round(&mut self, now: Time, replay: &mut Replay) {
        self.accounts.add_up_all(now);
        let mut chains = replay.chains_under_way(&self.open_waits, self.config.graph.waits());
        let mut mark = self.mark(now, replay, &chains);
        if let Some(rounds) = replay.period(&mark)
            && let Some(from) =
                replay.marks.len().checked_sub(rounds).and_then(|place| replay.marks.get(place))
            && let Some(moved) = self.moved(replay, &chains, rounds)
        {
            let (took, times) = (mark.at - from.at, moved.times);
            let path = mark.path.more_than(&from.path).shared(took * times);
            let ideal = (mark.ideal - from.ideal) * times;
            self.accounts.repeat(&from.accounts, times);
            self.move_on(replay, moved, path, ideal);
            replay.time += took * times;
            replay.record.replayed_rounds += times * rounds as u64;
            replay.replayed = Some((rounds, took));
            replay.last.1 = mark.path + path;
            replay.marks.clear();
            chains = replay.chains_under_way(&self.open_waits, self.config.graph.waits());
            mark = self.mark(now, replay, &chains);
        }
        replay.due =
            replay.ended + if chains.is_empty() { replay.heads.len() as u64 } else { chains.len() as u64 };
        replay.marks.push_back(mark);
        if replay.marks.len() > MARKS {
            replay.marks.pop_front();
        }
    }

    fn mark(&self, now: Time, replay: &Replay, chains: &[ChainUnderWay]) -> Mark {
        let (at, path) = replay.last;
        Mark {
            at,
            path,
            ideal: self.ideal.end(),
            accounts: self.accounts.clone(),
            under_way: chains.iter().map(|chain| chain.chain).collect(),
            state: (replay.repeat.mode == RepeatMode::Exact).then(|| State::of(self, now, chains)),
        }
    }

    /// Returns the state of the job as many times some rounds later as may be; `None` if it cannot be moved.
    fn moved(&self, replay: &Replay, chains: &[ChainUnderWay], rounds: usize) -> Option<Moved> {
        let left =
            |chain: &ChainUnderWay| replay.lengths[chain.chain] - chain.place - chain.known.len() as u32;
        let room = chains.iter().map(left).min()?;
        let most = u32::try_from(replay.trust_in_rounds.times()).unwrap_or(u32::MAX);
        let times = (room / rounds as u32).min(most);
        let rounds = times * rounds as u32;
        let all = replay.chains.as_ref().filter(|_| times > 0)?;
        let mut waits = self.open_waits.clone();
        let mut later = BTreeMap::new();
        for chain in chains {
            let moved: Option<Vec<u32>> =
                chain.known.iter().map(|&operation| all.further(operation, rounds)).collect();
            later.extend(chain.known.iter().copied().zip(moved?));
            let first = all.chain(replay.heads[chain.chain]).nth(chain.place as usize)?;
            all.chain(first).take(rounds as usize).for_each(|operation| waits[operation as usize] = ENDED);
        }
        for (&operation, &later) in &later {
            waits[later as usize] = self.open_waits[operation as usize];
        }
        // Messages under way are of sends that may have ended.
        for operation in self.live() {
            later.insert(operation, all.further(operation, rounds)?);
        }
        self.holds_together(&waits, &later).then_some(Moved { times: times.into(), waits, later })
    }

    /// Moves the job on; the critical paths and ideal times become longer by what was replayed.
    fn move_on(&mut self, replay: &mut Replay, moved: Moved, path: Split, ideal: Span) {
        let Moved { waits, later, .. } = moved;
        self.ideal.move_on(&later, ideal);
        for (operation, (before, after)) in self.open_waits.iter().zip(&waits).enumerate() {
            if *before != ENDED && *after == ENDED {
                self.left -= 1;
                self.accounts.skip(self.config.graph.operations()[operation].rank);
            }
        }
        self.open_waits = waits;
        self.rename(replay, &later, path, ideal);
    }

    /// Returns whether operations wait for just those that have not ended or begun, and messages under way are those
    /// that were sent and not received.
    fn holds_together(&self, open_waits: &[u32], moved: &BTreeMap<u32, u32>) -> bool {
        let graph = &self.config.graph;
        let mut expected = graph.waits().to_vec();
        for (operation, waits) in (0..).zip(open_waits) {
            for dependent in graph.dependents(operation) {
                let is_over = if dependent.on_begin { matches!(*waits, 0 | ENDED) } else { *waits == ENDED };
                expected[dependent.operation as usize] -= u32::from(is_over);
            }
        }
        let waits_agree = open_waits.iter().zip(expected).all(|(waits, expected)| match *waits {
            ENDED => expected == 0,
            waits => waits == expected,
        });
        waits_agree && self.messages_balance(open_waits, moved)
    }

    /// Returns the operations to which something will happen, or for whose messages others wait.
    fn live(&self) -> impl Iterator<Item = u32> + '_ {
        let events = self.events.values().map(|event| event.operation);
        let waiting = self.matching.receives().copied();
        let arrived = self.matching.messages().map(|message| message.operation);
        events.chain(self.sent.keys().copied()).chain(waiting).chain(arrived)
    }

    /// Returns whether each message that is replayed has its receive, but for those under way.
    fn messages_balance(&self, open_waits: &[u32], moved: &BTreeMap<u32, u32>) -> bool {
        let mut balance: BTreeMap<MatchKey, i64> = BTreeMap::new();
        let operations = self.config.graph.operations();
        let mut count = |operation: u32, sends: i64| match operations[operation as usize].action {
            OperationAction::Send { to, tag, .. } => {
                let from = Some(operations[operation as usize].rank);
                *balance.entry(MatchKey { rank: to, from, tag: Some(tag) }).or_insert(0) += sends;
            }
            OperationAction::Receive { from, tag, .. } => {
                let rank = operations[operation as usize].rank;
                *balance.entry(MatchKey { rank, from, tag }).or_insert(0) -= sends;
            }
            OperationAction::Compute(_) => {}
        };
        let has_begun = |waits: u32| i64::from(matches!(waits, 0 | ENDED));
        for (operation, (before, after)) in (0..).zip(self.open_waits.iter().zip(open_waits)) {
            count(operation, has_begun(*after) - has_begun(*before));
        }
        // Of those that have begun, these have not met their message or receive.
        let leaving = self.events.values().filter(|event| event.what == Happening::Leaves);
        let waiting = leaving.map(|event| event.operation).chain(self.sent.keys().copied());
        let waiting = waiting.chain(self.matching.receives().copied());
        for operation in waiting.chain(self.matching.messages().map(|message| message.operation)) {
            let Some(&later) = moved.get(&operation) else { return false };
            count(operation, 1);
            count(later, -1);
        }
        balance.values().all(|sum| *sum == 0)
    }

    /// Gives everything that is known of operations to those of later rounds.
    fn rename(&mut self, replay: &mut Replay, moved: &BTreeMap<u32, u32>, replayed: Split, ideal: Span) {
        let later = |operation: u32| moved.get(&operation).copied().unwrap_or(operation);
        for event in self.events.values_mut() {
            event.operation = later(event.operation);
            if event.what != Happening::Arrives {
                event.path.split = event.path.split + replayed;
            }
        }
        let sent = std::mem::take(&mut self.sent);
        replay.renamed.clear();
        for (operation, mut message) in sent {
            message.path.split = message.path.split + replayed;
            message.ideal += ideal;
            replay.renamed.insert(message.tag, later(operation));
            self.sent.insert(later(operation), message);
        }
        let operations = self.config.graph.operations();
        let (receives, messages) = std::mem::take(&mut self.matching).into_parts();
        for receive in receives.into_iter().map(later) {
            let operation = operations[receive as usize];
            if let OperationAction::Receive { from, tag, .. } = operation.action {
                self.matching.on_receive(MatchKey { rank: operation.rank, from, tag }, receive);
            }
        }
        for mut message in messages {
            message.operation = later(message.operation);
            message.path.split = message.path.split + replayed;
            message.ideal += ideal;
            let operation = operations[message.operation as usize];
            if let OperationAction::Send { to, tag, .. } = operation.action {
                let key = MatchKey { rank: to, from: Some(operation.rank), tag: Some(tag) };
                self.matching.on_message(key, message);
            }
        }
    }

    /// Replays iterations if the one that has just ended, whose `records` these are, repeats the one before.
    pub(super) fn replay_iterations(&mut self, now: Time, records: &Records, actions: &mut Actions) {
        let next = self.job_time(now).saturating_add(self.config.pause);
        let Some(replay) = &mut self.replay else { return };
        replay.record.iterations += 1;
        let Some(took) = records.iterations.first().map(|iteration| iteration.took) else { return };
        let repeats = match replay.iteration_before {
            Some((before, true)) => {
                let agrees = replay.note(before, took);
                replay.trust_in_iterations.note(agrees);
                agrees
            }
            Some((before, false)) => replay.repeat.agree(before, took),
            None => false,
        };
        // The iterations that begin in time, one after the other.
        let each = took + self.config.pause;
        let begin = self.config.until.saturating_since(next).as_ps().div_ceil(each.as_ps().max(1));
        let left = (self.config.iterations - self.iteration).min(begin);
        let times = if repeats { left.min(replay.trust_in_iterations.times()) } else { 0 };
        for time in 1..=times {
            actions.records.append(&mut records_later(records, time, each * time));
        }
        self.iteration += times;
        replay.time += each * times;
        replay.iteration_before = Some((took, times > 0));
        replay.record.iterations += times;
        replay.record.replayed_iterations += times;
    }
}

/// Returns the records of an iteration for one that comes `times` later.
fn records_later(records: &Records, times: u64, later: Span) -> Records {
    let query = |query: &QueryRecord| QueryRecord {
        index: query.index + times,
        created: query.created + later,
        completed: query.completed.map(|completed| completed + later),
        ..*query
    };
    let mut records = Records {
        queries: records.queries.iter().map(query).collect(),
        iterations: records.iterations.clone(),
        ranks: records.ranks.clone(),
        path_waits: records.path_waits.clone(),
        ..Records::default()
    };
    records.iterations.iter_mut().for_each(|iteration| iteration.index += times);
    records.ranks.iter_mut().for_each(|rank| rank.index += times);
    records.path_waits.iter_mut().for_each(|wait| wait.index += times);
    records
}

/// The state of a job some rounds later.
#[derive(Debug)]
struct Moved {
    /// How often the last rounds are replayed.
    times: u64,
    /// The number of operations for which each operation waits.
    waits: Vec<u32>,
    /// The operations about which something is known, each with that of the later round.
    later: BTreeMap<u32, u32>,
}

/// The fewest rounds whose time is compared where the state is not, which evens out that ranks are not at the same
/// place.
const ROUNDS_LEAST: usize = 4;

/// The rounds whose ends are kept: after at most so many, all may be as it was.
const MARKS: usize = 16;
