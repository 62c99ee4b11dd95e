//! The program's behaviour when clients send or ask for more than fits in its memory.
#![allow(clippy::print_stdout, reason = "a test; its runner shows it where it fails")]

use crate::common::random;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::common::server::Server;
use random::Random;

const PATIENCE: Duration = plimsoll_testing::PATIENCE;

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Sends `request`, and returns as much as the longest of the answers that it may have.
fn ask(stream: &mut TcpStream, request: &[u8], bytes: usize) -> String {
    stream.write_all(request).expect("it takes requests");
    let mut reply = vec![0; bytes];
    stream.read_exact(&mut reply).expect("it answers");
    String::from_utf8_lossy(&reply).into_owned()
}

#[test]
fn values_above_a_partitions_share_are_all_stored() {
    const BYTES: usize = 950_000;
    const SETS: usize = 1000;
    let server = Server::start(&["-m", "64", "-t", "8"], &[]);
    let mut stream = connect(server.tcp);
    let mut random = Random(5);
    let value = vec![b'v'; BYTES];
    for number in 0..SETS {
        let key = random.below(1000);
        let set = [format!("set {key} 0 0 {BYTES}\r\n").as_bytes(), &value, b"\r\n"].concat();
        assert_eq!(ask(&mut stream, &set, 8), "STORED\r\n", "set {number}");
        let found = ask(&mut stream, format!("mg {key} s\r\n").as_bytes(), 12);
        assert_eq!(found, format!("HD s{BYTES}\r\n"), "set {number}");
    }
}

/// The most memory that a process ever had, in bytes.
fn peak(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
}

#[test]
fn replies_that_nobody_reads_take_little_memory() {
    const BYTES: usize = 1_000_000;
    const CONNECTIONS: usize = 30;
    const GETS: usize = 256;
    const RETURNS: usize = 20;
    for io in ["epoll", "fastest"] {
        let io = format!("chronos_io={io}");
        let server = Server::start(&["-m", "64", "-t", "4", "-o", &io], &[]);
        let mut reader = connect(server.tcp);
        let value = vec![b'v'; BYTES];
        let keys: Vec<String> = (0..16).map(|number| format!("key{number}")).collect();
        for key in &keys {
            let set = [format!("set {key} 0 0 {BYTES}\r\n").as_bytes(), &value, b"\r\n"].concat();
            assert_eq!(ask(&mut reader, &set, 8), "STORED\r\n");
        }
        let gets_from = |first: usize| -> String {
            (first..GETS).map(|number| format!("get {}\r\n", keys[number % keys.len()])).collect()
        };
        let gets = gets_from(0);
        let silent: Vec<TcpStream> = (0..CONNECTIONS)
            .map(|_| {
                let mut stream = connect(server.tcp);
                stream.write_all(gets.as_bytes()).expect("it takes requests");
                stream
            })
            .collect();
        // A client that reads gets everything, whatever the others do. If this test gets no processor for a quarter of
        // a second, its client counts as one of them and is closed: it reconnects, and asks for the rest.
        reader.write_all(gets.as_bytes()).expect("it takes requests");
        let (mut reply, mut number, mut returned) = (Vec::new(), 0, 0);
        while number < GETS {
            let key = &keys[number % keys.len()];
            let head = format!("VALUE {key} 0 {BYTES}\r\n");
            reply.resize(head.len() + BYTES + b"\r\nEND\r\n".len(), 0);
            if let Err(error) = reader.read_exact(&mut reply) {
                returned += 1;
                assert!(returned <= RETURNS, "closed {returned} times, at get {number}: {error}");
                reader = connect(server.tcp);
                reader.write_all(gets_from(number).as_bytes()).expect("it takes requests");
                continue;
            }
            assert!(reply.starts_with(head.as_bytes()) && reply.ends_with(b"\r\nEND\r\n"), "get {number}");
            number += 1;
        }
        let most = (64 << 20) + (CONNECTIONS + 1) * 4 * BYTES;
        let peak = peak(server.id());
        println!("{io}: {peak} bytes, {most} allowed");
        assert!(peak < most, "{io}: {peak} bytes, {most} allowed");
        drop(silent);
    }
}

