//! Approximate runs of a cell: the means of its replicates.

use crate::outcome::{Approximation, Outcome};
use crate::stats::{Estimate, Interval};

/// Averages the slowdowns of replicates, and the ends of their intervals; `None` where no run is approximate. The load
/// is that of the busiest run.
pub(super) fn summarise(outcomes: &[&Outcome]) -> Option<Approximation> {
    let all: Vec<&Approximation> =
        outcomes.iter().filter_map(|outcome| outcome.approximation.as_ref()).collect();
    let mut whole = (*all.first()?).clone();
    whole.busiest = all.iter().map(|one| one.busiest).fold(0.0, f64::max);
    for row in &mut whole.slowdowns {
        let others = all.iter().flat_map(|one| &one.slowdowns);
        let same: Vec<_> =
            others.filter(|other| (&other.workload, other.up_to) == (&row.workload, row.up_to)).collect();
        for (share, slowdown) in row.slowdown.iter_mut().enumerate() {
            *slowdown = mean(same.iter().filter_map(|row| row.slowdown[share]));
        }
    }
    Some(whole)
}

fn mean(estimates: impl Iterator<Item = Estimate>) -> Option<Estimate> {
    let estimates: Vec<Estimate> = estimates.collect();
    let of =
        |value: fn(&Estimate) -> f64| crate::stats::mean(&estimates.iter().map(value).collect::<Vec<_>>());
    let end = |end: fn(&Interval) -> f64| {
        let ends: Vec<f64> = estimates.iter().filter_map(|one| one.interval.as_ref()).map(end).collect();
        crate::stats::mean(&ends)
    };
    let interval = end(|interval| interval.low).zip(end(|interval| interval.high));
    Some(Estimate {
        value: of(|estimate| estimate.value)?,
        interval: interval.map(|(low, high)| Interval { low, high }),
        samples: estimates.iter().map(|estimate| estimate.samples).sum(),
    })
}
