//! Measures the cost of a request to a server, by I/O backend, threads and lock: 32 connections, `get` of 64-byte keys,
//! replies of 1100 bytes.
//!
//! `cargo run --release -p plimsoll-chronos-locked --example io_cost -- 5 epoll block 1 owner` runs for 5 seconds a
//! server as a process of its own, whose processor time is counted without the client's. The client sends to all
//! connections, then reads all replies.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_chronos::{
    Config, IoBackend, Listen, Now, PartitionId, Poll, Runtime, Service, SessionTransport, Step,
};
use plimsoll_chronos_locked::{Lock, Locked, SharedRead};
use plimsoll_process::outln;

const KEY_BYTES: usize = 64;
const REQUEST_BYTES: usize = 4 + KEY_BYTES + 2;
const REPLY_BYTES: usize = 1100;
const CONNECTIONS: usize = 32;

/// Answers every request with the same bytes, so that only the runtime and the kernel are measured.
struct FixedReply {
    partitions: u32,
}

impl SharedRead for FixedReply {
    type Reads = ();

    fn reads(&self, _value: &Vec<u8>) {}

    fn read(&self, value: &Vec<u8>, _: &(), _request: &&[u8], _now: Now, reply: &mut Vec<u8>) -> bool {
        reply.extend_from_slice(value);
        true
    }
}

impl Service for FixedReply {
    type Partition = Vec<u8>;
    type Session = ();
    type Request<'a> = &'a [u8];

    fn partition(&self, _id: PartitionId) -> Vec<u8> {
        vec![b'v'; REPLY_BYTES]
    }

    fn open(&self, _transport: SessionTransport) {}

    fn parse<'a>(&self, _: &mut (), _: Now, input: &'a [u8], _: &mut Vec<u8>) -> Step<&'a [u8]> {
        match input.get(4..REQUEST_BYTES - 2) {
            Some(request) => {
                let partition = PartitionId(u32::from(request[0]) % self.partitions);
                Step::Run { consumed: REQUEST_BYTES, partition, request }
            }
            None => Step::Incomplete { total: REQUEST_BYTES },
        }
    }

    fn execute(&self, value: &mut Vec<u8>, _: &&[u8], _: Now, reply: &mut Vec<u8>) {
        reply.extend_from_slice(value);
    }

    fn encode(&self, request: &&[u8], message: &mut Vec<u8>) {
        message.extend_from_slice(request);
    }

    fn decode<'a>(&self, message: &'a [u8]) -> &'a [u8] {
        message
    }

    fn merge(&self, _: &mut (), _: &&[u8], _: &[Vec<u8>], _: Now, _: &mut Vec<u8>) {}
}

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", io, poll, threads, access] => serve(io, poll, threads.parse()?, access),
        [seconds, io, poll, threads, access] => measure(seconds.parse()?, &[io, poll, threads, access]),
        _ => {
            Err("usage: io_cost <seconds> epoll|io_uring block|spin <threads> owner|global|rwlock|partition"
                .into())
        }
    }
}

/// Serves until the standard input ends, then prints the processor time of the server's thread.
fn serve(io: &str, poll: &str, threads: u32, access: &str) -> Result<(), Failure> {
    let io = if io == "io_uring" { IoBackend::IoUring } else { IoBackend::Epoll };
    let poll = if poll == "spin" { Poll::Spin } else { Poll::Block };
    let listen = vec![Listen::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))];
    let config = Config { threads, io, poll, listen, ..Config::default() };
    let service = FixedReply { partitions: config.partitions() };
    let server = match Lock::ALL.into_iter().find(|&(name, _)| name == access) {
        Some((_, lock)) => Locked::start(service, lock, &config)?,
        None => Runtime::start(service, &config)?,
    };
    let Some(Listen::Tcp(address)) = server.bound().first() else { return Err("no address".into()) };
    outln!("{address}");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let mut nanoseconds = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let schedstat = std::fs::read_to_string(task?.path().join("schedstat"))?;
        let ran = schedstat.split_whitespace().next().ok_or("no time in schedstat")?;
        nanoseconds += ran.parse::<u64>()?;
    }
    outln!("{nanoseconds}");
    Ok(server.stop()?)
}

fn measure(seconds: u64, words: &[&str]) -> Result<(), Failure> {
    let mut server = Command::new(std::env::current_exe()?)
        .arg("serve")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut says = BufReader::new(server.stdout.take().ok_or("no output")?).lines();
    let address = says.next().ok_or("the server did not start")??;
    let mut connections =
        (0..CONNECTIONS).map(|_| TcpStream::connect(&address)).collect::<Result<Vec<_>, _>>()?;
    let mut request = [b"get ".as_slice(), &[b'k'; KEY_BYTES], b"\r\n"].concat();
    let mut reply = [0; REPLY_BYTES];
    let (start, mut operations) = (Instant::now(), 0_u64);
    while start.elapsed() < Duration::from_secs(seconds) {
        for connection in &mut connections {
            // The next partition.
            request[4] = request[4].wrapping_add(1);
            connection.write_all(&request)?;
        }
        for connection in &mut connections {
            connection.read_exact(&mut reply)?;
            operations += 1;
        }
    }
    let rate = operations as f64 / start.elapsed().as_secs_f64();
    drop(server.stdin.take());
    let nanoseconds: u64 = says.next().ok_or("the server said nothing")??.parse()?;
    let each = nanoseconds as f64 / operations as f64;
    let words = words.join(" ");
    outln!("{words:30} {rate:9.0} operations/s {each:7.0} ns of the server's processor time each");
    server.wait()?;
    Ok(())
}