/// Returns the resident memory of a process in bytes.
fn resident(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
}

fn descriptors(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).expect("it runs").count()
}

/// A counter of `stats`.
fn stat(stream: &mut TcpStream, name: &str) -> u64 {
    stream.write_all(b"stats\r\n").expect("it takes requests");
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    while !text.ends_with(b"END\r\n") {
        let count = stream.read(&mut buffer).expect("it answers");
        assert!(count > 0, "it is closed");
        text.extend_from_slice(&buffer[..count]);
    }
    let text = String::from_utf8(text).expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().expect("a number")
}

/// A client that sends everything as fast as it is read, and reads nothing.
struct Silent {
    stream: TcpStream,
    said: usize,
    is_closed: bool,
}

impl Silent {
    fn connect(port: u16) -> Silent {
        let stream = connect(port);
        stream.set_nonblocking(true).expect("an option");
        Silent { stream, said: 0, is_closed: false }
    }

    /// Returns a client that has received small replies until the server expects small ones.
    fn prepared(port: u16) -> Silent {
        const GETS: usize = 400;
        let mut client = Silent::connect(port);
        client.stream.set_nonblocking(false).expect("an option");
        for _ in 0..2 {
            let answers = ask(&mut client.stream, &b"get none\r\n".repeat(GETS), b"END\r\n".len() * GETS);
            assert_eq!(answers, "END\r\n".repeat(GETS));
        }
        client.stream.set_nonblocking(true).expect("an option");
        client
    }

    fn say(&mut self, all: &[u8]) {
        while self.said < all.len() && !self.is_closed {
            match self.stream.write(&all[self.said..]) {
                Ok(count) => self.said += count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(_) => self.is_closed = true,
            }
        }
    }
}

/// Reports whether a new client stores a value and fetches it again, without being closed.
fn stores_and_fetches_much(port: u16, value: &[u8]) -> bool {
    let mut stream = connect(port);
    let bytes = value.len();
    let set = [format!("set much 0 0 {bytes}\r\n").as_bytes(), value, b"\r\nget much\r\n"].concat();
    let expected = [format!("STORED\r\nVALUE much 0 {bytes}\r\n").as_bytes(), value, b"\r\nEND\r\n"].concat();
    let mut reply = vec![0; expected.len()];
    let is_served = stream.write_all(&set).is_ok() && stream.read_exact(&mut reply).is_ok();
    assert!(!is_served || reply == expected, "another answer");
    is_served
}

