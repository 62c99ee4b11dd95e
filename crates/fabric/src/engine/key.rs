//! [`Key`]: an entry of a bucket of the calendar.

use plimsoll_units::Time;

/// An entry of a bucket as one integer, the time since the bucket began above the owner: a comparison takes one
/// instruction and no branch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(super) struct Key(u64);

impl Key {
    /// Returns the entry of `owner` at `at`, where buckets are `1 << shift` picoseconds wide.
    #[inline]
    pub(super) fn new(at: Time, owner: u32, shift: u32) -> Key {
        Key((at.as_ps() & ((1 << shift) - 1)) << u32::BITS | u64::from(owner))
    }

    /// Returns the entry's time, where its bucket begins at `begins`.
    #[inline]
    pub(super) fn at(self, begins: Time) -> Time {
        Time::from_ps(begins.as_ps() + self.offset())
    }

    /// Returns the picoseconds from the bucket's beginning to the entry.
    #[inline]
    pub(super) fn offset(self) -> u64 {
        self.0 >> u32::BITS
    }

    #[inline]
    pub(super) fn owner(self) -> u32 {
        self.0 as u32
    }

    /// Returns whether both have one time.
    #[inline]
    pub(super) fn is_tied_with(self, other: Key) -> bool {
        (self.0 ^ other.0) >> u32::BITS == 0
    }
}
