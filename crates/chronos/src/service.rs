//! The contract between a server and the runtime.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use crate::{Ahead, PartitionId, RuntimeStats};

/// The time, as the runtime read it once for a batch of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    /// Since the server started; never goes back.
    pub since_start: Duration,
    /// Seconds since 1970, for expiry times that clients give as dates.
    pub unix_seconds: u64,
}

/// How a session's bytes travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// The session is a TCP connection.
    Tcp,
    /// A connection over a UNIX socket.
    Unix,
    /// One datagram; its session ends with it.
    Udp,
}

/// What [`Service::parse`] found at the head of the input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step<Request> {
    /// No whole request: call again when the input has at least `total` bytes (more than it has now).
    Incomplete {
        /// Bytes of input, from its present head.
        total: usize,
    },
    /// `consumed` bytes are done with, and what they ask for needs no partition; the reply is appended already.
    Done {
        /// Bytes of input, 0 where the session itself moves on (the end of a multi-get, say).
        consumed: usize,
    },
    /// `consumed` bytes are done with, and `request` goes to its partition. One command may become many of these.
    Run {
        /// The number of bytes of input that the request took.
        consumed: usize,
        /// The partition that the request is for.
        partition: PartitionId,
        /// The request that the partition is to run.
        request: Request,
    },
    /// `consumed` bytes are done with, and `request` goes to every partition; [`Service::merge`] makes one reply of
    /// theirs. Later requests of the connection wait for it.
    Everywhere {
        /// The number of bytes of input that the request took.
        consumed: usize,
        /// The request that every partition is to run.
        request: Request,
    },
    /// Throw away the next `bytes` bytes of input, those not yet here included (the value of an item too large).
    Skip {
        /// Bytes of input, from its present head.
        bytes: usize,
    },
    /// Send what is there to send, then close the connection.
    Close,
}

/// A server whose state is split into partitions, without its threads and sockets.
///
/// Requests of one connection to one partition run in the order in which they came; replies of a connection are sent
/// in the order of its requests.
pub trait Service: Send + Sync + 'static {
    /// The state of one partition. One thread at a time has it; it may move from one thread to another.
    type Partition: Send + 'static;
    /// What is remembered of a connection from request to request: protocol, authentication, an open multi-get.
    type Session: 'static;
    /// One request, borrowing its key and value from the bytes that it came in.
    type Request<'a>;

    /// True if requests that came together are to be announced by [`Service::look_ahead`], and run after all of them (a
    /// handful at most) have been parsed. What `parse` changes must then not matter to the requests before.
    const LOOKS_AHEAD: bool = false;

    /// True if [`Service::tick`] is to be called.
    const TICKS: bool = false;

    /// The runtime is about to serve; `stats` is what it counts, for as long as it runs.
    fn started(&self, _stats: Arc<RuntimeStats>) {}

    /// The server listens on `_socket`, for connections or for datagrams.
    fn listens(&self, _socket: BorrowedFd<'_>) {}

    /// The connection of `_session` is that of `_socket`. Not called for datagrams.
    fn connected(&self, _session: &mut Self::Session, _socket: BorrowedFd<'_>, _now: Now) {}

    /// What a connection over the limit is told before it is closed.
    fn refusal(&self) -> &[u8] {
        b""
    }

    /// Creates an empty partition.
    fn partition(&self, id: PartitionId) -> Self::Partition;

    /// A connection, or a datagram, begins.
    fn open(&self, transport: Transport) -> Self::Session;

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

    /// By what a partition finds the data of `request`: the hash of its key, say.
    fn place(&self, _request: &Self::Request<'_>) -> u64 {
        0
    }

    /// The partition and the place of the first request in `input`, which came with others and is parsed in a moment.
    /// None if that is not seen at a glance; a wrong answer costs nothing but time.
    fn glance(&self, _input: &[u8]) -> Option<(PartitionId, u64)> {
        None
    }

    /// Asks memory (`plimsoll_memory::prefetch`) for what a request is about to use at `place`. Requests that run
    /// before it may change the partition still.
    fn look_ahead(&self, _partition: &Self::Partition, _place: u64, _ahead: Ahead) {}

    /// Runs a request on its partition, appending what is to be answered.
    fn execute(
        &self,
        partition: &mut Self::Partition,
        request: &Self::Request<'_>,
        now: Now,
        reply: &mut Vec<u8>,
    );

    /// Writes a request down for another thread, so that [`Service::decode`] gives it back.
    fn encode(&self, request: &Self::Request<'_>, message: &mut Vec<u8>);

    /// The request that [`Service::encode`] wrote.
    fn decode<'a>(&self, message: &'a [u8]) -> Self::Request<'a>;

    /// One reply of the replies of all partitions, in their order, to a request that went everywhere.
    fn merge(
        &self,
        session: &mut Self::Session,
        request: &Self::Request<'_>,
        replies: &[Vec<u8>],
        now: Now,
        reply: &mut Vec<u8>,
    );

    /// A little work that waits for idle moments (expired items, say); true if there is more.
    fn housekeeping(&self, _partition: &mut Self::Partition, _now: Now) -> bool {
        false
    }

    /// Takes a datagram's envelope off: what [`Service::seal`] needs to answer it, and the request. None drops it.
    fn unseal<'a>(&self, _datagram: &'a [u8]) -> Option<(u64, &'a [u8])> {
        None
    }

    /// The reply to a datagram would be longer than [`crate::Limits::output_bytes`]: `reply` is what it is until there,
    /// and becomes what is sent instead of all of it.
    fn cut(&self, _session: &Self::Session, _reply: &mut Vec<u8>) {}

    /// Calls `send` with each datagram that answers with `reply`.
    fn seal(&self, _envelope: u64, _reply: &[u8], _send: &mut dyn FnMut(&[u8])) {}
}
