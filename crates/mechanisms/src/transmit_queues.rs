//! The transmit queues of a NIC: pieces of several queues leave in turn, each as a whole, back to back.
//!
//! ```text
//! piece ──by connection──> queue 0 ──┐
//!                          queue 1 ──┼── in turn, piece by piece ──> port
//!                          queue 2 ──┘
//! ```
//!
//! With one queue, pieces leave in the order in which the host handed them over. A piece counts as sent when the link
//! has had the time for it; pauses of the port meanwhile are ignored.

use std::collections::VecDeque;

use plimsoll_units::{Span, Time};

/// The transmit queues of one NIC, with pieces of type `T`.
#[derive(Clone, Debug)]
pub struct TransmitQueues<T> {
    queues: Vec<VecDeque<(Span, T)>>,
    /// The queue to be served next.
    turn: usize,
    /// When the piece being sent has left; a time in the past means that none is being sent.
    sends_until: Option<Time>,
}

impl<T> TransmitQueues<T> {
    /// Makes `queues` empty queues, at least one.
    pub fn new(queues: u32) -> TransmitQueues<T> {
        let queues = (0..queues.max(1)).map(|_| VecDeque::new()).collect();
        TransmitQueues { queues, turn: 0, sends_until: None }
    }

    /// Handles a piece from the host that takes the link for `time`, in the queue of connection `flow`.
    pub fn on_piece(&mut self, flow: u32, time: Span, piece: T) {
        let queue = flow as usize % self.queues.len();
        self.queues[queue].push_back((time, piece));
    }

    /// Returns when the piece being sent has left; `None` if none is.
    pub fn next_due(&self) -> Option<Time> {
        self.sends_until
    }

    /// Begins to send the next piece at `now` and returns it, if the one before has left.
    pub fn poll(&mut self, now: Time) -> Option<T> {
        if self.sends_until.is_some_and(|until| until > now) {
            return None;
        }
        self.sends_until = None;
        let count = self.queues.len();
        let queue =
            (0..count).map(|step| (self.turn + step) % count).find(|&q| !self.queues[q].is_empty())?;
        let (time, piece) = self.queues[queue].pop_front()?;
        if self.queues[queue].is_empty() {
            // The ring begins anew, in memory that is in the cache.
            self.queues[queue].clear();
        }
        self.turn = (queue + 1) % count;
        self.sends_until = Some(now.saturating_add(time));
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn order(queues: u32) -> String {
        let mut nic = TransmitQueues::new(queues);
        for (flow, piece) in [(0, 'a'), (0, 'b'), (0, 'c'), (1, 'x'), (1, 'y')] {
            nic.on_piece(flow, Span::from_us(2), piece);
        }
        (0..5).filter_map(|piece| nic.poll(at_us(2 * piece))).collect()
    }

    #[test]
    fn queues_take_turns_and_one_queue_keeps_the_order() {
        assert_eq!(order(1), "abcxy");
        assert_eq!(order(2), "axbyc");
        assert_eq!(order(8), "axbyc");
    }

    #[test]
    fn a_piece_leaves_when_the_one_before_has_left() {
        let mut nic = TransmitQueues::new(1);
        assert_eq!((nic.poll(at_us(0)), nic.next_due()), (None, None));
        nic.on_piece(0, Span::from_us(5), 'a');
        nic.on_piece(0, Span::from_us(5), 'b');
        assert_eq!((nic.poll(at_us(1)), nic.next_due()), (Some('a'), Some(at_us(6))));
        assert_eq!(nic.poll(at_us(5)), None);
        assert_eq!((nic.poll(at_us(6)), nic.next_due()), (Some('b'), Some(at_us(11))));
        assert_eq!((nic.poll(at_us(11)), nic.next_due()), (None, None));
    }
}
