//! The rate law in fixed point, and the token unit in which rate times time is exact.
//!
//! | quantity | unit | rounding |
//! |---|---|---|
//! | rate R | 2^-16 bit/s in a `u64`, saturating at 2^60 (17 Tb/s) | each of the three terms down |
//! | eta | 2^-32 | nearest |
//! | beta | 2^-16 /s | nearest |
//! | tokens | R's unit times a picosecond, in an `i128` | none |
//!
//! Rounding down makes an idle rate reach its floor: `R - floor((1 - eta) R)` is at least one unit for
//! every R above zero. From at most 2^60 units, `ln(2^60) / eta` ticks bring it below `1 / eta` units,
//! and as many again to zero: no more than `43 / eta` in all.

use plimsoll_units::{Rate, Time};

use super::PacerParams;

/// Computes R from the bits received and the bits that wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RateLaw {
    rate: u64,
    floor: u64,
    eta: u64,
    beta: u64,
    interval_ps: u64,
    /// The number of bits received since the last tick.
    received: u64,
}

impl RateLaw {
    pub(super) fn new(params: &PacerParams) -> RateLaw {
        let floor = fixed(params.min_rate.unwrap_or(Rate::ZERO));
        RateLaw {
            rate: fixed(params.initial_rate).max(floor),
            floor,
            eta: (params.eta * (1u64 << ETA_BITS) as f64).round() as u64,
            beta: (params.beta * (1u64 << RATE_BITS) as f64).round() as u64,
            interval_ps: params.interval.as_ps(),
            received: 0,
        }
    }

    pub(super) fn on_received(&mut self, bits: u64) {
        self.received += bits;
    }

    /// The end of an interval, with `backlog` bits held back.
    pub(super) fn tick(&mut self, backlog: u64) {
        let kept = (u128::from((1 << ETA_BITS) - self.eta) * u128::from(self.rate)) >> ETA_BITS;
        // eta x received / interval, in 2^-16 bit/s: the 2^-32 of eta leaves 2^16 below the line.
        let measured = u128::from(self.eta) * u128::from(self.received) * PS_PER_S
            / (u128::from(self.interval_ps) << (ETA_BITS - RATE_BITS));
        let pushed = u128::from(self.beta) * u128::from(backlog);
        self.rate = (kept + measured + pushed).min(RATE_MAX) as u64;
        self.rate = self.rate.max(self.floor);
        self.received = 0;
    }

    /// Returns whether a tick without traffic would change nothing.
    pub(super) fn is_settled(&self) -> bool {
        self.received == 0 && self.rate == self.floor
    }

    /// Returns the tokens that `ps` picoseconds bring.
    pub(super) fn tokens_in(&self, ps: u64) -> i128 {
        i128::from(self.rate) * i128::from(ps)
    }

    /// Returns how soon `missing` tokens will have come, in picoseconds rounded up; `u64::MAX` for never.
    pub(super) fn time_for(&self, missing: i128) -> u64 {
        let missing = missing.max(0) as u128;
        match u128::from(self.rate) {
            0 if missing > 0 => u64::MAX,
            0 => 0,
            rate => missing.div_ceil(rate).min(u128::from(u64::MAX)) as u64,
        }
    }

    /// Returns R in whole bits per second, rounded down.
    pub(super) fn rate(&self) -> Rate {
        Rate::from_bps(self.rate >> RATE_BITS)
    }
}

/// Returns the tokens that sending `bits` bits costs.
pub(super) fn cost(bits: u64) -> i128 {
    (i128::from(bits) * PS_PER_S as i128) << RATE_BITS
}

/// Returns how many ticks `interval_ps` apart lie in `next..=now`.
pub(super) fn ticks_until(next: Time, now: Time, interval_ps: u64) -> u64 {
    if now < next { 0 } else { (now - next).as_ps() / interval_ps + 1 }
}

fn fixed(rate: Rate) -> u64 {
    (u128::from(rate.as_bps()) << RATE_BITS).min(RATE_MAX) as u64
}

const RATE_BITS: u32 = 16;
const ETA_BITS: u32 = 32;
const RATE_MAX: u128 = 1 << 60;
const PS_PER_S: u128 = 1_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_formula_at_the_published_values() {
        let mut law = RateLaw::new(&PacerParams {
            interval: plimsoll_units::Span::from_us(32),
            ..PacerParams::default()
        });
        law.on_received(7_920);
        law.tick(7_920);
        // 0.875 x 100 Mb/s + 0.125 x 7920 bit / 32 us + 16/s x 7920 bit
        assert_eq!(law.rate(), Rate::from_bps(87_500_000 + 30_937_500 + 126_720));
        law.tick(0);
        assert_eq!(law.rate(), Rate::from_bps(103_743_692)); // 103743692.5
    }

    proptest! {
        #[test]
        fn an_idle_rate_reaches_its_floor_within_the_bound(
            rate in 0u64..=1_000_000_000_000,
            floor in prop::option::of(1u64..1_000_000_000),
            eta in 0.001f64..=1.0,
        ) {
            let mut law = RateLaw::new(&PacerParams {
                initial_rate: Rate::from_bps(rate),
                min_rate: floor.map(Rate::from_bps),
                eta,
                ..PacerParams::default()
            });
            let bound = (43.0 / eta) as u64 + 1;
            let ticks = (0..=bound).take_while(|_| {
                let moving = !law.is_settled();
                law.tick(0);
                moving
            });
            prop_assert!((ticks.count() as u64) <= bound);
            prop_assert!(law.is_settled());
        }

        #[test]
        fn waiting_for_tokens_brings_them_and_no_less_would(rate in 1u64..1_000_000_000, bits in 0u64..1_000_000) {
            let params = PacerParams { initial_rate: Rate::from_bps(rate), ..PacerParams::default() };
            let law = RateLaw::new(&params);
            let wait = law.time_for(cost(bits));
            prop_assert!(law.tokens_in(wait) >= cost(bits));
            prop_assert!(wait == 0 || law.tokens_in(wait - 1) < cost(bits));
        }
    }
}
