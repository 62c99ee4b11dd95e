//! [`RequestSide`]: the messages that are sent, packet by packet, and again from where one was lost.
//!
//! ```text
//! stream:   0 ...... una ............ nxt ........ max ....... written
//!             acked      outstanding      go-back-N    not sent
//! ```

use std::collections::VecDeque;

use plimsoll_units::{Rate, Span, Time};

use super::config::RoceConfig;
use super::controller::Controller;
use super::rate_control::{RateController, RoceAck};
use super::send_times::SendTimes;
use crate::tcp::{Cause, Counters, EcnField, Flags, TcpSegment, WindowState};
use crate::telemetry::Stamps;

/// The sending half of a queue pair.
#[derive(Debug)]
pub(super) struct RequestSide {
    /// The first offset that is not acknowledged.
    una: u64,
    /// The next offset to send, which a NAK and a timeout move back to `una`.
    nxt: u64,
    /// The end of what was sent at least once.
    max: u64,
    written: u64,
    /// Where the messages end that are not acknowledged to their last byte.
    ends: VecDeque<u64>,
    controller: Controller,
    /// The rate at which the NIC sends.
    line_rate: Rate,
    base_rtt: Span,
    /// When the last data packet was sent, and its payload; the next one leaves after its time at the rate.
    last_sent: Option<(Time, u64)>,
    /// Packets since the last one that asked for an acknowledgement.
    unasked: u32,
    send_times: SendTimes,
    /// When everything outstanding is sent again; [`Time::MAX`] if nothing is.
    timeout: Time,
    packets: u64,
    repeated: u64,
    timeouts: u64,
    naks: u64,
    notifications: u64,
}

impl RequestSide {
    pub(super) fn new(config: &RoceConfig) -> RequestSide {
        RequestSide {
            una: 0,
            nxt: 0,
            max: 0,
            written: 0,
            ends: VecDeque::new(),
            controller: Controller::new(config, Rate::from_gbps(1_000), Span::from_us(1), 0),
            line_rate: Rate::from_gbps(1_000),
            base_rtt: Span::from_us(1),
            last_sent: None,
            unasked: 0,
            send_times: SendTimes::default(),
            timeout: Time::MAX,
            packets: 0,
            repeated: 0,
            timeouts: 0,
            naks: 0,
            notifications: 0,
        }
    }

    /// The NIC sends at `rate`, and an idle round trip over `switches` switches takes `round_trip`. A flow starts at
    /// line rate.
    pub(super) fn set_path(&mut self, config: &RoceConfig, rate: Rate, round_trip: Span, switches: u32) {
        self.line_rate = rate;
        self.base_rtt = config.params.base_rtt.unwrap_or(round_trip);
        self.controller = Controller::new(config, rate, self.base_rtt, switches);
    }

    pub(super) fn write(&mut self, bytes: u64) {
        self.written += bytes;
        self.ends.push_back(self.written);
    }

    // ---- answers ----

    /// An acknowledgement of everything before its number arrived, or a NAK of the packet there. Returns the bytes
    /// newly acknowledged.
    pub(super) fn on_ack(
        &mut self,
        config: &RoceConfig,
        now: Time,
        answer: &TcpSegment,
        stamps: Option<&Stamps>,
    ) -> u64 {
        let (ack, is_nak) = (answer.ack, answer.flags.has(Flags::CWR));
        if ack > self.max || ack < self.una {
            return 0;
        }
        let acked = ack - self.una;
        self.una = ack;
        self.nxt = self.nxt.max(ack);
        while self.ends.front().is_some_and(|end| *end <= ack) {
            self.ends.pop_front();
        }
        if acked > 0 {
            self.timeout = if ack == self.max { Time::MAX } else { now + config.params.timeout };
        }
        let rtt = self.send_times.sample(now, answer.seq);
        let has_more = self.nxt < self.written;
        let is_marked = answer.flags.has(Flags::ECE);
        self.notifications += u64::from(is_marked);
        self.controller.on_ack(&RoceAck { now, ack, nxt: self.nxt, acked, has_more, is_marked, rtt, stamps });
        if is_nak {
            self.naks += 1;
            self.nxt = self.una;
            self.controller.on_loss(now, Cause::Loss);
        }
        acked
    }

