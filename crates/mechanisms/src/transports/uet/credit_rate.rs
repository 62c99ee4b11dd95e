//! [`CreditRate`]: the rate at which a host grants credit, where links before its own are congested.
//!
//! ```text
//! each R:  trimmed before the last link: rate -= their share of all packets
//!          average of the marked share, weight 0.5, above 0.3: rate x (1 - 0.5 (average - 0.3))
//!          neither: rate += 0.1 / O x 2^k after k such rounds in a row; 0.1 / O if a packet was marked
//! 0.8 / O <= rate <= 1
//! ```
//!
//! A receiver that grants its whole link lets the links above it trim what they cannot carry. All senders to a host
//! share its rate. R is the network's base round trip, and O its ratio of oversubscription. Facts: the published
//! simulator of the transport's working group (2025), which has it on oversubscribed fabrics with the credit of
//! receivers alone.

use plimsoll_units::{Span, Time};

/// The share of its link that a host grants, beyond `rccc.share`.
#[derive(Clone, PartialEq, Debug)]
pub struct CreditRate {
    rate: f64,
    /// The moving average of the marked share.
    marked: f64,
    /// The rounds in a row after which the rate has grown.
    good: u32,
    /// When the present round ends; [`Time::MAX`] before the first packet.
    ends: Time,
    seen: ArrivedCounts,
}

/// The network in which hosts adapt the rate of their credit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Oversubscription {
    /// The network's base round trip.
    pub round_trip: Span,
    /// By which factor the links towards hosts together are faster than those above them: 1 to 100.
    pub ratio: f64,
}

/// The data packets that have arrived at a receiver, whole or trimmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ArrivedCounts {
    /// Packets without and with their payload.
    pub all: u64,
    /// Those whose payload was trimmed.
    pub trimmed: u64,
    /// Those of them that lost it before the last link.
    pub trimmed_before_last: u64,
    /// The number of those with a mark.
    pub marked: u64,
}

impl Default for CreditRate {
    fn default() -> CreditRate {
        CreditRate { rate: 1.0, marked: 0.0, good: 0, ends: Time::MAX, seen: ArrivedCounts::default() }
    }
}

impl CreditRate {
    /// Packets have arrived at `now`.
    pub fn on_arrivals(&mut self, now: Time, network: Oversubscription, arrived: ArrivedCounts) {
        if self.ends == Time::MAX {
            self.ends = now + network.round_trip;
        }
        self.pass(now, network);
        let ArrivedCounts { all, trimmed, trimmed_before_last, marked } = arrived;
        self.seen.all += all;
        self.seen.trimmed += trimmed;
        self.seen.trimmed_before_last += trimmed_before_last;
        self.seen.marked += marked;
    }

    /// Returns the rate at `now`, as a share of the one that the host grants otherwise.
    pub fn at(&mut self, now: Time, network: Oversubscription) -> f64 {
        self.pass(now, network);
        self.rate
    }

    /// Ends the rounds up to `now`. After enough empty ones all is as in the beginning.
    fn pass(&mut self, now: Time, network: Oversubscription) {
        for _ in 0..ROUNDS_TO_FORGET {
            if self.ends > now {
                return;
            }
            self.end_round(network.ratio);
            self.ends += network.round_trip;
        }
        *self = CreditRate { ends: now + network.round_trip, ..CreditRate::default() };
    }

    fn end_round(&mut self, ratio: f64) {
        let ArrivedCounts { all, trimmed, trimmed_before_last, marked } = std::mem::take(&mut self.seen);
        let whole = all - trimmed;
        let share = if whole > 0 { marked as f64 / whole as f64 } else { 0.0 };
        self.marked = 0.5 * self.marked + 0.5 * share;
        let excess = self.marked - MARKED_TARGET;
        if trimmed_before_last > 0 {
            self.rate -= trimmed_before_last as f64 / all as f64;
        }
        if excess > 0.0 {
            self.rate *= 1.0 - 0.5 * excess;
        }
        if trimmed_before_last > 0 || excess > 0.0 {
            self.good = 0;
        } else {
            // Of a ratio of 100, seven doublings are an eighth of the whole rate.
            let steps = if marked > 0 { 1 } else { 1 << self.good.min(7) };
            self.rate += STEP / ratio * f64::from(steps);
            self.good += 1;
        }
        self.rate = self.rate.clamp(RATE_MIN / ratio, 1.0);
    }
}

