//! [`RequestSide`]: the messages that are sent, packet by packet, and again what was lost: of WRITE and SEND the
//! requests, of READ the responses.
//!
//! ```text
//! stream:   0 ...... una ............ nxt ........ max ....... allowed ............ written
//!             acked      outstanding      go-back-N    not sent        not requested (READ)
//!                        (selective repeat: nxt is max, and `repeats` names what is missing before it)
//! ```

use std::collections::VecDeque;

use plimsoll_units::{Rate, Span, Time};

use super::config::RoceConfig;
use super::controller::Controller;
use super::params::RoceRepair;
use super::rate_control::{RateController, RoceAck};
use super::repeats::Repeats;
use super::send_times::SendTimes;
use crate::tcp::{Cause, Counters, EcnField, Flags, TcpSegment, WindowState};
use crate::telemetry::Stamps;

/// A message that was posted.
#[derive(Clone, Copy, Debug)]
struct Message {
    /// Where it ends in the stream.
    end: u64,
    /// When the NIC has it ready: its first packet leaves then at the earliest.
    ready: Time,
}

/// What the controller allows: it is computed when the controller or the last packet changes, and read more often.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    /// The bytes that may be outstanding; a packet leaves while fewer are.
    window: u64,
    /// When the last packet has had its time at the present rate, and the next one may leave.
    ready: Time,
}

/// The sending half of a queue pair.
#[derive(Debug)]
pub(super) struct RequestSide {
    /// The first offset that is not acknowledged.
    una: u64,
    /// The next offset to send, which a NAK and a timeout of go-back-N move back to `una`.
    nxt: u64,
    /// The end of what was sent at least once.
    max: u64,
    /// The end of what may be sent: all that was written, unless the other end has to ask for it by READs.
    allowed: u64,
    written: u64,
    /// How many messages were posted.
    posted: u64,
    /// How many of them the other end has asked for, if they are READs.
    requested: u64,
    /// The packets that selective repeat sends again; none with go-back-N.
    repeats: Repeats,
    /// The messages that are not acknowledged to their last byte.
    messages: VecDeque<Message>,
    controller: Controller,
    allowance: Allowance,
    /// The rate at which the NIC sends.
    line_rate: Rate,
    base_rtt: Span,
    /// When the last data packet was sent, and its payload; the next one leaves after its time at the rate.
    last_sent: Option<(Time, u64)>,
    /// The last packet that was sent ended its message.
    ended_message: bool,
    /// Packets since the last one that asked for an acknowledgement.
    unasked: u32,
    send_times: SendTimes,
    /// The time from which on the timeout runs: the last acknowledgement of new data, or the first packet after it;
    /// `None` if nothing is outstanding.
    waits_since: Option<Time>,
    packets: u64,
    repeated: u64,
    timeouts: u64,
    naks: u64,
    notifications: u64,
    /// When CNPs that have arrived cut the rate.
    cuts: VecDeque<Time>,
}

impl RequestSide {
    pub(super) fn new(config: &RoceConfig) -> RequestSide {
        let mut side = RequestSide {
            una: 0,
            nxt: 0,
            max: 0,
            allowed: 0,
            written: 0,
            posted: 0,
            requested: 0,
            repeats: Repeats::default(),
            messages: VecDeque::new(),
            controller: Controller::new(config, Rate::from_gbps(1_000), Span::from_us(1), 0),
            allowance: Allowance { window: 1, ready: Time::ZERO },
            line_rate: Rate::from_gbps(1_000),
            base_rtt: Span::from_us(1),
            last_sent: None,
            ended_message: false,
            unasked: 0,
            send_times: SendTimes::default(),
            waits_since: None,
            packets: 0,
            repeated: 0,
            timeouts: 0,
            naks: 0,
            notifications: 0,
            cuts: VecDeque::new(),
        };
        side.allow(config);
        side
    }

    /// The NIC sends at `rate`, and an idle round trip over `switches` switches takes `round_trip`. A flow starts at
    /// line rate.
    pub(super) fn set_path(&mut self, config: &RoceConfig, rate: Rate, round_trip: Span, switches: u32) {
        self.line_rate = rate;
        self.base_rtt = config.params.base_rtt.unwrap_or(round_trip);
        self.controller = Controller::new(config, rate, self.base_rtt, switches);
        self.allow(config);
    }

    pub(super) fn write(&mut self, config: &RoceConfig, now: Time, bytes: u64) {
        self.written += bytes;
        self.posted += 1;
        let ready = match config.reads() {
            false => now + config.params.nic.message_start,
            true => now,
        };
        self.messages.push_back(Message { end: self.written, ready });
        if !config.reads() || self.requested >= self.posted {
            self.allowed = self.written;
        }
    }

