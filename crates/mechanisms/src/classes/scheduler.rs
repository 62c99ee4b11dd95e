//! [`ClassScheduler`]: chooses the class that sends next.

use plimsoll_units::{ByteTime, Span, Time};

use super::{ClassMap, ClassParams, WeightedScheduler};

/// Chooses the class that sends next. The queues themselves are the caller's: it reports when a class begins to have
/// packets, asks for the next class whenever the link is free, and reports the packet that it then sends.
#[derive(Clone, Debug)]
pub struct ClassScheduler {
    classes: Vec<ClassState>,
    rule: WeightedScheduler,
    /// The bytes of a full packet.
    full_packet: u64,
    /// The weighted class whose turn it is in round robin, and whether it has received the quantum of this turn.
    turn: usize,
    in_turn: bool,
    /// The start of the packet in service, in virtual time.
    virtual_time: u128,
}

#[derive(Clone, Debug)]
struct ClassState {
    /// The share of a weighted class; 0 for a strict one.
    weight: u32,
    shaper: Option<Shaper>,
    has_packets: bool,
    /// The bytes that the class may still send in its turn.
    deficit: u64,
    /// The virtual times at which the class's next packet starts, and at which its last one ended.
    start: u128,
    finish: u128,
}

/// Limits a class to a rate: the time that its packets take at that rate may run ahead of the clock by `ahead`, and
/// while packets wait it may be `behind` the clock, which the class makes up for.
///
/// ```text
///     sent_by ──── behind ────> now ──── ahead ────> sent_by
///     the class waited for the link     the class waits for its rate
/// ```
#[derive(Clone, Debug)]
struct Shaper {
    byte_time: ByteTime,
    ahead: Span,
    behind: Span,
    /// When the packets sent so far have been sent at the rate.
    sent_by: Time,
}

/// The virtual time that a byte takes with weight 1: a multiple of all weights up to 16, so that their shares are
/// exact.
const VIRTUAL_BYTE: u128 = 720_720;

impl ClassScheduler {
    /// Makes the scheduler of `map`'s classes, none of which has packets. A full packet has `full_packet` bytes.
    pub fn new(map: &ClassMap, rule: WeightedScheduler, full_packet: u64) -> ClassScheduler {
        let full_packet = full_packet.max(1);
        // A class waits for the link while each other class sends a packet, and in round robin its turn.
        let behind = |params: &ClassParams| {
            let turn = params.weight.filter(|_| rule == WeightedScheduler::Dwrr).unwrap_or(0);
            (map.classes.len() as u64 + u64::from(turn)).saturating_mul(full_packet)
        };
        let of = |params| ClassState::new(params, full_packet, behind(params));
        let classes = map.classes.iter().map(of).collect();
        ClassScheduler { classes, rule, full_packet, turn: 0, in_turn: false, virtual_time: 0 }
    }

    /// Returns whether a class may have packets that it may not send yet, because of its rate.
    pub fn has_rates(&self) -> bool {
        self.classes.iter().any(|class| class.shaper.is_some())
    }

    /// A packet has joined the empty queue of `class` at `now`.
    pub fn on_backlog(&mut self, now: Time, class: usize) {
        let state = &mut self.classes[class];
        state.has_packets = true;
        if let Some(shaper) = &mut state.shaper {
            shaper.sent_by = shaper.sent_by.max(now);
        }
        state.start = state.finish.max(self.virtual_time);
    }

    /// Returns the class that sends at `now`. `head` returns the bytes of the packet that a class would send, `None` if
    /// it has none or may not send it. The caller sends that packet and calls [`on_sent`](Self::on_sent).
    pub fn next(&mut self, now: Time, mut head: impl FnMut(usize) -> Option<u64>) -> Option<usize> {
        let mut may_send = |class: usize, state: &ClassState| {
            let is_open = state.has_packets && state.shaper.as_ref().is_none_or(|shaper| shaper.due() <= now);
            if is_open { head(class) } else { None }
        };
        let mut heads = [None; 8];
        let mut is_any = false;
        for (class, state) in self.classes.iter().enumerate() {
            let bytes = may_send(class, state);
            if bytes.is_some() && state.weight == 0 {
                return Some(class);
            }
            heads[class] = bytes;
            is_any |= bytes.is_some();
        }
        match self.rule {
            _ if !is_any => None,
            WeightedScheduler::Dwrr => Some(self.next_in_turn(&heads)),
            WeightedScheduler::Wfq => self.earliest_start(&heads),
        }
    }

