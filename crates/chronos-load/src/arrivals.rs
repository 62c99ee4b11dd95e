//! Computes when requests are due: Poisson, uniform, or in bursts, at a mean rate, in integer picoseconds.
//!
//! A schedule first draws arrivals of the mean rate and then transforms time. In a burst period of length P, the first
//! D contain the share s of the requests at r times the mean rate, so that P = r D / s, and the rest of the period
//! contains the rest evenly. This is the load of Banga and Druschel that Chronos uses (dissertation, section 6.2.3:
//! ratio 10, 10 % of the requests in bursts). The bursts of all threads coincide.

use std::fmt;
use std::str::FromStr;

use plimsoll_units::{Span, Time};
use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64Mcg;

use crate::draws::draws;

/// The distribution of requests over time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LoadArrivals {
    /// Requests arrive independently of each other.
    Poisson,
    /// Requests arrive at equal intervals.
    Uniform,
    /// Requests arrive as Poisson, with periods of a higher rate.
    Bursts(Bursts),
}

/// The periods of a higher rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bursts {
    /// The ratio of the rate in a burst to the mean rate, above 1.
    pub ratio: f64,
    /// The length of a burst.
    pub duration: Span,
    /// The share of all requests that are in bursts, above 0 and below 1.
    pub share: f64,
}

/// The reason why a text is not an [`LoadArrivals`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}; write poisson, uniform, or bursts:RATIO,DURATION,SHARE such as bursts:10,1ms,10%")]
pub struct BadArrivals(String);

impl FromStr for LoadArrivals {
    type Err = BadArrivals;

    fn from_str(text: &str) -> Result<LoadArrivals, BadArrivals> {
        let Some(("bursts", rest)) = text.split_once(':') else {
            return match text {
                "poisson" => Ok(LoadArrivals::Poisson),
                "uniform" => Ok(LoadArrivals::Uniform),
                _ => Err(BadArrivals(format!("`{text}` is not a distribution of requests over time"))),
            };
        };
        let [ratio, duration, share] = *rest.split(',').map(str::trim).collect::<Vec<_>>() else {
            return Err(BadArrivals(format!("`{rest}` is not three values")));
        };
        let ratio: f64 =
            ratio.parse().map_err(|_| BadArrivals(format!("the ratio `{ratio}` is not a number")))?;
        let duration: Span = duration.parse().map_err(|error| BadArrivals(format!("{error}")))?;
        let share = parse_share(share).map_err(BadArrivals)?;
        if !(ratio > 1.0 && ratio <= 1e6) {
            return Err(BadArrivals(format!("the ratio {ratio} is not above 1 and at most 1000000")));
        }
        if duration.is_zero() || !(share > 0.0 && share < 1.0) {
            return Err(BadArrivals(format!(
                "in `{rest}`, the length is 0, or the share is not between 0 and 1"
            )));
        }
        Ok(LoadArrivals::Bursts(Bursts { ratio, duration, share }))
    }
}

impl fmt::Display for LoadArrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadArrivals::Poisson => f.write_str("poisson"),
            LoadArrivals::Uniform => f.write_str("uniform"),
            LoadArrivals::Bursts(Bursts { ratio, duration, share }) => {
                write!(f, "bursts:{ratio},{}ps,{share}", duration.as_ps())
            }
        }
    }
}

/// Parses a share from 0 to 1, written as a number or in per cent.
///
/// # Errors
/// Returns a message that describes the error in `text`.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let share = plimsoll_units::parse_share(text).ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("the share `{text}` is not from 0 to 1, or from 0% to 100%"))
}

/// The arrivals of one thread, in order.
#[derive(Debug)]
pub struct Schedule {
    arrivals: LoadArrivals,
    /// The rate of the thread's requests, per second.
    rate: f64,
    rng: Pcg64Mcg,
    /// The time at the mean rate, in picoseconds, before the transformation.
    unbent: f64,
    /// The number of arrivals so far.
    count: u64,
    /// The offset of this thread's arrivals between two of the whole, from 0 to 1.
    phase: f64,
}

impl Schedule {
    /// Creates the schedule of thread `thread` of `threads`, which share the `rate` of requests a second (above 0).
    pub fn new(arrivals: LoadArrivals, rate: f64, seed: u64, thread: u32, threads: u32) -> Schedule {
        let phase = f64::from(thread) / f64::from(threads);
        let rng = draws(seed, thread, 0, ARRIVALS);
        Schedule { arrivals, rate: rate / f64::from(threads), rng, unbent: 0.0, count: 0, phase }
    }

    /// Returns when the next request is due, counted from the start of the run.
    pub fn next_due(&mut self) -> Time {
        let mean_gap = PS_PER_S / self.rate;
        if self.arrivals == LoadArrivals::Uniform {
            let at = (self.count as f64 + self.phase) * mean_gap;
            self.count += 1;
            return Time::from_ps(at.round() as u64);
        }
        let gap: f64 = Exp1.sample(&mut self.rng);
        self.unbent += gap * mean_gap;
        let unbent = Time::from_ps(self.unbent.round() as u64);
        match self.arrivals {
            LoadArrivals::Bursts(bursts) => bursts.bend(unbent),
            LoadArrivals::Poisson | LoadArrivals::Uniform => unbent,
        }
    }
}

