//! Swift (Kumar et al., SIGCOMM 2020): the window follows the delay, towards a target that the sender computes.
//!
//! ```text
//! target   = base_target + switches x hop_scale + min(max(alpha / sqrt(cwnd) + b, 0), fs_range)
//!            alpha = fs_range / (1 / sqrt(fs_min_cwnd) - 1 / sqrt(fs_max_cwnd)),   b = -alpha / sqrt(fs_max_cwnd)
//!
//! ACK, delay < target    cwnd += ai x acked / cwnd    (cwnd >= 1),    ai x acked    (cwnd < 1)
//! ACK, else              cwnd *= max(1 - beta (delay - target) / delay, 1 - max_mdf)    once a round trip
//! duplicate ACKs         cwnd *= 1 - max_mdf                                            once a round trip
//! timeout                the same; cwnd = min_cwnd from the retransmit_reset-th in a row on
//! ```
//!
//! Windows are in segments. Below one, the sender paces: a segment every RTT / cwnd. The square root is there because N
//! independent flows make a queue of the order of sqrt(N).
//!
//! # Departures from the paper
//! * **One window.** The paper has a second one for the delay in the hosts, and uses the smaller. Simulated hosts
//!   take no time, so that window would never be the smaller. The delay that hosts do add (the sender's NIC queue, its
//!   pacer, and receive offload that coalesces) is not visible to a sender as such and counts as delay in the fabric.
//! * **Only a real decrease counts.** Algorithm 1 notes the time of the last decrease also when the window was held,
//!   by which a flow with more than one ACK a round trip would not decrease again while the delay stays above the
//!   target. Here, as in the implementations at hand, only a decrease counts.
//! * **The smoothed RTT** is the round trip of 'once a round trip' and of the pacer; delays are raw samples.
//! * **No growth while the application limits** the sender, unless `app_limited_growth` allows it.
//! * **Hops** are the switches of the shortest path, not the rest of a TTL: a detour does not change them.
//! * The paper leaves constants to the operator. Each is a key; the defaults come from public implementations.

use plimsoll_units::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;
use crate::transports::describe::Description;
use crate::transports::tcp::FAMILY;
use crate::transports::tcp::congestion::{Ack, Cause, CongestionControl, Cut, Limits, Window};

/// The description of Swift. Its ACKs are not delayed, since Swift measures delay.
pub const SWIFT: Description = Description {
    name: "swift",
    family: &FAMILY,
    kernel_name: None,
    delays_acks: false,
    needs_marks: false,
    needs_stamps: false,
};

/// The parameters of Swift (`transport.kind = "swift"`). Windows are counted in segments.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SwiftParams {
    /// Target delay of a path without switches and of large windows, more than 0. It has to exceed the RTT of an idle
    /// path. Default 20 us (100 Gb/s).
    pub base_target: Span,
    /// The time that each switch on the path adds to the target. Default 1 us.
    pub hop_scale: Span,
    /// The most that a small window adds to the target. Default 100 us, five times `base_target`; 0 turns flow-based
    /// scaling off.
    pub fs_range: Span,
    /// Window at and below which the target is largest: more than 0. Default 0.1.
    pub fs_min_cwnd: f64,
    /// Window at and above which nothing is added: more than `fs_min_cwnd`. Default 100.
    pub fs_max_cwnd: f64,
    /// Additive increase in segments each round trip: more than 0. Default 1.
    pub ai: f64,
    /// Multiplicative decrease by how far the delay is above the target: more than 0, at most 1. Default 0.8.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub beta: f64,
    /// Largest decrease at a time, as a share of the window: more than 0, less than 1. Default 0.5.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_mdf: f64,
    /// Smallest window: more than 0, at most 1. The largest is `transport.max_window`. Default 0.001.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_cwnd: f64,
    /// Timeouts in a row from which on the window is the smallest: 1 or more. Default 5.
    pub retransmit_reset: u32,
}

impl Default for SwiftParams {
    fn default() -> SwiftParams {
        SwiftParams {
            base_target: Span::from_us(20),
            hop_scale: Span::from_us(1),
            fs_range: Span::from_us(100),
            fs_min_cwnd: 0.1,
            fs_max_cwnd: 100.0,
            ai: 1.0,
            beta: 0.8,
            max_mdf: 0.5,
            min_cwnd: 0.001,
            retransmit_reset: 5,
        }
    }
}

impl SwiftParams {
    /// Whether every key has its default, so that a scenario need not write the table.
    pub fn is_default(&self) -> bool {
        *self == SwiftParams::default()
    }

