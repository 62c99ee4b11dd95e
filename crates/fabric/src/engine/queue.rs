//! [`EventQueue`]: the pending events, in a total order that favours no owner.
//!
//! Events are ordered by time. Packets that are clocked by one bottleneck arrive on one time lattice,
//! so exact ties are common, and an owner that always wins them has an advantage that no network gives: with
//! ties resolved by port number, two DCTCP flows through one switch settle at shares of 4 : 1, and
//! with drop-tail the lowest port locks the others out. So ties go by a rank that is a permutation of
//! the owners, another one at every instant: fair over time, the same on every machine, and blind to
//! the order of insertion.
//!
//! ```text
//! rank = (owner xor high bits of (time x odd)) x odd      mod 2^32, invertible: the owner is not stored
//! ```

use plimsoll_units::Time;

use super::Owner;
use super::calendar::Calendar;

/// Pending events, in the order of time, then rank.
#[derive(Debug, Default)]
pub struct EventQueue {
    calendar: Calendar,
}

impl EventQueue {
    /// Returns an empty queue.
    pub fn new() -> EventQueue {
        EventQueue::default()
    }

    /// Schedules `owner` at `at`, which is not before the event popped last, and after any time until which there was
    /// none.
    #[inline]
    pub fn push(&mut self, at: Time, owner: Owner) {
        self.calendar.push(at, rank(at, owner));
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, Owner)> {
        self.pop_until(Time::MAX)
    }

    /// Takes the next event, if it is at `last` or before; if not, events after `last` may still be pushed.
    #[inline]
    pub fn pop_until(&mut self, last: Time) -> Option<(Time, Owner)> {
        let (at, rank) = self.calendar.pop_until(last)?;
        Some((at, owner_of(at, rank)))
    }

    /// Returns whether a new bucket has begun since the last call.
    #[inline]
    pub fn take_turn(&mut self) -> bool {
        self.calendar.take_turn()
    }

    /// Returns the owners of the events in the next bucket that this has not shown, of the `most` buckets that follow
    /// the current one, in no particular order; more may be added to it. A caller may prefetch what they will touch.
    #[inline]
    pub fn look_further(&mut self, most: u64) -> Option<impl Iterator<Item = Owner> + '_> {
        let entries = self.calendar.look_further(most)?;
        Some(entries.map(|(at, rank)| owner_of(at, rank)))
    }

    /// Returns when the next event is. The queue is not changed.
    pub fn peek_time(&self) -> Option<Time> {
        self.calendar.peek_time()
    }

    /// Returns whether no event is left.
    pub fn is_empty(&self) -> bool {
        self.calendar.is_empty()
    }
}

/// Returns the rank of `owner` among the events of the instant `at`.
#[inline]
fn rank(at: Time, owner: Owner) -> u32 {
    (owner.bits() ^ pad(at)).wrapping_mul(SPREAD)
}

/// Returns the owner whose rank at the instant `at` is `rank`.
#[inline]
fn owner_of(at: Time, rank: u32) -> Owner {
    Owner::from_bits(rank.wrapping_mul(SPREAD_INVERSE) ^ pad(at))
}

/// Returns 32 bits that belong to an instant. Two rounds: times of one lattice differ by a constant, which a single
/// multiplication would turn into another constant.
#[inline]
fn pad(at: Time) -> u32 {
    let mixed = at.as_ps().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed >> 32) as u32
}

/// An odd number, so that multiplying by it permutes the 32-bit words, and its inverse.
const SPREAD: u32 = 0x9e37_79b1;
const SPREAD_INVERSE: u32 = inverse(SPREAD);

/// Returns the inverse of an odd number modulo 2^32, by Newton's iteration: each step doubles the bits.
const fn inverse(odd: u32) -> u32 {
    let mut inverse = odd;
    let mut round = 0;
    while round < 5 {
        inverse = inverse.wrapping_mul(2u32.wrapping_sub(odd.wrapping_mul(inverse)));
        round += 1;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::OwnerKind;
    use plimsoll_units::Span;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn events_come_in_order_of_time_whatever_the_order_of_pushing() {
        let owner = |number| Owner::new(OwnerKind::Endpoint, number);
        let drain = |order: [u64; 4]| {
            let mut queue = EventQueue::new();
            for number in order {
                queue.push(at(number / 2), owner(number as u32));
            }
            std::iter::from_fn(move || queue.pop()).collect::<Vec<_>>()
        };
        let popped = drain([0, 1, 2, 3]);
        assert!(popped.is_sorted_by_key(|(time, _)| *time));
        assert_eq!(popped, drain([3, 1, 0, 2]));
    }

    #[test]
    fn owners_survive_the_permutation() {
        for number in [0, 1, 77, (1 << 29) - 1] {
            for kind in [OwnerKind::Link, OwnerKind::Endpoint, OwnerKind::Receive] {
                let owner = Owner::new(kind, number);
                for time in [at(0), at(1), Time::MAX] {
                    assert_eq!(owner_of(time, rank(time, owner)), owner);
                }
            }
        }
    }

    #[test]
    fn ties_on_a_lattice_are_won_equally_often() {
        for (a, b) in [(0, 1), (1, 2), (1, 8), (10, 11), (128, 129)] {
            for step_ps in [5_120_000, 7_920_000, 1_200_000, 320_000] {
                let (a, b) = (Owner::new(OwnerKind::Link, a), Owner::new(OwnerKind::Link, b));
                let wins = (0..10_000u64)
                    .filter(|tick| {
                        let time = Time::from_ps(1_000_000 + tick * step_ps);
                        rank(time, a) < rank(time, b)
                    })
                    .count();
                assert!((4_700..5_300).contains(&wins), "{a:?} beats {b:?} {wins} times of 10000");
            }
        }
    }
}
