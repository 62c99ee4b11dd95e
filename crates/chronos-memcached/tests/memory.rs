//! What the program does with more than fits in its memory.

#[path = "common/random.rs"]
mod random;
#[path = "common/server.rs"]
mod server;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use random::Random;
use server::Server;

const PATIENCE: Duration = Duration::from_secs(30);

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
        let gets: String = (0..GETS).map(|number| format!("get {}\r\n", keys[number % keys.len()])).collect();
        let silent: Vec<TcpStream> = (0..CONNECTIONS)
            .map(|_| {
                let mut stream = connect(server.tcp);
                stream.write_all(gets.as_bytes()).expect("it takes requests");
                stream
            })
            .collect();
        // One that reads gets everything, whatever the others do.
        reader.write_all(gets.as_bytes()).expect("it takes requests");
        let mut reply = Vec::new();
        for number in 0..GETS {
            let key = &keys[number % keys.len()];
            let head = format!("VALUE {key} 0 {BYTES}\r\n");
            reply.resize(head.len() + BYTES + b"\r\nEND\r\n".len(), 0);
            reader.read_exact(&mut reply).expect("it answers");
            assert!(reply.starts_with(head.as_bytes()) && reply.ends_with(b"\r\nEND\r\n"), "get {number}");
        }
        let most = (64 << 20) + (CONNECTIONS + 1) * 4 * BYTES;
        let peak = peak(server.id());
        println!("{io}: {peak} bytes, {most} allowed");
        assert!(peak < most, "{io}: {peak} bytes, {most} allowed");
        drop(silent);
    }
}
