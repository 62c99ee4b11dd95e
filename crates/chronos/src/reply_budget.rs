//! [`ReplyBudget`]: how much memory the replies of a thread's connections may take.
//!
//! How large a reply is that another thread makes is known when it is here. Until then it counts as much as the largest
//! that its connection had lately, and those of a new connection as half of what there is. Where clients let replies
//! lie on purpose, all of a thread's add up: then each connection has one at a time.

use crate::Limits;

/// What all connections of a thread have.
#[derive(Debug)]
pub(crate) struct ReplyBudget {
    output_bytes: usize,
    under_way: u32,
    /// Bytes of replies that are here, and of those that are not, of all connections.
    counted: usize,
}

/// What one connection has.
#[derive(Debug)]
pub(crate) struct Replies {
    /// Bytes of a reply that is not here yet, as far as one can tell.
    expected: usize,
    /// True until the connection has had a reply.
    is_new: bool,
    /// What the connection has in [`ReplyBudget::counted`].
    counted: usize,
}

/// So many times `output_bytes` all connections of a thread may have before each gets one reply at a time.
const CONNECTIONS: usize = 32;
/// The least that a reply counts for the thread that is not here yet, in parts of `output_bytes`: the small replies
/// before may have been a preparation.
const LEAST_PART: usize = 16;
/// One larger reply is forgotten after a few times so many.
const FORGOTTEN: usize = 64;

impl ReplyBudget {
    /// Room within `limits`.
    pub(crate) fn new(limits: &Limits) -> ReplyBudget {
        ReplyBudget { output_bytes: limits.output_bytes, under_way: limits.under_way, counted: 0 }
    }

    /// Returns the account of a new connection.
    pub(crate) fn replies(&self) -> Replies {
        Replies { expected: self.output_bytes / 2 + 1, is_new: true, counted: 0 }
    }

    /// Whether a connection with `bytes` of replies here, and `missing` that are not, may ask for one more.
    #[inline]
    pub(crate) fn is_enough(&self, replies: &Replies, bytes: usize, missing: u32) -> bool {
        let each = if self.is_scarce() { self.output_bytes.saturating_add(1) } else { replies.expected };
        missing < self.under_way
            && bytes.saturating_add(each.saturating_mul(missing as usize)) <= self.output_bytes
    }

    /// Whether `count` replies may be too much, if there are no others.
    #[inline]
    pub(crate) fn is_little_for(&self, count: usize, replies: &Replies) -> bool {
        self.is_scarce() || replies.expected.saturating_mul(count) > self.output_bytes
    }

    /// Counts what a connection has: `bytes` of replies here, and `missing` that are not.
    pub(crate) fn recount(&mut self, replies: &mut Replies, bytes: usize, missing: u32) {
        let each = replies.expected.max(self.output_bytes / LEAST_PART);
        let counted = bytes.saturating_add(each.saturating_mul(missing as usize));
        self.counted = (self.counted - replies.counted).saturating_add(counted);
        replies.counted = counted;
    }

    /// A connection is gone.
    pub(crate) fn forget(&mut self, replies: &Replies) {
        self.counted -= replies.counted;
    }

    fn is_scarce(&self) -> bool {
        self.counted > self.output_bytes.saturating_mul(CONNECTIONS)
    }
}

impl Replies {
    /// Bytes that a reply takes which is not here yet, as far as one can tell.
    #[inline]
    pub(crate) fn expected(&self) -> usize {
        self.expected
    }

    /// A reply of so many bytes is here.
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

    /// How many requests a connection may have at other threads.
    fn window(budget: &ReplyBudget, replies: &Replies, bytes: usize) -> u32 {
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
        let mut all: Vec<Replies> = (0..100).map(|_| room.replies()).collect();
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