    /// Checks the ranges given at the keys.
    ///
    /// # Errors
    /// Names the first key, within `[transport]`, whose value is outside its range.
    pub fn validate(&self) -> Result<(), InvalidParam> {
        use InvalidParam as Invalid;
        let positive = |value: f64| value > 0.0 && value.is_finite();
        Invalid::unless(!self.base_target.is_zero(), "swift.base_target", self.base_target, "more than 0")?;
        let (low, high) = (self.fs_min_cwnd, self.fs_max_cwnd);
        Invalid::unless(positive(low), "swift.fs_min_cwnd", low, "more than 0")?;
        let ok = high > low && high.is_finite();
        Invalid::unless(ok, "swift.fs_max_cwnd", high, "more than `fs_min_cwnd`")?;
        Invalid::unless(positive(self.ai), "swift.ai", self.ai, "more than 0")?;
        let beta = self.beta;
        Invalid::unless(beta > 0.0 && beta <= 1.0, "swift.beta", beta, "more than 0 and at most 1")?;
        let most = self.max_mdf;
        Invalid::unless(most > 0.0 && most < 1.0, "swift.max_mdf", most, "more than 0 and less than 1")?;
        let least = self.min_cwnd;
        Invalid::unless(least > 0.0 && least <= 1.0, "swift.min_cwnd", least, "more than 0 and at most 1")?;
        let reset = self.retransmit_reset;
        Invalid::unless(reset >= 1, "swift.retransmit_reset", reset, "1 or more")
    }

    /// The target delay of a path with `switches` switches at a window of `cwnd` segments.
    pub fn target(&self, switches: u32, cwnd: f64) -> Span {
        let largest = 1.0 / self.fs_max_cwnd.sqrt();
        let alpha = self.fs_range.as_ps() as f64 / (1.0 / self.fs_min_cwnd.sqrt() - largest);
        let scaled = alpha * (1.0 / cwnd.sqrt() - largest);
        let scaled = scaled.clamp(0.0, self.fs_range.as_ps() as f64);
        self.base_target + self.hop_scale * u64::from(switches) + Span::from_ps(scaled as u64)
    }
}

/// The state of Swift beside the window: the path's length, the time of the last decrease, and timeouts in a
/// row.
#[derive(Clone, Debug)]
pub struct Swift {
    params: SwiftParams,
    switches: u32,
    last_decrease: Option<Time>,
    /// Timeouts since the last ACK of new data.
    timeouts: u32,
    /// The fraction of a byte of cwnd.
    carry: f64,
}

impl Swift {
    pub(crate) fn new(params: SwiftParams) -> Swift {
        Swift { params, switches: 0, last_decrease: None, timeouts: 0, carry: 0.0 }
    }

    /// The window in segments.
    fn cwnd(&self, limits: &Limits, window: &Window) -> f64 {
        (window.cwnd as f64 + self.carry) / limits.segment as f64
    }

    /// The window in bytes for `cwnd` segments, within its limits.
    fn bytes(&mut self, limits: &Limits, cwnd: f64) -> u64 {
        let cwnd = (cwnd.max(self.params.min_cwnd) * limits.segment as f64).min(limits.max_window as f64);
        self.carry = cwnd.fract();
        cwnd as u64
    }

    /// Returns whether a round trip has passed since the last decrease; if so, records a decrease now.
    fn may_decrease(&mut self, now: Time, rtt: Span) -> bool {
        let may = self.last_decrease.is_none_or(|last| now.saturating_since(last) >= rtt);
        if may {
            self.last_decrease = Some(now);
        }
        may
    }
}

impl CongestionControl for Swift {
    fn sets_window(&self) -> bool {
        true
    }

    fn on_path(&mut self, switches: u32) {
        self.switches = switches;
    }

    fn on_ack(&mut self, limits: &Limits, window: &mut Window, ack: &Ack) {
        self.timeouts = 0;
        let Some(delay) = ack.rtt else { return };
        let cwnd = self.cwnd(limits, window);
        let target = self.params.target(self.switches, cwnd);
        let cwnd = if delay < target {
            let acked = ack.acked as f64 / limits.segment as f64;
            let growth = if cwnd >= 1.0 { self.params.ai * acked / cwnd } else { self.params.ai * acked };
            if ack.window_limited { cwnd + growth } else { cwnd }
        } else if self.may_decrease(ack.now, ack.srtt) {
            let excess = (delay - target).as_ps() as f64 / delay.as_ps() as f64;
            cwnd * (1.0 - self.params.beta * excess).max(1.0 - self.params.max_mdf)
        } else {
            cwnd
        };
        window.cwnd = self.bytes(limits, cwnd);
    }

