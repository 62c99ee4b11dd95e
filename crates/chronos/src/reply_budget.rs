//! [`ReplyBudget`]: the memory that the replies of a thread's connections may take.
//!
//! The size of a reply that another thread makes is unknown until it arrives. Until then it counts as much as the
//! largest that its connection had lately, and the replies of a new connection as half of the room. Where clients leave
//! replies unread on purpose, all of a thread's replies add up: then each connection has one at a time.

use crate::Limits;

/// The budget of all connections of a thread.
#[derive(Debug)]
pub(crate) struct ReplyBudget {
    output_bytes: usize,
    under_way: u32,
    /// Bytes of all connections' replies, arrived and expected.
    counted: usize,
}

/// The account of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionReplies {
    /// Estimated bytes of a reply that has not arrived yet.
    expected: usize,
    /// True until the connection has had a reply.
    is_new: bool,
    /// The connection's part of [`ReplyBudget::counted`].
    counted: usize,
}

/// The multiple of `output_bytes` that all connections of a thread may have before each gets one reply at a time.
const CONNECTIONS: usize = 32;
/// The least that an expected reply counts for the thread, in parts of `output_bytes`: small replies before it may have
/// been a preparation.
const LEAST_PART: usize = 16;
/// One larger reply is forgotten after a few times this many replies.
const FORGOTTEN: usize = 64;

impl ReplyBudget {
    /// Creates the budget that `limits` allow.
    pub(crate) fn new(limits: &Limits) -> ReplyBudget {
        ReplyBudget { output_bytes: limits.output_bytes, under_way: limits.under_way, counted: 0 }
    }

    /// Returns the account of a new connection.
    pub(crate) fn replies(&self) -> ConnectionReplies {
        ConnectionReplies { expected: self.output_bytes / 2 + 1, is_new: true, counted: 0 }
    }

    /// Reports whether a connection with `bytes` of replies here, and `missing` expected ones, may ask for one more.
    #[inline]
    pub(crate) fn is_enough(&self, replies: &ConnectionReplies, bytes: usize, missing: u32) -> bool {
        let each = if self.is_scarce() { self.output_bytes.saturating_add(1) } else { replies.expected };
        missing < self.under_way
            && bytes.saturating_add(each.saturating_mul(missing as usize)) <= self.output_bytes
    }

    /// Reports whether `count` replies may be too much, if there are no others.
    #[inline]
    pub(crate) fn is_little_for(&self, count: usize, replies: &ConnectionReplies) -> bool {
        self.is_scarce() || replies.expected.saturating_mul(count) > self.output_bytes
    }

    /// Counts the replies of a connection: `bytes` that are here, and `missing` that have not arrived.
    pub(crate) fn recount(&mut self, replies: &mut ConnectionReplies, bytes: usize, missing: u32) {
        let each = replies.expected.max(self.output_bytes / LEAST_PART);
        let counted = bytes.saturating_add(each.saturating_mul(missing as usize));
        self.counted = (self.counted - replies.counted).saturating_add(counted);
        replies.counted = counted;
    }

    /// Removes a connection that has ended.
    pub(crate) fn forget(&mut self, replies: &ConnectionReplies) {
        self.counted -= replies.counted;
    }

    fn is_scarce(&self) -> bool {
        self.counted > self.output_bytes.saturating_mul(CONNECTIONS)
    }
}

impl ConnectionReplies {
    /// Returns the estimated bytes of a reply that has not arrived yet.
    #[inline]
    pub(crate) fn expected(&self) -> usize {
        self.expected
    }

    /// Notes the size of a reply that has arrived.
    #[inline]
    pub(crate) fn note(&mut self, bytes: usize) {
        let before = if self.is_new { 0 } else { self.expected };
        self.expected = bytes.max(before - before / FORGOTTEN);
        self.is_new = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        connections: 1024,
        connections_per_address: usize::MAX,
        idle: None,
        input_bytes: 1000,
        output_bytes: 1000,
        memory_bytes: 1 << 20,
        under_way: 256,
        turn: 1024,
        backlog: 1,
        drain: std::time::Duration::ZERO,
    };

    /// Returns the number of requests that a connection may have at other threads.
    fn window(budget: &ReplyBudget, replies: &ConnectionReplies, bytes: usize) -> u32 {
        (0..).find(|&missing| !budget.is_enough(replies, bytes, missing)).expect("an end")
    }

    #[test]
    fn what_is_not_here_counts_as_the_largest_before() {
        let room = ReplyBudget::new(&LIMITS);
        let mut replies = room.replies();
        assert_eq!((window(&room, &replies, 0), room.is_little_for(2, &replies)), (2, true));
        (0..1000).for_each(|_| replies.note(63));
        assert_eq!((window(&room, &replies, 0), room.is_little_for(2, &replies)), (16, false));
        replies.note(100);
        assert_eq!([0, 500, 1000, 1001].map(|bytes| window(&room, &replies, bytes)), [11, 6, 1, 0]);
        replies.note(5000);
        assert_eq!((window(&room, &replies, 0), window(&room, &replies, 5000)), (1, 0));
        (0..400).for_each(|_| replies.note(10));
        assert!(window(&room, &replies, 0) > 10, "one large reply is not remembered for ever");
    }

    #[test]
    fn many_connections_that_were_prepared_get_one_at_a_time() {
        let mut room = ReplyBudget::new(&LIMITS);
        let mut all: Vec<ConnectionReplies> = (0..100).map(|_| room.replies()).collect();
        let mut asked = 0;
        for replies in &mut all {
            (0..1000).for_each(|_| replies.note(1));
            let missing = window(&room, replies, 0);
            room.recount(replies, 0, missing);
            asked += missing;
        }
        assert!(asked < 900, "{asked}");
        all.iter_mut().for_each(|replies| room.recount(replies, 0, 0));
        assert!(!room.is_scarce());
        all.iter().for_each(|replies| room.forget(replies));
        assert_eq!(room.counted, 0);
    }
}
