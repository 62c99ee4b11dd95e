//! [`Connection`]: a thread's state of one client: its session, the bytes received, and the replies to send.

use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::buffers::Buffers;
use crate::memory::Holding;
use crate::output::Output;
use crate::port::DatagramSender;
use crate::reply_budget::{ConnectionReplies, ReplyBudget};
use crate::sources::SourceSeat;
use crate::tls::TlsStream;
use crate::{Service, SessionTransport};

/// A connection, or a datagram whose replies are not all here yet.
pub(crate) struct Connection<S: Service> {
    /// Its number on its thread.
    pub(crate) key: u32,
    /// Distinguishes the connections that have had this number.
    pub(crate) incarnation: u32,
    pub(crate) session: S::Session,
    pub(crate) input: InputBytes,
    pub(crate) output: Output,
    /// The account of its replies.
    pub(crate) replies: ConnectionReplies,
    /// Its share of the memory of all connections.
    pub(crate) holding: Holding,
    /// Bytes that came from it while it had no replies to fetch; wraps.
    pub(crate) received: usize,
    pub(crate) everywhere: Option<Box<Everywhere>>,
    pub(crate) link: ConnectionOrigin,
    /// The TLS stream around its bytes, if it has one.
    pub(crate) tls: Option<Box<TlsStream>>,
    /// Its place among the connections of its source address; free again when the connection is dropped.
    pub(crate) _seat: Option<SourceSeat>,
    /// The time of its last bytes.
    pub(crate) active_at: Duration,
    /// The number of bytes that it had not fetched when it was idle for too long; None if it never was.
    pub(crate) unsent_when_idle: Option<usize>,
    /// True if requests in `input` wait for room in `output`, in a ring, or for a request to all partitions.
    pub(crate) is_blocked: bool,
    /// The turn of its thread in which it ran as many requests as a connection may, if it is blocked for that reason.
    pub(crate) gave_way_in: Option<u64>,
    /// True if it is to be closed once `output` is sent.
    pub(crate) is_closing: bool,
    /// True if the client sends nothing more.
    pub(crate) is_ended: bool,
    /// True if it is in the worker's list of connections to serve.
    pub(crate) is_listed: bool,
}

/// The origin of a connection's bytes.
pub(crate) enum ConnectionOrigin {
    /// The bytes come by a stream.
    Stream(Stream),
    /// A datagram that came to the port with this index.
    Datagram {
        /// The index of the port among the thread's ports.
        port: usize,
        /// The sender, to whom the reply is sent.
        client: DatagramSender,
        /// The envelope that [`Service::unseal`] removed.
        envelope: u64,
    },
}

/// A stream's socket, and its state as the kernel last reported it.
pub(crate) struct Stream {
    pub(crate) socket: OwnedFd,
    /// True if the stream is a UNIX socket.
    pub(crate) is_unix: bool,
    /// There may be something to read.
    pub(crate) is_readable: bool,
    /// There may be room to write.
    pub(crate) is_writable: bool,
    /// True if the client has closed its end, or the connection is broken: bytes are read until the kernel reports the
    /// end.
    pub(crate) is_hung_up: bool,
    /// True while the kernel has an order to receive (io_uring).
    pub(crate) is_receiving: bool,
    /// True while that order is being cancelled.
    pub(crate) is_cancelling: bool,
    /// True while the kernel is sending (io_uring).
    pub(crate) is_sending: bool,
}

/// A request that went to all partitions.
pub(crate) struct Everywhere {
    /// The request as the service wrote it down.
    pub(crate) message: Vec<u8>,
    /// The reply of each partition.
    pub(crate) replies: Vec<Vec<u8>>,
    /// Number of replies that have not arrived yet.
    pub(crate) missing: u32,
}

/// Bytes that have arrived and are not consumed yet.
#[derive(Debug, Default)]
pub(crate) struct InputBytes {
    bytes: Vec<u8>,
    /// Bytes at the front that are consumed.
    used: usize,
    /// Number of unconsumed bytes from which on the input is read again.
    pub(crate) wanted: usize,
    /// Bytes yet to arrive that are thrown away.
    pub(crate) skip: usize,
}

/// The bytes of an [`InputBytes`], taken out.
pub(crate) struct Lent {
    bytes: Vec<u8>,
    used: usize,
}

impl Lent {
    /// Returns the bytes that are not consumed.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.used..]
    }
}

/// The least room for bytes that are read behind the beginning of a request.
const READ_BYTES: usize = 64 * 1024;

