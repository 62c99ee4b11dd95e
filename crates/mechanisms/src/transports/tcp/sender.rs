//! [`TcpSender`]: the data that may be sent now, and the changes that an ACK causes.
//!
//! ```text
//! stream:   0 ...... una ............ nxt ........ max ....... written
//!             acked      outstanding      go-back-N    not sent
//! ```
//! `nxt == max` except after a timeout, when `nxt` returns to `una` and ACKs of data that the receiver had kept move it
//! on. [`super::recovery`] repairs losses.

use plimsoll_memory::prefetch_for_later;
use plimsoll_units::{Bytes, Rate, Span, Time};

use super::config::TcpConfig;
use super::congestion::{Ack, Cause, Cut, Window};
use super::controller::Controller;
use super::params::{CutBase, EceGrowth, LossAfterEcn, Recovery};
use super::rto::Rto;
use super::scoreboard::Scoreboard;
use super::segment::{Flags, TcpSegment};

/// The state of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RecoveryPhase {
    /// The sender has not detected a loss.
    Open,
    /// Fast recovery is repairing a loss.
    Recovery,
    /// Some data that was outstanding at the last loss is not acknowledged, but fast recovery is over or a timeout
    /// ended it.
    Loss,
}

/// The sending half of an endpoint.
#[derive(Debug)]
pub(super) struct TcpSender {
    /// The first offset that is not acknowledged (SND.UNA).
    pub(super) una: u64,
    /// The next offset to send (SND.NXT).
    pub(super) nxt: u64,
    /// The end of the data that has been sent at least once.
    pub(super) max: u64,
    /// Bytes that the application wrote.
    pub(super) written: u64,
    pub(super) window: Window,
    /// The smallest that cwnd can be: one segment, or one byte where the controller sets the window.
    least_cwnd: u64,
    /// `window.cwnd` within `max_window`, in the unit in use: the limit of the outstanding data.
    usable: u64,
    pub(super) phase: RecoveryPhase,
    /// The reason of the last cut, if there was one.
    pub(super) last_cut: Option<Cause>,
    /// The segment at `una` must be sent again now.
    pub(super) resend: bool,
    /// A congestion window reduced flag is owed (RFC 3168, section 6.1.2).
    cwr: bool,
    /// The last ACK of new data carried ECE.
    ece_run: bool,
    /// Whether both ends have negotiated ECN.
    pub(super) ecn: bool,
    /// The first partial ACK of this recovery has been seen (RFC 6582).
    pub(super) partial_seen: bool,
    pub(super) dup_acks: u32,
    /// Bytes sent by limited transmit since the last new ACK.
    limited_bytes: u32,
    /// The value of `max` at the last loss; `None` before the first.
    pub(super) recover: Option<u64>,
    /// The value of `una` at the last timeout.
    timed_out_at: Option<u64>,
    /// Segments of any kind that have arrived.
    pub(super) heard: u64,
    /// The value of `heard` at the last timeout, and the number of timeouts in a row without a new arrival.
    heard_at_timeout: u64,
    silent_timeouts: u32,
    /// `max` at the last cut: a mark cuts again once the ACK is beyond.
    pub(super) cut_end: u64,
    /// Most that was outstanding in the current window, and the ACK that ends that window.
    flight_max: u64,
    flight_end: u64,
    /// The window was full at some time in that window of data.
    was_full: bool,
    /// The checks that new data must pass before it leaves: [`RESUMES`], [`PACES`].
    checks: u8,
    /// The controller sets the window itself.
    sets_window: bool,
    /// When data that only the pacer holds back may leave; `Time::MAX` if there is none.
    pub(super) pacing_deadline: Time,
    last_sent: Time,
    pub(super) rto: Rto,
    /// When the retransmission timer fires; `Time::MAX` if it is off.
    pub(super) deadline: Time,
    pub(super) controller: Controller,
    /// The selectively acknowledged ranges; allocated at the first SACK block.
    pub(super) scoreboard: Option<Box<Scoreboard>>,
    pub(super) stats: SenderStats,
}

/// The counters of a sender.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct SenderStats {
    pub(super) data_segments: u64,
    pub(super) retransmissions: u64,
    pub(super) timeouts: u64,
    pub(super) fast_retransmits: u64,
    pub(super) ece_acks: u64,
    pub(super) ecn_cuts: u64,
}

