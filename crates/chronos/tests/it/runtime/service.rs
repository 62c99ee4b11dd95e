//! A service for tests. Its partitions check the order of the requests that run on them.
//!
//! | request | reply |
//! |---|---|
//! | `put P C S` | `ok P S`, if S is the next number that connection C puts into partition P, else `disorder` |
//! | `note P` | nothing; counts as a put |
//! | `get P` | the number of puts of partition P; changes nothing |
//! | `sum` | the number of puts of all partitions |
//! | `echo P N`, then N bytes | the bytes, from partition P |
//! | `blob P N` | N bytes from partition P |
//! | `skip N`, then N bytes | `skipped`, at once |
//! | `wait P` | `waited`, from partition P, when the test lets it go on |
//! | `hello` | `hello`, without a partition |
//! | `quit` | closes |

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use plimsoll_chronos::{Now, PartitionId, Service, SessionTransport, Step};

#[derive(Default)]
pub struct Logs {
    /// Puts that ran out of order.
    pub disorder: Arc<AtomicU64>,
    /// A partition that is to wait does so until it can read this.
    pub gate: Arc<RwLock<()>>,
}

#[derive(Default)]
pub struct Log {
    next: HashMap<u32, u32>,
    puts: u64,
}

#[derive(Debug)]
pub enum Request<'a> {
    Put { partition: u32, connection: u32, sequence: u32 },
    Note,
    Get,
    Sum,
    Echo(&'a [u8]),
    Blob(u32),
    Wait,
}

#[derive(Default)]
pub struct Session {
    /// `skip` was read, and its bytes are next.
    skip: usize,
}

impl Logs {
    /// Answers a request that changes nothing; returns false, with nothing appended, for another.
    pub fn read(&self, log: &Log, request: &Request<'_>, reply: &mut Vec<u8>) -> bool {
        if matches!(request, Request::Get | Request::Sum) {
            writeln!(reply, "{}", log.puts).unwrap();
            return true;
        }
        false
    }
}

impl Service for Logs {
    type Partition = Log;
    type Session = Session;
    type Request<'a> = Request<'a>;

    fn partition(&self, _id: PartitionId) -> Log {
        Log::default()
    }

    fn open(&self, _transport: SessionTransport) -> Session {
        Session::default()
    }

    fn refusal(&self) -> &[u8] {
        b"full\n"
    }

