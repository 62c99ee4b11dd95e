//! [`Sorter`] puts events of several processors into the order of their times.

use crate::event::Event;

/// Holds events back for a while, and hands them on in order.
#[derive(Debug, Default)]
pub struct Sorter {
    waiting: Vec<Event>,
    /// The time of the last event that was handed on.
    handed_on: u64,
    late: u64,
}

impl Sorter {
    /// Adds an event to the waiting ones.
    pub fn push(&mut self, event: Event) {
        self.waiting.push(event);
    }

    /// Hands on all events up to `horizon` in order. An event that arrives later than that is dropped and counted.
    pub fn drain(&mut self, horizon: u64, mut hand_on: impl FnMut(&Event)) {
        // Nearly sorted already, which this sort makes use of; equal times keep their order.
        self.waiting.sort_by_key(|event| event.at);
        let ready = self.waiting.partition_point(|event| event.at <= horizon);
        for event in self.waiting.drain(..ready) {
            if event.at < self.handed_on {
                self.late += 1;
            } else {
                self.handed_on = event.at;
                hand_on(&event);
            }
        }
    }

    /// Drops the events that wait.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Returns how many events arrived too late.
    pub fn late(&self) -> u64 {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventKind, Flow};

    #[test]
    fn events_are_handed_on_in_order_and_late_ones_counted() {
        let event = |at| Event { at, kind: EventKind::Closed { flow: Flow::from_bits(at) } };
        let mut sorter = Sorter::default();
        let mut seen = Vec::new();
        [30, 10, 20, 50].into_iter().for_each(|at| sorter.push(event(at)));
        sorter.drain(40, |event| seen.push(event.at));
        [25, 45].into_iter().for_each(|at| sorter.push(event(at)));
        sorter.drain(u64::MAX, |event| seen.push(event.at));
        assert_eq!((seen.as_slice(), sorter.late()), ([10, 20, 30, 45, 50].as_slice(), 1));
    }
}
