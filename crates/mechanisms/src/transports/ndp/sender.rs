//! [`SendSide`]: the first window, then a packet for each pull, and lost packets before new ones.
//!
//! ```text
//! new data ──> first window ────────────────────┐
//!   └────────> behind it ─┐                     ├─> next packet
//! NACK ──> lost: last ────┼── a pull for each ──┘
//! bounce ──> lost: first ─┘   a bounce is a pull of its own if no other will come, or its path alone is bad
//! ```

use plimsoll_units::{Span, Time};

use super::config::NdpConfig;
use super::params::RepeatOrder;
use super::wire::Answer;
use crate::tcp::{Counters, EcnField, Flags, TcpSegment, WindowState};
use crate::transports::entropy::{Entropy, PathChoices};
use crate::transports::nearest;
use crate::transports::sent_packets::{NextPacket, RepeatPlace, SentPackets};

/// The sending half of a connection.
#[derive(Debug)]
pub(super) struct SendSide {
    packets: SentPackets,
    /// When the oldest packet in flight was sent.
    oldest: Option<Time>,
    /// The packets that are not made yet, and those of them that belong to the first window.
    unsent: u64,
    unsent_of_window: u64,
    /// The packets of the first window, and those of them that are not answered.
    window: u64,
    unanswered: u64,
    /// The packets that pulls allow, and the pulls heard of from the beginning on.
    allowed: u64,
    pulled: u32,
    /// The pulls that are to come: one for each answer.
    expected: i64,
    /// The latest answers, the newest in the lowest bit: whether each was positive. How many there are.
    history: u32,
    history_len: u32,
    /// The highest number of a packet behind which nothing was written when it was sent.
    last: Option<u64>,
    entropy: Entropy,
    round_trip: Span,
    /// Timeouts in a row, and when anything was last heard.
    backoff: u32,
    heard: Time,
    packets_sent: u64,
    repeated: u64,
    timeouts: u64,
    nacks: u64,
}

impl SendSide {
    pub(super) fn new(config: &NdpConfig) -> SendSide {
        SendSide {
            packets: SentPackets::default(),
            oldest: None,
            unsent: 0,
            unsent_of_window: 0,
            window: 0,
            unanswered: 0,
            allowed: 0,
            pulled: 0,
            expected: 0,
            history: 0,
            history_len: 0,
            last: None,
            entropy: Entropy::new(&config.params.paths.hashed(), 0),
            round_trip: Span::ZERO,
            backoff: 0,
            heard: Time::ZERO,
            packets_sent: 0,
            repeated: 0,
            timeouts: 0,
            nacks: 0,
        }
    }

    /// An idle path has the round trip `round_trip`, and the choice of paths depends on `seed` alone; labels name all
    /// of them where `choices` says among which links.
    pub(super) fn set_path(
        &mut self,
        config: &NdpConfig,
        round_trip: Span,
        choices: Option<PathChoices>,
        seed: u64,
    ) {
        self.round_trip = round_trip;
        let paths = &config.params.paths;
        self.entropy = match choices {
            Some(choices) if paths.values.is_none() => Entropy::labelled(paths.choice, choices, seed),
            _ => Entropy::new(&paths.hashed(), seed),
        };
    }

    pub(super) fn write(&mut self, config: &NdpConfig, now: Time, bytes: u64) {
        if !self.packets.has_data() && self.packets.acknowledged() == self.packets.written() {
            self.begin_window();
            self.heard = now;
        }
        self.packets.write(bytes);
        self.unsent += bytes.div_ceil(config.payload);
        self.fill_window(config);
    }

    // ---- the first window ----

    /// The receiver has all that was sent, and gives no more pulls.
    fn begin_window(&mut self) {
        (self.window, self.unanswered, self.expected, self.allowed) = (0, 0, 0, 0);
    }

    /// Has as much new data belong to the first window as that has room for.
    fn fill_window(&mut self, config: &NdpConfig) {
        let room = u64::from(config.params.initial_window) - self.window;
        let packets = room.min(self.unsent - self.unsent_of_window);
        self.window += packets;
        self.unanswered += packets;
        self.unsent_of_window += packets;
    }

    /// Begins a first window if the receiver believes that it has all, and more was written in the meantime.
    fn begin_window_if_complete(&mut self, config: &NdpConfig) {
        let has_all = self.packets.acknowledged() == self.packets.sent();
        let told_so = self.last.is_some_and(|last| last + 1 == self.packets.next_number());
        if has_all && told_so && self.unsent > 0 && self.unsent_of_window == 0 {
            self.begin_window();
            self.fill_window(config);
        }
    }

    // ---- feedback ----

