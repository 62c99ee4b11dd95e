//! [`Bytes`] is a size in bytes.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// A size, counted in whole bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Bytes(u64);

impl Bytes {
    /// The size of zero bytes.
    pub const ZERO: Bytes = Bytes(0);

    /// Creates a size of `bytes` bytes.
    pub const fn new(bytes: u64) -> Bytes {
        Bytes(bytes)
    }

    /// Returns the number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the number of bits: eight a byte.
    pub const fn bits(self) -> u64 {
        self.0 * 8
    }

    /// Returns `self - other`, or zero where `other` is larger.
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}
impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}
impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}
impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Bytes) {
        self.0 -= other.0;
    }
}
impl Mul<u64> for Bytes {
    type Output = Bytes;
    fn mul(self, factor: u64) -> Bytes {
        Bytes(self.0 * factor)
    }
}

/// Prints the exact size in decimal units: `900B`, `1.5KB`, `10MB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            b if b >= 1_000_000_000 => (1_000_000_000, "GB"),
            b if b >= 1_000_000 => (1_000_000, "MB"),
            b if b >= 1_000 => (1_000, "KB"),
            _ => (1, "B"),
        };
        crate::decimal::write_decimal(f, self.0, unit)?;
        f.write_str(name)
    }
}
