//! [`BucketSort`]: puts the entries of a bucket in the order of their times.
//!
//! Times are spread about evenly over a bucket, so an entry's time nearly determines its place:
//!
//! ```text
//! bucket ──> how many entries lie in each 1/64 of its width ──> where each 64th begins ──> entries there,
//!                                                                                         then insertion
//! ```
//!
//! Entries of one 64th are put in order as they are inserted; with 17 entries a bucket, as in a fat-tree of 128 hosts,
//! that is one in eight. A sort by comparisons mispredicts a branch for nearly every entry.

use super::key::Key;

/// Sorts buckets in a buffer of its own.
#[derive(Clone, Debug)]
pub(super) struct BucketSort {
    spread: Box<[Key; SPREAD_MAX]>,
}

impl BucketSort {
    pub(super) fn new() -> BucketSort {
        BucketSort { spread: Box::new([Key::default(); SPREAD_MAX]) }
    }

    /// Sorts the entries of a bucket that is `1 << shift` picoseconds wide, the first one last.
    #[inline]
    pub(super) fn sort(&mut self, keys: &mut [Key], shift: u32) {
        if !(SPREAD_MIN..=SPREAD_MAX).contains(&keys.len()) || shift < SLOT_BITS {
            return keys.sort_unstable_by(|a, b| b.cmp(a));
        }
        // The last times come first.
        let slot = |key: Key| !(key.offset() >> (shift - SLOT_BITS)) as usize % SLOTS;
        let mut counts = [0; SLOTS];
        for key in &*keys {
            counts[slot(*key)] += 1;
        }
        let mut places = begins(counts);
        // Mostly entries were added in the order of their times, and the last added come first.
        for key in &*keys {
            let place = &mut places[slot(*key)];
            self.spread[usize::from(*place) % SPREAD_MAX] = *key;
            *place += 1;
        }
        for (end, &key) in self.spread[..keys.len()].iter().enumerate() {
            let mut place = end;
            while place > 0 && keys[place - 1] < key {
                keys[place] = keys[place - 1];
                place -= 1;
            }
            keys[place] = key;
        }
    }
}

/// Returns the number of entries in all slots before each slot, eight slots at a time.
#[inline]
fn begins(mut counts: [u8; SLOTS]) -> [u8; SLOTS] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut before = 0;
    let (words, _) = counts.as_chunks_mut::<8>();
    for word in words {
        let each = u64::from_le_bytes(*word);
        // Byte i of the product is the sum of bytes 0 to i.
        let up_to = each.wrapping_mul(ONES).wrapping_add(before);
        *word = (up_to - each).to_le_bytes();
        before = (up_to >> 56) * ONES;
    }
    counts
}

const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// The fewest entries that are spread; with fewer there is little to insert. Not tuned.
const SPREAD_MIN: usize = 6;
/// The most entries that are spread: a place takes a byte, and all of them may share a slot.
const SPREAD_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use plimsoll_units::Time;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sorts_as_comparisons_do(
            shift in 1_u32..33,
            entries in prop::collection::vec((any::<u64>(), any::<u32>()), 0..200),
            width in 1_u32..64,
        ) {
            let within = |draw: u64| Time::from_ps(draw >> (64 - shift.min(width)));
            let mut keys: Vec<Key> =
                entries.into_iter().map(|(at, owner)| Key::new(within(at), owner, shift)).collect();
            let mut sorted = keys.clone();
            sorted.sort_unstable();
            sorted.reverse();
            BucketSort::new().sort(&mut keys, shift);
            prop_assert_eq!(keys, sorted);
        }
    }
}
