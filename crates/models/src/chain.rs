//! A chain of requests, each of which needs the reply to the one before, as in the creation of a page: its time is the
//! sum of its steps, and a step is the last of the replies to as many requests at once.
//!
//! ```text
//! P(step <= x) = F(x)^W        P(page <= x) = the L-fold convolution of the step's distribution
//! ```
//!
//! The convolution is computed on a lattice. A step's time between two points of the lattice is divided among both so
//! that its mean is exact; that adds at most a quarter of the square of the points' distance to the variance, which is
//! below 2 % of the standard deviation of 10,000 steps, and far below for fewer. The sum of L steps is made of the sums
//! of 1, 2, 4, ... steps.
//!
//! [`page_rtts`] is the distribution of round-trip times that DeTail's authors show for the creation of a page
//! (SIGCOMM 2012 talk).

use crate::integral;
use crate::law::{Empirical, Law};
use crate::redundancy::Redundant;

/// The distribution of the time of a chain, in us.
#[derive(Clone, PartialEq, Debug)]
pub struct Chain {
    /// The time of the lattice's point 0.
    low: f64,
    /// The distance of its points.
    step: f64,
    sums: LatticeDistribution,
    mean: f64,
}

/// A distribution over the points of a lattice.
#[derive(Clone, PartialEq, Debug)]
struct LatticeDistribution {
    /// The first point that has a share worth counting.
    from: usize,
    /// The share of each point from there on; the last has all that is beyond it, too.
    shares: Vec<f64>,
}

impl Chain {
    /// Computes the time of a chain of `steps` steps, each of which ends with the last of `width` replies; `width` is 1
    /// or more, and `steps` from 1 to [`STEPS_MAX`].
    ///
    /// # Panics
    /// Panics if `steps` is 0 or too large, or `width` is 0.
    pub fn new(latency: &Redundant, steps: u32, width: u32) -> Chain {
        assert!((1..=STEPS_MAX).contains(&steps) && width > 0, "a chain has steps, and a step replies");
        let knots = latency.knots();
        let up_to = |x: f64| libm::pow(latency.cdf(x), f64::from(width));
        let (first, range) = (knots[0], knots[knots.len() - 1] - knots[0]);
        let (above, sd) = beyond_first(&knots, up_to);
        let count = f64::from(steps);
        let mean = count * (first + above);
        // The whole range if the points suffice for each step, else as far around the mean as the sum of a chain
        // reaches.
        let each = (POINTS - 1) / steps as usize;
        let around = (BELOW_SDS + ABOVE_SDS) * sd * count.sqrt();
        let step = if around >= range * count { range / each as f64 } else { around / POINTS as f64 };
        if step <= 0.0 || !step.is_finite() {
            let sums = LatticeDistribution { from: 0, shares: vec![1.0] };
            return Chain { low: count * first, step: 0.0, sums, mean };
        }
        let one = on_lattice(&knots, up_to, step);
        Chain { low: count * first, step, sums: one.power(steps), mean }
    }

    /// Returns the mean time in us.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Computes the time in us up to which a share of `share` of the chains is over, 0 < `share` < 1; infinite where
    /// that lies beyond the lattice, as only shares nearer to 1 than about 1e-4 can.
    pub fn quantile(&self, share: f64) -> f64 {
        let LatticeDistribution { from, shares } = &self.sums;
        let mut up_to = 0.0;
        for (point, here) in shares.iter().enumerate() {
            if up_to + here >= share {
                if point > 0 && shares.len() >= POINTS && point + 1 == shares.len() {
                    return f64::INFINITY;
                }
                // The time is somewhere in the half steps around the point.
                let within = (share - up_to) / here - 0.5;
                return self.low + self.step * ((from + point) as f64 + within).max(0.0);
            }
            up_to += here;
        }
        // All shares together are less than 1 by rounding errors.
        self.low + self.step * (from + shares.len() - 1) as f64
    }

    /// Computes the share of chains that are over within `budget_us`.
    pub fn within(&self, budget_us: f64) -> f64 {
        let LatticeDistribution { from, shares } = &self.sums;
        if self.step == 0.0 {
            return f64::from(u8::from(budget_us >= self.low));
        }
        let place = (budget_us - self.low) / self.step + 0.5 - *from as f64;
        if place <= 0.0 {
            return 0.0;
        }
        let whole = (place.floor() as usize).min(shares.len());
        let part = shares.get(whole).map_or(0.0, |share| share * (place - place.floor()));
        (shares[..whole].iter().sum::<f64>() + part).min(1.0)
    }
}

/// Finds the longest chain, of at most [`STEPS_MAX`] steps, of which a share of `share` is over within `budget_us`.
pub fn longest(latency: &Redundant, width: u32, budget_us: f64, share: f64) -> u32 {
    let fits = |steps: u32| Chain::new(latency, steps, width).within(budget_us) >= share;
    // A chain of twice as many steps as the mean has room for is never over within the budget that often.
    let mean = Chain::new(latency, 1, width).mean().max(budget_us / f64::from(STEPS_MAX));
    let (mut fitting, mut too_many) = (0, (2.0 * budget_us / mean).min(f64::from(STEPS_MAX)) as u32 + 1);
    while too_many - fitting > 1 {
        let middle = fitting + (too_many - fitting) / 2;
        if fits(middle) {
            fitting = middle;
        } else {
            too_many = middle;
        }
    }
    fitting
}