    /// An ACK or a NACK arrived. Returns the bytes newly acknowledged.
    pub(super) fn on_answer(&mut self, config: &NdpConfig, now: Time, segment: &TcpSegment) -> u64 {
        let answer = Answer::of(segment);
        let first = self.packets.first();
        let number = nearest::<32>(answer.number.into(), first);
        self.hears(now, !answer.is_nack);
        self.expected += 1;
        self.packets.arrive_before(nearest::<32>(segment.seq, first));
        if answer.is_nack {
            self.nacks += 1;
            self.entropy.on_nack(answer.entropy, segment.flags.has(Flags::ECE));
            self.packets.lose(number, place_of(config, RepeatPlace::Last));
        } else {
            self.sample(now, number, answer.was_repeated);
            self.packets.arrives(number);
            self.entropy.on_ack(answer.entropy, false);
        }
        let acked = self.packets.acknowledge();
        self.oldest = self.packets.oldest_in_flight().map(|(_, sent)| sent.at);
        if let Some(pulled) = answer.pulled {
            self.take_pulls(pulled);
        }
        self.burn_pulls(config);
        self.begin_window_if_complete(config);
        acked
    }

    /// A PULL arrived: the receiver has given so many from the beginning on, and expects packet `next`. Returns the
    /// bytes newly acknowledged.
    pub(super) fn on_pull(&mut self, config: &NdpConfig, now: Time, pulled: u32, next: u32) -> u64 {
        (self.backoff, self.heard) = (0, now);
        self.packets.arrive_before(nearest::<32>(next.into(), self.packets.first()));
        let acked = self.packets.acknowledge();
        self.oldest = self.packets.oldest_in_flight().map(|(_, sent)| sent.at);
        self.take_pulls(pulled);
        self.burn_pulls(config);
        self.begin_window_if_complete(config);
        acked
    }

    /// The header of a packet came back, as a switch on its way had no room for it.
    pub(super) fn on_bounced(&mut self, config: &NdpConfig, now: Time, segment: &TcpSegment) {
        let number = nearest::<32>(segment.ack, self.packets.first());
        self.hears(now, false);
        self.entropy.on_bounce(segment.entropy);
        if self.packets.lose(number, place_of(config, RepeatPlace::First)).is_none() {
            return;
        }
        self.oldest = self.packets.oldest_in_flight().map(|(_, sent)| sent.at);
        let no_pull_comes = self.expected <= 0 && self.unanswered <= 1;
        if no_pull_comes || self.has_bad_path() {
            self.allowed += 1;
        }
    }

    /// An answer, or a header that came back, was heard of.
    fn hears(&mut self, now: Time, is_positive: bool) {
        (self.backoff, self.heard) = (0, now);
        self.unanswered = self.unanswered.saturating_sub(1);
        self.history = self.history << 1 | u32::from(is_positive);
        self.history_len = (self.history_len + 1).min(HISTORY);
    }

    /// Returns whether the latest answers are so often positive that the paths as a whole are not overloaded.
    fn has_bad_path(&self) -> bool {
        let positive = (self.history & ((1 << self.history_len) - 1)).count_ones();
        positive > 0 && self.history_len / positive <= PATH_SHARE
    }

    fn take_pulls(&mut self, pulled: u32) {
        let new = pulled.wrapping_sub(self.pulled);
        // Of two that overtook each other the older one says nothing new.
        if new < u32::MAX / 2 {
            self.pulled = pulled;
            self.expected -= i64::from(new);
            self.allowed += u64::from(new);
        }
    }

    /// Pulls for which there is nothing to send are lost, unless they are kept.
    fn burn_pulls(&mut self, config: &NdpConfig) {
        if !config.params.keeps_pulls {
            self.allowed = self.allowed.min(self.packets.lost() + self.unsent - self.unsent_of_window);
        }
    }

    /// Notes the round trip of a packet, where it is known which transmission was answered.
    fn sample(&mut self, now: Time, number: u64, was_repeated: bool) {
        if let Some(sent) = self.packets.get(number)
            && (sent.transmissions == 1 || sent.transmissions == 2 && was_repeated)
        {
            self.round_trip = now - sent.at;
        }
    }

    // ---- timers ----

    /// Returns when [`on_deadline`](SendSide::on_deadline) must be called; [`Time::MAX`] if never.
    pub(super) fn deadline(&self, config: &NdpConfig) -> Time {
        let rto = config.params.min_rto;
        match self.oldest {
            // What is heard shortens the wait of packets that timed out before.
            Some(since) => since.saturating_add(self.timeout(rto)).max(self.heard),
            None if self.awaits_pull() => {
                self.heard.saturating_add(self.timeout(rto.saturating_mul(PULL_WAIT)))
            }
            None => Time::MAX,
        }
    }

    fn timeout(&self, rto: Span) -> Span {
        rto.saturating_mul(1 << self.backoff.min(BACKOFF_MAX))
    }

