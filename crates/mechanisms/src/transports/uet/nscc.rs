//! [`Nscc`]: the window of a sender, by queueing delay and marks (Ultra Ethernet 1.0, network signal-based congestion
//! control).
//!
//! ```text
//! d = round trip - base                    not marked                          marked
//! d < T   proportional: sum += alpha n (T - d); d < 1 us for a window: fast    nothing (the path choice reacts)
//! d >= T  fair: sum += fi n                                                    cwnd x max(1 - 0.8 (avg - T)/avg, 0.5)
//! each 8 packets or R: cwnd += sum / cwnd;  each R: + eta;  trimmed: - a packet;  little delivered: cwnd = that
//! ```
//!
//! The constants are scaled from a network of 100 Gb/s and 12 us: with R the base round trip of the network, T the
//! target, `a = R x rate / 150,000 B` and `b = T / 12 us`, `alpha = 4 mss a b / T`, `fi = 5 mss a`, `eta = 0.15 mss a`
//! and the fast factor 0.25 a. Facts: the published simulator of the transport's working group (2025).

use plimsoll_units::{Rate, Span, Time};

use super::params::UetParams;

/// The window of one sender. Times are in picoseconds, and windows in bytes on the wire.
#[derive(Debug)]
pub(super) struct Nscc {
    constants: Constants,
    cwnd: f64,
    /// The smallest round trip so far; the network's before the first.
    base_rtt: f64,
    /// The largest window, which follows `base_rtt`, and for each picosecond of it.
    max_window: f64,
    window_per_ps: f64,
    /// The moving average of the queueing delay.
    average: f64,
    /// The growth of the window, times the window, and the bytes acknowledged since it was added.
    increase: f64,
    unadded: u64,
    added: Time,
    cut: Option<Time>,
    /// Bytes that were acknowledged in a row without a queue.
    fast_bytes: f64,
    quick: QuickAdapt,
}

/// Constants that all senders of a network share.
#[derive(Debug)]
struct Constants {
    round_trip: f64,
    target: f64,
    alpha: f64,
    fair: f64,
    eta: f64,
    fast: f64,
    mtu: f64,
    quick_adapt: bool,
    fast_increase: bool,
}

/// The state of quick adapt: a round trip with the target's delay is a window.
#[derive(Debug, Default)]
struct QuickAdapt {
    ends: Option<Time>,
    delivered: u64,
    /// A packet was trimmed, or late by four targets, in this window.
    is_armed: bool,
    /// The bytes that are still to be answered of those in flight when it last acted.
    ignored: u64,
}

/// What an acknowledgement says to the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct NsccAck {
    pub(super) now: Time,
    /// The bytes on the wire that newly arrived.
    pub(super) arrived: u64,
    /// The round trip of the packet that caused it, if it is known.
    pub(super) round_trip: Option<Span>,
    pub(super) is_marked: bool,
    /// The bytes in flight after it.
    pub(super) in_flight: u64,
}

impl Nscc {
    /// Makes the window of a sender whose NIC sends at `rate`, in a network of round trip `round_trip`; packets have
    /// `payload` and `header` bytes.
    pub(super) fn new(params: &UetParams, rate: Rate, round_trip: Span, [payload, header]: [u64; 2]) -> Nscc {
        let reference = 12e6;
        let round_trip = round_trip.as_ps() as f64;
        let sent = round_trip * rate.as_bps() as f64 / 8e12;
        let max_window = params.max_window.map_or(1.5 * sent, |window| window.get() as f64);
        let (a, mss) = (sent / 150_000.0, payload as f64);
        let of_network = round_trip * if params.trimming { 0.75 } else { 1.0 };
        let target = params.nscc.target_delay.map_or(of_network, |target| target.as_ps() as f64);
        Nscc {
            constants: Constants {
                round_trip,
                target,
                alpha: 4.0 * mss * a * (target / reference) / target,
                fair: 5.0 * mss * a,
                eta: 0.15 * mss * a,
                fast: 0.25 * a,
                mtu: mss + header as f64,
                quick_adapt: params.nscc.quick_adapt,
                fast_increase: params.nscc.fast_increase,
            },
            cwnd: max_window,
            base_rtt: round_trip,
            max_window,
            window_per_ps: if params.max_window.is_some() { 0.0 } else { max_window / round_trip },
            average: 0.0,
            increase: 0.0,
            unadded: 0,
            added: Time::ZERO,
            cut: None,
            fast_bytes: 0.0,
            quick: QuickAdapt::default(),
        }
    }

    /// Returns the bytes on the wire that may be in flight.
    pub(super) fn window(&self) -> u64 {
        self.cwnd as u64
    }

    /// Returns the largest window.
    pub(super) fn max_window(&self) -> u64 {
        self.max_window as u64
    }

    /// Returns the queueing delay that is aimed at.
    pub(super) fn target(&self) -> Span {
        Span::from_ps(self.constants.target as u64)
    }