    /// The other end asks for the first `number` messages, of which the wire has the lower 32 bits. An older request
    /// than the last one changes nothing.
    pub(super) fn on_read_request(&mut self, number: u64) {
        let new = (number as u32).wrapping_sub(self.requested as u32) as i32;
        if new <= 0 {
            return;
        }
        self.requested += new as u64;
        let acknowledged = self.posted - self.messages.len() as u64;
        let last = self.messages.get((self.requested - acknowledged - 1) as usize);
        self.allowed = last.map_or(self.written, |message| message.end);
    }

    // ---- answers ----

    /// An acknowledgement of everything before `answer.ack` arrived, or a NAK of the packet there. Returns the bytes
    /// newly acknowledged.
    pub(super) fn on_ack(
        &mut self,
        config: &RoceConfig,
        now: Time,
        answer: &TcpSegment,
        stamps: Option<&Stamps>,
    ) -> u64 {
        let ack = answer.ack;
        if ack > self.max || ack < self.una {
            return 0;
        }
        let acked = ack - self.una;
        self.una = ack;
        self.nxt = self.nxt.max(ack);
        while self.messages.pop_front_if(|message| message.end <= ack).is_some() {}
        if acked > 0 {
            self.waits_since = (ack < self.max).then_some(now);
            self.repeats.on_ack(ack);
        }
        let (echo, sent) = (self.send_times.number(answer.seq), self.send_times.count());
        let rtt = self.send_times.sample(now, answer.seq);
        let has_more = self.nxt < self.allowed;
        let is_marked = answer.flags.has(Flags::ECE);
        self.notifications += u64::from(is_marked);
        self.controller.on_ack(&RoceAck { now, echo, sent, acked, has_more, is_marked, rtt, stamps });
        if answer.flags.has(Flags::CWR) {
            self.naks += 1;
            match config.params.repair {
                RoceRepair::GoBackN => self.nxt = self.una,
                RoceRepair::Selective => self.repeats.on_nak(ack, answer.sack.as_slice()),
            }
            self.controller.on_loss(now, Cause::Loss);
        }
        self.allow(config);
        acked
    }

    /// A congestion notification packet arrived: it acts on the rate after the reaction delay.
    pub(super) fn on_cnp(&mut self, config: &RoceConfig, now: Time) {
        self.notifications += 1;
        match config.params.cnp_delay {
            Span::ZERO => {
                self.controller.on_cnp(now);
                self.allow(config);
            }
            delay => self.cuts.push_back(now + delay),
        }
    }

    /// Returns when [`on_deadline`](RequestSide::on_deadline) must be called: the timeout, the controller's timers, or
    /// the time after `now` at which the next packet may leave.
    pub(super) fn deadline(&self, config: &RoceConfig, now: Time) -> Time {
        let cut = self.cuts.front().copied().unwrap_or(Time::MAX);
        let timers = self.timeout(config).min(self.controller.deadline()).min(cut);
        let ready = if self.may_send() { self.ready(config) } else { Time::MAX };
        if ready > now { timers.min(ready) } else { timers }
    }

    pub(super) fn on_deadline(&mut self, config: &RoceConfig, now: Time) {
        if now >= self.controller.deadline() {
            self.controller.on_deadline(now);
        }
        while self.cuts.pop_front_if(|at| *at <= now).is_some() {
            self.controller.on_cnp(now);
        }
        if now >= self.timeout(config) {
            self.timeouts += 1;
            match config.params.repair {
                RoceRepair::GoBackN => self.nxt = self.una,
                RoceRepair::Selective => self.repeats.on_timeout(self.una, self.max),
            }
            self.waits_since = Some(now);
            self.send_times.on_timeout(now);
            self.controller.on_loss(now, Cause::Timeout);
        }
        self.allow(config);
    }

    /// Returns when what is missing is sent again without a NAK; [`Time::MAX`] if nothing is outstanding.
    fn timeout(&self, config: &RoceConfig) -> Time {
        let Some(since) = self.waits_since else { return Time::MAX };
        let selective = &config.params.selective;
        since
            + match config.params.repair {
                RoceRepair::GoBackN => config.params.timeout,
                RoceRepair::Selective if self.has_few_outstanding(config) => selective.timeout_low,
                RoceRepair::Selective => selective.timeout_high,
            }
    }

    /// Returns whether so few packets are outstanding that a lost one may have none behind it that reveals the loss.
    fn has_few_outstanding(&self, config: &RoceConfig) -> bool {
        let mut end = self.una;
        for _ in 0..config.params.selective.few {
            if end == self.nxt {
                break;
            }
            end = self.packet_at(config, end).0;
        }
        end == self.nxt
    }

    // ---- sending ----

    /// Returns whether there is data to send within the window.
    fn may_send(&self) -> bool {
        let next = self.next_offset();
        next < self.allowed && next - self.una < self.allowance.window
    }

    /// Returns the offset of the packet that leaves next: the first that is missing, or new data.
    fn next_offset(&self) -> u64 {
        self.repeats.next(self.una).unwrap_or(self.nxt)
    }