impl Bursts {
    /// Returns the time from the start of a burst to the start of the next.
    pub fn period(&self) -> Span {
        Span::from_ps((self.duration.as_ps() as f64 * self.ratio / self.share).round() as u64)
    }

    /// Returns the time by which as many requests have arrived as by `unbent` without bursts.
    fn bend(&self, unbent: Time) -> Time {
        let period = self.period().as_ps();
        let (burst, crowded) = (self.duration.as_ps(), (period as f64 * self.share).round() as u64);
        let (periods, rest) = (unbent.as_ps() / period, unbent.as_ps() % period);
        let scale =
            |value: u64, to: u64, from: u64| (u128::from(value) * u128::from(to) / u128::from(from)) as u64;
        let within = if rest < crowded {
            scale(rest, burst, crowded)
        } else {
            burst + scale(rest - crowded, period - burst, period - crowded)
        };
        Time::from_ps(periods * period + within)
    }
}

const PS_PER_S: f64 = 1e12;
/// The part of [`draws`] that arrivals use.
const ARRIVALS: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_arrivals_of_two_threads_interleave() {
        let times = |thread| {
            let mut schedule = Schedule::new(LoadArrivals::Uniform, 1e6, 1, thread, 2);
            (0..3).map(|_| schedule.next_due()).collect::<Vec<_>>()
        };
        let us = |ns: [u64; 3]| ns.map(|ns| Time::ZERO + Span::from_ns(ns)).to_vec();
        assert_eq!(times(0), us([0, 2_000, 4_000]));
        assert_eq!(times(1), us([1_000, 3_000, 5_000]));
    }

    #[test]
    fn bursts_bend_time_as_the_table_says() {
        // With ratio 10, 1 ms and 10 %, the period is 100 ms, whose first 1 ms contains the requests of an average 10
        // ms.
        let bursts = Bursts { ratio: 10.0, duration: Span::from_ms(1), share: 0.1 };
        assert_eq!(bursts.period(), Span::from_ms(100));
        for (unbent_us, bent_us) in [
            (0, 0),
            (1_000, 100),
            (5_000, 500),
            (10_000, 1_000),
            (55_000, 50_500),
            (100_000, 100_000),
            (105_000, 100_500),
        ] {
            let bent = bursts.bend(Time::ZERO + Span::from_us(unbent_us));
            assert_eq!(bent, Time::ZERO + Span::from_us(bent_us), "{unbent_us} us");
        }
    }

    #[test]
    fn rates_and_the_share_in_bursts_come_out() {
        let bursts = Bursts { ratio: 10.0, duration: Span::from_ms(1), share: 0.1 };
        for arrivals in [LoadArrivals::Poisson, LoadArrivals::Bursts(bursts)] {
            let mut schedule = Schedule::new(arrivals, 100_000.0, 3, 0, 1);
            let end = Time::ZERO + Span::from_secs(1);
            let times: Vec<Time> =
                std::iter::from_fn(|| Some(schedule.next_due())).take_while(|at| *at < end).collect();
            assert!(times.is_sorted());
            // The standard deviation is 316.
            assert!((98_400..101_600).contains(&times.len()), "{arrivals:?}: {}", times.len());
            let crowded = times.iter().filter(|at| at.as_ps() % 100_000_000_000 < 1_000_000_000).count();
            let expected = if arrivals == LoadArrivals::Poisson { 1_000 } else { 10_000 };
            assert!(crowded.abs_diff(expected) < 500, "{arrivals:?}: {crowded} in bursts");
        }
    }

    #[test]
    fn texts_are_read_or_refused_with_what_is_allowed() {
        let bursts = Bursts { ratio: 10.0, duration: Span::from_ms(1), share: 0.1 };
        assert_eq!("bursts:10,1ms,10%".parse(), Ok(LoadArrivals::Bursts(bursts)));
        assert_eq!("bursts:10, 1ms, 0.1".parse(), Ok(LoadArrivals::Bursts(bursts)));
        for arrivals in [LoadArrivals::Poisson, LoadArrivals::Uniform, LoadArrivals::Bursts(bursts)] {
            assert_eq!(arrivals.to_string().parse(), Ok(arrivals));
        }
        for (text, part) in [
            ("poison", "`poison` is not a distribution"),
            ("bursts:10,1ms", "not three values"),
            ("bursts:1,1ms,10%", "the ratio 1 is not above 1"),
            ("bursts:10,1,10%", "has no unit"),
            ("bursts:10,1ms,110%", "the share `110%`"),
        ] {
            let error = text.parse::<LoadArrivals>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("bursts:10,1ms,10%"), "{error}");
        }
    }
}
