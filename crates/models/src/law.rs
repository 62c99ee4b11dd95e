//! [`Law`]: how the latency of one request is distributed.

use std::f64::consts::SQRT_2;

use plimsoll_text::csv;

/// A distribution of latencies, in microseconds.
#[derive(Clone, PartialEq, Debug)]
pub enum Law {
    /// Normal; it has negative latencies where the standard deviation is not small beside the mean, as the
    /// dissertation's N(90, 50) has (3.6 %).
    Normal {
        /// The mean of the distribution.
        mean: f64,
        /// The standard deviation, more than 0.
        sd: f64,
    },
    /// The distribution is exponential.
    Exponential {
        /// The mean, more than 0.
        mean: f64,
    },
    /// Log-normal by its own mean and standard deviation, both more than 0.
    Lognormal {
        /// The mean of the distribution.
        mean: f64,
        /// The standard deviation.
        sd: f64,
    },
    /// The distribution of measured values.
    Empirical(Empirical),
}

/// A measured distribution.
#[derive(Clone, PartialEq, Debug)]
pub struct Empirical {
    /// Latency and the share of latencies up to it, both rising, the last share 1.
    points: Vec<(f64, f64)>,
    /// True if only the listed latencies occur; else latencies between two points are equally likely.
    steps: bool,
}

/// The reasons why a text or its parameters are no distribution.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum LawError {
    /// A parameter outside its range.
    #[error("the {key} cannot be {value} us; allowed: more than 0")]
    Parameter {
        /// The key whose value is not allowed.
        key: &'static str,
        /// The value that was given.
        value: f64,
    },
    /// A line that is not a latency or a point of a cumulative distribution.
    #[error(
        "line {line}: `{text}`; allowed: a latency, 0 or more, on each line, or `latency,share` with both rising and 1 \
         at last"
    )]
    Line {
        /// The number of the line, counted from 1.
        line: usize,
        /// The text of the line.
        text: String,
    },
    /// The file has no line with a latency.
    #[error("there is no latency in it; allowed: at least one line")]
    Empty,
}

impl Law {
    /// Checks that the parameters are in their range.
    ///
    /// # Errors
    /// Names the parameter that is not.
    pub fn check(&self) -> Result<(), LawError> {
        let positive = |key, value: f64| {
            if value > 0.0 && value.is_finite() { Ok(()) } else { Err(LawError::Parameter { key, value }) }
        };
        match *self {
            Law::Normal { sd, .. } => positive("standard deviation", sd),
            Law::Exponential { mean } => positive("mean", mean),
            Law::Lognormal { mean, sd } => {
                positive("mean", mean)?;
                positive("standard deviation", sd)
            }
            Law::Empirical(_) => Ok(()),
        }
    }

    /// Computes the share of latencies up to `x`.
    pub fn cdf(&self, x: f64) -> f64 {
        match self {
            Law::Normal { mean, sd } => normal_cdf((x - mean) / sd),
            Law::Exponential { mean } => -libm::expm1(-x.max(0.0) / mean),
            Law::Lognormal { mean, sd } => {
                let (mu, sigma) = logarithm(*mean, *sd);
                if x > 0.0 { normal_cdf((libm::log(x) - mu) / sigma) } else { 0.0 }
            }
            Law::Empirical(empirical) => empirical.cdf(x),
        }
    }

    /// Computes the least latency that a share of `share` of the latencies does not exceed, 0 < `share` < 1.
    pub fn quantile(&self, share: f64) -> f64 {
        match self {
            Law::Normal { mean, sd } => mean + sd * normal_quantile(share),
            Law::Exponential { mean } => -mean * libm::log1p(-share),
            Law::Lognormal { mean, sd } => {
                let (mu, sigma) = logarithm(*mean, *sd);
                libm::exp(mu + sigma * normal_quantile(share))
            }
            Law::Empirical(empirical) => empirical.quantile(share),
        }
    }

    /// Computes the mean and the standard deviation in us.
    pub fn moments(&self) -> (f64, f64) {
        match *self {
            Law::Normal { mean, sd } | Law::Lognormal { mean, sd } => (mean, sd),
            Law::Exponential { mean } => (mean, mean),
            Law::Empirical(ref empirical) => empirical.moments(),
        }
    }

    /// Returns latencies that rise strictly, the shortest and the longest among them. The share up to a latency is
    /// linear between two of them, or nearly so for a law that is a formula.
    pub(crate) fn knots(&self) -> Vec<f64> {
        let mut knots: Vec<f64> = match self {
            Law::Empirical(empirical) => empirical.points.iter().map(|point| point.0).collect(),
            // Closer together where more latencies are, and evenly in the logarithm of a log-normal one.
            _ => (-PIECES..=PIECES)
                .map(|piece| self.quantile(normal_cdf(BEYOND_SDS * f64::from(piece) / f64::from(PIECES))))
                .collect(),
        };
        knots.dedup();
        knots
    }
}

