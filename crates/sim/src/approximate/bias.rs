//! [`bias`]: by how much approximate runs differed from whole ones, from the comparison of docs/approximate.md.

use plimsoll_results::Interval;

/// Rows of the comparison: the load of the busiest link up to which they count, and for p50, p90 and p99 the least and
/// the most difference, as shares.
const BIAS: &str = include_str!("bias.csv");

/// Returns the least and the most difference at a load of the busiest link, by percentile.
pub(super) fn bias(busiest: f64) -> [Interval; 3] {
    let mut rows = BIAS.lines().skip(1).map(|line| {
        let mut numbers = line.split(',').map(|cell| cell.parse().unwrap_or(f64::NAN));
        std::array::from_fn::<f64, 7, _>(|_| numbers.next().unwrap_or(f64::NAN))
    });
    let row = rows.find(|row| busiest <= row[0]).unwrap_or([f64::NAN; 7]);
    [1, 3, 5].map(|at| Interval { low: row[at], high: row[at + 1] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approximate::plan::HIGHEST_LOAD;

    #[test]
    fn every_load_that_is_accepted_has_a_bias() {
        for load in [0.0, 0.3, 0.5, 0.51, HIGHEST_LOAD] {
            for Interval { low, high } in bias(load) {
                assert!(low <= high && low > -1.0 && high < 10.0, "{load}: {low} .. {high}");
            }
        }
    }
}
