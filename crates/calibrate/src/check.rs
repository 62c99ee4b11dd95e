//! [`Check`]: a prediction at a load that was not fitted, judged by the ratios of the quantiles.

use plimsoll_models::measured::MeasuredLatencies;
use plimsoll_stats::{Estimate, Interval, Statistic};
use serde::Serialize;

use crate::modelled::ModelledLatencies;
use crate::quantiles::{SHARES, measured, ratio};

/// The judgement of one quantile, or of all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckVerdict {
    /// The interval of the ratio is within the tolerance.
    Pass,
    /// The interval is outside the tolerance.
    Fail,
    /// The interval is partly within the tolerance, or there is none.
    CannotTell,
}

/// The ratios of measured to predicted quantiles.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// The quantiles with their ratios, measured by predicted, and judgements.
    pub ratios: Vec<(String, Option<Estimate>, CheckVerdict)>,
    /// `Fail` if a quantile fails, `Pass` if the median and the highest quantile that has an interval pass, and
    /// `CannotTell` otherwise.
    pub verdict: CheckVerdict,
}

impl Check {
    /// Judges a prediction. A ratio from `1 / (1 + tolerance)` to `1 + tolerance` is within the tolerance.
    pub fn of(latencies: &MeasuredLatencies, predicted: &ModelledLatencies, tolerance: f64) -> Check {
        let ratios: Vec<(String, Option<Estimate>, CheckVerdict)> = SHARES
            .iter()
            .map(|&share| {
                let found = measured(latencies, share).map(|seen| ratio(&seen, &predicted.quantile(share)));
                let interval = found.and_then(|found| found.interval);
                (Statistic::Percentile(share).name(), found, judged(interval, tolerance))
            })
            .collect();
        let judged: Vec<CheckVerdict> = ratios
            .iter()
            .filter(|(_, ratio, _)| ratio.is_some_and(|ratio| ratio.interval.is_some()))
            .map(|(_, _, verdict)| *verdict)
            .collect();
        let verdict = if judged.contains(&CheckVerdict::Fail) {
            CheckVerdict::Fail
        } else if [judged.first(), judged.last()].iter().all(|end| *end == Some(&CheckVerdict::Pass)) {
            CheckVerdict::Pass
        } else {
            CheckVerdict::CannotTell
        };
        Check { ratios, verdict }
    }
}

fn judged(interval: Option<Interval>, tolerance: f64) -> CheckVerdict {
    let (least, most) = (1.0 / (1.0 + tolerance), 1.0 + tolerance);
    match interval {
        Some(Interval { low, high }) if low >= least && high <= most => CheckVerdict::Pass,
        Some(Interval { low, high }) if high < least || low > most => CheckVerdict::Fail,
        _ => CheckVerdict::CannotTell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_interval_outside_the_tolerance_fails() {
        let of = |low, high| judged(Some(Interval { low, high }), 0.1);
        assert_eq!(of(0.95, 1.05), CheckVerdict::Pass);
        assert_eq!(of(1.05, 1.2), CheckVerdict::CannotTell);
        assert_eq!(of(1.11, 1.2), CheckVerdict::Fail);
        assert_eq!(of(0.5, 0.9), CheckVerdict::Fail);
        assert_eq!(judged(None, 0.1), CheckVerdict::CannotTell);
    }
}
