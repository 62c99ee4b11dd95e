//! [`ServerLink`] is a connection, or a pair of UDP ports, without its socket: its output, its requests without a
//! reply, and its unparsed input.

use std::collections::VecDeque;

use plimsoll_units::Time;

use crate::protocol::Request;

/// A connection without its socket.
#[derive(Debug, Default)]
pub struct ServerLink {
    /// The requests without a reply, in order; with datagrams, an answered request leaves a gap.
    pending: VecDeque<Option<Pending>>,
    /// The number of the first request in `pending`.
    first: u64,
    /// The number of requests at the end of `pending` that no write has included yet.
    unsent: usize,
    /// The bytes that wait to be sent to the server.
    pub out: Vec<u8>,
    /// The ends of the datagrams in `out`.
    pub ends: Vec<usize>,
    /// The input that is not yet a whole reply.
    pub input: Vec<u8>,
    /// Whether the connection is in the list of those with output.
    pub listed: bool,
    /// Whether the connection is closed.
    pub closed: bool,
}

/// A request without a reply.
#[derive(Debug)]
pub struct Pending {
    /// The request that was sent.
    pub request: Request,
    /// The operation of which it is a part.
    pub operation: usize,
    /// The place of the request among the copies of a get, from 1; 0 where there are none.
    pub copy: u32,
    /// The time at which it should have been sent.
    pub due: Time,
    /// The time at which it was sent; [`Time::MAX`] until then.
    pub sent: Time,
    /// The number of keys that have been answered, or are known to be missing.
    pub passed: usize,
    /// The number of values in the reply so far.
    pub hits: usize,
    /// Whether one of the values is wrong.
    pub wrong: bool,
    /// The datagrams of the reply, if there are more than one.
    pub parts: Vec<Option<Box<[u8]>>>,
}

impl ServerLink {
    /// Returns the number of the next request.
    pub fn next_number(&self) -> u64 {
        self.first + self.pending.len() as u64
    }

    /// Adds a request, whose bytes are already in `out`.
    pub fn push(&mut self, pending: Pending) {
        self.pending.push_back(Some(pending));
        self.unsent += 1;
    }

    /// Returns the requests that are written for the first time now.
    pub fn take_unsent(&mut self) -> impl Iterator<Item = &mut Pending> {
        let start = self.pending.len() - std::mem::take(&mut self.unsent);
        self.pending.range_mut(start..).flatten()
    }

    /// Returns the request whose reply is next on a connection.
    pub fn front(&mut self) -> Option<&mut Pending> {
        self.pending.front_mut().and_then(Option::as_mut)
    }

    /// Returns the request that a datagram names by the lowest bits of its number.
    pub fn named(&mut self, tag: u16) -> Option<(u64, &mut Pending)> {
        let offset = tag.wrapping_sub(self.first as u16);
        let number = self.first + u64::from(offset);
        self.pending.get_mut(usize::from(offset))?.as_mut().map(|pending| (number, pending))
    }

    /// Removes the pending request `number`.
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

    /// Returns the number of requests without a reply, and of the gaps among them.
    pub fn outstanding(&self) -> usize {
        self.pending.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::RequestKind;

    fn pending(operation: usize) -> Pending {
        let request = Request { kind: RequestKind::Get, keys: smallvec::smallvec![1], version: 0, tag: 0 };
        Pending {
            request,
            operation,
            copy: 0,
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
        let mut link = ServerLink { first: 65_534, ..ServerLink::default() };
        (0..4).for_each(|operation| link.push(pending(operation)));
        assert_eq!(link.take_unsent().count(), 4);
        assert_eq!(link.take_unsent().count(), 0);
        let operation =
            |link: &mut ServerLink, tag| link.named(tag).map(|(number, found)| (number, found.operation));
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
