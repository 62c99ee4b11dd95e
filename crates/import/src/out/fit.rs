//! [`ModelFit`]: how well a model has the arrivals and the sizes of a class, and [`FittedTable`], a distribution as a
//! file.

use plimsoll_stats::percentile;
use plimsoll_units::Span;

/// Judgement of the model of one class.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ModelFit {
    /// The class whose traffic was fitted.
    pub(super) class: String,
    /// The variance of the number of arrivals over its mean, in windows of ten mean gaps: 1 for Poisson.
    pub(super) burstiness: Option<f64>,
    /// The share of requests that came within a tenth of the mean gap of the one before: 0.095 for Poisson.
    pub(super) in_bursts: Option<f64>,
    /// The name of each distribution, with its quantiles as measured and as fitted.
    pub(super) quantiles: Vec<FitQuantiles>,
    /// Why the model is none of this class; empty if it is good.
    pub(super) problems: Vec<String>,
}

/// The quantiles of a distribution: measured, and fitted.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct FitQuantiles {
    pub(super) name: &'static str,
    /// The share, the measured value, and the fitted value.
    pub(super) rows: Vec<(f64, f64, f64)>,
}

/// The shares at which distributions are compared.
pub(super) const SHARES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];
/// The largest relative difference of a quantile in a good fit.
const QUANTILE_MAX: f64 = 0.1;
/// The burstiness of a good fit by a Poisson process.
const BURSTINESS: std::ops::Range<f64> = 0.5..2.0;
/// The share in bursts of a Poisson process, `1 - exp(-0.1)`, and its largest difference in a good fit.
pub(super) const POISSON_IN_BURSTS: f64 = 0.0952;
const IN_BURSTS_MAX: f64 = 0.1;
/// The mean number of arrivals of a window, and the least number of windows.
const WINDOW: usize = 10;
const WINDOWS: usize = 20;

impl ModelFit {
    pub(super) fn new(class: &str) -> ModelFit {
        ModelFit {
            class: class.to_owned(),
            burstiness: None,
            in_bursts: None,
            quantiles: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Judges a Poisson process by the starts, in order, within `duration`.
    pub(super) fn arrivals(&mut self, starts: &[Span], duration: Span) {
        if starts.len() < WINDOW * WINDOWS || duration.is_zero() {
            self.problems.push(format!(
                "{} arrivals are too few to judge: {} are needed",
                starts.len(),
                WINDOW * WINDOWS
            ));
            return;
        }
        let mean_gap = duration.as_secs_f64() / starts.len() as f64;
        let windows = starts.len() / WINDOW;
        let mut counts = vec![0.0; windows];
        for start in starts {
            let window = (start.as_secs_f64() / (mean_gap * WINDOW as f64)) as usize;
            counts[window.min(windows - 1)] += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / windows as f64;
        let variance = counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>();
        let burstiness = variance / (windows - 1) as f64 / mean;
        let close =
            starts.windows(2).filter(|pair| pair[1].saturating_sub(pair[0]).as_secs_f64() < mean_gap / 10.0);
        let in_bursts = close.count() as f64 / (starts.len() - 1) as f64;
        if !BURSTINESS.contains(&burstiness) {
            self.problems.push(format!("burstiness {burstiness:.2}, where the Poisson process has 1"));
        }
        if (in_bursts - POISSON_IN_BURSTS).abs() > IN_BURSTS_MAX {
            self.problems.push(format!(
                "{:.0} % came in bursts, where the Poisson process has {:.0} %",
                100.0 * in_bursts,
                100.0 * POISSON_IN_BURSTS
            ));
        }
        (self.burstiness, self.in_bursts) = (Some(burstiness), Some(in_bursts));
    }

    /// Judges a distribution: `fitted` returns the quantile of the model.
    pub(super) fn distribution(&mut self, name: &'static str, sorted: &[f64], fitted: impl Fn(f64) -> f64) {
        let enough = |share: &f64| sorted.len() as f64 * (1.0 - share) >= 1.0;
        let row = |share: f64| Some((share, percentile(sorted, share)?, fitted(share)));
        let rows: Vec<_> = SHARES.into_iter().filter(enough).filter_map(row).collect();
        let is_off = |(_, measured, fitted): &&(f64, f64, f64)| {
            (measured - fitted).abs() > QUANTILE_MAX * measured.abs().max(f64::MIN_POSITIVE)
        };
        if let Some((share, measured, fitted)) = rows.iter().find(is_off) {
            self.problems.push(format!(
                "{name}: {measured:.0} at the quantile {share}, where the model has {fitted:.0}"
            ));
        }
        self.quantiles.push(FitQuantiles { name, rows });
    }
}

/// A cumulative distribution as points, as `cdf` of a scenario reads them.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct FittedTable {
    /// The values, and the share of measured ones that are not larger.
    points: Vec<(f64, f64)>,
    /// Only values at the points are drawn.
    pub(super) steps: bool,
}

/// The most values of a distribution that is kept as it is.
const DISTINCT: usize = 400;
/// The points of another, without its tail.
const POINTS: usize = 200;
const TAIL: [f64; 5] = [0.9975, 0.999, 0.9995, 0.9999, 1.0];

impl FittedTable {
    /// Makes the distribution of ascending values, of which there is at least one.
    pub(super) fn of(sorted: &[f64]) -> FittedTable {
        let last = sorted.len() as f64;
        let mut exact: Vec<(f64, f64)> = Vec::new();
        for (place, &value) in (1..).zip(sorted) {
            let share = f64::from(place) / last;
            if exact.len() > DISTINCT {
                break;
            }
            match exact.last_mut() {
                Some(point) if point.0 == value => point.1 = share,
                _ => exact.push((value, share)),
            }
        }
        if exact.len() <= DISTINCT {
            return FittedTable { points: exact, steps: true };
        }
        let shares = (0..POINTS).map(|place| place as f64 / POINTS as f64).chain(TAIL);
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (value, share) in shares.filter_map(|share| Some((percentile(sorted, share)?, share))) {
            match points.last_mut() {
                Some(point) if point.0 == value => point.1 = share,
                _ => points.push((value, share)),
            }
        }
        FittedTable { points, steps: false }
    }

    /// Writes the file, whose values have this unit.
    pub(super) fn text(&self, unit: &str) -> String {
        let rows = self.points.iter().map(|(value, share)| format!("{value},{share}\n"));
        format!("{unit},cdf\n{}", rows.collect::<String>())
    }

    /// Returns the mean of the draws, as the scenario computes it.
    pub(super) fn mean(&self) -> f64 {
        let (first, first_share) = self.points[0];
        let between = self.points.windows(2).map(|pair| {
            let ((low, low_share), (high, high_share)) = (pair[0], pair[1]);
            (high_share - low_share) * if self.steps { high } else { (low + high) / 2.0 }
        });
        first * first_share + between.sum::<f64>()
    }

    /// Returns the quantile of a share.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let above = self.points.partition_point(|point| point.1 < share).min(self.points.len() - 1);
        let (value, at) = self.points[above];
        if above == 0 || self.steps {
            return value;
        }
        let (low, low_share) = self.points[above - 1];
        low + (value - low) * (share - low_share) / (at - low_share)
    }
}

#[cfg(test)]
mod tests;
