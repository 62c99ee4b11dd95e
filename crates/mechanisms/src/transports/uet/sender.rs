//! [`SendSide`]: the messages that are sent, packet by packet over many paths, and the lost packets again.
//!
//! ```text
//! packets: first ........................... next        stream: ........ max ........ written
//!          acknowledged, in flight or lost   to be made                   cut into packets, messages apart
//! ```
//!
//! A packet keeps its number and its bytes when it is sent again. It is lost if its header comes back without the
//! payload (NACK), if no answer comes in time, or, where that is asked for, if many others have overtaken it.

use std::collections::{BTreeSet, VecDeque};

use plimsoll_units::{Rate, Span, Time};

use super::config::UetConfig;
use super::credit_line::CreditLine;
use super::nscc::{Nscc, NsccAck};
use super::wire::{Feedback, data_label, nearest};
use crate::tcp::{Counters, EcnField, Flags, TcpSegment, WindowState};
use crate::transports::entropy::Entropy;

/// A packet that was sent and is not known to have arrived, or waits behind such a one.
#[derive(Clone, Copy, Debug)]
struct Sent {
    offset: u64,
    len: u16,
    entropy: u16,
    transmissions: u32,
    at: Time,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    InFlight,
    Lost,
    Arrived,
}

/// The sending half of a packet delivery context.
#[derive(Debug)]
pub(super) struct SendSide {
    written: u64,
    /// The ends of the messages that are not acknowledged to their last byte.
    ends: VecDeque<u64>,
    /// The end of the bytes sent at least once, and of the acknowledged bytes.
    max: u64,
    una: u64,
    /// The packets from number `first` on.
    packets: VecDeque<Sent>,
    first: u64,
    /// The numbers of lost packets, which are sent again in order.
    lost: BTreeSet<u64>,
    lost_bytes: u64,
    /// Transmissions in the order of their times: the packet's number, and which of its transmissions it was.
    in_order: VecDeque<(u64, u32)>,
    /// The bytes in flight as the window counts them: bytes sent, less the bytes reported as arrived and the lost
    /// bytes; never more than the bytes of the packets in flight.
    in_flight: u64,
    outstanding: u64,
    /// The bytes that the receiver reports as arrived, modulo 2^32.
    arrived: u32,
    nscc: Option<Nscc>,
    credit: Option<CreditLine>,
    entropy: Entropy,
    /// The senders with data at this NIC.
    share: u32,
    round_trip: Span,
    max_window: u64,
    /// A request for credit is due; when the last one left.
    request_due: bool,
    requested: Option<Time>,
    /// Timeouts in a row, and when the receiver last got something new.
    backoff: u32,
    progress: Time,
    packets_sent: u64,
    repeated: u64,
    timeouts: u64,
    nacks: u64,
    marks: u64,
}

impl SendSide {
    pub(super) fn new(config: &UetConfig) -> SendSide {
        let mut side = SendSide {
            written: 0,
            ends: VecDeque::new(),
            max: 0,
            una: 0,
            packets: VecDeque::new(),
            first: 0,
            lost: BTreeSet::new(),
            lost_bytes: 0,
            in_order: VecDeque::new(),
            in_flight: 0,
            outstanding: 0,
            arrived: 0,
            nscc: None,
            credit: None,
            entropy: Entropy::new(&config.params.paths, 0),
            share: 1,
            round_trip: Span::ZERO,
            max_window: 0,
            request_due: false,
            requested: None,
            backoff: 0,
            progress: Time::ZERO,
            packets_sent: 0,
            repeated: 0,
            timeouts: 0,
            nacks: 0,
            marks: 0,
        };
        side.set_path(config, Rate::from_gbps(100), Span::from_us(10), 0);
        side
    }

    /// The NIC sends at `rate`, the network's base round trip is `round_trip`, and the choice of paths depends on
    /// `seed`.
    pub(super) fn set_path(&mut self, config: &UetConfig, rate: Rate, round_trip: Span, seed: u64) {
        let params = &config.params;
        self.round_trip = params.base_rtt.unwrap_or(round_trip);
        let nscc = Nscc::new(params, rate, self.round_trip, [config.payload, config.header]);
        self.max_window = nscc.max_window();
        self.credit = config.has_credit.then(|| CreditLine::new(&params.rccc, self.max_window));
        self.nscc = config.has_window.then_some(nscc);
        self.entropy = Entropy::new(&params.paths, seed);
    }

    /// `share` senders at this NIC have data.
    pub(super) fn set_share(&mut self, share: u32) {
        self.share = share;
    }