    /// A congestion notification packet arrived.
    pub(super) fn on_cnp(&mut self, now: Time) {
        self.notifications += 1;
        self.controller.on_cnp(now);
    }

    /// Returns when [`on_deadline`](RequestSide::on_deadline) must be called: the timeout, the controller's timers, or
    /// the time after `now` at which the next packet may leave.
    pub(super) fn deadline(&self, config: &RoceConfig, now: Time) -> Time {
        let timers = self.timeout.min(self.controller.deadline());
        let ready = if self.may_send(config) { self.ready(config) } else { Time::MAX };
        if ready > now { timers.min(ready) } else { timers }
    }

    pub(super) fn on_deadline(&mut self, config: &RoceConfig, now: Time) {
        if now >= self.controller.deadline() {
            self.controller.on_deadline(now);
        }
        if now >= self.timeout {
            self.timeouts += 1;
            self.nxt = self.una;
            self.timeout = now + config.params.timeout;
            self.send_times.on_timeout(now);
            self.controller.on_loss(now, Cause::Timeout);
        }
    }

    // ---- sending ----

    /// Returns whether there is data to send within the window.
    fn may_send(&self, config: &RoceConfig) -> bool {
        self.nxt < self.written && self.nxt - self.una < self.window(config)
    }

    /// Returns the bytes that may be outstanding; a packet leaves while fewer are.
    fn window(&self, config: &RoceConfig) -> u64 {
        let of_rate = || {
            let bits = u128::from(self.controller.rate().as_bps()) * u128::from(self.base_rtt.as_ps());
            (bits / 8 / PS_PER_S).try_into().unwrap_or(u64::MAX)
        };
        let window = self.controller.window();
        window.unwrap_or_else(|| if config.has_window() { of_rate() } else { u64::MAX }).max(1)
    }

    /// Returns when the next packet may leave: the last one has had its time at the present rate.
    fn ready(&self, config: &RoceConfig) -> Time {
        match self.last_sent {
            Some((at, len)) => at.saturating_add(config.gap(len, self.controller.rate())),
            None => Time::ZERO,
        }
    }

    /// Returns whether a data packet may leave now.
    pub(super) fn has_packet(&self, config: &RoceConfig, now: Time) -> bool {
        self.may_send(config) && self.ready(config) <= now
    }

    /// Returns the next data packet, if one may leave now.
    pub(super) fn next_packet(&mut self, config: &RoceConfig, now: Time) -> Option<TcpSegment> {
        if !self.has_packet(config, now) {
            return None;
        }
        let next_end = self.ends.partition_point(|end| *end <= self.nxt);
        let end = self.ends[next_end];
        let len = (end - self.nxt).min(config.payload);
        let (seq, again) = (self.nxt, self.nxt < self.max);
        self.nxt += len;
        self.max = self.max.max(self.nxt);
        self.unasked += 1;
        // The last packet of a message or of the window always asks.
        let is_last = self.nxt == end || !self.may_send(config);
        let asks = is_last || self.unasked >= config.params.ack_every;
        if asks {
            self.unasked = 0;
        }
        self.last_sent = Some((now, len));
        self.packets += 1;
        self.repeated += u64::from(again);
        if self.timeout == Time::MAX {
            self.timeout = now + config.params.timeout;
        }
        self.controller.on_sent(now, len + config.header);
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
            cwnd_bytes: self.window(config),
            ssthresh_bytes: u64::MAX,
            alpha: self.controller.alpha(),
            srtt: self.base_rtt,
            rto: config.params.timeout,
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
