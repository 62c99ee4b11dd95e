//! [`DataSender`]: the sending half of the data sequence, and the data to be sent on another subflow as well.
//!
//! ```text
//! data:   0 ...... una ............ nxt ....... written
//!          data ACK   on some subflow    not sent
//! ```

use std::collections::VecDeque;

/// The sending half of the data sequence.
#[derive(Debug, Default)]
pub(super) struct DataSender {
    /// The data ACK: the first offset that the receiver has not acknowledged.
    una: u64,
    /// The next offset to send.
    nxt: u64,
    /// Bytes that the application wrote.
    written: u64,
    /// Data that subflows had outstanding when their timers fired, in the order of the timeouts.
    reinjections: VecDeque<Reinjection>,
}

/// Data that a subflow may have lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Reinjection {
    start: u64,
    end: u64,
    /// The subflow whose timer fired: the others send the data.
    from: usize,
}

/// A piece of the data sequence for one subflow to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DataChunk {
    pub(super) start: u64,
    pub(super) len: u64,
    /// Whether it was sent before, by another subflow.
    pub(super) again: bool,
}

impl DataSender {
    pub(super) fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    pub(super) fn acknowledged(&self) -> u64 {
        self.una
    }

    pub(super) fn sent(&self) -> u64 {
        self.nxt
    }

    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// A data ACK arrived. Returns the bytes newly acknowledged.
    pub(super) fn on_data_ack(&mut self, ack: u64) -> u64 {
        if ack <= self.una || ack > self.nxt {
            return 0;
        }
        let acked = ack - std::mem::replace(&mut self.una, ack);
        self.reinjections.retain_mut(|data| {
            data.start = data.start.max(ack);
            data.start < data.end
        });
        acked
    }

    /// The data `start..end` was outstanding on subflow `from` when its timer fired.
    pub(super) fn reinject(&mut self, start: u64, end: u64, from: usize) {
        let start = start.max(self.una);
        if start < end {
            self.reinjections.push_back(Reinjection { start, end, from });
        }
    }

    /// Returns whether subflow `subflow` would have data to send.
    pub(super) fn has_data(&self) -> bool {
        self.nxt < self.written || !self.reinjections.is_empty()
    }

    /// Returns the chunk that `subflow` sends next: data that another may have lost, then new data, as far as the
    /// shared `window` reaches. A chunk is a full `segment`, or shorter if it is the last.
    pub(super) fn next_chunk(&self, subflow: usize, segment: u64, window: u64) -> Option<DataChunk> {
        if let Some(data) = self.reinjections.iter().find(|data| data.from != subflow) {
            return Some(DataChunk {
                start: data.start,
                len: (data.end - data.start).min(segment),
                again: true,
            });
        }
        let len = (self.written - self.nxt).min(segment);
        let fits = self.nxt - self.una + len <= window;
        (len > 0 && fits).then_some(DataChunk { start: self.nxt, len, again: false })
    }

    /// The subflow `subflow` has sent `chunk`.
    pub(super) fn on_sent(&mut self, subflow: usize, chunk: &DataChunk) {
        if !chunk.again {
            self.nxt += chunk.len;
            return;
        }
        let place =
            self.reinjections.iter().position(|data| data.from != subflow && data.start == chunk.start);
        if let Some(place) = place {
            let data = &mut self.reinjections[place];
            data.start += chunk.len;
            if data.start >= data.end {
                self.reinjections.remove(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(start: u64, len: u64) -> Option<DataChunk> {
        Some(DataChunk { start, len, again: false })
    }

    fn again(start: u64, len: u64) -> Option<DataChunk> {
        Some(DataChunk { start, len, again: true })
    }

    #[test]
    fn the_shared_window_holds_all_subflows() {
        let mut sender = DataSender::default();
        sender.write(5_500);
        for at in [0, 1_000, 2_000] {
            let chunk = sender.next_chunk(0, 1_000, 3_000);
            assert_eq!(chunk, new(at, 1_000));
            sender.on_sent(0, &chunk.unwrap());
        }
        assert_eq!(sender.next_chunk(1, 1_000, 3_000), None);
        assert_eq!(sender.on_data_ack(2_500), 2_500);
        assert_eq!(sender.on_data_ack(2_000), 0, "an ACK that was overtaken");
        assert_eq!(sender.next_chunk(1, 1_000, 3_000), new(3_000, 1_000));
        sender.on_sent(1, &sender.next_chunk(1, 1_000, 3_000).unwrap());
        sender.on_sent(1, &sender.next_chunk(1, 1_000, 3_000).unwrap());
        assert_eq!(sender.next_chunk(1, 1_000, 3_000), new(5_000, 500), "all that there is");
    }

    #[test]
    fn lost_data_goes_first_and_by_another_subflow() {
        let mut sender = DataSender::default();
        sender.write(4_000);
        for _ in 0..3 {
            sender.on_sent(0, &sender.next_chunk(0, 1_000, 9_000).unwrap());
        }
        sender.reinject(0, 1_500, 0);
        assert_eq!(sender.next_chunk(0, 1_000, 9_000), new(3_000, 1_000), "not by the same");
        assert_eq!(sender.next_chunk(1, 1_000, 9_000), again(0, 1_000));
        sender.on_sent(1, &sender.next_chunk(1, 1_000, 9_000).unwrap());
        assert_eq!(sender.next_chunk(1, 1_000, 9_000), again(1_000, 500));
        // Data that the receiver has is not sent again.
        sender.on_data_ack(1_200);
        assert_eq!(sender.next_chunk(1, 1_000, 9_000), again(1_200, 300));
        sender.on_data_ack(3_000);
        assert_eq!(sender.next_chunk(1, 1_000, 9_000), new(3_000, 1_000));
        sender.reinject(0, 3_000, 0);
        assert_eq!(sender.next_chunk(1, 1_000, 9_000), new(3_000, 1_000), "all of it was acknowledged");
    }
}