impl InputBytes {
    /// Returns the bytes that are not consumed.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.used == self.bytes.len()
    }

    /// Returns the bytes of memory that it takes.
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

    /// Keeps the bytes that have arrived and are not consumed.
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

    /// Returns a buffer with room behind the present bytes, to be read into.
    pub(crate) fn room(&mut self) -> &mut Vec<u8> {
        self.compact();
        // At most as much again as is here: a client that only announces a large request gets no room for it.
        let wanted = self.wanted.saturating_sub(self.bytes.len());
        let more = wanted.min(self.bytes.len()).max(READ_BYTES);
        grow(&mut self.bytes, more);
        &mut self.bytes
    }

    /// Takes the bytes out, to be read while the connection changes; [`InputBytes::restore`] puts them back.
    pub(crate) fn lend(&mut self) -> Lent {
        Lent { bytes: std::mem::take(&mut self.bytes), used: self.used }
    }

    /// Puts the bytes back; `used` more of them are consumed.
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

/// Makes room for `more` bytes: twice as much as a small buffer has, a quarter more than a large one has, since unused
/// room counts for all connections.
fn grow(bytes: &mut Vec<u8>, more: usize) {
    const LARGE: usize = 1 << 20;
    if bytes.len() < LARGE {
        bytes.reserve(more);
    } else if bytes.capacity() - bytes.len() < more {
        bytes.reserve_exact(more.max(bytes.len() / 4));
    }
}

impl<S: Service> Connection<S> {
    /// Reports whether nothing more is read from it or sent to it.
    pub(crate) fn is_finished(&self) -> bool {
        let no_more = self.is_closing || (self.is_ended && !self.is_blocked);
        no_more && self.output.is_done() && self.everywhere.is_none() && self.is_wire_done()
    }

    fn is_wire_done(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| tls.wire.is_done())
    }

    /// Returns its stream, and the bytes to send on it, encrypted if it uses TLS; None for a datagram.
    pub(crate) fn outgoing(&mut self, buffers: &mut Buffers) -> Option<(&mut Stream, &mut Output)> {
        let ConnectionOrigin::Stream(stream) = &mut self.link else { return None };
        let Some(tls) = &mut self.tls else { return Some((stream, &mut self.output)) };
        let is_last = self.is_closing || (self.is_ended && !self.is_blocked && self.everywhere.is_none());
        tls.seal(&mut self.output, is_last, buffers);
        Some((stream, &mut tls.wire))
    }

    /// Reports whether its next request may be read, as far as the connection decides.
    pub(crate) fn has_room(&self, budget: &ReplyBudget) -> bool {
        self.everywhere.is_none()
            && !self.is_closing
            && budget.is_enough(&self.replies, self.reply_bytes(), self.output.holes())
    }

    /// Returns the bytes of memory that it takes.
    pub(crate) fn held(&self) -> usize {
        let everywhere = self.everywhere.as_ref().map_or(0, |everywhere| everywhere.held());
        let wire = self.tls.as_ref().map_or(0, |tls| tls.wire.held());
        self.input.held() + self.output.held() + wire + everywhere
    }

    /// Returns the number of replies that have not arrived yet.
    pub(crate) fn missing(&self) -> u32 {
        self.output.holes() + self.everywhere.as_ref().map_or(0, |everywhere| everywhere.missing)
    }

    /// Returns the number of bytes that have moved in all: bytes that its client fetched, and bytes that it sent with
    /// nothing left to fetch; wraps.
    pub(crate) fn moved(&self) -> usize {
        self.tls.as_ref().map_or(self.output.gone(), |tls| tls.wire.gone()).wrapping_add(self.received)
    }

    /// Counts bytes that came from it. While it leaves replies unread, more requests do not count as a move.
    pub(crate) fn note_received(&mut self, bytes: usize) {
        if self.reply_bytes() == 0 {
            self.received = self.received.wrapping_add(bytes);
        }
    }

    /// Reports whether the client has to act: to fetch replies, or to send the rest of a request.
    pub(crate) fn waits_for_client(&self) -> bool {
        self.reply_bytes() > 0 || !(self.holding.is_waiting || self.is_blocked)
    }

    /// Returns the bytes of replies that are here and not sent.
    pub(crate) fn reply_bytes(&self) -> usize {
        self.output.bytes() + self.tls.as_ref().map_or(0, |tls| tls.wire.bytes())
    }
}

impl Everywhere {
    /// Returns the bytes of memory that it takes.
    fn held(&self) -> usize {
        self.message.capacity() + self.replies.iter().map(Vec::capacity).sum::<usize>()
    }
}

impl ConnectionOrigin {
    /// Creates the link of a new stream, whose state is unknown yet.
    pub(crate) fn stream(socket: OwnedFd, transport: SessionTransport) -> ConnectionOrigin {
        ConnectionOrigin::Stream(Stream {
            socket,
            is_unix: transport == SessionTransport::Unix,
            is_readable: false,
            is_writable: true,
            is_hung_up: false,
            is_receiving: false,
            is_cancelling: false,
            is_sending: false,
        })
    }
}