    fn cut(&mut self, limits: &Limits, window: &Window, cut: &Cut) -> u64 {
        self.timeouts = if cut.cause == Cause::Timeout { self.timeouts + 1 } else { 0 };
        let cwnd = self.cwnd(limits, window);
        let cwnd = if self.timeouts >= self.params.retransmit_reset {
            self.last_decrease = Some(cut.now);
            self.params.min_cwnd
        } else if self.may_decrease(cut.now, cut.srtt) {
            cwnd * (1.0 - self.params.max_mdf)
        } else {
            cwnd
        };
        self.bytes(limits, cwnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { segment: 1460, max_window: 1460 << 16, initial_window: 14_600 };

    fn ack(now: u64, rtt: u64, acked: u64) -> Ack {
        let rtt = Span::from_us(rtt);
        let now = Time::ZERO + Span::from_us(now);
        Ack { now, acked, ack: 0, nxt: 0, ece: false, rtt: Some(rtt), srtt: rtt, window_limited: true }
    }

    /// A controller two switches away, whose window is `segments` long.
    fn swift(segments: f64) -> (Swift, Window) {
        let mut swift = Swift::new(SwiftParams::default());
        swift.on_path(2);
        let cwnd = swift.bytes(&LIMITS, segments);
        (swift, Window { cwnd, ssthresh: 0, count: 0 })
    }

    #[track_caller]
    fn is(swift: &Swift, window: &Window, segments: f64) {
        let cwnd = swift.cwnd(&LIMITS, window);
        assert!((cwnd - segments).abs() < 1e-9, "{cwnd} segments, not {segments}");
    }

    #[test]
    fn the_target_grows_with_switches_and_with_the_root_of_small_windows() {
        let params = SwiftParams::default();
        assert_eq!(params.target(0, 100.0), Span::from_us(20));
        assert_eq!(params.target(0, 5_000.0), Span::from_us(20));
        assert_eq!(params.target(3, 100.0), Span::from_us(23));
        let most = params.target(3, 0.1).as_ps() as f64 - 123e6;
        assert!(most.abs() <= 1.0, "{most}");
        assert_eq!(params.target(3, 0.001), Span::from_us(123));
        // alpha = 100 us / (sqrt(10) - 0.1) = 32.655 us; a window of one: 32.655 x (1 - 0.1) = 29.389 us.
        assert_eq!(params.target(0, 1.0).as_ps() / 1_000_000, 49);
        // A quarter of the window, without its offset: twice the addition.
        let above = |cwnd| params.target(0, cwnd).as_ps() as f64 - 20e6 + 3.2655e6;
        assert!((above(1.0) / above(4.0) - 2.0).abs() < 1e-4);
        let fixed = SwiftParams { fs_range: Span::ZERO, ..params };
        assert_eq!(fixed.target(0, 0.01), Span::from_us(20));
    }

    #[test]
    fn below_the_target_the_window_grows_by_ai_each_round_trip() {
        let (mut swift, mut window) = swift(10.0);
        swift.on_ack(&LIMITS, &mut window, &ack(30, 21, 1460));
        is(&swift, &window, 10.1);
        swift.on_ack(&LIMITS, &mut window, &ack(31, 21, 2 * 1460));
        is(&swift, &window, 10.1 + 2.0 / 10.1);
        // Not while the application limits the sender.
        swift.on_ack(&LIMITS, &mut window, &Ack { window_limited: false, ..ack(32, 21, 1460) });
        is(&swift, &window, 10.1 + 2.0 / 10.1);
        // Nor by data that was sent twice, whose round trip is unknown.
        swift.on_ack(&LIMITS, &mut window, &Ack { rtt: None, ..ack(32, 21, 1460) });
        is(&swift, &window, 10.1 + 2.0 / 10.1);
    }

    #[test]
    fn a_window_below_one_grows_by_ai_an_ack() {
        let (mut swift, mut window) = swift(0.25);
        swift.on_ack(&LIMITS, &mut window, &ack(30, 21, 1460));
        is(&swift, &window, 1.25);
    }

    #[test]
    fn above_the_target_it_shrinks_by_the_excess_once_a_round_trip() {
        // A window of 100 or more: the target is 22 us.
        let (mut swift, mut window) = swift(200.0);
        swift.on_ack(&LIMITS, &mut window, &ack(1_000, 40, 1460));
        let after = 200.0 * (1.0 - 0.8 * 18.0 / 40.0);
        is(&swift, &window, after);
        swift.on_ack(&LIMITS, &mut window, &ack(1_039, 40, 1460));
        is(&swift, &window, after);
        swift.on_ack(&LIMITS, &mut window, &ack(1_040, 40, 1460));
        is(&swift, &window, after * (1.0 - 0.8 * 18.0 / 40.0));
    }

    #[test]
    fn no_decrease_takes_more_than_max_mdf() {
        let (mut swift, mut window) = swift(200.0);
        swift.on_ack(&LIMITS, &mut window, &ack(1_000, 4_000, 1460));
        is(&swift, &window, 100.0);
    }

    #[test]
    fn losses_take_max_mdf_once_a_round_trip_and_the_fifth_timeout_takes_all() {
        let (mut swift, mut window) = swift(200.0);
        let srtt = Span::from_us(30);
        let mut cut = |cause, now| {
            let now = Time::ZERO + Span::from_us(now);
            window.cwnd = swift.cut(&LIMITS, &window, &Cut { now, cause, base: 0, una: 0, srtt });
            swift.cwnd(&LIMITS, &window)
        };
        let near =
            |cwnd: f64, segments: f64| assert!((cwnd - segments).abs() < 1e-9, "{cwnd}, not {segments}");
        near(cut(Cause::Loss, 100), 100.0);
        near(cut(Cause::Loss, 129), 100.0);
        near(cut(Cause::Timeout, 130), 50.0);
        near(cut(Cause::Timeout, 140), 50.0);
        near(cut(Cause::Timeout, 1_000), 25.0);
        near(cut(Cause::Timeout, 2_000), 12.5);
        near(cut(Cause::Timeout, 3_000), 0.001);
        near(cut(Cause::Timeout, 4_000), 0.001);
    }
}
