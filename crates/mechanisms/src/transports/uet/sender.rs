//! [`SendSide`]: the messages that are sent, packet by packet over many paths, and again what was lost.
//!
//! A packet is lost if its header comes back without the payload (NACK), if no answer comes in time, or, where that is
//! asked for, if many others have overtaken it, or a probe. Lost packets are sent again in the order of their numbers.

use plimsoll_units::{Rate, Span, Time};

use super::config::UetConfig;
use super::credit_line::CreditLine;
use super::nscc::{Nscc, NsccAck};
use super::probes::Probes;
use super::wire::{Feedback, data_label};
use crate::tcp::{Counters, EcnField, Flags, TcpSegment, WindowState};
use crate::transports::entropy::Entropy;
use crate::transports::nearest;
use crate::transports::sent_packets::{NextPacket, RepeatPlace, SentPackets};

/// The sending half of a packet delivery context.
#[derive(Debug)]
pub(super) struct SendSide {
    packets: SentPackets,
    /// When the oldest packet in flight was sent.
    oldest: Option<Time>,
    /// The bytes in flight as the window counts them: what was sent, less what the receiver says has arrived, and what
    /// is lost; never more than the packets that are in flight have.
    in_flight: u64,
    /// What the receiver says has arrived, modulo 2^32.
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
    /// The probes, where senders have them.
    probes: Option<Probes>,
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
            packets: SentPackets::default(),
            oldest: None,
            in_flight: 0,
            arrived: 0,
            nscc: None,
            credit: None,
            entropy: Entropy::new(&config.params.paths, 0),
            share: 1,
            round_trip: Span::ZERO,
            max_window: 0,
            request_due: false,
            requested: None,
            probes: None,
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
        self.probes = params.probes.then(|| Probes::new(self.round_trip, nscc.target()));
        self.credit = config.has_credit.then(|| CreditLine::new(&params.rccc, self.max_window));
        self.nscc = config.has_window.then_some(nscc);
        self.entropy = Entropy::new(&params.paths, seed);
    }

    /// `share` senders at this NIC have data.
    pub(super) fn set_share(&mut self, share: u32) {
        self.share = share;
    }

    /// Returns the network's base round trip.
    pub(super) fn round_trip(&self) -> Span {
        self.round_trip
    }

    /// Returns the most that the receiver may grant in advance.
    pub(super) fn max_window(&self) -> u64 {
        self.max_window
    }

    pub(super) fn write(&mut self, bytes: u64) {
        self.packets.write(bytes);
        self.ask_if_blocked();
    }

    // ---- feedback ----

    /// An ACK or a NACK arrived. Returns the bytes newly acknowledged.
    pub(super) fn on_answer(&mut self, config: &UetConfig, now: Time, answer: &TcpSegment) -> u64 {
        let feedback = Feedback::of(answer);
        let number = nearest::<16>(feedback.number.into(), self.packets.first());
        let is_marked = answer.flags.has(Flags::ECE);
        let sample = match feedback.is_of_probe {
            true => None,
            false => self.sample(now, number, answer.flags.has(Flags::RETRANSMISSION)),
        };
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
        let acked = self.take_arrived(answer.seq as u16, &feedback);
        self.in_flight = self.in_flight.min(self.outstanding(config.header));
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
            if feedback.is_of_probe {
                self.on_probe_answer(config, now, &feedback);
            }
        }
        let has_data = self.has_data();
        if let Some(probes) = &mut self.probes {
            probes.on_answer(now, self.packets.in_flight() > 0, has_data);
        }
        self.oldest = self.packets.oldest_in_flight().map(|(_, sent)| sent.at);
        // The path answers, if only by headers.
        self.backoff = 0;
        if arrived > 0 || acked > 0 {
            self.progress = now;
        }
        acked
    }

    /// A PULL arrived.
    pub(super) fn on_pull(&mut self, now: Time, pulled: u32) {
        self.progress = now;
        if let Some(credit) = &mut self.credit {
            credit.on_feedback();
            credit.on_pull(pulled);
        }
    }

    /// Returns the round trip of the packet that caused an answer, where it is known which transmission that was.
    fn sample(&self, now: Time, number: u64, was_repeated: bool) -> Option<Span> {
        let sent = self.packets.get(number)?;
        let is_known = sent.transmissions == 1 || sent.transmissions == 2 && was_repeated;
        is_known.then(|| now - sent.at)
    }

    /// Notes the packets that have arrived: those before number `next`, and those of the map. Returns the bytes newly
    /// acknowledged.
    fn take_arrived(&mut self, next: u16, feedback: &Feedback) -> u64 {
        let first = self.packets.first();
        self.packets.arrive_before(nearest::<16>(next.into(), first));
        let base = nearest::<16>(feedback.base.into(), first);
        let mut map = feedback.map;
        while map != 0 {
            self.packets.arrives(base + u64::from(map.trailing_zeros()));
            map &= map - 1;
        }
        self.packets.acknowledge()
    }

    /// Returns the bytes on the wire of the packets in flight.
    fn outstanding(&self, header: u64) -> u64 {
        self.packets.in_flight_bytes() + self.packets.in_flight() * header
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
        let size = self.packets.lose(number, RepeatPlace::ByNumber)? + config.header;
        self.in_flight = self.in_flight.saturating_sub(size);
        Some(size)
    }

    /// Takes packets for lost that others have overtaken by 1.5 windows.
    fn find_overtaken(&mut self, config: &UetConfig, feedback: &Feedback) {
        let window = self.nscc.as_ref().map_or(self.max_window, |nscc| nscc.window() * 3 / 2);
        let many = (window.min(self.max_window) / config.mtu()).max(OVERTAKEN_MIN);
        if u64::from(feedback.ahead) < many {
            return;
        }
        let Some((highest, newest)) = self.packets.highest_arrived() else { return };
        for number in self.packets.first()..highest {
            if self.packets.get(number).is_some_and(|sent| sent.at < newest) {
                self.loses(config, number);
            }
        }
    }

    /// The answer to a probe arrived: packets sent before it that its map does not have are lost, if no queue held it
    /// up, or them.
    fn on_probe_answer(&mut self, config: &UetConfig, now: Time, feedback: &Feedback) {
        let losses = self.probes.as_ref().and_then(|probes| probes.finds_losses(now, feedback.number));
        let Some(before) = losses else { return };
        let base = nearest::<16>(feedback.base.into(), self.packets.first());
        for number in base..base + u64::from(u64::BITS) {
            if self.packets.get(number).is_some_and(|sent| sent.at < before) {
                self.loses(config, number);
            }
        }
    }

    // ---- timers ----

    /// Returns when [`on_deadline`](SendSide::on_deadline) must be called, `now` or later; [`Time::MAX`] if never.
    pub(super) fn deadline(&self, config: &UetConfig, now: Time) -> Time {
        // What waits for credit asks for it, as the grants may be lost.
        let heard = self.requested.map_or(self.progress, |at| at.max(self.progress));
        let silence = config.params.min_rto.saturating_mul(CREDIT_WAIT);
        let asked = if self.awaits_credit() { heard.saturating_add(silence) } else { Time::MAX };
        let probe = self.probes.as_ref().map_or(Time::MAX, Probes::due);
        self.oldest.map_or(Time::MAX, |since| self.times_out(config, since)).min(asked).min(probe).max(now)
    }

    /// Returns when what was sent `since` counts as lost: a timeout after that, and after the last news of the
    /// receiver.
    fn times_out(&self, config: &UetConfig, since: Time) -> Time {
        let wait = config.params.min_rto.saturating_mul(1 << self.backoff.min(BACKOFF_MAX));
        since.max(self.progress).saturating_add(wait)
    }

    pub(super) fn on_deadline(&mut self, config: &UetConfig, now: Time) {
        if let Some(probes) = &mut self.probes {
            probes.on_due(now);
        }
        if now < self.deadline(config, now) {
            return;
        }
        let before = self.timeouts;
        while let Some((number, sent)) = self.packets.oldest_in_flight() {
            self.oldest = Some(sent.at);
            if self.times_out(config, sent.at) > now {
                break;
            }
            self.loses(config, number);
            self.entropy.on_timeout(now, sent.entropy);
            self.timeouts += 1;
            self.oldest = None;
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

    /// Returns the packet that leaves next.
    fn next(&self, config: &UetConfig) -> Option<NextPacket> {
        let has_number = self.packets.next_number() - self.packets.first() < NUMBERS_AHEAD;
        self.packets.next_lost().or_else(|| has_number.then(|| self.packets.next_new(config.payload))?)
    }

    /// Returns whether data is to be sent, now or later.
    pub(super) fn has_data(&self) -> bool {
        self.packets.has_data()
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
        self.next(config).is_some_and(|next| self.may_send(next.len + config.header))
    }

    /// Returns whether packets are outstanding and none may be sent before an answer comes, or the timeout.
    pub(super) fn awaits_answer(&self, config: &UetConfig) -> bool {
        self.packets.acknowledged() < self.packets.sent() && !self.has_packet(config)
    }

    pub(super) fn owes_request(&self) -> bool {
        self.request_due || self.probes.as_ref().is_some_and(Probes::is_owed)
    }

    /// Removes the probe that is due.
    pub(super) fn take_probe(&mut self, config: &UetConfig, now: Time) -> Option<TcpSegment> {
        let number = self.probes.as_mut()?.take(now)?;
        let ack = data_label(number.into(), self.target(config));
        let flags = Flags::CWR.with(Flags::ECE);
        Some(TcpSegment { ack, flags, entropy: self.entropy.next(now), ..TcpSegment::default() })
    }

    /// Removes the request for credit that is due.
    pub(super) fn take_request(&mut self, config: &UetConfig, now: Time) -> Option<TcpSegment> {
        if !std::mem::take(&mut self.request_due) {
            return None;
        }
        self.requested = Some(now);
        let ack = data_label(self.packets.next_number(), self.target(config));
        Some(TcpSegment { ack, flags: Flags::CWR, entropy: self.entropy.next(now), ..TcpSegment::default() })
    }

    /// Returns the pull target: what is not sent, lost packets included, as far as the windows let it be.
    fn target(&self, config: &UetConfig) -> u64 {
        let Some(credit) = &self.credit else { return 0 };
        let unsent = self.packets.written() - self.packets.sent();
        let backlog = unsent + self.packets.lost_bytes();
        let wanted = (backlog + backlog.div_ceil(config.payload) * config.header).min(self.max_window);
        let most = self.nscc.as_ref().map_or(u64::MAX, |nscc| nscc.window() + config.mtu());
        credit.target(wanted.min(most), self.share, config.mtu())
    }

    /// Returns the next data packet, if one may leave now.
    pub(super) fn next_packet(&mut self, config: &UetConfig, now: Time) -> Option<TcpSegment> {
        let next = self.next(config)?;
        let NextPacket { repeats, offset, len } = next;
        let size = len + config.header;
        if !self.may_send(size) {
            return None;
        }
        // What it asks for counts this packet, too, as unsent.
        let target = self.target(config);
        let entropy = self.entropy.next(now);
        let number = self.packets.send(&next, now, entropy);
        self.oldest.get_or_insert(now);
        self.repeated += u64::from(repeats.is_some());
        self.packets_sent += 1;
        self.in_flight += size;
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
        self.packets.acknowledged()
    }

    pub(super) fn sent(&self) -> u64 {
        self.packets.sent()
    }

    pub(super) fn written(&self) -> u64 {
        self.packets.written()
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

/// The most packets from the first that is not known to have arrived: their numbers have 16 bits on the wire.
const NUMBERS_AHEAD: u64 = 32_000;
/// The fewest packets that must overtake one that is taken for lost.
const OVERTAKEN_MIN: u64 = 5;
/// The timeouts after which a sender that waits for credit asks again: many senders may share the receiver.
const CREDIT_WAIT: u64 = 8;
/// The timeouts in a row up to which the wait doubles.
const BACKOFF_MAX: u32 = 6;
