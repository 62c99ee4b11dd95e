//! [`EventQueue`]: the pending events, by time and, within an instant, by the rank of their owner ([`super::ties`]).

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
        self.calendar.push(at, owner.bits());
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, Owner)> {
        self.pop_until(Time::MAX)
    }

    /// Takes the next event, if it is at `last` or before; if not, events after `last` may still be pushed.
    #[inline]
    pub fn pop_until(&mut self, last: Time) -> Option<(Time, Owner)> {
        let (at, owner) = self.calendar.pop_until(last)?;
        Some((at, Owner::from_bits(owner)))
    }

    /// Returns the owner of the next event where that is known without a search, as it mostly is. A caller may prefetch
    /// the memory that the event will touch.
    #[inline]
    pub fn first_at_hand(&self) -> Option<Owner> {
        self.calendar.first_at_hand().map(Owner::from_bits)
    }

    /// Returns whether a new bucket has begun since the last call.
    #[inline]
    pub fn take_turn(&mut self) -> bool {
        self.calendar.take_turn()
    }

    /// Returns the owners of the events in the next bucket that no earlier call has returned, of the `most` buckets
    /// that follow the current one, in no particular order; more may be added to it. A caller may prefetch the memory
    /// that they will touch.
    #[inline]
    pub fn look_further(&mut self, most: u64) -> Option<impl Iterator<Item = Owner> + '_> {
        let entries = self.calendar.look_further(most)?;
        Some(entries.map(|(_, owner)| Owner::from_bits(owner)))
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
}
