//! [`Connection`]: what a thread knows of one client: its session, what it has said, and what it is to be told.

use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::buffers::Buffers;
use crate::memory::Holding;
use crate::output::Output;
use crate::port::Client;
use crate::reply_budget::{Replies, ReplyBudget};
use crate::sources::Seat;
use crate::tls::TlsStream;
use crate::{Service, Transport};

/// A connection, or a datagram whose replies are not all here yet.
pub(crate) struct Connection<S: Service> {
    /// Its number on its thread.
    pub(crate) key: u32,
    /// Which of the connections that had this number.
    pub(crate) incarnation: u32,
    pub(crate) session: S::Session,
    pub(crate) input: Input,
    pub(crate) output: Output,
    /// What its replies count.
    pub(crate) replies: Replies,
    /// What it holds of all connections' memory.
    pub(crate) holding: Holding,
    /// Bytes that came from it while it had no replies to fetch; wraps.
    pub(crate) received: usize,
    pub(crate) everywhere: Option<Box<Everywhere>>,
    pub(crate) link: Link,
    /// What its bytes are wrapped in, if they are.
    pub(crate) tls: Option<Box<TlsStream>>,
    /// Its place among the connections of its source address, free again when the connection is dropped.
    pub(crate) _seat: Option<Seat>,
    /// When it last said something.
    pub(crate) active_at: Duration,
    /// Bytes that it had not fetched when it was idle for too long; None if it never was.
    pub(crate) unsent_when_idle: Option<usize>,
    /// There are requests in `input` that wait for room in `output`, in a ring, or for a request to all partitions.
    pub(crate) is_blocked: bool,
    /// The turn of its thread in which it ran as many requests as one may have, if that is why it is blocked.
    pub(crate) gave_way_in: Option<u64>,
    /// It is to be closed once `output` is sent.
    pub(crate) is_closing: bool,
    /// The client says nothing more.
    pub(crate) is_ended: bool,
    /// It is in the worker's list of connections to look after.
    pub(crate) is_listed: bool,
}

/// The origin of a connection's bytes.
pub(crate) enum Link {
    /// The bytes come by a stream.
    Stream(Stream),
    /// A datagram that came to the port with this index.
    Datagram {
        /// The index of the port among the thread's ports.
        port: usize,
        /// The sender, to whom the reply is sent.
        client: Client,
        /// What [`Service::unseal`] took off.
        envelope: u64,
    },
}

/// A stream's socket and what the kernel last said of it.
pub(crate) struct Stream {
    pub(crate) socket: OwnedFd,
    /// True if the stream is a UNIX socket.
    pub(crate) is_unix: bool,
    /// There may be something to read.
    pub(crate) is_readable: bool,
    /// There may be room to write.
    pub(crate) is_writable: bool,
    /// The client has closed its end, or the connection is broken: read until the kernel says so.
    pub(crate) is_hung_up: bool,
    /// The kernel is asked to receive (io_uring).
    pub(crate) is_receiving: bool,
    /// And is asked to stop that.
    pub(crate) is_cancelling: bool,
    /// The kernel is sending (io_uring).
    pub(crate) is_sending: bool,
}

/// A request that went to all partitions.
pub(crate) struct Everywhere {
    /// The request as the service wrote it down.
    pub(crate) message: Vec<u8>,
    /// The reply of each partition.
    pub(crate) replies: Vec<Vec<u8>>,
    /// Replies that are not here yet.
    pub(crate) missing: u32,
}

/// Bytes that came and are not used up yet.
#[derive(Debug, Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    /// Bytes at the front that are used up.
    used: usize,
    /// Worth a look when there are so many bytes that are not used up.
    pub(crate) wanted: usize,
    /// Bytes yet to come that are thrown away.
    pub(crate) skip: usize,
}

/// The bytes of an [`Input`], taken out.
pub(crate) struct Lent {
    bytes: Vec<u8>,
    used: usize,
}

impl Lent {
    /// The bytes that are not used up.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.used..]
    }
}

/// The least room for what is read behind the beginning of a request.
const READ_BYTES: usize = 64 * 1024;