/// A segment of the stream that is sent now.
pub(super) struct SentChunk {
    pub(super) seq: u64,
    pub(super) len: u32,
    pub(super) flags: Flags,
}

/// New data that may be sent, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offer {
    /// The bytes that window and data permit: whole segments, or all that there is.
    pub allowed: u64,
    /// The window that limits the outstanding data.
    pub window: u64,
    /// The number of bytes that are sent and not acknowledged.
    pub in_flight: u64,
    /// The application has written more than `allowed`.
    pub more_data: bool,
}

impl TcpSender {
    pub(super) fn new(config: &TcpConfig) -> TcpSender {
        let controller = Controller::new(config);
        let sets_window = controller.sets_window();
        let ssthresh = if sets_window { 0 } else { config.initial_ssthresh };
        let window = Window { cwnd: config.initial_window, ssthresh, count: 0 };
        TcpSender {
            una: 0,
            nxt: 0,
            max: 0,
            written: 0,
            window,
            least_cwnd: if sets_window { 1 } else { config.segment },
            usable: config.whole(config.initial_window),
            phase: RecoveryPhase::Open,
            last_cut: None,
            resend: false,
            cwr: false,
            ece_run: false,
            ecn: config.ecn && !config.params.handshake,
            partial_seen: false,
            dup_acks: 0,
            limited_bytes: 0,
            recover: None,
            timed_out_at: None,
            heard: 0,
            heard_at_timeout: 0,
            silent_timeouts: 0,
            cut_end: 0,
            flight_max: 0,
            flight_end: 0,
            was_full: false,
            checks: if controller.is_boxed() || config.params.pacing_rate.is_some() { PACES } else { 0 },
            sets_window,
            pacing_deadline: Time::MAX,
            last_sent: Time::ZERO,
            rto: Rto::new(config),
            deadline: Time::MAX,
            controller,
            scoreboard: None,
            stats: SenderStats::default(),
        }
    }

    /// The application appends `bytes`.
    #[inline]
    pub(super) fn write(&mut self, config: &TcpConfig, bytes: u64) {
        self.checks |= u8::from(self.una == self.written) * RESUMES;
        self.written += bytes;
        if config.params.restart_on_write {
            self.set_cwnd(config, config.initial_window);
            self.window.count = 0;
        }
    }

    /// Sets cwnd, at least one segment unless the controller sets the window, and the limit of the outstanding data:
    /// always at least one segment.
    #[inline]
    pub(super) fn set_cwnd(&mut self, config: &TcpConfig, cwnd: u64) {
        self.window.cwnd = cwnd.max(self.least_cwnd);
        self.usable = config.whole(self.window.cwnd.min(config.max_window)).max(config.segment);
    }

    /// Sets cwnd for loss recovery, unless the controller sets the window.
    pub(super) fn set_cwnd_in_recovery(&mut self, config: &TcpConfig, cwnd: u64) {
        if !self.sets_window {
            self.set_cwnd(config, cwnd);
        }
    }

    /// RFC 5681, section 3.1: the initial window is one segment if the SYN was lost.
    pub(super) fn after_syn_loss(&mut self, config: &TcpConfig) {
        self.rto.after_syn_loss(config);
        self.set_cwnd(config, config.segment);
    }

    /// The timer is set if it was off (RFC 6298, section 5.1).
    #[inline]
    pub(super) fn arm(&mut self, now: Time) {
        if self.deadline == Time::MAX {
            self.restart_timer(now);
        }
    }

    /// The timer runs for a full RTO from now.
    #[inline]
    pub(super) fn restart_timer(&mut self, now: Time) {
        self.deadline = now.saturating_add(self.rto.current());
    }

    // ---- ACKs ----

    /// An ACK arrived. Returns the bytes newly acknowledged.
    #[inline]
    pub(super) fn on_ack(&mut self, config: &TcpConfig, now: Time, segment: &TcpSegment) -> u64 {
        let ack = segment.ack;
        if ack > self.max || ack < self.una {
            return 0;
        }
        let newly_sacked =
            if config.params.recovery == Recovery::Sack { self.on_sack(config, segment) } else { 0 };
        if ack > self.una {
            return self.on_new_ack(config, now, ack, segment.flags.has(Flags::ECE));
        }
        // RFC 5681, section 2 (duplicate ACK); with SACK, RFC 6675, section 2.
        let duplicate = match config.params.recovery {
            Recovery::Sack => newly_sacked > 0,
            _ => segment.len == 0 && !segment.flags.has(Flags::SYN),
        };
        if duplicate && self.max > self.una {
            self.on_duplicate_ack(config, now);
        }
        0
    }