    /// An acknowledgement arrived.
    pub(super) fn on_ack(&mut self, ack: &NsccAck) {
        let NsccAck { now, arrived, round_trip, is_marked, in_flight } = *ack;
        let delay = round_trip.map_or(self.average, |sample| self.delay_of(sample));
        if round_trip.is_some() {
            self.take_average(delay, is_marked);
        }
        self.quick.delivered += arrived;
        self.quick.is_armed |= delay > 4.0 * self.constants.target;
        let is_ignored = is_marked && self.quick.ignored > 0;
        self.quick.ignored = self.quick.ignored.saturating_sub(arrived);
        if self.adapts_quickly(now, in_flight) || is_ignored {
            self.increase = 0.0;
            return self.clamp();
        }
        let target = self.constants.target;
        let bytes = arrived as f64;
        match (is_marked, delay >= target) {
            (false, true) => {
                self.fast_bytes = 0.0;
                self.increase += self.constants.fair * bytes;
            }
            (false, false) => self.grow(delay, bytes),
            (true, true) => {
                self.fast_bytes = 0.0;
                self.cut_for_delay(now);
            }
            (true, false) => self.fast_bytes = 0.0,
        }
        self.unadded += arrived;
        let is_due = (now - self.added).as_ps() as f64 > self.constants.round_trip;
        if is_due || self.unadded as f64 > 8.0 * self.constants.mtu {
            self.cwnd += self.increase / self.cwnd;
            (self.increase, self.unadded) = (0.0, 0);
            if is_due {
                self.cwnd += self.constants.eta;
                self.added = now;
            }
        }
        self.clamp();
    }

    /// A packet of `size` bytes was trimmed; `counts` says whether the window falls for it.
    pub(super) fn on_nack(&mut self, now: Time, size: u64, counts: bool, in_flight: u64) {
        self.take_average(self.constants.round_trip, true);
        self.quick.is_armed = true;
        let is_ignored = self.quick.ignored > 0;
        self.quick.ignored = self.quick.ignored.saturating_sub(size);
        if !self.adapts_quickly(now, in_flight) && !is_ignored && counts {
            self.cwnd -= size as f64;
        }
        self.clamp();
    }

    /// No answer has arrived for a packet: little may have been delivered.
    pub(super) fn on_timeout(&mut self) {
        self.quick.is_armed = true;
    }

    /// A round trip was measured, also one of a trimmed packet: the base is the smallest.
    pub(super) fn on_round_trip(&mut self, sample: Span) {
        self.base_rtt = self.base_rtt.min(sample.as_ps() as f64);
        if self.window_per_ps > 0.0 {
            self.max_window = self.base_rtt * self.window_per_ps;
        }
    }

    fn delay_of(&self, sample: Span) -> f64 {
        (sample.as_ps() as f64 - self.base_rtt).max(0.0)
    }

    /// Takes a sample of the delay into the average. One without a mark that is above the target counts as a quarter of
    /// the base round trip, as in the published simulator.
    fn take_average(&mut self, delay: f64, is_marked: bool) {
        let sample = if !is_marked && delay > self.constants.target { 0.25 * self.base_rtt } else { delay };
        self.average += WEIGHT * (sample - self.average);
    }

    /// Grows the window at a delay below the target.
    fn grow(&mut self, delay: f64, bytes: f64) {
        if delay < NO_QUEUE && self.constants.fast_increase {
            self.fast_bytes += bytes;
            if self.fast_bytes > self.cwnd {
                self.cwnd += self.constants.fast * bytes;
                return;
            }
        } else {
            self.fast_bytes = 0.0;
        }
        self.increase += self.constants.alpha * bytes * (self.constants.target - delay);
    }

    fn cut_for_delay(&mut self, now: Time) {
        let has_waited = self.cut.is_none_or(|cut| (now - cut).as_ps() as f64 > self.base_rtt);
        if self.average > self.constants.target && has_waited {
            let excess = (self.average - self.constants.target) / self.average;
            self.cwnd *= (1.0 - GAMMA * excess).max(0.5);
            self.cut = Some(now);
        }
    }

    /// At the end of a round trip with the target's delay: if packets were trimmed or very late, and little was
    /// delivered, the window becomes that. Returns whether it did.
    fn adapts_quickly(&mut self, now: Time, in_flight: u64) -> bool {
        let span = Span::from_ps((self.base_rtt + self.constants.target) as u64);
        let ends = *self.quick.ends.get_or_insert(now + span);
        if now < ends || !self.constants.quick_adapt {
            return false;
        }
        let QuickAdapt { delivered, is_armed, .. } = self.quick;
        let acts = is_armed && (delivered as f64) < self.max_window / 8.0;
        let ignored = if acts { in_flight } else { self.quick.ignored };
        if acts {
            self.cwnd = (delivered as f64).max(self.constants.mtu);
        }
        self.quick = QuickAdapt { ends: Some(now + span), delivered: 0, is_armed: false, ignored };
        acts
    }

