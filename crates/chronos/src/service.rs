//! The contract between a server and the runtime.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use crate::{Ahead, PartitionId, RuntimeStats};

/// The time, read once by the runtime for a batch of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    /// Time since the server started; never decreases.
    pub since_start: Duration,
    /// Seconds since 1970, for expiry times that clients give as dates.
    pub unix_seconds: u64,
}

/// The transport of a session's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionTransport {
    /// The session is a TCP connection.
    Tcp,
    /// A connection over a UNIX socket.
    Unix,
    /// One datagram; its session ends with it.
    Udp,
}

/// The result of [`Service::parse`] at the head of the input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step<Request> {
    /// No whole request: call again when the input has at least `total` bytes (more than it has now).
    Incomplete {
        /// Bytes of input, from its present head.
        total: usize,
    },
    /// `consumed` bytes are consumed, and their request needs no partition; the reply is appended already.
    Done {
        /// Bytes of input, 0 where the session itself moves on (the end of a multi-get, say).
        consumed: usize,
    },
    /// `consumed` bytes are consumed, and `request` goes to its partition. One command may become many of these.
    Run {
        /// The number of bytes of input that the request took.
        consumed: usize,
        /// The partition that the request is for.
        partition: PartitionId,
        /// The request that the partition is to run.
        request: Request,
    },
    /// `consumed` bytes are consumed, and `request` goes to every partition; [`Service::merge`] makes one reply of
    /// theirs. Later requests of the connection wait for it.
    Everywhere {
        /// The number of bytes of input that the request took.
        consumed: usize,
        /// The request that every partition is to run.
        request: Request,
    },
    /// The next `bytes` bytes of input are thrown away, including bytes that have not arrived (the value of an item too
    /// large).
    Skip {
        /// Bytes of input, from its present head.
        bytes: usize,
    },
    /// The bytes that are ready are sent, then the connection is closed.
    Close,
}

/// A server whose state is split into partitions, without its threads and sockets.
///
/// Requests of one connection to one partition run in the order in which they came; replies of a connection are sent
/// in the order of its requests.
pub trait Service: Send + Sync + 'static {
    /// The state of one partition. One thread at a time has it; it may move from one thread to another.
    type Partition: Send + 'static;
    /// The state of a connection from request to request: protocol, authentication, an open multi-get.
    type Session: 'static;
    /// One request, borrowing its key and value from the bytes that it came in.
    type Request<'a>;

    /// True if requests that came together are to be announced by [`Service::look_ahead`], and run after all of them (a
    /// handful at most) have been parsed. Changes made by `parse` must then not affect the requests before.
    const LOOKS_AHEAD: bool = false;

    /// True if [`Service::tick`] is to be called.
    const TICKS: bool = false;

    /// Called before the runtime serves; `stats` are its counters, for as long as it runs.
    fn started(&self, _stats: Arc<RuntimeStats>) {}

    /// Called when the server listens on `_socket`, for connections or for datagrams.
    fn listens(&self, _socket: BorrowedFd<'_>) {}

    /// Called when the connection of `_session` is opened on `_socket`; not for datagrams.
    fn connected(&self, _session: &mut Self::Session, _socket: BorrowedFd<'_>, _now: Now) {}

    /// Returns the reply sent to a connection above the limit before it is closed.
    fn refusal(&self) -> &[u8] {
        b""
    }

    /// Creates an empty partition.
    fn partition(&self, id: PartitionId) -> Self::Partition;

    /// Called when a connection, or a datagram, begins.
    fn open(&self, transport: SessionTransport) -> Self::Session;

    /// Called about once a second for each open connection, if [`Service::TICKS`] is true: the deadlines of a session.
    /// Messages that the server sends unasked are appended to `reply`, behind the replies so far. Returns false to
    /// close the connection.
    fn tick(&self, _session: &mut Self::Session, _now: Now, _reply: &mut Vec<u8>) -> bool {
        true
    }

    /// Reads the head of `input`. A reply that needs no partition (an error, a version) is appended to `reply`; it
    /// keeps its place among the replies of earlier requests.
    fn parse<'a>(
        &self,
        session: &mut Self::Session,
        now: Now,
        input: &'a [u8],
        reply: &mut Vec<u8>,
    ) -> Step<Self::Request<'a>>;

    /// Returns the place by which a partition finds the data of `request`: the hash of its key, for example.
    fn place(&self, _request: &Self::Request<'_>) -> u64 {
        0
    }

    /// Returns the partition and the place of the first request in `input`, which arrived with others and is parsed
    /// soon. None if that is not seen at a glance; a wrong answer costs nothing but time.
    fn glance(&self, _input: &[u8]) -> Option<(PartitionId, u64)> {
        None
    }

    /// Prefetches (`plimsoll_memory::prefetch`) the memory that a request is about to use at `place`. Requests that run
    /// before it may still change the partition.
    fn look_ahead(&self, _partition: &Self::Partition, _place: u64, _ahead: Ahead) {}

    /// Runs a request on its partition, and appends its reply.
    fn execute(
        &self,
        partition: &mut Self::Partition,
        request: &Self::Request<'_>,
        now: Now,
        reply: &mut Vec<u8>,
    );

    /// Encodes a request for another thread, so that [`Service::decode`] restores it.
    fn encode(&self, request: &Self::Request<'_>, message: &mut Vec<u8>);

    /// Returns the request that [`Service::encode`] wrote.
    fn decode<'a>(&self, message: &'a [u8]) -> Self::Request<'a>;

    /// Makes one reply of the replies of all partitions, in their order, to a request that went everywhere.
    fn merge(
        &self,
        session: &mut Self::Session,
        request: &Self::Request<'_>,
        replies: &[Vec<u8>],
        now: Now,
        reply: &mut Vec<u8>,
    );

    /// Does a little work that waits for idle moments (removing expired items, for example); true if there is more.
    fn housekeeping(&self, _partition: &mut Self::Partition, _now: Now) -> bool {
        false
    }

    /// Called once when the server ends in order, after the last request: with all partitions, by their numbers.
    fn ended(&self, _partitions: Vec<Self::Partition>, _now: Now) {}

    /// Takes a datagram's envelope off. Returns the value that [`Service::seal`] needs to answer it, and the request.
    /// None drops the datagram.
    fn unseal<'a>(&self, _datagram: &'a [u8]) -> Option<(u64, &'a [u8])> {
        None
    }

    /// Called when the reply to a datagram would be longer than [`crate::Limits::output_bytes`]: `reply` is its part up
    /// to the limit, and is replaced by the bytes to send instead.
    fn cut(&self, _session: &Self::Session, _reply: &mut Vec<u8>) {}

    /// Calls `send` with each datagram that answers with `reply`.
    fn seal(&self, _envelope: u64, _reply: &[u8], _send: &mut dyn FnMut(&[u8])) {}
}