/// Computes the mean and the standard deviation of a step's time beyond its shortest.
fn beyond_first(knots: &[f64], up_to: impl Fn(f64) -> f64) -> (f64, f64) {
    let first = knots[0];
    let mean: f64 = integral::of_pieces(knots, |x| 1.0 - up_to(x)).sum();
    let square: f64 = integral::of_pieces(knots, |x| 2.0 * (x - first) * (1.0 - up_to(x))).sum();
    (mean, (square - mean * mean).max(0.0).sqrt())
}

/// Shares out a step's distribution to the points of a lattice that begins at the first knot.
fn on_lattice(knots: &[f64], up_to: impl Fn(f64) -> f64, step: f64) -> LatticeDistribution {
    let first = knots[0];
    // A quotient that is whole but for rounding is whole.
    let last = ((knots[knots.len() - 1] - first) / step * (1.0 - 1e-12)).ceil();
    let last = last.min((POINTS - 1) as f64) as usize;
    let point = |index: usize| first + step * index as f64;
    let ends = integral::sorted(knots.iter().copied().chain((0..=last).map(point)).collect());
    let mut shares = vec![0.0; last + 1];
    shares[0] = up_to(first);
    // The area below the distribution between two points, piece by piece.
    let mut areas = vec![0.0; last];
    for (ends, area) in ends.windows(2).zip(integral::of_pieces(&ends, &up_to)) {
        let cell = (((ends[0] + ends[1]) / 2.0 - first) / step) as usize;
        if let Some(sum) = areas.get_mut(cell) {
            *sum += area;
        }
    }
    for (cell, area) in areas.iter().enumerate() {
        let (low, high) = (up_to(point(cell)), up_to(point(cell + 1)));
        let mean = (area / step).clamp(low, high);
        shares[cell] += mean - low;
        shares[cell + 1] += high - mean;
    }
    // The share beyond the lattice.
    shares[last] += 1.0 - up_to(point(last));
    LatticeDistribution { from: 0, shares }
}

impl LatticeDistribution {
    /// Computes the distribution of the sum of `count` independent draws.
    fn power(self, mut count: u32) -> LatticeDistribution {
        let (mut sum, mut doubled) = (LatticeDistribution { from: 0, shares: vec![1.0] }, self);
        loop {
            if count & 1 == 1 {
                sum = sum.plus(&doubled);
            }
            count >>= 1;
            if count == 0 {
                return sum;
            }
            doubled = doubled.plus(&doubled);
        }
    }

    /// Computes the distribution of the sum of two independent draws.
    fn plus(&self, other: &LatticeDistribution) -> LatticeDistribution {
        let mut shares = vec![0.0; self.shares.len() + other.shares.len() - 1];
        for (place, &share) in self.shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            shares[place..].iter_mut().zip(&other.shares).for_each(|(sum, other)| *sum += share * other);
        }
        LatticeDistribution { from: self.from + other.from, shares }.trimmed()
    }

    /// Adds the shares outside the lattice to its first and its last point: shares too small to count, and points too
    /// many to keep.
    fn trimmed(mut self) -> LatticeDistribution {
        let mut below = 0.0;
        let is_small = |share: &&f64| {
            below += **share;
            below < NEGLIGIBLE
        };
        let small = self.shares.iter().take_while(is_small).count().min(self.shares.len() - 1);
        let dropped: f64 = self.shares.drain(..small).sum();
        self.shares[0] += dropped;
        self.from += small;
        let mut beyond: f64 = self.shares.drain(self.shares.len().min(POINTS)..).sum();
        while beyond + self.shares[self.shares.len() - 1] < NEGLIGIBLE && self.shares.len() > 1 {
            beyond += self.shares.pop().unwrap_or(0.0);
        }
        let last = self.shares.len() - 1;
        self.shares[last] += beyond;
        self
    }
}

/// Returns the round-trip times of DeTail's authors in us: the median is 334 us, 6 % take more than 2 ms, and up to
/// 14 ms. Between these, and from [`SHORTEST_RTT_US`] to the median, the logarithm is uniform.
///
/// That form is an assumption, since the talk prints no more of its distribution. With it, 150 round trips one after
/// the other take 204 ms at the 99.9th percentile; the talk says 200 ms, and that deadlines are measured at that
/// percentile. The shortest time, from 10 us to the median, changes that by 5 % at most.
pub fn page_rtts() -> Law {
    let printed = [(SHORTEST_RTT_US, 0.0), (334.0, 0.5), (2_000.0, 0.94), (14_000.0, 1.0)];
    let mut points = vec![printed[0]];
    for pair in printed.windows(2) {
        let [(low, share_low), (high, share_high)] = [pair[0], pair[1]];
        points.extend((1..=LOGARITHMIC).map(|piece| {
            let part = f64::from(piece) / f64::from(LOGARITHMIC);
            let latency = if piece == LOGARITHMIC { high } else { low * libm::pow(high / low, part) };
            let share =
                if piece == LOGARITHMIC { share_high } else { share_low + (share_high - share_low) * part };
            (latency, share)
        }));
    }
    Law::Empirical(Empirical::of_points(points))
}

/// The shortest round-trip time of a page's retrievals, in us; the talk does not say it.
pub const SHORTEST_RTT_US: f64 = 100.0;
/// The most steps of a chain.
pub const STEPS_MAX: u32 = 10_000;
/// The most points of the lattice that are kept.
const POINTS: usize = 8_192;
/// The lattice reaches this far around the mean of a long chain, in standard deviations of the whole chain.
const BELOW_SDS: f64 = 8.0;
const ABOVE_SDS: f64 = 25.0;
/// A share of chains that is not worth a point.
const NEGLIGIBLE: f64 = 1e-15;
/// Pieces of a logarithm that is uniform.
const LOGARITHMIC: u32 = 64;

#[cfg(test)]
mod tests;
