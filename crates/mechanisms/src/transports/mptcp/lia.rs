//! [`Lia`]: linked increases, the coupled congestion control of RFC 6356.
//!
//! ```text
//! each ACK in congestion avoidance:  cwnd_i += min(alpha acked MSS / cwnd_total,  acked MSS / cwnd_i)     section 3
//!
//!         alpha = cwnd_total max(cwnd_i / rtt_i^2) / (sum cwnd_i / rtt_i)^2                             equation 2
//! ```
//!
//! The sums are over the subflows of a connection. Slow start and the reaction to a loss are TCP's (RFC 5681). The
//! floor of ssthresh is `transport.min_ssthresh`, and `transport.growth` does not count: growth is by bytes. All values
//! are integers; the fraction of a byte in an increase is carried over to the next one.

use plimsoll_units::Span;

use crate::transports::tcp::{Ack, CongestionControl, Cut, Limits, SubflowWindow, Window};

/// The coupled congestion controller of one subflow (RFC 6356).
#[derive(Clone, Copy, Debug, Default)]
pub struct Lia {
    /// Alpha in units of 2^-20; 0 while it cannot be computed, when the subflow grows as TCP does.
    alpha: u64,
    /// The windows of all subflows together, in bytes.
    total: u64,
    /// The fractions of a byte carried over from increases so far, in units of 2^-20 bytes.
    carry: u64,
}

impl CongestionControl for Lia {
    fn on_subflows(&mut self, subflows: &[SubflowWindow], own: usize) {
        self.alpha = if subflows[own].srtt.is_zero() { 0 } else { lia_alpha(subflows) };
        self.total = measured(subflows).map(|subflow| subflow.cwnd).sum();
    }

    fn grow(&mut self, limits: &Limits, window: &mut Window, ack: &Ack) {
        if window.in_slow_start() {
            window.cwnd += ack.acked.min(limits.segment);
            return;
        }
        let product = (u128::from(ack.acked) * u128::from(limits.segment)) << ALPHA_BITS;
        let own = product / u128::from(window.cwnd.max(1));
        let increase = match self.alpha {
            0 => own,
            alpha => own.min((product >> ALPHA_BITS) * u128::from(alpha) / u128::from(self.total.max(1))),
        };
        let increase = increase.min(u128::from(u32::MAX) << ALPHA_BITS) as u64 + self.carry;
        window.cwnd += increase >> ALPHA_BITS;
        self.carry = increase & ((1 << ALPHA_BITS) - 1);
    }

    fn cut(&mut self, _: &Limits, _: &Window, cut: &Cut) -> u64 {
        cut.base / 2
    }
}

/// Returns alpha of RFC 6356, equation 2, in units of 2^-20. Subflows without a measured RTT do not count; 0 if all
/// lack it.
pub fn lia_alpha(subflows: &[SubflowWindow]) -> u64 {
    // With the RTTs as shares of the longest, as in section 4.1, all values fit 128 bits: windows to 2^32 bytes, and
    // RTTs that differ by 2^14 at most.
    let cwnd = |subflow: &SubflowWindow| u128::from(subflow.cwnd.min(u64::from(u32::MAX)));
    let Some(longest) = measured(subflows).map(|subflow| subflow.srtt).max() else { return 0 };
    let shortest = Span::from_ps(longest.as_ps() >> 14).max(Span::from_ps(1));
    let (mut best, mut sum, mut total) = (0, 0, 0);
    for subflow in measured(subflows) {
        let share = (u128::from(longest.as_ps()) << 12) / u128::from(subflow.srtt.max(shortest).as_ps());
        best = best.max(cwnd(subflow) * share * share);
        sum += cwnd(subflow) * share;
        total += cwnd(subflow);
    }
    if sum == 0 {
        return 0;
    }
    // total best / sum^2, in an order that loses no more than the last bits: best / sum < 2^27 and total / sum <= 1.
    let ratio = (best << 12) / sum;
    (ratio * (total << (ALPHA_BITS - 12)) / sum) as u64
}

/// Returns the subflows that have measured their RTT.
fn measured(subflows: &[SubflowWindow]) -> impl Iterator<Item = &SubflowWindow> {
    subflows.iter().filter(|subflow| !subflow.srtt.is_zero())
}

const ALPHA_BITS: u32 = 20;

#[cfg(test)]
mod tests {
    use plimsoll_units::Time;

    use super::*;

    const MSS: u64 = 1_000;

    fn subflows(windows: &[(u64, u64)]) -> Vec<SubflowWindow> {
        let subflow = |&(cwnd, ms)| SubflowWindow { cwnd, srtt: Span::from_ms(ms) };
        windows.iter().map(subflow).collect()
    }

    /// Windows in bytes and RTTs in ms against alpha by hand.
    #[test]
    fn alpha_is_that_of_equation_2() {
        let cases: &[(&[(u64, u64)], f64)] = &[
            // One subflow: cwnd x cwnd / rtt^2 / (cwnd / rtt)^2.
            (&[(10_000, 10)], 1.0),
            // n like subflows: n w (w / r^2) / (n w / r)^2 = 1 / n.
            (&[(10_000, 10), (10_000, 10)], 0.5),
            (&[(7_000, 3), (7_000, 3), (7_000, 3), (7_000, 3)], 0.25),
            // 30000 x (20000 / 100) / (20000 / 10 + 10000 / 20)^2 = 6e6 / 2500^2.
            (&[(20_000, 10), (10_000, 20)], 0.96),
            // 110000 x (10000 / 1) / (10000 / 1 + 100000 / 100)^2 = 1.1e9 / 11000^2.
            (&[(10_000, 1), (100_000, 100)], 1_100.0 / 121.0),
            // 12000 x max(2000 / 4, 10000 / 100) / (2000 / 2 + 10000 / 10)^2 = 6e6 / 2000^2.
            (&[(2_000, 2), (10_000, 10)], 1.5),
            // Without its RTT a subflow does not count.
            (&[(10_000, 10), (40_000, 0)], 1.0),
            (&[(10_000, 0)], 0.0),
        ];
        for (windows, alpha) in cases {
            let computed = lia_alpha(&subflows(windows)) as f64 / f64::from(1 << ALPHA_BITS);
            assert!((computed - alpha).abs() < 2e-5 * alpha.max(1.0), "{windows:?}: {computed}, not {alpha}");
        }
    }

