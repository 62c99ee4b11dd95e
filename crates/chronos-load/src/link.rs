//! One connection, or one pair of ports, without its socket: what waits to be sent, what waits for its reply, and input
//! that is no whole reply yet.

use std::collections::VecDeque;

use plimsoll_units::Time;

use crate::protocol::Request;

/// A connection without its socket.
#[derive(Debug, Default)]
pub struct Link {
    /// Requests without a reply, in order; on datagrams, those that have one leave a gap.
    pending: VecDeque<Option<Pending>>,
    /// Number of the first in `pending`.
    first: u64,
    /// Requests at the end of `pending` that no attempt was made to send.
    unsent: usize,
    /// Bytes to be sent.
    pub out: Vec<u8>,
    /// Where datagrams end in `out`.
    pub ends: Vec<usize>,
    /// Input that no reply was made of yet.
    pub input: Vec<u8>,
    /// It is in the list of those that have something to send.
    pub listed: bool,
    /// It is gone.
    pub closed: bool,
}

/// A request without a reply.
#[derive(Debug)]
pub struct Pending {
    /// What was asked.
    pub request: Request,
    /// The operation that it is a part of.
    pub operation: usize,
    /// When it should have been sent.
    pub due: Time,
    /// When it was sent; [`Time::MAX`] until then.
    pub sent: Time,
    /// Keys that have been answered, or are known to be missing.
    pub passed: usize,
    /// Values that came.
    pub hits: usize,
    /// One of the values is wrong.
    pub wrong: bool,
    /// Datagrams of the reply, if there are more than one.
    pub parts: Vec<Option<Box<[u8]>>>,
}

impl Link {
    /// The number that the next request gets.
    pub fn next_number(&self) -> u64 {
        self.first + self.pending.len() as u64
    }

    /// Adds a request, which is in `out` already.
    pub fn push(&mut self, pending: Pending) {
        self.pending.push_back(Some(pending));
        self.unsent += 1;
    }

    /// The requests that are sent for the first time now.
    pub fn take_unsent(&mut self) -> impl Iterator<Item = &mut Pending> {
        let start = self.pending.len() - std::mem::take(&mut self.unsent);
        self.pending.range_mut(start..).flatten()
    }

    /// The request whose reply is next on a connection.
    pub fn front(&mut self) -> Option<&mut Pending> {
        self.pending.front_mut().and_then(Option::as_mut)
    }

    /// The request that a datagram names by the lowest bits of its number.
    pub fn named(&mut self, tag: u16) -> Option<(u64, &mut Pending)> {
        let offset = tag.wrapping_sub(self.first as u16);
        let number = self.first + u64::from(offset);
        self.pending.get_mut(usize::from(offset))?.as_mut().map(|pending| (number, pending))
    }

    /// Removes request `number`, which is there.
    pub fn take(&mut self, number: u64) -> Option<Pending> {
        let taken = self.pending.get_mut((number - self.first) as usize).and_then(Option::take);
        while let Some(None) = self.pending.front() {
            self.pending.pop_front();
            self.first += 1;
        }
        self.unsent = self.unsent.min(self.pending.len());
        taken
    }

    /// Removes the first request.
    pub fn take_front(&mut self) -> Option<Pending> {
        self.take(self.first)
    }

    /// Requests without a reply, and gaps among them.
    pub fn outstanding(&self) -> usize {
        self.pending.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Kind;

    fn pending(operation: usize) -> Pending {
        let request = Request { kind: Kind::Get, keys: smallvec::smallvec![1], version: 0, tag: 0 };
        Pending {
            request,
            operation,
            due: Time::ZERO,
            sent: Time::MAX,
            passed: 0,
            hits: 0,
            wrong: false,
            parts: Vec::new(),
        }
    }

    #[test]
    fn replies_find_their_requests_in_any_order() {
        let mut link = Link { first: 65_534, ..Link::default() };
        (0..4).for_each(|operation| link.push(pending(operation)));
        assert_eq!(link.take_unsent().count(), 4);
        assert_eq!(link.take_unsent().count(), 0);
        let operation =
            |link: &mut Link, tag| link.named(tag).map(|(number, found)| (number, found.operation));
        assert_eq!(operation(&mut link, 65_535), Some((65_535, 1)));
        assert_eq!(operation(&mut link, 0), Some((65_536, 2)));
        assert_eq!(link.take(65_536).map(|taken| taken.operation), Some(2));
        assert_eq!(operation(&mut link, 0), None);
        assert_eq!(link.take_front().map(|taken| taken.operation), Some(0));
        assert_eq!(link.take_front().map(|taken| taken.operation), Some(1));
        assert_eq!(link.front().map(|front| front.operation), Some(3));
        assert_eq!((link.outstanding(), link.next_number()), (1, 65_538));
    }
}