impl Empirical {
    /// Reads latencies in us, one a line, or points `latency,share` of a cumulative distribution, between which it is
    /// linear. A first line of words, lines that are empty and lines from `#` on are passed over.
    ///
    /// # Errors
    /// Names the first line that is neither.
    pub fn parse(text: &str) -> Result<Empirical, LawError> {
        let mut rows: Vec<(usize, &str, Vec<f64>)> = Vec::new();
        let mut is_first = true;
        for row in csv::rows(text, Some(b'#')) {
            let (line, text) = (row.line, row.text.trim_start());
            let cells: Option<Vec<f64>> = row.cells().iter().map(|cell| cell.parse().ok()).collect();
            let is_header = std::mem::take(&mut is_first) && cells.is_none();
            if !is_header {
                let wrong = || LawError::Line { line, text: text.to_owned() };
                rows.push((line, text, cells.ok_or_else(wrong)?));
            }
        }
        let columns = rows.first().ok_or(LawError::Empty)?.2.len();
        let is_number =
            |row: &[f64]| row.len() == columns && row.iter().all(|cell| cell.is_finite() && *cell >= 0.0);
        if let Some((line, text, _)) =
            rows.iter().find(|(_, _, row)| !(1..=2).contains(&columns) || !is_number(row))
        {
            return Err(LawError::Line { line: *line, text: (*text).to_owned() });
        }
        if columns == 1 {
            return Ok(Empirical::of_samples(rows.iter().map(|(_, _, row)| row[0]).collect()));
        }
        let last = rows.len() - 1;
        for (at, (line, text, row)) in rows.iter().enumerate() {
            let rises = at == 0 || row[0] >= rows[at - 1].2[0] && row[1] >= rows[at - 1].2[1];
            let fits = (0.0..=1.0).contains(&row[1]) && (at < last || row[1] == 1.0);
            if !rises || !fits {
                return Err(LawError::Line { line: *line, text: (*text).to_owned() });
            }
        }
        Ok(Empirical { points: rows.iter().map(|(_, _, row)| (row[0], row[1])).collect(), steps: false })
    }

    /// Makes the distribution of a sample, which must not be empty.
    ///
    /// # Panics
    /// Panics if the sample is empty.
    pub fn of_samples(mut samples: Vec<f64>) -> Empirical {
        assert!(!samples.is_empty(), "there is a sample");
        samples.sort_unstable_by(f64::total_cmp);
        let count = samples.len() as f64;
        let points = samples.iter().enumerate().map(|(at, &x)| (x, (at + 1) as f64 / count)).collect();
        Empirical { points, steps: true }
    }

    /// Makes the distribution of values, each with its number of occurrences; no other values occur.
    ///
    /// # Panics
    /// Panics if nothing has occurred.
    pub fn of_counts(counts: impl IntoIterator<Item = (f64, u64)>) -> Empirical {
        let mut counts: Vec<(f64, u64)> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
        counts.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        let all: u64 = counts.iter().map(|(_, count)| count).sum();
        assert!(all > 0, "there is a sample");
        let mut up_to = 0;
        let points = counts.into_iter().map(|(value, count)| {
            up_to += count;
            (value, up_to as f64 / all as f64)
        });
        Empirical { points: points.collect(), steps: true }
    }

    /// Makes the distribution that is linear between points: a latency and the share of latencies up to it.
    ///
    /// # Panics
    /// Panics if the points do not rise to a share of 1.
    pub fn of_points(points: Vec<(f64, f64)>) -> Empirical {
        let rises = |pair: &[(f64, f64)]| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1;
        assert!(points.windows(2).all(rises) && points.last().is_some_and(|last| last.1 == 1.0));
        Empirical { points, steps: false }
    }

    /// Returns the two points between which the quantile of a share lies. They differ where the data are coarser than a
    /// latency, as the buckets of a histogram are.
    pub fn bracket(&self, share: f64) -> (f64, f64) {
        let at = self.points.partition_point(|point| point.1 < share).min(self.points.len() - 1);
        let low = if self.steps { at } else { at.saturating_sub(1) };
        (self.points[low].0, self.points[at].0)
    }