    fn on_new_ack(&mut self, config: &TcpConfig, now: Time, ack: u64, ece: bool) -> u64 {
        let acked = ack - self.una;
        let flight = self.nxt.saturating_sub(self.una);
        self.note_flight(config, flight);
        self.una = ack;
        self.nxt = self.nxt.max(ack);
        self.resend = false;
        let rtt = self.rto.on_ack(config, now, ack);
        let (ece, srtt) = (ece && self.ecn, self.rto.srtt());
        let event = Ack { now, acked, ack, nxt: self.nxt, ece, rtt, srtt, window_limited: true };
        let (was_full, flight_max) = (self.was_full, self.flight_max);
        let limited = |window: &Window| {
            config.params.app_limited_growth || is_window_limited(window, was_full, flight_max)
        };
        if self.controller.on_ack(config, &mut self.window, &event, limited) {
            self.set_cwnd(config, self.window.cwnd);
        }

        let (may_grow, restart) = match self.phase {
            RecoveryPhase::Open => (true, true),
            RecoveryPhase::Loss => {
                self.leave_loss_when_repaired();
                (true, true)
            }
            RecoveryPhase::Recovery => self.on_ack_in_recovery(config, acked),
        };
        if self.phase != RecoveryPhase::Recovery {
            self.dup_acks = 0;
        }
        self.limited_bytes = 0;
        // RFC 6298, sections 5.2 and 5.3.
        if ack == self.max {
            self.deadline = Time::MAX;
        } else if restart {
            self.restart_timer(now);
        }

        let mut ece_allows = true;
        if self.ecn {
            ece_allows = !event.ece || (config.params.ece_growth == EceGrowth::AfterFirst && self.ece_run);
            if event.ece {
                self.stats.ece_acks += 1;
                self.on_ece(config, now);
            }
            self.ece_run = event.ece;
        }
        if may_grow
            && ece_allows
            && (config.params.app_limited_growth
                || is_window_limited(&self.window, self.was_full, self.flight_max))
        {
            self.controller.grow(config, &mut self.window, &event);
            self.set_cwnd(config, self.window.cwnd);
        }
        acked
    }

    pub(super) fn leave_loss_when_repaired(&mut self) {
        if self.recover.is_none_or(|recover| self.una >= recover) {
            self.phase = RecoveryPhase::Open;
        } else {
            self.phase = RecoveryPhase::Loss;
        }
    }

    /// RFC 3168, section 6.1.2: a mark cuts at most once a window, and not in one that a loss cut.
    fn on_ece(&mut self, config: &TcpConfig, now: Time) {
        if self.una <= self.cut_end || self.phase == RecoveryPhase::Recovery || self.sets_window {
            return;
        }
        let target = self.cut_target(config, now, Cause::Ecn);
        self.window.ssthresh = config.whole(target).max(config.min_ssthresh);
        self.set_cwnd(config, target.max(config.min_window));
        self.stats.ecn_cuts += 1;
    }

    /// Returns the window after a cut, as the controller decides it, and records that it was made.
    fn cut_target(&mut self, config: &TcpConfig, now: Time, cause: Cause) -> u64 {
        // RFC 5681, section 3.2, step 2: limited transmit does not count.
        let flight = (self.max - self.una).saturating_sub(u64::from(self.limited_bytes));
        let base = match (cause, config.params.cut_from) {
            (Cause::Loss | Cause::Timeout, CutBase::Flight) => flight,
            _ => self.window.cwnd.min(config.max_window),
        };
        let cut = Cut { now, cause, base, una: self.una, srtt: self.rto.srtt() };
        let target = self.controller.cut(config, &self.window, &cut);
        self.window.count = 0;
        self.cut_end = self.max;
        self.last_cut = Some(cause);
        self.cwr = self.ecn;
        target
    }