    pub(super) fn on_deadline(&mut self, config: &NdpConfig, now: Time) {
        if now < self.deadline(config) {
            return;
        }
        if self.awaits_pull() && self.oldest.is_none() {
            // The last pull was lost, or its answer: one packet brings the next.
            (self.allowed, self.heard) = (1, now);
            self.timeouts += 1;
        }
        let timeout = self.timeout(config.params.min_rto);
        while let Some((number, sent)) = self.packets.oldest_in_flight() {
            self.oldest = Some(sent.at);
            if sent.at.saturating_add(timeout) > now {
                break;
            }
            self.packets.lose(number, place_of(config, RepeatPlace::First));
            self.entropy.on_timeout(now, sent.entropy);
            // It brought no answer, so no pull will come for it.
            self.allowed += 1;
            self.timeouts += 1;
            self.oldest = None;
        }
        self.backoff += 1;
    }

    /// Returns whether data waits for a pull alone.
    fn awaits_pull(&self) -> bool {
        self.packets.has_data() && self.allowed == 0 && self.unsent_of_window == 0
    }

    // ---- sending ----

    /// Returns the packet that leaves next, if one may.
    fn next(&self, config: &NdpConfig) -> Option<NextPacket> {
        let repeated = if self.allowed > 0 { self.packets.next_lost() } else { None };
        repeated.or_else(|| {
            let may_send = self.allowed > 0 || self.unsent_of_window > 0;
            may_send.then(|| self.packets.next_new(config.payload)).flatten()
        })
    }

    /// Returns whether data is to be sent, now or later.
    pub(super) fn has_data(&self) -> bool {
        self.packets.has_data()
    }

    /// Returns whether a data packet may leave now.
    pub(super) fn has_packet(&self, config: &NdpConfig) -> bool {
        self.next(config).is_some()
    }

    /// Returns whether packets are outstanding and none may be sent before an answer or a pull comes, or the timeout.
    pub(super) fn awaits_answer(&self, config: &NdpConfig) -> bool {
        self.packets.acknowledged() < self.packets.sent() && !self.has_packet(config)
    }

    /// Returns the next data packet, if one may leave now.
    pub(super) fn next_packet(&mut self, config: &NdpConfig, now: Time) -> Option<TcpSegment> {
        let next = self.next(config)?;
        let NextPacket { repeats, offset, len } = next;
        let entropy = self.entropy.next(now);
        let number = self.packets.send(&next, now, entropy);
        if repeats.is_none() {
            self.unsent -= 1;
        }
        if repeats.is_none() && self.unsent_of_window > 0 {
            self.unsent_of_window -= 1;
        } else {
            self.allowed -= 1;
        }
        self.oldest.get_or_insert(now);
        self.packets_sent += 1;
        self.repeated += u64::from(repeats.is_some());
        let is_last = offset + len == self.packets.written();
        if is_last {
            self.last = self.last.max(Some(number));
        }
        Some(TcpSegment {
            seq: offset,
            len: len as u32,
            ack: number,
            flags: Flags::NONE.with_if(is_last, Flags::CWR).with_if(repeats.is_some(), Flags::RETRANSMISSION),
            ecn: EcnField::NotEct,
            entropy,
            ..TcpSegment::default()
        })
    }

    /// Returns the entropy value of a packet without data.
    pub(super) fn control_entropy(&mut self, now: Time) -> u16 {
        self.entropy.next(now)
    }

    // ---- read-outs ----

    pub(super) fn acknowledged(&self) -> u64 {
        self.packets.acknowledged()
    }

    pub(super) fn sent(&self) -> u64 {
        self.packets.sent()
    }

    pub(super) fn written(&self) -> u64 {
        self.packets.written()
    }

    pub(super) fn window_state(&self, config: &NdpConfig) -> WindowState {
        WindowState {
            cwnd_bytes: u64::from(config.params.initial_window) * config.payload,
            ssthresh_bytes: u64::MAX,
            alpha: 0.0,
            srtt: self.round_trip,
            rto: config.params.min_rto,
        }
    }

    pub(super) fn counters(&self) -> Counters {
        Counters {
            data_segments: self.packets_sent,
            retransmissions: self.repeated,
            timeouts: self.timeouts,
            fast_retransmits: self.nacks,
            ..Counters::default()
        }
    }
}

/// Returns the place of a lost packet among those to be repeated, which is `place` unless they are in order of numbers.
fn place_of(config: &NdpConfig, place: RepeatPlace) -> RepeatPlace {
    match config.params.repeat_order {
        RepeatOrder::Arrival => place,
        RepeatOrder::Number => RepeatPlace::ByNumber,
    }
}

/// The answers by which a sender judges a path, and their quotient to the positive ones up to which the paths as a
/// whole are not overloaded (the paper's simulator).
const HISTORY: u32 = 12;
const PATH_SHARE: u32 = 3;
/// The timeouts for which a sender waits for a pull: many senders may share the receiver.
const PULL_WAIT: u64 = 16;
/// The timeouts in a row up to which the wait doubles.
const BACKOFF_MAX: u32 = 6;