    /// Returns the class of which the packet in `heads` fits into its deficit, in turn. At least one class has a
    /// packet.
    fn next_in_turn(&mut self, heads: &[Option<u64>; 8]) -> usize {
        loop {
            let state = &mut self.classes[self.turn];
            match heads[self.turn] {
                Some(bytes) => {
                    if !self.in_turn {
                        self.in_turn = true;
                        state.deficit += u64::from(state.weight) * self.full_packet;
                    }
                    if bytes <= state.deficit {
                        return self.turn;
                    }
                }
                None => state.deficit = 0,
            }
            self.end_turn();
        }
    }

    fn end_turn(&mut self) {
        self.in_turn = false;
        self.turn = (self.turn + 1) % self.classes.len();
    }

    /// Returns the class of which the packet in `heads` starts first in virtual time.
    fn earliest_start(&mut self, heads: &[Option<u64>; 8]) -> Option<usize> {
        let may_send = |class: &usize| heads[*class].is_some();
        let next = (0..self.classes.len()).filter(may_send).min_by_key(|class| self.classes[*class].start)?;
        let start = self.classes[next].start;
        for (_, state) in self.classes.iter_mut().enumerate().filter(|(class, _)| heads[*class].is_none()) {
            state.start = state.start.max(start);
        }
        Some(next)
    }

    /// `class`, the result of [`next`](Self::next) at `now`, sends `bytes`; `is_empty` if no packet of it waits then.
    pub fn on_sent(&mut self, now: Time, class: usize, bytes: u64, is_empty: bool) {
        let state = &mut self.classes[class];
        state.has_packets = !is_empty;
        if let Some(shaper) = &mut state.shaper {
            shaper.on_sent(now, bytes);
        }
        if state.weight == 0 {
            return;
        }
        match self.rule {
            WeightedScheduler::Dwrr => {
                state.deficit = if is_empty { 0 } else { state.deficit.saturating_sub(bytes) };
                if is_empty && class == self.turn {
                    self.end_turn();
                }
            }
            WeightedScheduler::Wfq => {
                self.virtual_time = state.start;
                state.finish = state.start + u128::from(bytes) * VIRTUAL_BYTE / u128::from(state.weight);
                state.start = state.finish;
                if self.classes.iter().all(|class| class.weight == 0 || !class.has_packets) {
                    // Nothing waits: all classes are even again, and virtual time begins anew.
                    self.virtual_time = 0;
                    self.classes.iter_mut().for_each(|class| class.finish = 0);
                }
            }
        }
    }

    /// Returns the first time after `now` at which the rate of a class that has packets lets it send.
    pub fn next_due(&self, now: Time) -> Option<Time> {
        let waiting = self.classes.iter().filter(|class| class.has_packets);
        waiting.filter_map(|class| class.shaper.as_ref()).map(Shaper::due).filter(|due| *due > now).min()
    }
}

impl ClassState {
    /// The state of an empty class that may be up to `behind` bytes behind its rate.
    fn new(params: &ClassParams, full_packet: u64, behind: u64) -> ClassState {
        let shaper = params.rate.map(|rate| {
            let byte_time = rate.byte_time();
            let burst = params.burst.map_or(0, |burst| burst.get().saturating_sub(full_packet));
            let (ahead, behind) = (byte_time.span(burst), byte_time.span(behind));
            Shaper { byte_time, ahead, behind, sent_by: Time::ZERO }
        });
        let weight = params.weight.unwrap_or(0);
        ClassState { weight, shaper, has_packets: false, deficit: 0, start: 0, finish: 0 }
    }
}

impl Shaper {
    /// The class sends `bytes` at `now`.
    fn on_sent(&mut self, now: Time, bytes: u64) {
        let earliest = Time::from_ps(now.as_ps().saturating_sub(self.behind.as_ps()));
        self.sent_by = self.sent_by.max(earliest) + self.byte_time.span(bytes);
    }

    /// Returns when the next packet may be sent.
    fn due(&self) -> Time {
        let due = self.sent_by.as_ps().saturating_sub(self.ahead.as_ps());
        Time::from_ps(due)
    }
}