    /// Returns the longest latency in us.
    pub fn longest(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.0)
    }

    /// Returns the number of samples, if it is made of samples with a point each.
    pub(crate) fn samples(&self) -> Option<u64> {
        self.steps.then_some(self.points.len() as u64)
    }

    /// Returns the distribution of latencies that are `factor` times as long.
    pub(crate) fn scaled(mut self, factor: f64) -> Empirical {
        self.points.iter_mut().for_each(|point| point.0 *= factor);
        self
    }

    fn moments(&self) -> (f64, f64) {
        let (first, share) = self.points[0];
        let mut sums = (first * share, first * first * share);
        for pair in self.points.windows(2) {
            let [(low, share_low), (high, share_high)] = [pair[0], pair[1]];
            let share = share_high - share_low;
            let (mean, square) = if self.steps {
                (high, high * high)
            } else {
                ((low + high) / 2.0, (low * low + low * high + high * high) / 3.0)
            };
            sums = (sums.0 + mean * share, sums.1 + square * share);
        }
        (sums.0, (sums.1 - sums.0 * sums.0).max(0.0).sqrt())
    }

    fn cdf(&self, x: f64) -> f64 {
        let above = self.points.partition_point(|point| point.0 <= x);
        let Some(before) = above.checked_sub(1) else { return 0.0 };
        let (low, share) = self.points[before];
        match self.points.get(above) {
            Some(&(high, next)) if !self.steps => share + (next - share) * (x - low) / (high - low),
            _ => share,
        }
    }

    /// Returns the least latency in us that a share of `share` of the latencies does not exceed.
    pub fn quantile(&self, share: f64) -> f64 {
        let at = self.points.partition_point(|point| point.1 < share).min(self.points.len() - 1);
        let (high, next) = self.points[at];
        match at.checked_sub(1).map(|before| self.points[before]) {
            Some((low, share_low)) if !self.steps => {
                low + (high - low) * (share - share_low) / (next - share_low)
            }
            _ => high,
        }
    }

    /// Computes the expected value of the largest of `draws`, exactly.
    pub(crate) fn expected_max(&self, draws: u32) -> f64 {
        let to = |share: f64, power: f64| libm::pow(share, power);
        let power = f64::from(draws);
        let (first, share) = self.points[0];
        let mut sum = first * to(share, power);
        for pair in self.points.windows(2) {
            let [(low, share_low), (high, share_high)] = [pair[0], pair[1]];
            let rise = to(share_high, power) - to(share_low, power);
            sum += if self.steps || share_high == share_low {
                high * rise
            } else {
                // x F^S over the piece, less the integral of F^S.
                let area = (to(share_high, power + 1.0) - to(share_low, power + 1.0))
                    / ((power + 1.0) * (share_high - share_low));
                high * to(share_high, power) - low * to(share_low, power) - (high - low) * area
            };
        }
        sum
    }
}

/// Computes the mean and the standard deviation of the logarithm.
fn logarithm(mean: f64, sd: f64) -> (f64, f64) {
    let variance = libm::log1p((sd / mean) * (sd / mean));
    (libm::log(mean) - variance / 2.0, variance.sqrt())
}

fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z / SQRT_2)
}

/// Inverts the distribution by halving an interval that holds every share a double can represent.
fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if normal_cdf(middle) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// The knots of a formula cover a normal distribution up to this many standard deviations; a share of 1e-13 lies beyond
/// at either end.
const BEYOND_SDS: f64 = 7.35;
/// The pieces on either side of the median.
const PIECES: i32 = 2_048;
/// 80 halved so often is below the resolution of a double near 1.
const HALVINGS: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-6 * b.abs().max(1.0)
    }

    /// The dissertation prints 254.25 us as the 99th percentile of N(90, 50); it is the 99.95th.
    #[test]
    fn percentiles_of_the_dissertations_normal_law() {
        let law = Law::Normal { mean: 90.0, sd: 50.0 };
        assert!(near(law.quantile(0.99), 90.0 + 50.0 * 2.326_347_874));
        assert!((law.quantile(0.99) - 206.3).abs() < 0.05);
        assert!((law.cdf(254.25) - 0.9995).abs() < 2e-5);
    }

    #[test]
    fn quantiles_undo_the_distribution() {
        let points = Empirical::parse("us,share\n10,0.2\n20,0.5\n100,1\n").expect("it is a distribution");
        let laws = [
            Law::Normal { mean: 90.0, sd: 50.0 },
            Law::Exponential { mean: 7.0 },
            Law::Lognormal { mean: 76.0, sd: 50.0 },
            Law::Empirical(points),
        ];
        for law in laws {
            for share in [0.3, 0.5, 0.9, 0.999] {
                assert!(near(law.cdf(law.quantile(share)), share), "{law:?} at {share}");
            }
        }
    }

    #[test]
    fn samples_are_steps() {
        let law = Law::Empirical(Empirical::parse("# us\n3\n1\n2\n2\n").expect("it is a sample"));
        assert_eq!([0.0, 1.0, 2.5, 3.0].map(|x| law.cdf(x)), [0.0, 0.25, 0.75, 1.0]);
        assert_eq!([0.25, 0.26, 0.75, 0.76].map(|share| law.quantile(share)), [1.0, 2.0, 2.0, 3.0]);
    }

    #[test]
    fn what_is_no_distribution_is_named() {
        let error = |text| Empirical::parse(text).expect_err("it is none").to_string();
        assert!(error("us\n1\nfast\n").starts_with("line 3: `fast`; allowed: a latency, 0 or more,"));
        assert!(error("us\n1\n-3\n").starts_with("line 3: `-3`; allowed: a latency, 0 or more,"));
        assert!(error("1,0.5\n0.5,1\n").starts_with("line 2"));
        assert!(error("1,0.5\n2,0.9\n").starts_with("line 2"));
        assert!(error("1,2,3\n").starts_with("line 1"));
        assert!(error("latency\n").contains("at least one line"));
        let sd = Law::Normal { mean: 90.0, sd: 0.0 }.check().expect_err("it is none").to_string();
        assert_eq!(sd, "the standard deviation cannot be 0 us; allowed: more than 0");
    }
}
