//! Order of the events of one instant: a total order that favours no owner.
//!
//! Packets that are clocked by one bottleneck arrive on one time lattice, so exact ties are common, and an owner that
//! always wins them has an advantage that no network gives: with ties resolved by port number, two DCTCP flows through
//! one switch settle at shares of 4 : 1, and with drop-tail the lowest port locks the others out. So ties go by a rank
//! that is a permutation of the owners, another one at every instant: fair over time, the same on every machine, and
//! blind to the order of insertion.
//!
//! ```text
//! rank = (owner xor high bits of (time x odd)) x odd      mod 2^32, invertible: two owners never have one rank
//! ```

use plimsoll_units::Time;

/// Returns the rank of the owner `owner` among the events of the instant `at`; the smallest is first.
#[inline]
pub(super) fn rank(at: Time, owner: u32) -> u32 {
    ranks(at)(owner)
}

/// Returns the rank of each owner among the events of the instant `at`.
#[inline]
pub(super) fn ranks(at: Time) -> impl Fn(u32) -> u32 {
    let pad = pad(at);
    move |owner| (owner ^ pad).wrapping_mul(SPREAD)
}

/// Returns 32 bits that depend on an instant. Two rounds: times of one lattice differ by a constant, which a single
/// multiplication would turn into another constant.
#[inline]
fn pad(at: Time) -> u32 {
    let mixed = at.as_ps().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed >> 32) as u32
}

/// An odd number, so that multiplying by it permutes the 32-bit words.
const SPREAD: u32 = 0x9e37_79b1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Owner, OwnerKind};

    #[test]
    fn ties_on_a_lattice_are_won_equally_often() {
        for (a, b) in [(0, 1), (1, 2), (1, 8), (10, 11), (128, 129)] {
            for step_ps in [5_120_000, 7_920_000, 1_200_000, 320_000] {
                let bits = |number| Owner::new(OwnerKind::Link, number).bits();
                let wins = (0..10_000u64)
                    .filter(|tick| {
                        let time = Time::from_ps(1_000_000 + tick * step_ps);
                        rank(time, bits(a)) < rank(time, bits(b))
                    })
                    .count();
                assert!((4_700..5_300).contains(&wins), "{a} beats {b} {wins} times of 10000");
            }
        }
    }
}