    /// Cuts for a loss found by duplicate ACKs. Returns true if ssthresh determines cwnd.
    pub(super) fn cut_for_loss(&mut self, config: &TcpConfig, now: Time) -> bool {
        if self.sets_window {
            let cwnd = self.cut_target(config, now, Cause::Loss);
            self.set_cwnd(config, cwnd);
            return false;
        }
        let keep = config.params.loss_after_ecn == LossAfterEcn::KeepSsthresh
            && self.last_cut == Some(Cause::Ecn)
            && self.una <= self.cut_end;
        let cwnd = self.window.cwnd.min(config.max_window);
        let target = self.cut_target(config, now, Cause::Loss);
        if keep {
            self.set_cwnd(config, cwnd / 2);
        } else {
            self.window.ssthresh = config.whole(target).max(config.min_ssthresh);
        }
        !keep
    }

    /// The retransmission timer fired (RFC 6298, section 5; RFC 5681, section 3.1).
    pub(super) fn on_timeout(&mut self, config: &TcpConfig, now: Time) {
        self.stats.timeouts += 1;
        if self.heard != self.heard_at_timeout {
            self.heard_at_timeout = self.heard;
            self.silent_timeouts = 0;
        }
        self.silent_timeouts = self.silent_timeouts.saturating_add(1);
        // RFC 5681, equation 4, and its consequence: a segment that times out again cuts no more.
        let again = config.params.cut_from == CutBase::Flight
            && self.last_cut == Some(Cause::Timeout)
            && self.timed_out_at == Some(self.una);
        let keep =
            config.params.loss_after_ecn == LossAfterEcn::KeepSsthresh && self.last_cut == Some(Cause::Ecn);
        if self.sets_window {
            let cwnd = self.cut_target(config, now, Cause::Timeout);
            self.set_cwnd(config, cwnd);
        } else if !again && !keep {
            let target = self.cut_target(config, now, Cause::Timeout);
            let mut ssthresh = config.whole(target).max(config.min_ssthresh);
            if config.params.cut_from == CutBase::Flight && self.phase != RecoveryPhase::Open {
                // FlightSize then counts what duplicate ACKs have reported as received; without this,
                // a timeout during recovery would raise ssthresh.
                ssthresh = ssthresh.min(self.window.ssthresh);
            }
            self.window.ssthresh = ssthresh;
        }
        self.window.count = 0;
        self.set_cwnd_in_recovery(config, config.segment);
        self.timed_out_at = Some(self.una);
        // A mark cuts again at once, unless the window was already cut for a mark and not now.
        self.cut_end = if keep { self.max } else { 0 };
        self.phase = RecoveryPhase::Loss;
        self.recover = Some(self.max);
        self.nxt = self.una;
        self.resend = false;
        self.dup_acks = 0;
        self.limited_bytes = 0;
        self.rto.back_off(config);
        self.rto.on_retransmitted();
        // RFC 6675, section 5.1: selectively acknowledged data is kept, and not sent again.
        self.restart_timer(now);
    }

    /// Prefetches the memory behind the sender that an ACK will use.
    #[inline]
    pub(super) fn prefetch(&self) {
        self.rto.prefetch();
        if let Some(scoreboard) = self.scoreboard.as_deref() {
            prefetch_for_later(scoreboard);
        }
    }

    // ---- window use ----

    /// Records the most that was outstanding in this window of data, and whether the window was full.
    #[inline]
    fn note_flight(&mut self, config: &TcpConfig, flight: u64) {
        let full = flight + config.segment > self.usable;
        if self.una >= self.flight_end {
            self.flight_end = self.nxt;
            self.flight_max = flight;
            self.was_full = full;
        } else {
            self.flight_max = self.flight_max.max(flight);
            self.was_full |= full;
        }
    }

    // ---- sending ----

    /// The next piece of the stream that may leave now.
    #[inline]
    pub(super) fn next_chunk(&mut self, config: &TcpConfig, now: Time) -> Option<SentChunk> {
        if self.resend {
            return self.resend_first(config, now);
        }
        if self.nxt < self.max {
            return self.next_after_timeout(config, now);
        }
        if self.phase == RecoveryPhase::Recovery && config.params.recovery == Recovery::Sack {
            return self.next_with_sack(config, now);
        }
        self.next_new(config, now)
    }