    fn parse<'a>(
        &self,
        session: &mut Session,
        _now: Now,
        input: &'a [u8],
        reply: &mut Vec<u8>,
    ) -> Step<Request<'a>> {
        if session.skip > 0 {
            return Step::Skip { bytes: std::mem::take(&mut session.skip) };
        }
        let Some(end) = input.iter().position(|&byte| byte == b'\n') else {
            return Step::Incomplete { total: input.len() + 1 };
        };
        let line = std::str::from_utf8(&input[..end]).unwrap_or("not text");
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| word.parse::<u32>().unwrap();
        let consumed = end + 1;
        match words[..] {
            ["put", p, c, s] => {
                let (partition, connection, sequence) = (number(p), number(c), number(s));
                let request = Request::Put { partition, connection, sequence };
                Step::Run { consumed, partition: PartitionId(partition), request }
            }
            ["note", p] => Step::Run { consumed, partition: PartitionId(number(p)), request: Request::Note },
            ["get", p] => Step::Run { consumed, partition: PartitionId(number(p)), request: Request::Get },
            ["sum"] => Step::Everywhere { consumed, request: Request::Sum },
            ["echo", p, n] => {
                let total = consumed + number(n) as usize;
                if input.len() < total {
                    return Step::Incomplete { total };
                }
                let request = Request::Echo(&input[consumed..total]);
                Step::Run { consumed: total, partition: PartitionId(number(p)), request }
            }
            ["blob", p, n] => {
                let request = Request::Blob(number(n));
                Step::Run { consumed, partition: PartitionId(number(p)), request }
            }
            ["wait", p] => Step::Run { consumed, partition: PartitionId(number(p)), request: Request::Wait },
            ["skip", n] => {
                session.skip = number(n) as usize;
                reply.extend_from_slice(b"skipped\n");
                Step::Done { consumed }
            }
            ["hello"] => {
                reply.extend_from_slice(b"hello\n");
                Step::Done { consumed }
            }
            ["quit"] => Step::Close,
            _ => {
                reply.extend_from_slice(b"what?\n");
                Step::Done { consumed }
            }
        }
    }

    fn execute(&self, log: &mut Log, request: &Request<'_>, _now: Now, reply: &mut Vec<u8>) {
        match request {
            Request::Put { partition, connection, sequence } => {
                let next = log.next.entry(*connection).or_default();
                if *sequence == *next {
                    writeln!(reply, "ok {partition} {sequence}").unwrap();
                } else {
                    self.disorder.fetch_add(1, Ordering::Relaxed);
                    writeln!(reply, "disorder {partition} {sequence} {next}").unwrap();
                }
                *next += 1;
                log.puts += 1;
            }
            Request::Note => log.puts += 1,
            Request::Get | Request::Sum => assert!(self.read(log, request, reply)),
            Request::Echo(bytes) => reply.extend_from_slice(bytes),
            Request::Blob(count) => reply.resize(reply.len() + *count as usize, b'b'),
            Request::Wait => {
                drop(self.gate.read());
                reply.extend_from_slice(b"waited\n");
            }
        }
    }

    fn encode(&self, request: &Request<'_>, message: &mut Vec<u8>) {
        let mut numbers = |kind: u8, numbers: &[u32]| {
            message.push(kind);
            numbers.iter().for_each(|number| message.extend_from_slice(&number.to_le_bytes()));
        };
        match request {
            Request::Put { partition, connection, sequence } => {
                numbers(0, &[*partition, *connection, *sequence])
            }
            Request::Get => numbers(1, &[]),
            Request::Sum => numbers(2, &[]),
            Request::Blob(count) => numbers(3, &[*count]),
            Request::Wait => numbers(5, &[]),
            Request::Note => numbers(6, &[]),
            Request::Echo(bytes) => {
                message.push(4);
                message.extend_from_slice(bytes);
            }
        }
    }

    fn decode<'a>(&self, message: &'a [u8]) -> Request<'a> {
        let (kind, rest) = message.split_first().unwrap();
        let number = |index: usize| u32::from_le_bytes(rest[4 * index..][..4].try_into().unwrap());
        match kind {
            0 => Request::Put { partition: number(0), connection: number(1), sequence: number(2) },
            1 => Request::Get,
            2 => Request::Sum,
            3 => Request::Blob(number(0)),
            5 => Request::Wait,
            6 => Request::Note,
            _ => Request::Echo(rest),
        }
    }

    fn merge(
        &self,
        _session: &mut Session,
        _request: &Request<'_>,
        replies: &[Vec<u8>],
        _now: Now,
        reply: &mut Vec<u8>,
    ) {
        let number = |reply: &Vec<u8>| std::str::from_utf8(reply).unwrap().trim().parse::<u64>().unwrap();
        writeln!(reply, "{}", replies.iter().map(number).sum::<u64>()).unwrap();
    }

    /// A datagram is a byte of envelope, then the request.
    fn unseal<'a>(&self, datagram: &'a [u8]) -> Option<(u64, &'a [u8])> {
        let (first, rest) = datagram.split_first()?;
        Some((u64::from(*first), rest))
    }

    /// Each datagram of a reply has the envelope and at most 1000 bytes.
    fn seal(&self, envelope: u64, reply: &[u8], send: &mut dyn FnMut(&[u8])) {
        for part in reply.chunks(1000) {
            let mut datagram = vec![envelope as u8];
            datagram.extend_from_slice(part);
            send(&datagram);
        }
    }
}
