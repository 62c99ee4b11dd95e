//! [`Mail`]: messages between threads, by one bounded single-producer ring for each pair and direction.
//!
//! ```text
//! send ──> outbox of the receiver ──publish, once a turn──> ring ──receive──> the receiver's turn
//! ```
//!
//! A thread never waits for room: a message that finds none stays in the outbox, and the thread continues to empty its
//! own rings, so threads cannot wait for each other in a circle. While an outbox is longer than the ring, the thread
//! reads no further requests of its connections ([`Mail::is_congested`]); the messages that the others' requests can
//! add are bounded by the requests that their connections may have under way.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rtrb::{Consumer, Producer, RingBuffer};

use crate::shared::Shared;
use crate::sources::SourceSeat;
use crate::{SessionTransport, Tls};

/// A message from one thread to another.
pub(crate) enum ThreadMessage<P> {
    /// A request for a partition of the receiver.
    Request(Parcel),
    /// The reply to one of the receiver's requests.
    Reply(Parcel),
    /// A partition that is the receiver's from now on.
    Adopt {
        /// The number of the partition.
        partition: u32,
        /// The state of the partition.
        state: Box<P>,
    },
    /// A connection that the receiver is to serve.
    Connection(Newcomer),
}

/// A connection that was accepted.
pub(crate) struct Newcomer {
    pub(crate) socket: OwnedFd,
    pub(crate) transport: SessionTransport,
    /// The TLS configuration of its listener, if it has one.
    pub(crate) tls: Option<Tls>,
    /// Its place among the connections of its source address, where these are limited.
    pub(crate) seat: Option<SourceSeat>,
}

/// A request or its reply, on its way between threads.
#[derive(Debug)]
pub(crate) struct Parcel {
    /// The thread of the connection.
    pub(crate) origin: u32,
    /// The partition that it is for.
    pub(crate) partition: u32,
    /// The place of the reply.
    pub(crate) ticket: Ticket,
    /// True if it was sent to another thread, so that its reply ends its being under way.
    pub(crate) travelled: bool,
    /// The request as the service encoded it; later the reply.
    pub(crate) bytes: Vec<u8>,
}

/// The place of a reply on its connection's thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket {
    /// The key of the connection on its thread.
    pub(crate) connection: u32,
    /// Distinguishes the connections that have had this number.
    pub(crate) incarnation: u32,
    /// The hole in its output, or a part of a request to all partitions.
    pub(crate) hole: Option<u32>,
}

/// One thread's end of the rings.
pub(crate) struct Mail<P> {
    peers: Vec<Option<MailPeer<P>>>,
    ring_messages: usize,
    /// Messages in the outboxes.
    waiting: usize,
}

struct MailPeer<P> {
    outbox: VecDeque<ThreadMessage<P>>,
    to: Producer<ThreadMessage<P>>,
    from: Consumer<ThreadMessage<P>>,
}

impl<P> Mail<P> {
    /// Creates the rings between `threads` threads, each with room for `ring_messages`.
    pub(crate) fn between(threads: u32, ring_messages: usize) -> Vec<Mail<P>> {
        let empty = |_| Mail { peers: (0..threads).map(|_| None).collect(), ring_messages, waiting: 0 };
        let mut all: Vec<Mail<P>> = (0..threads).map(empty).collect();
        for high in 0..threads as usize {
            for low in 0..high {
                let (to_high, from_low) = RingBuffer::new(ring_messages);
                let (to_low, from_high) = RingBuffer::new(ring_messages);
                all[low].peers[high] =
                    Some(MailPeer { outbox: VecDeque::new(), to: to_high, from: from_high });
                all[high].peers[low] = Some(MailPeer { outbox: VecDeque::new(), to: to_low, from: from_low });
            }
        }
        all
    }

    /// Puts a message for another thread into its outbox.
    pub(crate) fn send(&mut self, to: u32, message: ThreadMessage<P>) {
        let peer = self.peers[to as usize].as_mut().expect("a thread sends itself nothing");
        peer.outbox.push_back(message);
        self.waiting += 1;
    }

