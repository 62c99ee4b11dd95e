//! [`Chance`]: a probability that is compared with a uniform 64-bit draw.

/// A probability as the number of 64-bit values that hit, so that a decision is one integer
/// comparison and the same on every machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chance(u128);

impl Chance {
    /// Makes the chance of probability `p`, clamped to 0..=1.
    pub(crate) fn of(p: f64) -> Chance {
        // Scaling by a power of two is exact and the cast rounds down.
        Chance((p.clamp(0.0, 1.0) * TWO_POW_64) as u128)
    }

    /// Returns whether the event happens. A draw is taken only where it can make a difference.
    pub(crate) fn hits(self, draw: impl FnOnce() -> u64) -> bool {
        match self.0 {
            0 => false,
            ALWAYS => true,
            threshold => u128::from(draw()) < threshold,
        }
    }
}

const ALWAYS: u128 = 1 << 64;
const TWO_POW_64: f64 = 18_446_744_073_709_551_616.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certainties_draw_nothing() {
        let no_draw = || -> u64 { panic!("a draw was taken") };
        assert!(!Chance::of(0.0).hits(no_draw));
        assert!(Chance::of(1.0).hits(no_draw));
        assert!(Chance::of(7.0).hits(no_draw));
    }

    #[test]
    fn an_eighth_of_the_values_hit() {
        let eighth = Chance::of(0.125);
        assert!(eighth.hits(|| (1 << 61) - 1));
        assert!(!eighth.hits(|| 1 << 61));
    }
}
