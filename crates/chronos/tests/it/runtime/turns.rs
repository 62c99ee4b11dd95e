//! Connections of one thread take turns: a command that becomes very many requests does not keep the others waiting.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plimsoll_chronos::{Config, Now, PartitionId, Runtime, Service, SessionTransport, Step};

use crate::runtime::client::{backends, config, tcp_address};

/// Requests that `many` becomes.
const MANY: u64 = 1_000_000;

/// `m` becomes [`MANY`] requests without an answer, the first of which waits for `go`; `c` is answered with a letter
/// that says whether they all have run.
#[derive(Default)]
struct Turns {
    go: Arc<AtomicBool>,
    has_begun: Arc<AtomicBool>,
    requests: AtomicU64,
}

impl Service for Turns {
    type Partition = ();
    type Session = u64;
    type Request<'a> = ();

    fn partition(&self, _id: PartitionId) {}

    fn open(&self, _transport: SessionTransport) -> u64 {
        0
    }

    fn parse(&self, left: &mut u64, _now: Now, input: &[u8], reply: &mut Vec<u8>) -> Step<()> {
        if *left > 0 {
            *left -= 1;
            return Step::Run { consumed: 0, partition: PartitionId(0), request: () };
        }
        match input.first() {
            None => return Step::Incomplete { total: 1 },
            Some(b'm') => *left = MANY,
            Some(_) => reply.push(if self.requests.load(Ordering::Relaxed) < MANY { b'n' } else { b'y' }),
        }
        Step::Done { consumed: 1 }
    }

    fn execute(&self, (): &mut (), (): &(), _now: Now, _reply: &mut Vec<u8>) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.has_begun.store(true, Ordering::Release);
        while !self.go.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }

    fn encode(&self, (): &(), _message: &mut Vec<u8>) {}

    fn decode(&self, _message: &[u8]) {}

    fn merge(&self, _left: &mut u64, (): &(), _replies: &[Vec<u8>], _now: Now, _reply: &mut Vec<u8>) {}
}

#[test]
fn a_command_of_a_million_requests_lets_others_be_answered() {
    for io in backends() {
        let service = Turns::default();
        let (go, has_begun) = (service.go.clone(), service.has_begun.clone());
        let server = Runtime::start(service, &Config { io, ..config(1) }).unwrap();
        let connect = || TcpStream::connect(tcp_address(&server)).unwrap();
        let mut byte = [0];
        let (mut long, mut other) = (connect(), connect());
        other.write_all(b"c").unwrap();
        other.read_exact(&mut byte).unwrap();
        long.write_all(b"mc").unwrap();
        while !has_begun.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        // The thread is in the first of the requests, and this waits for it.
        other.write_all(b"c").unwrap();
        go.store(true, Ordering::Release);
        other.read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"n", "{io:?}: it was answered after all of them");
        long.read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"y", "{io:?}: all have run");
        server.stop().unwrap();
    }
}