/// Two hundred clients that together need far more than the limit: replies that they do not read, lines and values that
/// do not end. The memory that the server holds for them is bounded, others are served meanwhile, and all of it is free
/// again when they have left.
#[test]
fn what_connections_hold_is_bounded_and_given_back() {
    const BYTES: usize = 1_000_000;
    const CLIENTS: usize = 200;
    /// The items, the default limit of connections, and the rest: the program, free buffers, the allocator's own
    /// memory.
    const MOST: usize = (64 + 32 + 40) << 20;
    let value = vec![b'v'; BYTES];
    let gets: Vec<u8> =
        (0..100).flat_map(|number| format!("get key{}\r\n", number % 16).into_bytes()).collect();
    let line = [b"get ".to_vec(), b"a_key_that_is_not_there ".repeat(200_000)].concat();
    let half = [format!("set half 0 0 {}\r\n", 1 << 19).as_bytes(), &value[..1 << 18]].concat();
    let kinds = [("replies", &gets), ("replies, prepared", &gets), ("lines", &line), ("values", &half)];
    for (what, said) in kinds {
        for io in ["epoll", "fastest"] {
            let extended = format!("chronos_io={io}");
            let server = Server::start(&["-m", "64", "-t", "4", "-o", &extended], &[]);
            let mut reader = connect(server.tcp);
            for number in 0..16 {
                let set = [format!("set key{number} 0 0 {BYTES}\r\n").as_bytes(), &value, b"\r\n"].concat();
                assert_eq!(ask(&mut reader, &set, 8), "STORED\r\n");
            }
            assert_eq!(ask(&mut reader, b"set small 0 0 1\r\nx\r\n", 8), "STORED\r\n");
            let small = "VALUE small 0 1\r\nx\r\nEND\r\n";
            assert_eq!(ask(&mut reader, b"get small\r\n", small.len()), small);
            let before = (resident(server.id()), descriptors(server.id()));
            let mut clients: Vec<Silent> = (0..CLIENTS)
                .map(|_| match what {
                    "replies, prepared" => Silent::prepared(server.tcp),
                    _ => Silent::connect(server.tcp),
                })
                .collect();
            let mut most = 0;
            let begin = std::time::Instant::now();
            let mut rounds = 0;
            let mut slowest = Duration::ZERO;
            while rounds < 200 || stat(&mut reader, "chronos_memory_kicks") == 0 {
                assert!(begin.elapsed() < PATIENCE, "{what}, {io}: nobody is closed");
                clients.iter_mut().for_each(|client| client.say(said));
                let asked = std::time::Instant::now();
                assert_eq!(ask(&mut reader, b"get small\r\n", small.len()), small, "{what}, {io}");
                slowest = slowest.max(asked.elapsed());
                most = most.max(resident(server.id()));
                rounds += 1;
            }
            // A client that has sent nothing yet, and asks for much. It may be closed too, among many that ask for
            // more, and then reconnects.
            let mut tries = 1;
            while !stores_and_fetches_much(server.tcp, &value[..BYTES / 2]) {
                assert!(begin.elapsed() < 2 * PATIENCE, "{what}, {io}: nobody else gets much");
                tries += 1;
            }
            most = most.max(resident(server.id()));
            let kicks = stat(&mut reader, "chronos_memory_kicks");
            drop(clients);
            let left = std::time::Instant::now();
            // Once a second the allocator is asked to return its free memory.
            while descriptors(server.id()) != before.1 || resident(server.id()) > before.0 + (24 << 20) {
                assert!(left.elapsed() < PATIENCE, "{what}, {io}: {} of {before:?}", resident(server.id()));
                assert_eq!(ask(&mut reader, b"get small\r\n", small.len()), small);
            }
            println!(
                "{what}, {io}: {} MB before, at most {} MB, {} MB after; {kicks} closed; {tries} tries; \
                 {rounds} rounds, slowest {slowest:?}, {:?}",
                before.0 >> 20,
                most >> 20,
                resident(server.id()) >> 20,
                begin.elapsed()
            );
            assert!(most < MOST, "{what}, {io}: {most} bytes, {MOST} allowed");
        }
    }
}

/// The longest possible command line takes more than half of the memory that all connections may hold by default.
#[test]
fn a_line_of_sixteen_megabytes_is_answered() {
    let key = [b" ", &[b'k'; 200][..]].concat();
    let line = [b"get", &key.repeat((16 << 20) / key.len() - 1)[..], b"\r\n"].concat();
    for io in ["epoll", "fastest"] {
        let io = format!("chronos_io={io}");
        let server = Server::start(&["-m", "64", "-t", "2", "-o", &io], &[]);
        let mut stream = connect(server.tcp);
        assert_eq!(ask(&mut stream, &line, 5), "END\r\n", "{io}");
        assert_eq!(stat(&mut stream, "chronos_memory_kicks"), 0);
        // A line longer than that memory closes the connection.
        let less = format!("{io},chronos_connection_memory=2");
        let server = Server::start(&["-m", "64", "-t", "2", "-o", &less], &[]);
        let mut stream = connect(server.tcp);
        let mut answer = Vec::new();
        assert!(
            stream.write_all(&line).is_err() || stream.read_to_end(&mut answer).is_err() || answer.is_empty()
        );
        assert_eq!(stat(&mut connect(server.tcp), "chronos_memory_kicks"), 1, "{io}");
    }
}