    #[inline]
    fn next_new(&mut self, config: &TcpConfig, now: Time) -> Option<SentChunk> {
        let len = (self.written - self.nxt).min(config.segment);
        if len == 0 {
            return None;
        }
        if self.checks != 0 && !self.passes_checks(config, now, len) {
            return None;
        }
        let flight = self.flight(config);
        // Silly window avoidance (RFC 9293, section 3.8.6.2.1): data cut from the middle of the stream is a full
        // segment, or nothing.
        let allowed = self.usable + self.limited_transmit_allowance(config);
        if flight + len > allowed {
            return None;
        }
        // Nagle (RFC 9293, section 3.7.4).
        if len < config.segment && config.params.nagle && flight > 0 {
            return None;
        }
        if flight + len > self.usable {
            self.limited_bytes += len as u32;
        }
        Some(self.send(config, now, self.nxt, len))
    }

    /// Returns the new data that may leave now, if it would leave next and no loss is being repaired.
    pub(super) fn offer(&self, config: &TcpConfig) -> Option<Offer> {
        let repairs =
            self.resend || self.nxt < self.max || self.phase != RecoveryPhase::Open || self.dup_acks > 0;
        let in_flight = self.nxt - self.una;
        let room = self.usable.saturating_sub(in_flight);
        let waiting = self.written - self.nxt;
        let more_data = waiting > room;
        let allowed = if more_data { room - room % config.segment } else { waiting };
        let offer = Offer { allowed, window: self.usable, in_flight, more_data };
        (allowed > 0 && !repairs).then_some(offer)
    }

    /// After a timeout: everything from `nxt` on again, without the data that the receiver is known to have.
    #[cold]
    fn next_after_timeout(&mut self, config: &TcpConfig, now: Time) -> Option<SentChunk> {
        let mut end = self.written;
        if let Some(scoreboard) = &self.scoreboard {
            (self.nxt, end) = scoreboard.next_unsacked(self.nxt, self.written);
            if self.nxt >= self.max {
                self.nxt = self.max;
                return self.next_new(config, now);
            }
        }
        if self.is_probing(config) {
            // pFabric's probe mode: the window is one byte.
            return (self.nxt == self.una).then(|| self.send(config, now, self.una, 1));
        }
        let len = (end - self.nxt).min(config.segment);
        if self.flight(config) + len > self.usable || !self.may_leave(config, now, len) {
            return None;
        }
        Some(self.send(config, now, self.nxt, len))
    }

    /// Returns whether only probes leave, after this number of timeouts in a row without an arrival.
    fn is_probing(&self, config: &TcpConfig) -> bool {
        self.silent_timeouts >= config.probe_after && self.heard == self.heard_at_timeout
    }

    /// Returns the outstanding bytes as the window counts them: after a timeout, without the selectively acknowledged
    /// ones.
    #[inline]
    fn flight(&self, config: &TcpConfig) -> u64 {
        let outstanding = self.nxt - self.una;
        match &self.scoreboard {
            Some(scoreboard)
                if self.phase == RecoveryPhase::Loss
                    && config.params.recovery == Recovery::Sack
                    && !config.params.sacked_in_window =>
            {
                outstanding - scoreboard.sacked_below(self.nxt)
            }
            _ => outstanding,
        }
    }

    /// RFC 3042: the first two duplicate ACKs each release a segment.
    #[inline]
    fn limited_transmit_allowance(&self, config: &TcpConfig) -> u64 {
        if self.dup_acks == 0 || !config.params.limited_transmit || self.phase != RecoveryPhase::Open {
            return 0;
        }
        u64::from(self.dup_acks.min(2)) * config.segment
    }

    /// Returns the written bytes that are not known to be received.
    pub(super) fn remaining(&self) -> u64 {
        let sacked = self.scoreboard.as_ref().map_or(0, |scoreboard| scoreboard.sacked_below(self.max));
        self.written - self.una - sacked
    }

    /// Runs the `checks` for new data of `len` bytes. Returns false if the pacer holds back data that the window
    /// permits.
    #[cold]
    fn passes_checks(&mut self, config: &TcpConfig, now: Time, len: u64) -> bool {
        if self.checks & RESUMES != 0 {
            self.restart_after_idle(config, now);
        }
        let allowed = self.usable + self.limited_transmit_allowance(config);
        self.flight(config) + len > allowed || self.may_leave(config, now, len)
    }