    fn clamp(&mut self) {
        self.cwnd = self.cwnd.clamp(self.constants.mtu, self.max_window.max(self.constants.mtu));
    }
}

/// The weight of a sample in the average delay.
const WEIGHT: f64 = 0.0125;
/// The share of the excess delay by which a mark cuts.
const GAMMA: f64 = 0.8;
/// The delay below which a queue counts as empty: 1 us, whatever the network.
const NO_QUEUE: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;

    /// The network of the published runs: 100 Gb/s, three tiers.
    fn nscc() -> Nscc {
        Nscc::new(&UetParams::default(), Rate::from_gbps(100), RTT, [4_086, 64])
    }

    const RTT: Span = Span::from_ps(14_022_720);

    fn at(us: f64) -> Time {
        Time::from_ps((us * 1e6) as u64)
    }

    fn ack(us: f64, arrived: u64, delay_us: f64, is_marked: bool) -> NsccAck {
        let round_trip = Some(RTT + Span::from_ps((delay_us * 1e6) as u64));
        NsccAck { now: at(us), arrived, round_trip, is_marked, in_flight: 100_000 }
    }

    #[test]
    fn constants_follow_from_the_network() {
        let nscc = nscc();
        let constants = &nscc.constants;
        // 175,284 B in a round trip; 1.5 of it are 63.4 packets.
        assert_eq!(nscc.window(), 262_926);
        assert!((constants.alpha * constants.target - 16_739.0).abs() < 1.0, "{}", constants.alpha);
        assert!((constants.fair - 23_874.0).abs() < 1.0);
        assert!((constants.eta - 716.0).abs() < 1.0);
        assert!((constants.fast - 0.292).abs() < 0.001);
        assert!((constants.target / 0.75 - constants.round_trip).abs() < 1.0);
    }

    #[test]
    fn a_window_without_delay_grows_by_alpha_and_eta() {
        let mut nscc = nscc();
        nscc.cwnd = 100_000.0;
        nscc.constants.fast_increase = false;
        // A window's bytes at no delay, in steps of more than eight packets: 16,739 B x bytes / window.
        for step in 1..=4 {
            nscc.on_ack(&ack(f64::from(step), 40_000, 0.0, false));
        }
        // Each step adds alpha T x 40,000 / cwnd.
        let mut expected: f64 = 100_000.0;
        for _ in 0..4 {
            expected += 16_738.7 * 40_000.0 / expected;
        }
        assert!((nscc.cwnd - expected).abs() < 5.0, "{} {expected}", nscc.cwnd);
        let before = nscc.cwnd;
        nscc.on_ack(&ack(20.0, 0, 0.0, false));
        assert!((nscc.cwnd - before - nscc.constants.eta).abs() < 1e-6);
    }

    #[test]
    fn fast_increase_begins_after_a_window_without_a_queue() {
        let mut nscc = nscc();
        nscc.cwnd = 50_000.0;
        nscc.on_ack(&ack(1.0, 50_000, 0.0, false));
        let slow = nscc.cwnd;
        nscc.on_ack(&ack(2.0, 20_000, 0.5, false));
        assert!((nscc.cwnd - slow - nscc.constants.fast * 20_000.0).abs() < 1e-6);
        // A delay of 1 us ends it.
        nscc.on_ack(&ack(3.0, 1_000, 1.0, false));
        let before = nscc.cwnd;
        nscc.on_ack(&ack(3.5, 1_000, 0.0, false));
        assert_eq!(nscc.cwnd, before);
    }

    #[test]
    fn marks_cut_once_a_round_trip_and_only_above_the_target() {
        let mut nscc = nscc();
        nscc.average = 2.0 * nscc.constants.target;
        nscc.on_ack(&ack(30.0, 1_000, 9.0, true));
        let untouched = nscc.cwnd;
        nscc.on_ack(&ack(31.0, 1_000, 21.0, true));
        let excess = (nscc.average - nscc.constants.target) / nscc.average;
        // The round trip since the last addition has passed, so eta was added after the cut.
        assert!(nscc.cwnd < untouched * (1.0 - 0.8 * excess) + nscc.constants.eta + 1.0);
        let cut = nscc.cwnd;
        nscc.on_ack(&ack(32.0, 1_000, 21.0, true));
        assert_eq!(nscc.cwnd, cut);
    }

    #[test]
    fn little_delivered_beside_trimming_sets_the_window_to_it() {
        let mut nscc = nscc();
        nscc.on_nack(at(10.0), 4_150, true, 250_000);
        assert_eq!(nscc.window(), 262_926 - 4_150);
        nscc.on_ack(&ack(20.0, 8_300, 5.0, false));
        // The window of base and target, 24.5 us from the first feedback, has ended.
        nscc.on_nack(at(35.0), 4_150, true, 200_000);
        assert_eq!(nscc.window(), 8_300);
        // Trimmed packets of the bytes in flight are ignored.
        nscc.on_nack(at(36.0), 4_150, true, 195_850);
        assert_eq!(nscc.window(), 8_300);
    }
}