    /// Returns the ends of the packet at `offset` and of its message.
    fn packet_at(&self, config: &RoceConfig, offset: u64) -> (u64, u64) {
        let end = self.message_at(offset).end;
        (end.min(offset + config.payload), end)
    }

    fn message_at(&self, offset: u64) -> Message {
        self.messages[self.messages.partition_point(|message| message.end <= offset)]
    }

    /// Computes what the controller allows now.
    fn allow(&mut self, config: &RoceConfig) {
        let ready = match self.last_sent {
            Some((at, len)) => at.saturating_add(config.gap(len, self.controller.rate())),
            None => Time::ZERO,
        };
        self.allowance = Allowance { window: self.window(config), ready };
    }

    /// Computes the bytes that may be outstanding.
    fn window(&self, config: &RoceConfig) -> u64 {
        let of_rate = || self.bytes_in_flight(self.controller.rate());
        let window = self.controller.window();
        let window = window.unwrap_or_else(|| if config.has_window() { of_rate() } else { u64::MAX });
        let cap = match config.params.repair {
            RoceRepair::GoBackN => u64::MAX,
            RoceRepair::Selective => match config.params.selective.cap {
                Some(cap) => cap.get(),
                None => self.bytes_in_flight(self.line_rate),
            },
        };
        window.min(cap).max(1)
    }

    /// Returns the bytes that `rate` sends in a base round trip.
    fn bytes_in_flight(&self, rate: Rate) -> u64 {
        let bits = u128::from(rate.as_bps()) * u128::from(self.base_rtt.as_ps());
        (bits / 8 / PS_PER_S).try_into().unwrap_or(u64::MAX)
    }

    /// Returns when the packet that leaves next may leave: the last one has had its time at the present rate, and the
    /// NIC has its message ready.
    fn ready(&self, config: &RoceConfig) -> Time {
        let of_rate = self.allowance.ready;
        if config.params.nic.message_start.is_zero() {
            return of_rate;
        }
        of_rate.max(self.message_at(self.next_offset()).ready)
    }

    /// Returns whether data is to be sent, now or later.
    pub(super) fn has_data(&self) -> bool {
        self.next_offset() < self.allowed
    }

    /// Returns whether the last packet that left ended its message.
    pub(super) fn has_ended_message(&self) -> bool {
        self.ended_message
    }

    /// Returns whether packets are outstanding and none may be sent before an answer comes, or the timeout.
    pub(super) fn awaits_answer(&self) -> bool {
        self.una < self.max && !self.may_send()
    }

    /// Returns whether a data packet may leave now.
    pub(super) fn has_packet(&self, config: &RoceConfig, now: Time) -> bool {
        self.may_send() && self.ready(config) <= now
    }

    /// Returns the next data packet, if one may leave now.
    pub(super) fn next_packet(&mut self, config: &RoceConfig, now: Time) -> Option<TcpSegment> {
        if !self.has_packet(config, now) {
            return None;
        }
        let seq = self.next_offset();
        let (packet_end, end) = self.packet_at(config, seq);
        let (len, again) = (packet_end - seq, seq < self.max);
        let is_repeat = seq < self.nxt;
        if is_repeat {
            self.repeats.on_sent(packet_end);
        } else {
            self.nxt = packet_end;
        }
        self.max = self.max.max(self.nxt);
        self.unasked += 1;
        // The last packet of a message or of the window always asks, and what fills a gap.
        let is_last = is_repeat || packet_end == end || !self.may_send();
        let asks = is_last || self.unasked >= config.params.ack_every;
        if asks {
            self.unasked = 0;
        }
        self.last_sent = Some((now, len));
        self.ended_message = packet_end == end;
        self.packets += 1;
        self.repeated += u64::from(again);
        self.waits_since = self.waits_since.or(Some(now));
        self.controller.on_sent(now, len + config.header);
        self.allow(config);
        Some(TcpSegment {
            seq,
            len: len as u32,
            ack: self.send_times.record(now),
            flags: Flags::ACK.with_if(asks, Flags::CWR).with_if(again, Flags::RETRANSMISSION),
            ecn: if config.uses_marks { EcnField::Ect } else { EcnField::NotEct },
            ..TcpSegment::default()
        })
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

    pub(super) fn window_state(&self, config: &RoceConfig) -> WindowState {
        WindowState {
            cwnd_bytes: self.allowance.window,
            ssthresh_bytes: u64::MAX,
            alpha: self.controller.alpha(),
            srtt: self.base_rtt,
            rto: match config.params.repair {
                RoceRepair::GoBackN => config.params.timeout,
                RoceRepair::Selective => config.params.selective.timeout_high,
            },
        }
    }

    pub(super) fn counters(&self) -> Counters {
        Counters {
            data_segments: self.packets,
            retransmissions: self.repeated,
            timeouts: self.timeouts,
            fast_retransmits: self.naks,
            ecn_cuts: self.notifications,
            ..Counters::default()
        }
    }
}

const PS_PER_S: u128 = 1_000_000_000_000;
