//! HTTP is refused in any form: the body of a web page's POST to a cache on this machine must not become commands.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use plimsoll_chronos_memcached::MemcachedSettings;

use crate::common::server::Server;
use crate::common::{Ours, Theirs, have_memcached};
use crate::differential::conversation::{Steps, compare};

/// A request that a web page can send, whose body is commands.
const POST: &[u8] = b"POST /a%20b HTTP/1.1\r\nHost: localhost:11211\r\nContent-Type: text/plain\r\n\r\n\
set a 0 0 1\r\nx\r\ngets a\r\n";
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn http_is_refused_as_memcached_refuses_it() {
    let cases: &[(&str, Steps<'_>)] = &[
        ("a post", &[POST]),
        ("after other commands", &[b"set b 0 0 1\r\ny\r\n", b"get b\r\n", POST]),
        ("a get", &[b"GET / HTTP/1.0\r\n\r\n", b"version\r\n"]),
        ("a method alone", &[b"DELETE HTTP/1.1\r\n"]),
        ("a version alone", &[b"HTTP/\r\n"]),
        ("a bare newline", &[b"PUT / HTTP/1.1\n"]),
        ("blanks", &[b"  OPTIONS   *   HTTP/1.1  \r\n"]),
        ("a small letter", &[b"post / HTTP/1.1\r\n"]),
        ("not at the end", &[b"POST / HTTP/1.1 x\r\n", b"version\r\n"]),
        ("not a version", &[b"POST / http/1.1\r\n", b"POST / HTTP\r\n", b"POST / xHTTP/1.1\r\n"]),
        ("a zero byte", &[b"POST / HTTP/1.1\0 x\r\n"]),
        ("a known command", &[b"get / HTTP/1.1\r\n", b"stats HTTP/1.1\r\n", b"touch / HTTP/1.1\r\n"]),
        ("a value", &[b"set a 0 0 17\r\nPOST / HTTP/1.1\r\n\r\n", b"get a\r\n"]),
        ("a bad length", &[b"set a 0 0 1\r\nPOST / HTTP/1.1\r\n", b"version\r\n"]),
    ];
    compare(&[], &MemcachedSettings::default(), cases);
}

/// Every byte by itself, and every two halves: the same end, and no part of the body is run.
#[test]
fn however_it_is_cut_it_is_refused() {
    let parts = (1..POST.len()).map(|middle| vec![&POST[..middle], &POST[middle..]]);
    for parts in parts.chain([POST.chunks(1).collect()]) {
        let mut ours = Ours::new(MemcachedSettings::default(), 1);
        let answers: Vec<u8> = parts.iter().flat_map(|part| ours.send(part)).collect();
        assert!(answers.is_empty() && ours.closed, "{}", answers.escape_ascii());
        ours.reconnect();
        assert_eq!(ours.send(b"get a\r\n"), b"END\r\n");
    }
}

/// Sends `bytes` and returns everything until the other side closes.
fn until_closed(mut stream: impl Read + Write, bytes: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    stream.write_all(bytes).expect("it listens");
    // If the server closes with unread bytes, the kernel sends a reset.
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() != std::io::ErrorKind::ConnectionReset => {
            panic!("it did not close: {error}")
        }
        _ => answer,
    }
}

fn timed(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

#[test]
fn every_entry_refuses_it() {
    for backend in ["epoll", "fastest"] {
        for protocol in [&[][..], &["-B", "ascii"], &["-B", "binary"]] {
            let io = format!("chronos_io={backend}");
            let options = [&["-t", "2", "-o", &io], protocol].concat();
            let server = Server::start(&options, &[]);
            let how = format!("{options:?}");
            let connect = || timed(TcpStream::connect(("127.0.0.1", server.tcp)).expect("it listens"));
            assert_eq!(until_closed(connect(), POST), b"", "{how}");
            let udp = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            udp.connect(("127.0.0.1", server.udp)).expect("an address");
            udp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            let is_binary = protocol.last() == Some(&"binary");
            let noop = [&b"\x80\x0a"[..], &[0; 22]].concat();
            let mark = if is_binary { &noop[..] } else { b"version\r\n" };
            for request in [POST, mark] {
                udp.send(&[b"\0\x05\0\0\0\x01\0\0", request].concat()).expect("it takes datagrams");
            }
            // The first is not answered, so this answers the second.
            let mut reply = [0; 200];
            let bytes = udp.recv(&mut reply).expect("it answers");
            let expected: &[u8] = if is_binary { b"\x81\x0a" } else { b"VERSION 1.6.18\r\n" };
            assert!(reply[8..bytes].starts_with(expected), "{how}: {}", reply[..bytes].escape_ascii());
            if !is_binary {
                let after = [b"version\r\nget b\r\n", POST].concat();
                assert_eq!(until_closed(connect(), &after), b"VERSION 1.6.18\r\nEND\r\n", "{how}");
                assert_eq!(until_closed(connect(), b"get a\r\nquit\r\n"), b"END\r\n", "{how}");
            }
        }
    }
    let (_server, path) = Server::start_unix(&["-t", "2"]);
    let connect = || UnixStream::connect(&path).expect("it listens");
    assert_eq!(until_closed(connect(), POST), b"");
    assert_eq!(until_closed(connect(), b"get a\r\nquit\r\n"), b"END\r\n");
}

/// A client that must log in first is refused too, so that no web page tries passwords.
#[test]
fn no_login_is_tried_by_http() {
    let directory = tempfile::tempdir().expect("a directory");
    let users = directory.path().join("users");
    std::fs::write(&users, "user:secret\n").expect("a file");
    let server = Server::start(&["-t", "1", "-Y", users.to_str().expect("a path")], &[]);
    let connect = || timed(TcpStream::connect(("127.0.0.1", server.tcp)).expect("it listens"));
    let post = b"POST / HTTP/1.1\r\n\r\nset a 0 0 11\r\nuser secret\r\nset a 0 0 1\r\nx\r\n";
    assert_eq!(until_closed(connect(), post), b"");
    let asked = b"set a 0 0 11\r\nuser secret\r\nget a\r\nquit\r\n";
    assert_eq!(until_closed(connect(), asked), b"STORED\r\nEND\r\n");
}

/// memcached 1.6.18 itself, over a stream and with a new connection afterwards.
#[test]
fn memcached_runs_nothing_of_it() {
    if !have_memcached() {
        return;
    }
    let theirs = Theirs::start(&[]);
    assert_eq!(until_closed(theirs.connect(), POST), b"");
    assert_eq!(until_closed(theirs.connect(), b"get a\r\nquit\r\n"), b"END\r\n");
}
