//! Judges whether a system meets a limit by repeated runs of it.
//!
//! *The rule.* Every run gives one number, as a multiple of the limit: the share of its messages that were over the
//! limit divided by the allowed share, or its mean divided by the limit. Runs are independent, so Student's t gives an
//! interval of that number's mean, and the limit is decided where the interval excludes 1. Far above it numbers spread
//! by factors: then the interval of their logarithms decides sooner, and rightly, as the mean of numbers is never below
//! the exponential of the mean of their logarithms (Jensen's inequality). Because a few runs may agree by chance, a
//! share is not decided either where as many independent messages would leave it open (binomial). Runs are added until
//! the interval decides ([`Looks`]), or until it is nearly certain that it will not ([`may_decide`]), which makes no
//! verdict wrong.
//!
//! *Rare runs.* Where one run in four is far over the limit and the others are not over it at all, four runs without a
//! message over it prove little, and their spread is zero. So a share is met for certain only if it would be with one
//! run more that is far over the limit ([`confirms`]).

use serde::Serialize;

use crate::special::{incomplete_beta, student_t};
use crate::{LEVEL, mean, mean_interval};

/// Whether an objective is met.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The interval lies on the good side of the limit.
    Keeps,
    /// The interval lies beyond the limit.
    Breaks,
    /// The interval holds the limit.
    Open,
}

/// The messages of all runs, for an objective that limits a share of them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MessageShare {
    /// The number of messages.
    pub messages: u64,
    /// The number of them that were over the limit.
    pub over: u64,
    /// The share that may be over the limit, 0 to 1.
    pub allowed: f64,
}

/// Judges an objective by its runs: `strains` are their numbers as multiples of the limit, above 1 if they violate it.
/// `level` is the probability that a verdict other than [`Verdict::Open`] is not chance.
pub fn judge(strains: &[f64], share: Option<MessageShare>, level: f64) -> Verdict {
    let Some(interval) = mean_interval(strains, level) else { return Verdict::Open };
    let chance = |keeps: bool| {
        share.is_some_and(|MessageShare { messages, over, allowed }| {
            binomial(over as f64, messages as f64, allowed, keeps) > (1.0 - level) / 2.0
        })
    };
    if interval.high < 1.0 && !chance(true) {
        Verdict::Keeps
    } else if (interval.low > 1.0 || is_above_by_factors(strains, level)) && !chance(false) {
        Verdict::Breaks
    } else {
        Verdict::Open
    }
}

/// Returns whether runs whose verdict is [`Verdict::Keeps`] would keep it if rare bad ones were added. Where half of
/// the runs or more have nothing over the limit, that is so if they would have it with one run more, which is as bad as
/// the worst of them and over the limit by a factor of at least [`RARE`]: sixteen runs without anything over it would.
/// If the limit were only just met, by one bad run in `RARE`, sixteen without a bad one would be found once in a
/// hundred times.
pub fn confirms(strains: &[f64], level: f64) -> bool {
    let without = strains.iter().filter(|strain| **strain == 0.0).count();
    if 2 * without < strains.len() {
        return true;
    }
    let worst = strains.iter().copied().fold(RARE, f64::max);
    let with_one_more: Vec<f64> = strains.iter().copied().chain([worst]).collect();
    mean_interval(&with_one_more, level).is_some_and(|interval| interval.high < 1.0)
}

/// Returns whether the mean of the logarithms is above 0.
fn is_above_by_factors(strains: &[f64], level: f64) -> bool {
    let logarithms: Vec<f64> = strains.iter().map(|strain| strain.ln()).collect();
    mean_interval(&logarithms, level).is_some_and(|interval| interval.low > 0.0)
}

/// Returns whether `most` runs, judged at `level`, may still decide a case that `strains` leave open. False where the
/// probability is below 1 % for either verdict, if the runs to come are like these; fewer than [`TELLING`] are too few
/// for that.
pub fn may_decide(strains: &[f64], most: u32, level: f64) -> bool {
    let (count, most) = (strains.len() as f64, f64::from(most));
    let Some(mean) = mean(strains).filter(|_| strains.len() >= TELLING && count < most) else { return true };
    let squares: f64 = strains.iter().map(|strain| (strain - mean) * (strain - mean)).sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    let half = student_t(most - 1.0, level) * deviation / most.sqrt();
    // The distance by which the mean of all runs may move, as only the runs to come are unknown.
    let reach = HARDLY * deviation * (most - count).sqrt() / most;
    mean - reach + half < 1.0 || mean + reach - half > 1.0
}

/// Computes the probability that of `of` independent messages, each over the limit with probability `share`,
/// at most (or, unless `below`, at least) `over` are.
fn binomial(over: f64, of: f64, share: f64, below: bool) -> f64 {
    match below {
        true if over >= of => 1.0,
        true => 1.0 - incomplete_beta(over + 1.0, of - over, share),
        false if over <= 0.0 => 1.0,
        false => incomplete_beta(over, of - over + 1.0, share),
    }
}

/// The numbers of runs after which a load is judged: 4, 8, 16, ..., and the last.
///
/// All these looks together are wrong about a load less than once in twenty: each is taken at a level of
/// 1 - 0.05 / looks, the first two at 99.9 %.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Looks {
    /// The greatest number of runs.
    pub max: u32,
}