    /// Returns whether the pacer lets `len` bytes leave now; if not, it sets `pacing_deadline` to the time when it
    /// does. The time counts from the last departure at the current pace, so a window that opens shortens the wait.
    pub(super) fn may_leave(&mut self, config: &TcpConfig, now: Time, len: u64) -> bool {
        if self.checks & PACES == 0 {
            return true;
        }
        self.pacing_deadline = Time::MAX;
        let due = self.last_sent.saturating_add(self.pacing_gap(config, len));
        let may_leave = self.max == 0 || due <= now;
        if !may_leave {
            self.pacing_deadline = due;
            if self.nxt == self.una && self.deadline != Time::MAX {
                // All outstanding data has timed out: the timer runs from its next departure.
                self.deadline = self.deadline.max(due.saturating_add(self.rto.current()));
            }
        }
        may_leave
    }

    /// Returns the time that must pass between the last data and the next `len` bytes, the longer of two: where cwnd is
    /// below one segment, the round trips in which the windows add up to `len`; and their time at the lower of the
    /// controller's rate and the configured one.
    fn pacing_gap(&self, config: &TcpConfig, len: u64) -> Span {
        let cwnd = self.window.cwnd;
        let by_window = if cwnd < config.segment {
            let gap = u128::from(self.rto.srtt().as_ps()) * u128::from(len) / u128::from(cwnd);
            Span::from_ps(u64::try_from(gap).unwrap_or(u64::MAX))
        } else {
            Span::ZERO
        };
        let of_controller = self.controller.pacing_rate().filter(|rate| *rate != Rate::ZERO);
        let rate = of_controller.into_iter().chain(config.params.pacing_rate).min();
        let by_rate =
            rate.map_or(Span::ZERO, |rate| Bytes::new(len + u64::from(config.header_bytes)).time_at(rate));
        by_window.max(by_rate)
    }

    /// Restarts after an idle time: cwnd falls back (RFC 5681, section 4.1), and the controller receives the length of
    /// the idle time.
    #[cold]
    fn restart_after_idle(&mut self, config: &TcpConfig, now: Time) {
        self.checks &= !RESUMES;
        let idle = now.saturating_since(self.last_sent);
        if self.max == 0 || idle.is_zero() {
            return;
        }
        if config.params.idle_restart && idle > self.rto.current() {
            self.set_cwnd(config, self.window.cwnd.min(config.initial_window));
            self.window.count = 0;
        }
        self.controller.on_restart(idle);
    }

    /// Sends the segment at `una` again, even beyond the window, when the pacer lets it leave.
    #[cold]
    fn resend_first(&mut self, config: &TcpConfig, now: Time) -> Option<SentChunk> {
        let len = (self.max - self.una).min(config.segment);
        if !self.may_leave(config, now, len) {
            return None;
        }
        self.resend = false;
        Some(self.send(config, now, self.una, len))
    }

    /// Records `len` bytes at `seq` as sent now.
    #[inline]
    pub(super) fn send(&mut self, config: &TcpConfig, now: Time, seq: u64, len: u64) -> SentChunk {
        let end = seq + len;
        let again = seq < self.max;
        let mut flags = Flags::NONE;
        if again {
            self.rto.on_retransmitted();
            self.stats.retransmissions += 1;
            flags = Flags::RETRANSMISSION;
            if let Some(scoreboard) = &mut self.scoreboard {
                scoreboard.on_sent(end, len);
            }
        } else {
            self.rto.on_sent(config, now, end);
            // RFC 3168, section 6.1.2: on the first new data after the cut.
            flags = flags.with_if(self.cwr, Flags::CWR);
            self.cwr = false;
            if let Some(scoreboard) = &mut self.scoreboard {
                scoreboard.on_sent_new(len);
            }
        }
        self.nxt = self.nxt.max(end);
        self.max = self.max.max(end);
        self.last_sent = now;
        self.stats.data_segments += 1;
        self.arm(now);
        SentChunk { seq, len: len as u32, flags }
    }
}

/// Returns whether the window limits the sender (RFC 7661, section 4.3): it was full, or in slow start, where it
/// doubles in a round trip, half of it was in use.
#[inline]
fn is_window_limited(window: &Window, was_full: bool, flight_max: u64) -> bool {
    was_full || (window.in_slow_start() && window.cwnd < 2 * flight_max)
}

/// The application wrote after everything had been acknowledged, and nothing was sent since.
const RESUMES: u8 = 1;
/// The controller may pace, or the configuration has a rate.
const PACES: u8 = 2;
