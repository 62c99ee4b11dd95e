//! Connections that begin, end, break, stall and send much.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_chronos::{Config, Limits, Listen};

use crate::runtime::client::{Client, backends, config, start, tcp_address};

/// The longest wait for an event that must occur.
const PATIENCE: Duration = Duration::from_secs(60);

fn each_backend(threads: u32, run: impl Fn(Config)) {
    backends().into_iter().for_each(|io| run(Config { io, ..config(threads) }));
}

#[test]
fn two_megabytes_there_and_back() {
    each_backend(2, |config| {
        let (server, _) = start(&config);
        let mut client = Client::connect(&server);
        let value: Vec<u8> = (0..2 << 20).map(|index: u32| (index % 251) as u8).collect();
        for partition in [0, 1] {
            client.send(&format!("echo {partition} {}\n", value.len()));
            client.stream.write_all(&value).unwrap();
            assert!(client.bytes(value.len()) == value);
        }
        server.stop().unwrap();
    });
}

#[test]
fn ten_thousand_requests_at_once() {
    each_backend(2, |config| {
        let (server, _) = start(&config);
        let mut client = Client::connect(&server);
        let request = |number: u32| format!("put {} 1 {}\n", number % 32, number / 32);
        let mut stream = client.stream.try_clone().unwrap();
        let sender = thread::spawn(move || {
            let requests: String = (0..10_000).map(request).collect();
            stream.write_all(requests.as_bytes()).unwrap();
        });
        for number in 0..10_000 {
            assert_eq!(client.line(), format!("ok {} {}", number % 32, number / 32));
        }
        sender.join().unwrap();
        server.stop().unwrap();
    });
}

