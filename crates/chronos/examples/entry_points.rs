//! Every function of a service that `docs/chronos/porting.md` names, and the configuration beside it: counters with a
//! sum over all partitions, over TCP and UDP. It checks itself without a network, starts a server on free ports, asks
//! it, and stops it: `cargo run -p plimsoll-chronos --example entry_points`. [`counter`](counter.rs) is the shortest
//! server.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plimsoll_chronos::{
    Balancing, Config, Direct, KeyHash, Limits, Listen, LoadMetric, Now, PartitionId, Poll, Runtime,
    RuntimeStats, Service, SessionTransport, Step, Tls, TlsError,
};

struct Counters {
    hash: KeyHash,
    partitions: u32,
    stats: OnceLock<Arc<RuntimeStats>>,
}

/// The counter of one partition, and how often it was idle.
#[derive(Default)]
struct Partition {
    sum: i64,
    idle: u64,
}

/// A request: a number for the partition of a name, or a question to every partition.
enum Request<'a> {
    Add { name: &'a [u8], number: i64 },
    Sum,
}

impl Service for Counters {
    type Partition = Partition;
    /// The requests of a connection so far.
    type Session = u64;
    type Request<'a> = Request<'a>;

    const TICKS: bool = true;

    fn started(&self, stats: Arc<RuntimeStats>) {
        let _ = self.stats.set(stats);
    }

    fn refusal(&self) -> &[u8] {
        b"too many connections\n"
    }

    fn partition(&self, _: PartitionId) -> Partition {
        Partition::default()
    }

    fn open(&self, _: SessionTransport) -> u64 {
        0
    }

    /// Keeps a connection open if it has made a request when the first second is over.
    fn tick(&self, requests: &mut u64, _: Now, _: &mut Vec<u8>) -> bool {
        *requests > 0
    }

    fn parse<'a>(
        &self,
        session: &mut u64,
        _: Now,
        input: &'a [u8],
        reply: &mut Vec<u8>,
    ) -> Step<Request<'a>> {
        let Some(end) = input.iter().position(|&byte| byte == b'\n') else {
            return Step::Incomplete { total: input.len() + 1 };
        };
        *session += 1;
        let consumed = end + 1;
        let words: Vec<&[u8]> = input[..end].split(|&byte| byte == b' ').collect();
        let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse().ok();
        match words[..] {
            [b"sum"] => Step::Everywhere { consumed, request: Request::Sum },
            [b"shed"] => {
                let shed = self.stats.get().map_or(0, |stats| stats.total().shed);
                reply.extend_from_slice(
                    format!("{shed} connections were closed for their memory\n").as_bytes(),
                );
                Step::Done { consumed }
            }
            [b"add", name, word] if number(word).is_some() => {
                let partition = KeyHash::partition(self.hash.hash(name), self.partitions);
                let request = Request::Add { name, number: number(word).unwrap_or_default() };
                Step::Run { consumed, partition, request }
            }
            _ => {
                reply.extend_from_slice(b"usage: add <name> <number>, sum, or shed\n");
                Step::Done { consumed }
            }
        }
    }

    fn execute(&self, partition: &mut Partition, request: &Request<'_>, _: Now, reply: &mut Vec<u8>) {
        if let Request::Add { number, .. } = request {
            partition.sum = partition.sum.saturating_add(*number);
        }
        reply.extend_from_slice(format!("{}\n", partition.sum).as_bytes());
    }

    fn encode(&self, request: &Request<'_>, message: &mut Vec<u8>) {
        if let Request::Add { name, number } = request {
            message.extend_from_slice(&number.to_le_bytes());
            message.extend_from_slice(name);
        }
    }

    fn decode<'a>(&self, message: &'a [u8]) -> Request<'a> {
        match message.split_first_chunk() {
            Some((number, name)) => Request::Add { name, number: i64::from_le_bytes(*number) },
            None => Request::Sum,
        }
    }

    fn merge(&self, _: &mut u64, _: &Request<'_>, replies: &[Vec<u8>], _: Now, reply: &mut Vec<u8>) {
        let number = |reply: &Vec<u8>| std::str::from_utf8(reply).ok()?.trim().parse::<i64>().ok();
        let sum: i64 = replies.iter().filter_map(number).sum();
        reply.extend_from_slice(format!("{sum}\n").as_bytes());
    }

    fn housekeeping(&self, partition: &mut Partition, _: Now) -> bool {
        partition.idle += 1;
        false
    }

    /// A datagram begins with a byte that its reply repeats.
    fn unseal<'a>(&self, datagram: &'a [u8]) -> Option<(u64, &'a [u8])> {
        datagram.split_first().map(|(&tag, request)| (u64::from(tag), request))
    }

    fn seal(&self, envelope: u64, reply: &[u8], send: &mut dyn FnMut(&[u8])) {
        send(&[&[envelope as u8], reply].concat());
    }

    fn cut(&self, _: &u64, reply: &mut Vec<u8>) {
        reply.clear();
        reply.extend_from_slice(b"too long\n");
    }
}

/// Shows new certificates to connections that are opened from now on.
fn renew(tls: &Tls, certificates: &Path, key: &Path) -> Result<(), TlsError> {
    tls.replace(&Tls::from_pem_files(certificates, key)?);
    Ok(())
}

fn counters(partitions: u32) -> Counters {
    Counters { hash: KeyHash::new(0x5eed), partitions, stats: OnceLock::new() }
}

/// Serves requests without threads and sockets, as a test does.
fn check_directly() {
    let now = Now { since_start: Duration::ZERO, unix_seconds: 0 };
    let mut direct = Direct::new(counters(4), 4);
    let (mut session, mut reply) = (direct.service().open(SessionTransport::Tcp), Vec::new());
    let served = direct.serve(&mut session, now, b"add apples 3\nadd pears 4\nsum\nwhat\n", &mut reply);
    assert!(!served.close && reply.ends_with(b"7\nusage: add <name> <number>, sum, or shed\n"));
    direct.housekeeping(now);
    assert_eq!((session, direct.partitions()[0].idle), (4, 1));
}

fn main() -> Result<(), Box<dyn Error>> {
    check_directly();
    let _: fn(&Tls, &Path, &Path) -> Result<(), TlsError> = renew;
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let config = Config {
        threads: 2,
        listen: vec![Listen::Tcp(free), Listen::Udp(free)],
        poll: Poll::Block,
        balancing: Some(Balancing { metric: LoadMetric::Nanoseconds, ..Balancing::default() }),
        limits: Limits { drain: Duration::from_secs(1), ..Limits::default() },
        ..Config::default()
    };
    let server = Runtime::start(counters(config.partitions()), &config)?;
    let stop = server.stop_handle();
    let Some(Listen::Tcp(address)) = server.bound().first().cloned() else { return Err("no port".into()) };
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"add apples 3\nadd pears 4\nsum\n")?;
    let replies: Vec<String> = BufReader::new(&stream).lines().take(3).collect::<Result<_, _>>()?;
    assert_eq!(replies[2], "7");
    stop.stop();
    Ok(server.join()?)
}
