//! The program, over TCP, UNIX sockets and UDP, in every access mode: one table of requests and answers.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::common::server::Server;

const PATIENCE: Duration = Duration::from_secs(30);

/// Requests, each with its whole answer.
const TABLE: [(&str, &str); 22] = [
    ("version\r\n", "VERSION 1.6.18\r\n"),
    ("set a 5 0 3\r\nabc\r\n", "STORED\r\n"),
    ("get a\r\n", "VALUE a 5 3\r\nabc\r\nEND\r\n"),
    ("set b 0 0 1\r\nb\r\n", "STORED\r\n"),
    ("set c 0 0 1\r\nc\r\n", "STORED\r\n"),
    ("get a x b y c\r\n", "VALUE a 5 3\r\nabc\r\nVALUE b 0 1\r\nb\r\nVALUE c 0 1\r\nc\r\nEND\r\n"),
    ("add a 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
    ("append a 0 0 1\r\nd\r\n", "STORED\r\n"),
    ("get a\r\n", "VALUE a 5 4\r\nabcd\r\nEND\r\n"),
    ("set n 0 0 2\r\n10\r\n", "STORED\r\n"),
    ("incr n 5\r\n", "15\r\n"),
    ("decr n 20\r\n", "0\r\n"),
    ("touch a 0\r\n", "TOUCHED\r\n"),
    ("mg a v f\r\n", "VA 4 f5\r\nabcd\r\n"),
    ("ms m 2 k\r\nmm\r\n", "HD km\r\n"),
    ("md m\r\n", "HD\r\n"),
    ("mn\r\n", "MN\r\n"),
    ("delete a\r\n", "DELETED\r\n"),
    ("delete a\r\n", "NOT_FOUND\r\n"),
    ("bogus\r\n", "ERROR\r\n"),
    ("flush_all\r\n", "OK\r\n"),
    ("get a b c n\r\n", "END\r\n"),
];

fn over_stream(mut stream: impl Read + Write, how: &str) {
    for (request, expected) in TABLE {
        stream.write_all(request.as_bytes()).expect("it takes requests");
        let mut reply = vec![0; expected.len()];
        stream.read_exact(&mut reply).expect("it answers");
        assert_eq!(String::from_utf8_lossy(&reply), expected, "{how}: {request}");
    }
    // All at once, and the connection's end after the last answer.
    let all: String = TABLE.iter().map(|(request, _)| *request).collect();
    stream.write_all(all.as_bytes()).expect("it takes requests");
    stream.write_all(b"quit\r\n").expect("it takes requests");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("it answers");
    assert_eq!(reply, TABLE.iter().map(|(_, reply)| *reply).collect::<String>(), "{how}: all at once");
}

fn over_datagrams(port: u16, how: &str) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(("127.0.0.1", port)).expect("an address");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    for (number, (request, expected)) in (0_u16..).zip(TABLE) {
        let mut datagram = [&number.to_be_bytes()[..], &[0, 0, 0, 1, 0, 0]].concat();
        datagram.extend_from_slice(request.as_bytes());
        socket.send(&datagram).expect("it takes datagrams");
        let mut reply = [0; 2000];
        let bytes = socket.recv(&mut reply).expect("it answers");
        assert_eq!(reply[..8], datagram[..8], "{how}: {request}");
        assert_eq!(String::from_utf8_lossy(&reply[8..bytes]), expected, "{how}: {request}");
    }
    // A value that needs several datagrams.
    let value = "v".repeat(1300);
    for (request, count) in
        [(format!("set big 0 0 1300\r\n{value}\r\n"), 1), (format!("get big{}\r\n", " big".repeat(3)), 4)]
    {
        socket.send(&[b"\0\x63\0\0\0\x01\0\0", request.as_bytes()].concat()).expect("it takes datagrams");
        let mut whole = Vec::new();
        for sequence in 0..count {
            let mut reply = [0; 2000];
            let bytes = socket.recv(&mut reply).expect("it answers");
            assert!(bytes <= 1400);
            assert_eq!(reply[..8], [0, 0x63, 0, sequence, 0, count, 0, 0]);
            whole.extend_from_slice(&reply[8..bytes]);
        }
        assert!(whole.ends_with(if count == 1 { b"STORED\r\n" } else { b"\r\nEND\r\n" }));
    }
}

