//! [`DataReceiver`]: reassembly in the order of the data sequence.

use crate::transports::tcp::Ranges;

/// The receiving half of the data sequence.
#[derive(Debug, Default)]
pub(super) struct DataReceiver {
    /// The next offset expected, which is the data ACK.
    nxt: u64,
    /// The ranges that arrived beyond that offset.
    beyond: Ranges,
}

impl DataReceiver {
    /// The data ACK: the bytes handed to the application.
    pub(super) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// The data `start..end` has arrived in order of its subflow. Returns the bytes newly in order.
    pub(super) fn on_data(&mut self, start: u64, end: u64) -> u64 {
        if end <= self.nxt {
            return 0;
        }
        if start > self.nxt {
            self.beyond.insert(start, end);
            return 0;
        }
        let before = std::mem::replace(&mut self.nxt, end);
        while let Some(end) = self.beyond.take_first_if_reached(self.nxt) {
            self.nxt = self.nxt.max(end);
        }
        self.nxt - before
    }

    /// Returns the bytes that wait for others.
    #[cfg(test)]
    fn waiting(&self) -> u64 {
        self.beyond.total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By arrival: the data, the bytes newly in order, the data ACK, and the bytes that wait.
    #[test]
    fn data_of_several_subflows_is_put_in_order() {
        let mut receiver = DataReceiver::default();
        for (start, end, new, ack, waiting) in [
            (0, 10, 10, 10, 0),
            (20, 30, 0, 10, 10),
            (40, 50, 0, 10, 20),
            // Again, by another subflow.
            (20, 30, 0, 10, 20),
            (0, 10, 0, 10, 20),
            // A part that is known.
            (10, 25, 20, 30, 10),
            (30, 60, 30, 60, 0),
        ] {
            assert_eq!((receiver.on_data(start, end), receiver.nxt()), (new, ack), "{start}..{end}");
            assert_eq!(receiver.waiting(), waiting, "{start}..{end}");
        }
    }
}
