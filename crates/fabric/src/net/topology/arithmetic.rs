//! Arithmetic of path selection: choices, and divisions that take no division.

/// Divides by a number that is known before the run, without a division.
///
/// ```text
/// n / d = (n x m) >> s     m = ceil(2^s / d), s = 31 + ceil(log2 d)     for n < 2^31
/// ```
/// Granlund and Montgomery (PLDI 1994), theorem 4.2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Divisor {
    multiplier: u64,
    shift: u32,
}

impl Divisor {
    /// Returns the divisor `d`, above zero.
    pub(super) fn new(d: u32) -> Divisor {
        let shift = 31 + d.next_power_of_two().ilog2();
        Divisor { multiplier: (1u64 << shift).div_ceil(u64::from(d)), shift }
    }

    /// Returns `n / d`, rounded down.
    #[inline]
    pub(super) fn divide(self, n: u32) -> u32 {
        ((u64::from(n) * self.multiplier) >> self.shift) as u32
    }
}

/// `hash` scaled to `0..choices`, without a division.
#[inline]
pub(crate) fn choose(hash: u32, choices: u32) -> u32 {
    ((u64::from(hash) * u64::from(choices)) >> 32) as u32
}

/// Returns a hash by which [`choose`] returns `choice`.
#[inline]
pub(super) fn place_of(choice: u32, choices: u32) -> u32 {
    (u64::from(choice) << 32).div_ceil(u64::from(choices)) as u32
}