    #[test]
    fn alpha_of_the_largest_windows_does_not_overflow() {
        let subflow = |cwnd, ps| SubflowWindow { cwnd, srtt: Span::from_ps(ps) };
        let largest = vec![subflow(u64::MAX, u64::MAX); 8];
        assert_eq!(lia_alpha(&largest), (1 << ALPHA_BITS) / 8);
        let uneven = [subflow(u64::MAX, 1), subflow(u64::MAX, u64::MAX)];
        // The RTTs count as if they differed by 2^14: 2 x 2^28 / (2^14 + 1)^2.
        let alpha = lia_alpha(&uneven) as f64 / f64::from(1 << ALPHA_BITS);
        assert!((alpha - 2.0).abs() < 1e-3, "{alpha}");
    }

    fn grown(windows: &[(u64, u64)], ssthresh: u64, acked: u64, acks: u32) -> u64 {
        let subflows = subflows(windows);
        let mut lia = Lia::default();
        let mut window = Window { cwnd: subflows[0].cwnd, ssthresh, count: 0 };
        let limits = Limits { segment: MSS, max_window: 1 << 30, initial_window: 10 * MSS };
        lia.on_subflows(&subflows, 0);
        for _ in 0..acks {
            let ack = Ack {
                now: Time::ZERO,
                acked,
                ack: 0,
                nxt: 0,
                ece: false,
                rtt: None,
                srtt: subflows[0].srtt,
                window_limited: true,
            };
            lia.grow(&limits, &mut window, &ack);
        }
        window.cwnd - subflows[0].cwnd
    }

    /// Windows in bytes and RTTs in ms, acknowledged bytes, and by how much the first window grows.
    #[test]
    fn increase_is_that_of_section_3() {
        // Alpha 1/2: 1000 x 1000 / 20000 / 2 = 25 bytes; alone it would be 100.
        assert_eq!(grown(&[(10_000, 10), (10_000, 10)], 0, 1_000, 1), 25);
        assert_eq!(grown(&[(10_000, 10), (10_000, 10)], 0, 2_000, 1), 50);
        assert_eq!(grown(&[(10_000, 10)], 0, 1_000, 1), 100);
        // Alpha 0.96: 1e6 x 0.96 / 30000 = 32.
        assert_eq!(grown(&[(20_000, 10), (10_000, 20)], 0, 1_000, 1), 31);
        assert_eq!(grown(&[(20_000, 10), (10_000, 20)], 0, 1_000, 1_000), grown_by(32.0, 20_000.0, 1_000));
        // Alpha 9.09: 1e6 x 9.09 / 110000 = 82.6, below the 100 of TCP. The other: TCP's 10 are less.
        assert_eq!(grown(&[(10_000, 1), (100_000, 100)], 0, 1_000, 1), 82);
        assert_eq!(grown(&[(100_000, 100), (10_000, 1)], 0, 1_000, 1), 10);
        // No RTT of its own yet: as TCP.
        assert_eq!(grown(&[(10_000, 0), (10_000, 10)], 0, 1_000, 1), 100);
        // Slow start: the acknowledged bytes, a segment at most.
        assert_eq!(grown(&[(10_000, 10), (10_000, 10)], u64::MAX, 700, 1), 700);
        assert_eq!(grown(&[(10_000, 10), (10_000, 10)], u64::MAX, 2_000, 1), 1_000);
    }

    /// Returns the sum of `acks` increases, each the smaller of `each` bytes and TCP's increase, which falls as the
    /// window grows.
    fn grown_by(each: f64, mut cwnd: f64, acks: u32) -> u64 {
        let first = cwnd;
        (0..acks).for_each(|_| cwnd += each.min(1e6 / cwnd));
        (cwnd - first) as u64
    }

    /// 10 MB in flight: an ACK opens the window by 0.07 bytes, which add up.
    #[test]
    fn increases_below_a_byte_add_up() {
        let like = &[(7_000_000, 10), (7_000_000, 10)];
        assert_eq!(grown(like, 0, 1_000, 1), 0);
        assert_eq!(grown(like, 0, 1_000, 14_000), 14_000 * 1_000_000 / 14_000_000 / 2 - 1);
    }

    #[test]
    fn a_cut_halves() {
        let cut = Cut {
            now: Time::ZERO,
            cause: crate::tcp::Cause::Loss,
            base: 9_000,
            una: 0,
            srtt: Span::from_ms(1),
        };
        let window = Window { cwnd: 10_000, ssthresh: 0, count: 0 };
        let limits = Limits { segment: MSS, max_window: 1 << 30, initial_window: 10 * MSS };
        assert_eq!(Lia::default().cut(&limits, &window, &cut), 4_500);
    }
}
