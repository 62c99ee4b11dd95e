//! One table of requests and answers, over streams and datagrams.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::server::Server;

pub const PATIENCE: Duration = Duration::from_secs(30);

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

/// Holds a server with `options` to the table, over TCP, UDP and UNIX sockets.
pub fn one_table(options: &[&str]) {
    let mut server = Server::start(options, &[]);
    let how = format!("{options:?}");
    let stream = TcpStream::connect(("127.0.0.1", server.tcp)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    over_stream(stream, &how);
    over_datagrams(server.udp, &how);
    assert!(server.stop().success(), "{how}");
    let (mut server, path) = Server::start_unix(options);
    let stream = UnixStream::connect(path).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    over_stream(stream, &how);
    assert!(server.stop().success(), "{how}");
}
