//! [`Ranges`]: a set of stream offsets as sorted, disjoint ranges. The receiver keeps data that arrived out of order in
//! one, the sender the data that was selectively acknowledged.

use std::collections::VecDeque;

/// Sorted `start..end` ranges that neither overlap nor touch.
#[derive(Clone, Default, Debug)]
pub(crate) struct Ranges {
    ranges: VecDeque<(u64, u64)>,
    total: u64,
}

impl Ranges {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of offsets in the set.
    #[inline]
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// End of the last range; 0 if there is none.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.ranges.back().map_or(0, |range| range.1)
    }

    /// The ranges from the highest to the lowest.
    pub(crate) fn descending(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().rev().copied()
    }

    /// Adds `start..end`; returns how many offsets are new.
    pub(crate) fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        // Ranges first..last overlap or touch the new one.
        let first = self.ranges.partition_point(|range| range.1 < start);
        let mut last = first;
        let (mut low, mut high, mut known) = (start, end, 0);
        while let Some(&(s, e)) = self.ranges.get(last).filter(|range| range.0 <= end) {
            (low, high, known) = (low.min(s), high.max(e), known + (e - s));
            last += 1;
        }
        let new = high - low - known;
        self.total += new;
        if last > first {
            self.ranges[first] = (low, high);
            if last > first + 1 {
                self.ranges.drain(first + 1..last);
            }
        } else {
            self.ranges.insert(first, (low, high));
        }
        new
    }

    /// Forgets all offsets below `offset`.
    pub(crate) fn remove_below(&mut self, offset: u64) {
        while let Some(front) = self.ranges.front_mut().filter(|range| range.0 < offset) {
            if front.1 > offset {
                self.total -= offset - front.0;
                front.0 = offset;
                return;
            }
            self.total -= front.1 - front.0;
            self.ranges.pop_front();
        }
    }

    /// The range that contains `offset`.
    pub(crate) fn find(&self, offset: u64) -> Option<(u64, u64)> {
        let index = self.ranges.partition_point(|range| range.1 <= offset);
        self.ranges.get(index).copied().filter(|range| range.0 <= offset)
    }

    /// Takes the first range if it starts at or below `offset`, and returns its end.
    pub(crate) fn take_first_if_reached(&mut self, offset: u64) -> Option<u64> {
        let &(start, end) = self.ranges.front().filter(|range| range.0 <= offset)?;
        self.ranges.pop_front();
        self.total -= end - start;
        Some(end)
    }

    /// The first hole at or above `from` that has a range above it, from `from` on.
    pub(crate) fn hole(&self, from: u64) -> Option<(u64, u64)> {
        let index = self.ranges.partition_point(|range| range.1 <= from);
        let &(start, end) = self.ranges.get(index)?;
        if start > from {
            return Some((from, start));
        }
        self.ranges.get(index + 1).map(|next| (end, next.0))
    }

    /// Returns how many offsets of the set are below `offset`.
    pub(crate) fn total_below(&self, offset: u64) -> u64 {
        self.ranges
            .iter()
            .take_while(|range| range.0 < offset)
            .map(|range| range.1.min(offset) - range.0)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SPACE: u64 = 64;

    proptest! {
        /// Against a plain bitmap.
        #[test]
        fn agrees_with_a_bitmap(ops in prop::collection::vec((0..SPACE, 0..12u64, any::<bool>()), 0..40)) {
            let mut ranges = Ranges::default();
            let mut bits = [false; 80];
            for (at, len, remove) in ops {
                if remove && len > 8 {
                    ranges.remove_below(at / 4);
                    bits[..(at / 4) as usize].fill(false);
                    continue;
                }
                let part = &mut bits[at as usize..(at + len) as usize];
                let new = part.iter().filter(|bit| !**bit).count() as u64;
                part.fill(true);
                prop_assert_eq!(ranges.insert(at, at + len), new);
            }
            let ones = |below: usize| bits[..below].iter().filter(|bit| **bit).count() as u64;
            prop_assert_eq!(ranges.total(), ones(80));
            for at in 0..80usize {
                prop_assert_eq!(ranges.find(at as u64).is_some(), bits[at], "at {}", at);
                prop_assert_eq!(ranges.total_below(at as u64), ones(at));
                let last = bits.iter().rposition(|bit| *bit).unwrap_or(0);
                let hole = (at..last).find(|index| !bits[*index]);
                prop_assert_eq!(ranges.hole(at as u64).map(|hole| hole.0 as usize), hole);
            }
            let sorted: Vec<_> = ranges.descending().collect();
            prop_assert!(sorted.windows(2).all(|pair| pair[1].1 < pair[0].0), "{:?}", sorted);
        }
    }
}