/// The marked share above which the rate falls.
const MARKED_TARGET: f64 = 0.3;
/// The least growth of the rate in a round, and the least rate, where nothing is oversubscribed.
const STEP: f64 = 0.1;
const RATE_MIN: f64 = 0.8;
/// Rounds without packets after which nothing is left of what was seen: they take any rate to 1.
const ROUNDS_TO_FORGET: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const NETWORK: Oversubscription = Oversubscription { round_trip: Span::from_us(10), ratio: 10.0 };

    /// Has `arrived` come in one round after the other, and returns the rates after each.
    fn rates(arrived: &[ArrivedCounts]) -> Vec<f64> {
        let (mut rate, mut now) = (CreditRate::default(), Time::ZERO);
        let after = arrived.iter().map(|arrived| {
            rate.on_arrivals(now, NETWORK, *arrived);
            now += NETWORK.round_trip;
            (rate.at(now, NETWORK) * 1e6).round() / 1e6
        });
        after.collect()
    }

    const QUIET: ArrivedCounts = ArrivedCounts { all: 10, trimmed: 0, trimmed_before_last: 0, marked: 0 };

    #[test]
    fn packets_trimmed_before_the_last_link_take_their_share_and_it_comes_back_twice_as_fast_each_round() {
        let trimmed = ArrivedCounts { trimmed: 4, trimmed_before_last: 3, ..QUIET };
        let at_last = ArrivedCounts { trimmed: 4, ..QUIET };
        let arrived = [trimmed, trimmed, at_last, QUIET, QUIET, trimmed, QUIET, QUIET];
        assert_eq!(rates(&arrived), [0.7, 0.4, 0.41, 0.43, 0.47, 0.17, 0.18, 0.2]);
        let all_trimmed = ArrivedCounts { trimmed: 10, trimmed_before_last: 10, ..QUIET };
        assert_eq!(rates(&[all_trimmed]), [0.08]);
    }

    #[test]
    fn marks_above_three_in_ten_lower_the_rate_and_fewer_slow_its_growth() {
        let half = ArrivedCounts { marked: 10, ..QUIET };
        // The average is 0.5, then 0.75; the third round has it at 0.375, and the fourth at 0.1875.
        assert_eq!(rates(&[half, half, QUIET, QUIET]), [0.9, 0.6975, 0.671344, 0.681344]);
        let few = ArrivedCounts { marked: 1, ..QUIET };
        let trimmed = ArrivedCounts { trimmed: 5, trimmed_before_last: 5, ..QUIET };
        assert_eq!(rates(&[trimmed, few, few, few, QUIET]), [0.5, 0.51, 0.52, 0.53, 0.61]);
    }

    #[test]
    fn rounds_without_packets_bring_the_whole_rate_back() {
        let mut rate = CreditRate::default();
        let trimmed = ArrivedCounts { trimmed: 10, trimmed_before_last: 10, ..QUIET };
        rate.on_arrivals(Time::ZERO, NETWORK, trimmed);
        assert_eq!(rate.at(Time::ZERO + Span::from_us(9), NETWORK), 1.0, "the round has not ended");
        assert_eq!(rate.at(Time::ZERO + Span::from_us(10), NETWORK), 0.08);
        // 0.08 + 0.01 x (1 + 2 + 4) after three more rounds.
        assert!((rate.at(Time::ZERO + Span::from_us(49), NETWORK) - 0.15).abs() < 1e-12);
        assert_eq!(rate.at(Time::ZERO + Span::from_secs(1), NETWORK), 1.0);
    }
}