impl Input {
    /// The bytes that are not used up.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.used == self.bytes.len()
    }

    /// Bytes of memory that it takes.
    pub(crate) fn held(&self) -> usize {
        self.bytes.capacity()
    }

    fn advance(&mut self, used: usize, buffers: &mut Buffers) {
        self.used += used;
        if self.is_empty() {
            self.used = 0;
            buffers.give(std::mem::take(&mut self.bytes));
        }
    }

    /// Keeps what came and is not used up.
    pub(crate) fn keep(&mut self, bytes: &[u8], buffers: &mut Buffers) {
        if bytes.is_empty() {
            return;
        }
        if self.bytes.capacity() == 0 {
            self.bytes = buffers.take();
        }
        self.compact();
        grow(&mut self.bytes, bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// A buffer with room behind what is here, to be read into.
    pub(crate) fn room(&mut self) -> &mut Vec<u8> {
        self.compact();
        // As much again as is here at most: a client that only says that a request is large gets no room for it.
        let wanted = self.wanted.saturating_sub(self.bytes.len());
        let more = wanted.min(self.bytes.len()).max(READ_BYTES);
        grow(&mut self.bytes, more);
        &mut self.bytes
    }

    /// Takes the bytes out, to be looked at while the connection changes; [`Input::restore`] puts them back.
    pub(crate) fn lend(&mut self) -> Lent {
        Lent { bytes: std::mem::take(&mut self.bytes), used: self.used }
    }

    /// Puts the bytes back, `used` more of which are used up.
    pub(crate) fn restore(&mut self, lent: Lent, used: usize, buffers: &mut Buffers) {
        (self.bytes, self.used) = (lent.bytes, lent.used);
        self.advance(used, buffers);
    }

    fn compact(&mut self) {
        if self.used > 0 {
            self.bytes.drain(..self.used);
            self.used = 0;
        }
    }
}

/// Makes room for `more` bytes: of small buffers twice as much as there is, of large ones a quarter more, since what is
/// not used counts for all connections.
fn grow(bytes: &mut Vec<u8>, more: usize) {
    const LARGE: usize = 1 << 20;
    if bytes.len() < LARGE {
        bytes.reserve(more);
    } else if bytes.capacity() - bytes.len() < more {
        bytes.reserve_exact(more.max(bytes.len() / 4));
    }
}

impl<S: Service> Connection<S> {
    /// Nothing more will be read from it or sent to it.
    pub(crate) fn is_finished(&self) -> bool {
        let no_more = self.is_closing || (self.is_ended && !self.is_blocked);
        no_more && self.output.is_done() && self.everywhere.is_none() && self.is_wire_done()
    }

    fn is_wire_done(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| tls.wire.is_done())
    }

    /// Its stream, and what is to be sent on it, encrypted if it has to be; None for a datagram.
    pub(crate) fn outgoing(&mut self, buffers: &mut Buffers) -> Option<(&mut Stream, &mut Output)> {
        let Link::Stream(stream) = &mut self.link else { return None };
        let Some(tls) = &mut self.tls else { return Some((stream, &mut self.output)) };
        let is_last = self.is_closing || (self.is_ended && !self.is_blocked && self.everywhere.is_none());
        tls.seal(&mut self.output, is_last, buffers);
        Some((stream, &mut tls.wire))
    }

    /// Its next request may be looked at, as far as the connection goes.
    pub(crate) fn has_room(&self, budget: &ReplyBudget) -> bool {
        self.everywhere.is_none()
            && !self.is_closing
            && budget.is_enough(&self.replies, self.reply_bytes(), self.output.holes())
    }

    /// Bytes of memory that it takes.
    pub(crate) fn held(&self) -> usize {
        let everywhere = self.everywhere.as_ref().map_or(0, |everywhere| everywhere.held());
        let wire = self.tls.as_ref().map_or(0, |tls| tls.wire.held());
        self.input.held() + self.output.held() + wire + everywhere
    }

    /// Replies that are not here yet.
    pub(crate) fn missing(&self) -> u32 {
        self.output.holes() + self.everywhere.as_ref().map_or(0, |everywhere| everywhere.missing)
    }

    /// Bytes that have moved in all: those that its client fetched, and those that it said with nothing left to fetch;
    /// wraps.
    pub(crate) fn moved(&self) -> usize {
        self.tls.as_ref().map_or(self.output.gone(), |tls| tls.wire.gone()).wrapping_add(self.received)
    }

    /// Bytes came from it. While it leaves replies where they are, more requests are no move.
    pub(crate) fn note_received(&mut self, bytes: usize) {
        if self.reply_bytes() == 0 {
            self.received = self.received.wrapping_add(bytes);
        }
    }

    /// Whether it is for the client to do something: to fetch replies, or to say the rest of a request that is read.
    pub(crate) fn waits_for_client(&self) -> bool {
        self.reply_bytes() > 0 || !(self.holding.is_waiting || self.is_blocked)
    }

    /// Bytes of replies that are here and not sent.
    pub(crate) fn reply_bytes(&self) -> usize {
        self.output.bytes() + self.tls.as_ref().map_or(0, |tls| tls.wire.bytes())
    }
}

impl Everywhere {
    /// Bytes of memory that it takes.
    fn held(&self) -> usize {
        self.message.capacity() + self.replies.iter().map(Vec::capacity).sum::<usize>()
    }
}

impl Link {
    /// A stream that nothing is known of yet.
    pub(crate) fn stream(socket: OwnedFd, transport: Transport) -> Link {
        Link::Stream(Stream {
            socket,
            is_unix: transport == Transport::Unix,
            is_readable: false,
            is_writable: true,
            is_hung_up: false,
            is_receiving: false,
            is_cancelling: false,
            is_sending: false,
        })
    }
}