/// The number of runs of a load before it is first judged.
const FIRST_LOOK: u32 = 4;
/// Fewer runs than these often agree by chance where a number is skewed (most runs low, some very high),
/// for which Student's t is too narrow: then the level is [`LEVEL_OF_FEW`].
const FEW: usize = 16;
const LEVEL_OF_FEW: f64 = 0.999;
/// The number of runs from which on their spread predicts that of others. After 8, a load was given up that 32 decided,
/// in one of five lines of the quickstart; after 16 none.
const TELLING: usize = 16;
/// The factor by which an unseen run may exceed its limit: if each fourth run does, all together are at the limit.
const RARE: f64 = 4.0;
/// The standard deviations by which a mean is too high, or too low, with a probability of 1 %.
const HARDLY: f64 = 2.326;

impl Looks {
    /// Returns all of them, ascending.
    pub fn all(self) -> Vec<u32> {
        let max = self.max.max(1);
        let doubling = std::iter::successors(Some(FIRST_LOOK), |look| look.checked_mul(2));
        doubling.take_while(|&look| look < max).chain([max]).collect()
    }

    /// Returns the confidence level of a look at `runs` runs.
    pub fn level(self, runs: usize) -> f64 {
        let all = 1.0 - (1.0 - LEVEL) / self.all().len() as f64;
        if runs < FEW { all.max(LEVEL_OF_FEW) } else { all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_decided_by_the_spread_of_runs_and_by_the_messages() {
        let share = |over: [u64; 4], messages: u64| {
            let strains = over.map(|over| over as f64 / messages as f64 / 0.01);
            let all = MessageShare { messages: 4 * messages, over: over.iter().sum(), allowed: 0.01 };
            judge(&strains, Some(all), 0.99)
        };
        for (over, messages, verdict) in [
            ([50, 52, 48, 51], 10_000, Verdict::Keeps),
            ([150, 152, 148, 151], 10_000, Verdict::Breaks),
            ([50, 250, 48, 51], 10_000, Verdict::Open),
            // None of 400 may be over by chance where one in a hundred is; none of 4,000 may not.
            ([0, 0, 0, 0], 100, Verdict::Open),
            ([0, 0, 0, 0], 1_000, Verdict::Keeps),
        ] {
            assert_eq!(share(over, messages), verdict, "{over:?} of {messages}");
        }
        assert_eq!(judge(&[0.5], None, 0.99), Verdict::Open);
    }

    #[test]
    fn a_limit_is_met_for_certain_when_rare_bad_runs_would_have_shown() {
        let level = |runs: usize| Looks { max: 32 }.level(runs);
        let runs = |bad: &[f64], all: usize| [bad, &vec![0.0; all - bad.len()]].concat();
        let (none, one): (&[f64], &[f64]) = (&[], &[4.0]);
        for (bad, all, confirmed) in [
            (none, 4, false),
            (none, 8, false),
            (none, 16, true),
            (one, 16, false),
            (one, 32, true),
            (&[8.0], 32, false),
        ] {
            assert_eq!(confirms(&runs(bad, all), level(all)), confirmed, "{bad:?} of {all}");
        }
    }

    /// Bad runs of one in `RARE` are at the limit: verdicts that say it is met are wrong, and must be rare.
    #[test]
    fn bursts_at_the_limit_are_seldom_taken_for_met() {
        let mut state = 1_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / (1_u64 << 24) as f64
        };
        let (looks, searches) = (Looks { max: 32 }, 2_000);
        let mut met = 0;
        for _ in 0..searches {
            let strains: Vec<f64> = (0..32).map(|_| if uniform() < 0.25 { 4.0 } else { 0.0 }).collect();
            met += i32::from(looks.all().into_iter().any(|look| {
                let (runs, level) = (&strains[..look as usize], looks.level(look as usize));
                judge(runs, None, level) == Verdict::Keeps && confirms(runs, level)
            }));
        }
        assert!(met * 20 < searches, "{met} of {searches}");
    }

    #[test]
    fn numbers_that_spread_by_factors_break_a_limit_that_all_exceed_by_far() {
        let far = [15.0, 18.2, 21.0, 16.1];
        assert!(mean_interval(&far, 0.999).is_some_and(|interval| interval.low < 1.0));
        assert_eq!(judge(&far, None, 0.999), Verdict::Breaks);
        assert_eq!(judge(&[0.0, 18.2, 21.0, 16.1], None, 0.999), Verdict::Open, "the logarithm of 0");
        assert_eq!(judge(&[1.01, 1.3, 1.6, 2.0], None, 0.999), Verdict::Open);
    }

    #[test]
    fn runs_end_where_more_of_them_would_hardly_decide() {
        let around = |mean: f64| [-0.9, -0.5, -0.3, 0.0, 0.0, 0.3, 0.5, 0.9].map(|by| mean + by).repeat(2);
        for (mean, may) in [(1.0, false), (0.95, false), (0.7, true), (1.4, true)] {
            assert_eq!(may_decide(&around(mean), 32, 0.9875), may, "{mean}");
        }
        assert!(may_decide(&around(1.0)[..8], 32, 0.9875), "eight do not tell");
        assert!(may_decide(&[1.0; 16], 16, 0.9875), "the last look decides by itself");
    }

    #[test]
    fn looks_double_up_to_the_last() {
        for (max, looks) in
            [(1, vec![1]), (2, vec![2]), (4, vec![4]), (9, vec![4, 8, 9]), (16, vec![4, 8, 16])]
        {
            assert_eq!(Looks { max }.all(), looks, "{max}");
        }
        assert_eq!(Looks { max: 16 }.level(8), LEVEL_OF_FEW);
        assert!((Looks { max: 16 }.level(16) - (1.0 - 0.05 / 3.0)).abs() < 1e-12);
    }
}