    /// Returns the most that the receiver may grant in advance.
    pub(super) fn max_window(&self) -> u64 {
        self.max_window
    }

    pub(super) fn write(&mut self, bytes: u64) {
        self.written += bytes;
        self.ends.push_back(self.written);
        self.ask_if_blocked();
    }

    // ---- feedback ----

    /// An ACK or a NACK arrived. Returns the bytes newly acknowledged.
    pub(super) fn on_answer(&mut self, config: &UetConfig, now: Time, answer: &TcpSegment) -> u64 {
        let feedback = Feedback::of(answer);
        let number = nearest(feedback.number, self.first);
        let is_marked = answer.flags.has(Flags::ECE);
        let sample = self.sample(now, number, answer.flags.has(Flags::RETRANSMISSION));
        if let (Some(nscc), Some(sample)) = (&mut self.nscc, sample) {
            nscc.on_round_trip(sample);
        }
        if let Some(credit) = &mut self.credit {
            credit.on_feedback();
        }
        let news = feedback.arrived.wrapping_sub(self.arrived);
        let arrived = if news < u32::MAX / 2 { u64::from(news) } else { 0 };
        self.arrived = self.arrived.wrapping_add(arrived as u32);
        self.in_flight = self.in_flight.saturating_sub(arrived);
        let before = self.una;
        self.take_arrived(config.header, answer.seq as u16, &feedback);
        self.in_flight = self.in_flight.min(self.outstanding);
        if answer.flags.has(Flags::CWR) {
            self.on_nack(config, now, number, &feedback);
        } else {
            self.marks += u64::from(is_marked);
            self.entropy.on_ack(feedback.entropy, is_marked);
            if let Some(nscc) = &mut self.nscc {
                let in_flight = self.in_flight;
                nscc.on_ack(&NsccAck { now, arrived, round_trip: sample, is_marked, in_flight });
            }
            if config.params.overtaken_is_lost {
                self.find_overtaken(config, &feedback);
            }
        }
        self.forget_answered();
        // The path answers, if only by headers.
        self.backoff = 0;
        if arrived > 0 || self.una > before {
            self.progress = now;
        }
        self.una - before
    }

    /// A grant of the receiver arrived.
    pub(super) fn on_pull(&mut self, now: Time, pulled: u32) {
        self.progress = now;
        if let Some(credit) = &mut self.credit {
            credit.on_feedback();
            credit.on_pull(pulled);
        }
    }

    /// Returns the round trip of the packet that caused an answer, where it is known which transmission that was.
    fn sample(&self, now: Time, number: u64, was_repeated: bool) -> Option<Span> {
        let sent = self.packets.get(number.checked_sub(self.first)? as usize)?;
        let is_known = sent.transmissions == 1 || sent.transmissions == 2 && was_repeated;
        is_known.then(|| now - sent.at)
    }

    /// Notes the packets that have arrived: all before number `next`, and the packets of the map.
    fn take_arrived(&mut self, header: u64, next: u16, feedback: &Feedback) {
        let next = nearest(next, self.first).min(self.first + self.packets.len() as u64);
        (self.first..next).for_each(|number| self.arrives(header, number));
        let base = nearest(feedback.base, self.first);
        (0..u64::from(u64::BITS))
            .filter(|bit| feedback.map >> bit & 1 == 1)
            .for_each(|bit| self.arrives(header, base + bit));
        while let Some(sent) = self.packets.pop_front_if(|sent| sent.state == State::Arrived) {
            self.first += 1;
            self.una = sent.offset + u64::from(sent.len);
        }
        while self.ends.pop_front_if(|end| *end <= self.una).is_some() {}
    }

    /// Forgets the transmissions at the front that are no longer in flight.
    fn forget_answered(&mut self) {
        while let Some((number, transmission)) = self.in_order.front() {
            if self.is_in_flight(*number, *transmission) {
                break;
            }
            self.in_order.pop_front();
        }
    }

    fn arrives(&mut self, header: u64, number: u64) {
        let Some(place) = number.checked_sub(self.first) else { return };
        let Some(sent) = self.packets.get_mut(place as usize) else { return };
        let len = u64::from(sent.len);
        match std::mem::replace(&mut sent.state, State::Arrived) {
            State::Arrived => {}
            State::InFlight => self.outstanding -= len + header,
            State::Lost => {
                self.lost.remove(&number);
                self.lost_bytes -= len;
            }
        }
    }

    fn is_in_flight(&self, number: u64, transmission: u32) -> bool {
        let sent = number.checked_sub(self.first).and_then(|place| self.packets.get(place as usize));
        sent.is_some_and(|sent| sent.state == State::InFlight && sent.transmissions == transmission)
    }

