//! The program, over TCP, UNIX sockets and UDP: one table of requests and answers.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};

use crate::common::server::Server;
use crate::common::table::{PATIENCE, one_table};

#[test]
fn one_table_with_one_thread_and_several() {
    for threads in ["1", "3"] {
        one_table(&["-t", threads]);
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
fn a_reply_longer_than_its_datagram_is_not_sent_where_that_is_limited() {
    let server = Server::start(&["-t", "1", "-o", "chronos_udp_amplification=1"], &[]);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(("127.0.0.1", server.udp)).expect("an address");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let set = format!("set a 0 0 100\r\n{}\r\n", "v".repeat(100));
    // Neither the value nor an error is shorter than the second request, which gets no answer.
    let requests = [set, "get a\r\n".to_owned(), format!("get a{}\r\n", " b".repeat(20))];
    for (id, request) in (1..).zip(&requests) {
        socket.send(&[&[0, id, 0, 0, 0, 1, 0, 0], request.as_bytes()].concat()).expect("it takes datagrams");
    }
    for expected in [&b"\x01STORED\r\n"[..], b"\x03SERVER_ERROR too large for UDP\r\n"] {
        let mut reply = [0; 2000];
        let bytes = socket.recv(&mut reply).expect("it answers");
        let (header, text) = reply[..bytes].split_at(8);
        assert_eq!(
            [&header[1..2], text].concat().escape_ascii().to_string(),
            expected.escape_ascii().to_string()
        );
    }
}

#[test]
fn shutdown_ends_it_where_it_is_allowed() {
    let mut server = Server::start(&["-A"], &[]);
    let mut stream = TcpStream::connect(("127.0.0.1", server.tcp)).expect("it listens");
    stream.write_all(b"shutdown\r\n").expect("it takes requests");
    assert!(server.wait().success());
}

/// A get of a million keys takes the time of a million gets: the cost of a key does not grow with the line.
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
