//! Uniform random loss: each packet is lost with one probability, independently of earlier losses.
//!
//! It models losses without congestion (optics, cables, drivers), and is the one experiment in which a transport's
//! recovery is measured at a given loss rate: the host loses the packet before its NIC receives it, so that the loss
//! itself does not change any queue.

use crate::chance::Chance;

/// Loses packets independently of each other, all with the same probability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UniformLoss {
    chance: Chance,
}

impl UniformLoss {
    /// Makes the loss of `probability`, clamped to 0..=1.
    pub fn new(probability: f64) -> UniformLoss {
        UniformLoss { chance: Chance::of(probability) }
    }

    /// Returns whether the next packet is lost. `draw` gives a uniform 64-bit number, and is not called where the
    /// probability is 0 or 1.
    pub fn loses(&self, draw: impl FnOnce() -> u64) -> bool {
        self.chance.hits(draw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_draws_is_lost() {
        let loss = UniformLoss::new(0.25);
        for (draw, lost) in [(0, true), ((1 << 62) - 1, true), (1 << 62, false), (u64::MAX, false)] {
            assert_eq!(loss.loses(|| draw), lost, "{draw:#x}");
        }
    }

    #[test]
    fn certainties_draw_nothing() {
        let no_draw = || -> u64 { panic!("a draw was taken") };
        assert!(!UniformLoss::new(0.0).loses(no_draw));
        assert!(UniformLoss::new(1.0).loses(no_draw));
    }
}