#[test]
fn one_table_in_every_mode() {
    for access in ["owned", "global", "rwlock", "partition"] {
        for threads in ["1", "3"] {
            let mode = format!("chronos_access={access}");
            let options = ["-t", threads, "-o", &mode];
            let mut server = Server::start(&options, &[]);
            let how = format!("{access}, {threads} threads");
            let stream = TcpStream::connect(("127.0.0.1", server.tcp)).expect("it listens");
            stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            over_stream(stream, &how);
            over_datagrams(server.udp, &how);
            assert!(server.stop().success(), "{how}");
            let (mut server, path) = Server::start_unix(&options);
            let stream = UnixStream::connect(path).expect("it listens");
            stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            over_stream(stream, &how);
            assert!(server.stop().success(), "{how}");
        }
    }
}

/// Replies over a mebibyte are not sent in part.
#[test]
fn a_multi_get_too_large_for_datagrams_is_an_error() {
    let server = Server::start(&["-t", "1", "-I", "2m"], &[]);
    let mut stream = TcpStream::connect(("127.0.0.1", server.tcp)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let value = "v".repeat(300_000);
    stream.write_all(format!("set a 0 0 300000\r\n{value}\r\n").as_bytes()).expect("it takes requests");
    stream.read_exact(&mut [0; 8]).expect("it answers");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(("127.0.0.1", server.udp)).expect("an address");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    // More than sixteen keys, which may count as one.
    let request = format!("get{}\r\n", " a".repeat(40));
    socket.send(&[b"\0\x07\0\0\0\x01\0\0", request.as_bytes()].concat()).expect("it takes datagrams");
    let mut reply = [0; 2000];
    let bytes = socket.recv(&mut reply).expect("it answers");
    assert_eq!(
        reply[..bytes].escape_ascii().to_string(),
        b"\0\x07\0\0\0\x01\0\0SERVER_ERROR too large for UDP\r\n".escape_ascii().to_string()
    );
}

#[test]
fn shutdown_ends_it_where_it_is_allowed() {
    let mut server = Server::start(&["-A"], &[]);
    let mut stream = TcpStream::connect(("127.0.0.1", server.tcp)).expect("it listens");
    stream.write_all(b"shutdown\r\n").expect("it takes requests");
    assert!(server.wait().success());
}

/// Reads under the shared lock count as others do.
#[test]
fn reads_that_share_the_lock_are_counted() {
    let server = Server::start(&["-t", "2", "-o", "chronos_access=rwlock"], &[]);
    let mut stream = TcpStream::connect(("127.0.0.1", server.tcp)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut ask = |request: &str, end: &str| {
        stream.write_all(request.as_bytes()).expect("it takes requests");
        let mut reply = Vec::new();
        while !reply.ends_with(end.as_bytes()) {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("it answers");
            reply.push(byte[0]);
        }
        String::from_utf8(reply).expect("text")
    };
    ask("set a 0 0 1\r\nx\r\n", "STORED\r\n");
    for _ in 0..10 {
        assert_eq!(ask("get a b\r\n", "END\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\n");
    }
    let text = ask("stats\r\n", "END\r\n");
    for line in ["STAT cmd_get 20\r\n", "STAT get_hits 10\r\n", "STAT get_misses 10\r\n"] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    ask("stats reset\r\n", "RESET\r\n");
    assert!(ask("stats\r\n", "END\r\n").contains("STAT cmd_get 0\r\n"));
}

/// A get of a million keys takes the time of a million gets, and what it costs does not grow with the line.
#[test]
fn a_get_of_a_million_keys_is_answered() {
    const KEYS: usize = 1_000_000;
    let server = Server::start(&["-t", "1"], &[]);
    let mut stream = TcpStream::connect(("127.0.0.1", server.tcp)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.write_all(b"set z 0 0 1\r\nx\r\n").expect("it takes requests");
    stream.write_all(&[b"get", &b" a".repeat(KEYS)[..], b" z\r\n"].concat()).expect("it takes requests");
    let expected = b"STORED\r\nVALUE z 0 1\r\nx\r\nEND\r\n";
    let mut reply = vec![0; expected.len()];
    stream.read_exact(&mut reply).expect("it answers");
    assert_eq!(reply.escape_ascii().to_string(), expected.escape_ascii().to_string());
    stream.write_all(b"stats\r\nquit\r\n").expect("it takes requests");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    assert!(text.contains(&format!("STAT get_misses {KEYS}\r\n")), "{text}");
}
