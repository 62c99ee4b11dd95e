//! [`ArrivedPackets`]: numbered packets of a receiver, which may arrive in any order.

use std::collections::VecDeque;

/// The packets that have arrived at a receiver: all before `next`, and some beyond the gap there.
#[derive(Debug, Default)]
pub(super) struct ArrivedPackets {
    /// The number and the offset that are expected next in order.
    next: u64,
    offset: u64,
    /// From `next` on: the payload of the packets that have arrived, and 0 for those that have not.
    ahead: VecDeque<u16>,
    /// The packets of `ahead` that have arrived.
    waiting: u16,
}

impl ArrivedPackets {
    /// Returns whether packet `number` has arrived.
    pub(super) fn has(&self, number: u64) -> bool {
        number < self.next || self.ahead.get((number - self.next) as usize).is_some_and(|len| *len > 0)
    }

    /// Returns whether packets `first` to `last` have all arrived. It looks from `near` on, the packet that came
    /// last, up to the end and then back to the beginning, as packets that come in order leave the gap ahead of it.
    pub(super) fn has_all(&self, first: u64, near: u64, last: u64) -> bool {
        (near..=last).all(|number| self.has(number)) && (first..near).rev().all(|number| self.has(number))
    }

    /// Takes a packet with `len` bytes that has not arrived before. Returns the bytes newly in order.
    pub(super) fn take(&mut self, number: u64, len: u32) -> u64 {
        if number == self.next && self.ahead.is_empty() {
            self.next += 1;
            self.offset += u64::from(len);
            return len.into();
        }
        let (before, place) = (self.offset, (number - self.next) as usize);
        if self.ahead.len() <= place {
            self.ahead.resize(place + 1, 0);
        }
        self.ahead[place] = len as u16;
        self.waiting += 1;
        while let Some(len) = self.ahead.pop_front_if(|len| *len > 0) {
            self.next += 1;
            self.offset += u64::from(len);
            self.waiting -= 1;
        }
        self.offset - before
    }

    /// Returns which of the 64 packets from `first` on have arrived, the first in the lowest bit.
    pub(super) fn map_from(&self, first: u64) -> u64 {
        let in_order = self.next.saturating_sub(first);
        if in_order >= u64::from(u64::BITS) {
            return u64::MAX;
        }
        let beyond = self.ahead.iter().skip(first.saturating_sub(self.next) as usize);
        let bits = (in_order..u64::from(u64::BITS)).zip(beyond);
        bits.fold((1 << in_order) - 1, |map, (bit, len)| map | u64::from(*len > 0) << bit)
    }

    /// Returns the number of the first packet that has not arrived.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Returns the bytes in order.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the packets that wait behind a gap.
    pub(super) fn waiting(&self) -> u16 {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_behind_a_gap_count_once_it_closes() {
        let mut arrived = ArrivedPackets::default();
        assert_eq!((arrived.take(1, 10), arrived.take(3, 7), arrived.waiting()), (0, 0, 2));
        assert!(arrived.has(1) && !arrived.has(0) && !arrived.has(2) && !arrived.has(9));
        assert_eq!([0, 1, 3, 4].map(|first| arrived.map_from(first)), [0b1010, 0b101, 0b1, 0]);
        assert_eq!((arrived.take(0, 10), arrived.next(), arrived.waiting()), (20, 2, 1));
        assert_eq!((arrived.take(2, 10), arrived.next(), arrived.offset()), (17, 4, 37));
        assert!(arrived.has(0));
        assert_eq!([0, 3, 4].map(|first| arrived.map_from(first)), [0b1111, 0b1, 0]);
        (4..70).for_each(|number| _ = arrived.take(number, 10));
        assert_eq!([5, 6, 7].map(|first| arrived.map_from(first)), [u64::MAX, u64::MAX, u64::MAX >> 1]);
    }

    #[test]
    fn a_run_of_packets_behind_a_gap_is_whole_once_its_last_one_is_there() {
        let mut arrived = ArrivedPackets::default();
        for (number, is_whole) in [(4, false), (2, false), (3, true)] {
            arrived.take(number, 10);
            assert_eq!(arrived.has_all(2, number, 4), is_whole, "{number}");
        }
        assert!(!arrived.has_all(1, 2, 4) && !arrived.has_all(2, 4, 5));
    }
}
