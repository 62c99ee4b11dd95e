//! [`Spread`]: how lengths of time are distributed, in bins of 1/16 of their size, in constant room.

use plimsoll_units::Span;

/// Counts of lengths of time from 1 ns to 70 s.
#[derive(Clone, Debug)]
pub struct Spread {
    bins: Vec<u64>,
    count: u64,
    max: Span,
}

const SUB_BITS: u32 = 4;
const SUB: u64 = 1 << SUB_BITS;
const BINS: usize = (37 * SUB) as usize;

impl Default for Spread {
    fn default() -> Spread {
        Spread { bins: vec![0; BINS], count: 0, max: Span::ZERO }
    }
}

impl Spread {
    /// Adds a sample of length `span` to the distribution.
    pub fn record(&mut self, span: Span) {
        let ns = span.as_ps() / 1_000;
        self.bins[bin(ns).min(BINS - 1)] += 1;
        self.count += 1;
        self.max = self.max.max(span);
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the longest sample; zero without samples.
    pub fn max(&self) -> Span {
        self.max
    }

    /// Returns the length that a share of `quantile` does not exceed, up to 1/16 too long; zero without samples.
    pub fn quantile(&self, quantile: f64) -> Span {
        let rank = ((self.count as f64 * quantile).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, bin) in self.bins.iter().enumerate() {
            seen += bin;
            if seen >= rank {
                return Span::from_ns(last_of(index)).min(self.max);
            }
        }
        Span::ZERO
    }
}

/// Rounds `span` to three decimal digits, more precise than a bin: for output to people.
pub fn rough(span: Span) -> Span {
    let ps = span.as_ps();
    let step = 10_u64.pow(ps.max(1).ilog10().saturating_sub(2));
    Span::from_ps((ps / step + u64::from(ps % step >= step.div_ceil(2))) * step)
}

/// Returns the bin of a length: lengths below 16 ns have a bin each, longer ones 16 in each octave.
fn bin(ns: u64) -> usize {
    if ns < SUB {
        return ns as usize;
    }
    let octave = ns.ilog2() - SUB_BITS;
    (u64::from(octave) * SUB + (ns >> octave)) as usize
}

/// The longest that a bin counts.
fn last_of(bin: usize) -> u64 {
    let bin = bin as u64;
    if bin < 2 * SUB {
        return bin;
    }
    let octave = bin / SUB - 1;
    ((bin % SUB + SUB + 1) << octave) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_kept() {
        for (ps, expected) in [
            (0, "0s"),
            (7, "7ps"),
            (999, "999ps"),
            (50_331_647_000, "50.3ms"),
            (18_874_367, "18.9us"),
            (999_500, "1us"),
        ] {
            assert_eq!(rough(Span::from_ps(ps)).to_string(), expected);
        }
    }

    #[test]
    fn quantiles_are_right_to_a_sixteenth() {
        let mut spread = Spread::default();
        assert_eq!(spread.quantile(0.5), Span::ZERO);
        (1..=10_000).for_each(|us| spread.record(Span::from_us(us)));
        for (quantile, us) in [(0.5, 5_000.0), (0.99, 9_900.0), (0.0001, 1.0)] {
            let found = spread.quantile(quantile).as_us_f64();
            assert!(found >= us && found <= us * (1.0 + 1.0 / 16.0), "{quantile}: {found}");
        }
        assert_eq!((spread.quantile(1.0), spread.count()), (Span::from_ms(10), 10_000));
    }

    #[test]
    fn bins_meet() {
        for ns in 0..100_000u64 {
            let own = bin(ns);
            assert!(last_of(own) >= ns && (own == 0 || last_of(own - 1) < ns), "{ns}");
        }
    }
}