    /// Moves messages into the rings as far as there is room, and returns the number of threads woken and whether a
    /// ring was full.
    pub(crate) fn publish(&mut self, shared: &Shared) -> PublishResult {
        let mut published = PublishResult::default();
        if self.waiting == 0 {
            return published;
        }
        for (thread, peer) in self.peers.iter_mut().enumerate() {
            let Some(peer) = peer.as_mut().filter(|peer| !peer.outbox.is_empty()) else { continue };
            let count = peer.outbox.len().min(peer.to.slots());
            published.full |= count < peer.outbox.len();
            if count > 0 {
                let chunk = peer.to.write_chunk_uninit(count).expect("there is so much room");
                chunk.fill_from_iter(peer.outbox.drain(..count));
                self.waiting -= count;
                published.wakes += u64::from(shared.wake(thread as u32));
            }
        }
        published
    }

    /// Takes the messages that have arrived, each thread's in their order.
    pub(crate) fn receive(&mut self, messages: &mut Vec<ThreadMessage<P>>) {
        for peer in self.peers.iter_mut().flatten() {
            let count = peer.from.slots();
            if count > 0 {
                messages.extend(peer.from.read_chunk(count).expect("so many are there"));
            }
        }
    }

    /// Returns the messages that have arrived or were not sent, once all threads have ended.
    pub(crate) fn into_messages(mut self) -> Vec<ThreadMessage<P>> {
        let mut messages = Vec::new();
        self.receive(&mut messages);
        messages.extend(self.peers.into_iter().flatten().flat_map(|peer| peer.outbox));
        messages
    }

    /// Reports whether no message has arrived.
    pub(crate) fn is_empty(&self) -> bool {
        self.peers.iter().flatten().all(|peer| peer.from.is_empty())
    }

    /// Reports whether everything sent is in the rings.
    pub(crate) fn is_published(&self) -> bool {
        self.waiting == 0
    }

    /// Reports whether more messages wait than a ring holds.
    #[inline]
    pub(crate) fn is_congested(&self) -> bool {
        self.waiting > self.ring_messages
    }
}

/// The result of [`Mail::publish`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PublishResult {
    /// The number of threads that were woken.
    pub(crate) wakes: u64,
    /// True if a ring had too little room.
    pub(crate) full: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(number: u32) -> ThreadMessage<()> {
        let ticket = Ticket { connection: 0, incarnation: 0, hole: None };
        ThreadMessage::Reply(Parcel {
            origin: 0,
            partition: number,
            ticket,
            travelled: true,
            bytes: Vec::new(),
        })
    }

    fn numbers(mail: &mut Mail<()>) -> Vec<u32> {
        let mut messages = Vec::new();
        mail.receive(&mut messages);
        let number = |message| match message {
            ThreadMessage::Reply(parcel) => parcel.partition,
            _ => unreachable!("only replies are sent"),
        };
        messages.into_iter().map(number).collect()
    }

    #[test]
    fn a_full_ring_delays_and_loses_nothing() {
        let shared = Shared::new(2, &[0]).unwrap();
        let mut mail = Mail::between(2, 2);
        let (mut second, mut first) = (mail.pop().unwrap(), mail.pop().unwrap());
        (0..5).for_each(|number| first.send(1, reply(number)));
        assert!(first.is_congested());
        assert!(first.publish(&shared).full);
        assert_eq!(numbers(&mut second), [0, 1]);
        assert!(first.publish(&shared).full);
        assert_eq!(numbers(&mut second), [2, 3]);
        assert!(!first.publish(&shared).full && first.is_published());
        assert_eq!(numbers(&mut second), [4]);
        assert!(second.is_empty() && !first.is_congested());
    }

    #[test]
    fn only_sleepers_are_woken_and_once() {
        let shared = Shared::new(2, &[0]).unwrap();
        let mut mail = Mail::between(2, 8);
        mail[0].send(1, reply(0));
        assert_eq!(mail[0].publish(&shared).wakes, 0);
        shared.fall_asleep(1);
        mail[0].send(1, reply(1));
        assert_eq!(mail[0].publish(&shared).wakes, 1);
        mail[0].send(1, reply(2));
        assert_eq!(mail[0].publish(&shared).wakes, 0);
    }
}
