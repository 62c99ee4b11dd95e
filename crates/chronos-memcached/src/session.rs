//! The state of a connection between its requests.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_chronos::SessionTransport;

use crate::request::Command;
use crate::stats::{RosterSocket, Shared, SocketState};
use crate::text::dump_cursor::Dump;

/// The protocol of a connection: its first byte decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// Nothing has arrived yet.
    Unknown,
    /// Text and meta commands.
    Text,
    /// The connection uses the binary protocol.
    Binary,
}

/// A `get` whose keys are answered one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MultiGet {
    /// The command of each key.
    pub command: Command,
    /// The new expiry time, if the command sets one.
    pub expiry: u32,
    /// Bytes to the end of the last key; at least one key is among them.
    pub keys_bytes: usize,
    /// Bytes between the end of the last key and that of the line.
    pub ending_bytes: usize,
}

/// One connection, or one datagram.
#[derive(Debug)]
pub struct Session {
    /// The transport of the connection.
    pub transport: SessionTransport,
    /// The protocol of the connection.
    pub protocol: Protocol,
    /// A dump whose items are answered page by page.
    pub dump: Option<Box<Dump>>,
    /// True if commands since the last pause may be unanswered, as memcached counts: a get sends the waiting replies.
    pub is_piped: bool,
    /// Keys of a get that are still to be read.
    pub multi_get: Option<MultiGet>,
    /// Bytes at the head of the input that are known to hold no end of a line.
    pub without_end: usize,
    /// Bytes of a refused value that are still to come.
    pub skip: usize,
    /// True if the connection is to be closed after its replies.
    pub close: bool,
    /// True if the client may use the cache.
    pub authenticated: bool,
    /// Text: bytes of credentials that follow. Binary: set while an exchange is open.
    pub credentials: Option<usize>,
    /// Bytes read that are not yet in the shared counter.
    pub bytes_read: u64,
    /// Its entry in `stats conns`, if it is a connection.
    member: Option<Arc<RosterSocket>>,
    shared: Arc<Shared>,
}

/// The most bytes that a session reads before it adds them to the shared counter.
const BYTES_UNTOLD_MAX: u64 = 64 << 10;

impl Session {
    /// Creates the session of a new connection; `authenticated` if it needs no login.
    pub fn new(
        transport: SessionTransport,
        protocol: Protocol,
        authenticated: bool,
        shared: &Arc<Shared>,
    ) -> Session {
        if transport != SessionTransport::Udp {
            shared.connections.fetch_add(1, Ordering::Relaxed);
            shared.connections_total.fetch_add(1, Ordering::Relaxed);
        }
        Session {
            transport,
            protocol,
            dump: None,
            is_piped: false,
            multi_get: None,
            without_end: 0,
            skip: 0,
            close: false,
            authenticated,
            credentials: None,
            bytes_read: 0,
            member: None,
            shared: Arc::clone(shared),
        }
    }

    /// Enters the connection of `socket` into the roster; `second` is now.
    pub fn enter(&mut self, socket: BorrowedFd<'_>, second: u32) {
        self.member = Some(self.shared.roster.add_connection(socket, second));
    }

    /// Records for `stats conns` the state of the connection at `second`.
    #[inline]
    pub fn note(&self, state: SocketState, second: u32) {
        if let Some(member) = &self.member {
            member.note(state, second);
        }
    }

    /// Notes that the client must send more before anything is run.
    #[inline]
    pub fn pause(&mut self, state: SocketState, second: u32) {
        self.is_piped = false;
        self.note(state, second);
    }

    /// Counts the bytes of a request.
    #[inline]
    pub fn count_read(&mut self, bytes: usize) {
        self.bytes_read += bytes as u64;
        if self.bytes_read > BYTES_UNTOLD_MAX {
            self.tell();
        }
    }

    /// Adds the bytes read to the shared counter.
    pub fn tell(&mut self) {
        self.shared.bytes_read.fetch_add(std::mem::take(&mut self.bytes_read), Ordering::Relaxed);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.tell();
        if let Some(member) = &self.member {
            self.shared.roster.remove(member);
        }
        if self.transport != SessionTransport::Udp {
            self.shared.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