    fn on_nack(&mut self, config: &UetConfig, now: Time, number: u64, feedback: &Feedback) {
        self.nacks += 1;
        self.entropy.on_nack(feedback.entropy, feedback.at_last_hop);
        if let Some(size) = self.loses(config, number)
            && let Some(nscc) = &mut self.nscc
        {
            let counts = !(config.has_credit && feedback.at_last_hop);
            nscc.on_nack(now, size, counts, self.in_flight);
        }
    }

    /// A packet in flight is lost. Returns its size on the wire; `None` if it was not in flight.
    fn loses(&mut self, config: &UetConfig, number: u64) -> Option<u64> {
        let sent = self.packets.get_mut(number.checked_sub(self.first)? as usize)?;
        if sent.state != State::InFlight {
            return None;
        }
        sent.state = State::Lost;
        let size = u64::from(sent.len) + config.header;
        self.lost_bytes += u64::from(sent.len);
        self.lost.insert(number);
        self.in_flight = self.in_flight.saturating_sub(size);
        self.outstanding -= size;
        Some(size)
    }

    /// Takes packets for lost that others have overtaken by 1.5 windows.
    fn find_overtaken(&mut self, config: &UetConfig, feedback: &Feedback) {
        let window = self.nscc.as_ref().map_or(self.max_window, |nscc| nscc.window() * 3 / 2);
        let many = (window.min(self.max_window) / config.mtu()).max(OVERTAKEN_MIN);
        if u64::from(feedback.ahead) < many {
            return;
        }
        let highest = self.packets.iter().rposition(|sent| sent.state == State::Arrived).unwrap_or(0) as u64;
        let newest = self.packets.get(highest as usize).map_or(Time::ZERO, |sent| sent.at);
        for number in self.first..self.first + highest {
            if self.packets[(number - self.first) as usize].at < newest {
                self.loses(config, number);
            }
        }
    }

    // ---- timers ----

    /// Returns when [`on_deadline`](SendSide::on_deadline) must be called, `now` or later; [`Time::MAX`] if never.
    pub(super) fn deadline(&self, config: &UetConfig, now: Time) -> Time {
        let oldest = self.in_order.front().map(|(number, _)| self.packets[(number - self.first) as usize].at);
        // A sender that waits for credit requests it again.
        let asked = self.requested.filter(|_| self.awaits_credit()).map_or(Time::MAX, |since| {
            since.max(self.progress).saturating_add(config.params.min_rto.saturating_mul(CREDIT_WAIT))
        });
        oldest.map_or(Time::MAX, |since| self.times_out(config, since)).min(asked).max(now)
    }

    /// Returns when a packet sent at `since` counts as lost: a timeout after that, and after the last news of the
    /// receiver.
    fn times_out(&self, config: &UetConfig, since: Time) -> Time {
        let wait = config.params.min_rto.saturating_mul(1 << self.backoff.min(BACKOFF_MAX));
        since.max(self.progress).saturating_add(wait)
    }

    pub(super) fn on_deadline(&mut self, config: &UetConfig, now: Time) {
        if now < self.deadline(config, now) {
            return;
        }
        let before = self.timeouts;
        while let Some(&(number, transmission)) = self.in_order.front() {
            if self.is_in_flight(number, transmission) {
                let sent = self.packets[(number - self.first) as usize];
                if self.times_out(config, sent.at) > now {
                    break;
                }
                self.loses(config, number);
                self.entropy.on_timeout(now, sent.entropy);
                self.timeouts += 1;
            }
            self.in_order.pop_front();
        }
        if self.timeouts > before {
            self.backoff += 1;
            if let Some(nscc) = &mut self.nscc {
                nscc.on_timeout();
            }
        }
        self.request_due = self.awaits_credit();
    }

    /// Asks for credit if nothing in flight can bring an answer.
    fn ask_if_blocked(&mut self) {
        self.request_due |= self.in_flight == 0 && self.awaits_credit();
    }

    fn awaits_credit(&self) -> bool {
        self.has_data() && self.credit.as_ref().is_some_and(|credit| !credit.has_credit())
    }

    // ---- sending ----

    /// Returns the packet that leaves next: its number if it was lost, and its offset, payload and whether it ends what
    /// is written.
    fn next(&self, config: &UetConfig) -> Option<(Option<u64>, u64, u64)> {
        if let Some(&number) = self.lost.first() {
            let sent = self.packets[(number - self.first) as usize];
            return Some((Some(number), sent.offset, sent.len.into()));
        }
        if self.max == self.written {
            return None;
        }
        let end = self.ends[self.ends.partition_point(|end| *end <= self.max)];
        Some((None, self.max, (end - self.max).min(config.payload)))
    }