/// The server stops reading a client that reads nothing: the bytes that the server holds for it stay bounded.
#[test]
fn a_slow_reader_is_not_read() {
    each_backend(2, |config| {
        let limits = Limits { output_bytes: 100_000, ..Limits::default() };
        let (server, _) = start(&Config { limits, ..config });
        let mut slow = Client::connect(&server);
        slow.stream.set_nonblocking(true).unwrap();
        // The kernel's buffers hold some megabytes; that much is echoed, and no more is read.
        let request = [b"echo 0 30000\n".to_vec(), vec![b'e'; 30_000]].concat();
        let mut sent = 0_usize;
        let mut stalls = 0;
        while stalls < 100 && sent < 64 << 20 {
            match slow.stream.write(&request[sent % request.len()..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    stalls += 1;
                    // The server has had its turns when another client has been answered.
                    assert_eq!(Client::connect(&server).ask("hello"), "hello");
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(stalls, 100, "the server went on reading: {sent} bytes");
        // It gets its replies when it reads.
        slow.stream.set_nonblocking(false).unwrap();
        slow.stream.shutdown(Shutdown::Write).unwrap();
        let mut replies = 0_usize;
        let mut buffer = vec![0; 1 << 20];
        loop {
            match slow.stream.read(&mut buffer).unwrap() {
                0 => break,
                count => replies += count,
            }
        }
        assert_eq!(replies, sent / request.len() * 30_000);
        server.stop().unwrap();
    });
}

#[test]
fn a_client_that_has_said_all_is_answered() {
    each_backend(2, |config| {
        let (server, _) = start(&config);
        let mut client = Client::connect(&server);
        client.send("put 0 1 0\nput 1 1 0\nsum\nget 0\n");
        client.stream.shutdown(Shutdown::Write).unwrap();
        let lines: Vec<String> = (0..5).map(|_| client.line()).collect();
        assert_eq!(lines, ["ok 0 0", "ok 1 0", "2", "1", ""]);
        server.stop().unwrap();
    });
}

#[test]
fn resets_and_churn_leave_nothing_behind() {
    each_backend(2, |config| {
        let (server, _) = start(&config);
        for round in 0..300 {
            let mut client = Client::connect(&server);
            client.send("blob 0 200000\nblob 1 200000\nput 0 1 0\nget");
            if round % 3 == 0 {
                // A reset in the middle of a request: unread data is there when it closes.
                let linger = socket2::SockRef::from(&client.stream);
                linger.set_linger(Some(Duration::ZERO)).unwrap();
            } else if round % 3 == 1 {
                client.bytes(1000);
            }
        }
        let mut last = Client::connect(&server);
        // Both threads have the connections that came before the last when they have answered it.
        assert!(!last.ask("sum").is_empty());
        while server.stats().total().connections > 1 {
            assert!(!last.ask("sum").is_empty());
        }
        assert_eq!(server.stats().total().connections_total, 301);
        server.stop().unwrap();
    });
}

#[test]
fn connections_over_the_limit_are_told_so() {
    each_backend(2, |config| {
        let limits = Limits { connections: 2, ..Limits::default() };
        let (server, _) = start(&Config { limits, ..config });
        let mut first = Client::connect(&server);
        let mut second = Client::connect(&server);
        assert_eq!([first.ask("hello"), second.ask("hello")], ["hello", "hello"]);
        assert_eq!(Client::connect(&server).line(), "full");
        drop(first);
        let third = || Client::connect(&server).ask_if_open("hello");
        while third().is_none() {}
        assert!(server.stats().total().refused >= 1);
        server.stop().unwrap();
    });
}

impl Client {
    /// Returns None if the server refused the connection.
    fn ask_if_open(&mut self, request: &str) -> Option<String> {
        // The server may have closed it already.
        let _ = self.stream.write_all(format!("{request}\n").as_bytes());
        let mut byte = [0; 5];
        let count = self.stream.read(&mut byte).unwrap_or(0);
        (byte[..count].starts_with(b"h")).then(|| request.to_owned())
    }
}

#[test]
fn idle_connections_are_closed_and_others_are_not() {
    each_backend(1, |config| {
        let limits = Limits { idle: Some(Duration::from_millis(1)), ..Limits::default() };
        let (server, _) = start(&Config { limits, ..config });
        let mut client = Client::connect(&server);
        // Waits for the server.
        assert!(client.is_closed());
        assert_eq!(server.stats().total().timed_out, 1);
        server.stop().unwrap();
    });
}

#[test]
fn idle_connections_that_fetch_nothing_are_closed_too() {
    each_backend(2, |config| {
        let limits = Limits { idle: Some(Duration::from_millis(1)), ..Limits::default() };
        let (server, _) = start(&Config { limits, ..config });
        // More than the kernel's buffers hold.
        let mut stalled = Client::connect(&server);
        stalled.send(&format!("blob 0 {0}\nblob 1 {0}\n", 32 << 20));
        let begin = Instant::now();
        while server.stats().total().connections_total == 0 || server.stats().total().connections > 0 {
            assert!(begin.elapsed() < Duration::from_secs(30), "it is closed");
            thread::yield_now();
        }
        assert_eq!(server.stats().total().timed_out, 1, "it is counted once");
        server.stop().unwrap();
    });
}

#[test]
fn a_request_over_the_limit_closes_the_connection() {
    each_backend(1, |config| {
        let limits = Limits { input_bytes: 1000, ..Limits::default() };
        let (server, _) = start(&Config { limits, ..config });
        let mut client = Client::connect(&server);
        client.send("echo 0 2000\n");
        assert!(client.is_closed());
        server.stop().unwrap();
    });
}

#[test]
fn a_busy_server_stops_and_answers_what_it_has_read() {
    each_backend(2, |config| {
        let (server, _) = start(&config);
        let address = tcp_address(&server);
        let stop = server.stop_handle();
        thread::scope(|scope| {
            for connection in 0..4 {
                let stop = stop.clone();
                scope.spawn(move || {
                    let mut client = Client::to(address);
                    let mut sequence = 0;
                    loop {
                        let ask = format!("put 1 {connection} {sequence}\n");
                        if client.stream.write_all(ask.as_bytes()).is_err() {
                            break;
                        }
                        let answer = client.line_or_end();
                        if answer.is_empty() {
                            break;
                        }
                        assert_eq!(answer, format!("ok 1 {sequence}"));
                        sequence += 1;
                        if connection == 0 && sequence == 200 {
                            stop.stop();
                        }
                    }
                });
            }
            server.join().unwrap();
        });
        assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
    });
}

impl Client {
    /// Returns the next line; empty at the end, also where the server has reset the connection.
    fn line_or_end(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while !line.ends_with(b"\n") && self.stream.read(&mut byte).is_ok_and(|count| count == 1) {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap().trim_end().to_owned()
    }
}

/// The end of a stream is noticed at any time: amid the last bytes too, and after any part of a request.
#[test]
fn unix_clients_that_stop_halfway_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    for (io, threads) in backends().into_iter().flat_map(|io| [(io, 1), (io, 2)]) {
        let path = folder.path().join(format!("{io:?}-{threads}"));
        let listen = vec![Listen::Unix { path: path.clone(), mode: 0o600 }];
        let (server, _) = start(&Config { io, listen, ..config(threads) });
        for number in 0..200_usize {
            let mut client = UnixStream::connect(&path).unwrap();
            client.write_all(b"echo 0 800000\n").unwrap();
            client.write_all(&vec![b'e'; number * 7919 % 800_000]).unwrap();
        }
        let begin = Instant::now();
        while server.stats().total().connections > 0 || server.stats().total().connections_total < 200 {
            assert!(begin.elapsed() < PATIENCE, "{io:?}, {threads} threads: {:?}", server.stats().total());
            thread::yield_now();
        }
        server.stop().unwrap();
    }
}