    /// Returns whether data is to be sent, now or later.
    pub(super) fn has_data(&self) -> bool {
        self.max < self.written || !self.lost.is_empty()
    }

    fn may_send(&self, size: u64) -> bool {
        let within = self
            .nscc
            .as_ref()
            .is_none_or(|nscc| self.in_flight == 0 || self.in_flight + size <= nscc.window());
        within && self.credit.as_ref().is_none_or(|credit| credit.has_credit())
    }

    /// Returns whether a data packet may leave now.
    pub(super) fn has_packet(&self, config: &UetConfig) -> bool {
        self.next(config).is_some_and(|(_, _, len)| self.may_send(len + config.header))
    }

    /// Returns whether packets are outstanding and none may be sent before an answer comes, or the timeout.
    pub(super) fn awaits_answer(&self, config: &UetConfig) -> bool {
        self.una < self.max && !self.has_packet(config)
    }

    pub(super) fn owes_request(&self) -> bool {
        self.request_due
    }

    /// Removes the request for credit that is due.
    pub(super) fn take_request(&mut self, config: &UetConfig, now: Time) -> Option<TcpSegment> {
        if !std::mem::take(&mut self.request_due) {
            return None;
        }
        self.requested = Some(now);
        let ack = data_label(self.first + self.packets.len() as u64, self.target(config));
        Some(TcpSegment { ack, flags: Flags::CWR, entropy: self.entropy.next(now), ..TcpSegment::default() })
    }

    /// Returns the pull target: the unsent bytes, lost packets included, as far as the windows allow.
    fn target(&self, config: &UetConfig) -> u64 {
        let Some(credit) = &self.credit else { return 0 };
        let backlog = self.written - self.max + self.lost_bytes;
        let wanted = (backlog + backlog.div_ceil(config.payload) * config.header).min(self.max_window);
        let most = self.nscc.as_ref().map_or(u64::MAX, |nscc| nscc.window() + config.mtu());
        credit.target(wanted.min(most), self.share, config.mtu())
    }

    /// Returns the next data packet, if one may leave now.
    pub(super) fn next_packet(&mut self, config: &UetConfig, now: Time) -> Option<TcpSegment> {
        let (repeats, offset, len) = self.next(config)?;
        let size = len + config.header;
        if !self.may_send(size) {
            return None;
        }
        // Its pull target counts this packet, too, as unsent.
        let target = self.target(config);
        let entropy = self.entropy.next(now);
        let number = match repeats {
            Some(number) => {
                self.lost.remove(&number);
                self.lost_bytes -= len;
                let sent = &mut self.packets[(number - self.first) as usize];
                (sent.state, sent.at, sent.entropy) = (State::InFlight, now, entropy);
                sent.transmissions += 1;
                self.in_order.push_back((number, sent.transmissions));
                self.repeated += 1;
                number
            }
            None => {
                let number = self.first + self.packets.len() as u64;
                let state = State::InFlight;
                self.packets.push_back(Sent {
                    offset,
                    len: len as u16,
                    entropy,
                    transmissions: 1,
                    at: now,
                    state,
                });
                self.in_order.push_back((number, 1));
                self.max = offset + len;
                number
            }
        };
        self.packets_sent += 1;
        self.in_flight += size;
        self.outstanding += size;
        if let Some(credit) = &mut self.credit {
            credit.on_sent(size);
        }
        let asks = !self.has_packet(config);
        if self.awaits_credit() {
            self.requested = Some(now);
        }
        Some(TcpSegment {
            seq: offset,
            len: len as u32,
            ack: data_label(number, target),
            flags: Flags::NONE.with_if(asks, Flags::CWR).with_if(repeats.is_some(), Flags::RETRANSMISSION),
            ecn: if config.uses_marks { EcnField::Ect } else { EcnField::NotEct },
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
        self.una
    }

    pub(super) fn sent(&self) -> u64 {
        self.max
    }

    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn window_state(&self, config: &UetConfig) -> WindowState {
        WindowState {
            cwnd_bytes: self.nscc.as_ref().map_or(self.max_window, Nscc::window),
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
            ecn_cuts: self.marks,
            ..Counters::default()
        }
    }
}

/// The fewest packets that must overtake one that is taken for lost.
const OVERTAKEN_MIN: u64 = 5;
/// The timeouts after which a sender that waits for credit asks again: many senders may share the receiver.
const CREDIT_WAIT: u64 = 8;
/// The timeouts in a row up to which the wait doubles.
const BACKOFF_MAX: u32 = 6;
