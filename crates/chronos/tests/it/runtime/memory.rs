//! Connections that together hold more than they may.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_chronos::{Config, Limits, Listen, RunningServer};
use plimsoll_testing::Others;

use crate::runtime::client::{Client, any_port, backends, config, start, tcp_address};
use crate::runtime::tls::{certificate, connect, tls_address};

/// The longest wait for an event that must occur.
const PATIENCE: Duration = Duration::from_secs(60);
const MEGABYTE: usize = 1 << 20;
/// The number of connections that a client may try when other programs keep it from the processor.
const TRIES: usize = 20;

fn limits(megabytes: usize) -> Limits {
    Limits { memory_bytes: megabytes * MEGABYTE, ..Limits::default() }
}

/// Both backends, with one thread and with three.
fn modes(megabytes: usize) -> Vec<Config> {
    let all = backends().into_iter().flat_map(|io| [(io, 1), (io, 3)]);
    all.map(|(io, threads)| Config { io, limits: limits(megabytes), ..config(threads) }).collect()
}

/// Opens connections that do not wait for their writes, each of which has sent as much of `text` as was read at once.
fn silent(server: &RunningServer, count: usize, text: &[u8]) -> Vec<(TcpStream, usize)> {
    let connect = |_| {
        let stream = TcpStream::connect(tcp_address(server)).unwrap();
        stream.set_nonblocking(true).unwrap();
        (stream, 0)
    };
    let mut clients = (0..count).map(connect).collect();
    go_on(&mut clients, text);
    clients
}

/// Has the connections send more; closed ones are gone.
fn go_on(clients: &mut Vec<(TcpStream, usize)>, text: &[u8]) {
    clients.retain_mut(|(stream, said)| {
        while *said < text.len() {
            match stream.write(&text[*said..]) {
                Ok(count) => *said += count,
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        true
    });
}

/// Repeats a client's request, which is answered, until connections have been closed.
fn until_shed(server: &RunningServer, what: &str, mut meanwhile: impl FnMut()) {
    let mut other = Client::connect(server);
    other.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let begin = Instant::now();
    while server.stats().total().shed == 0 {
        assert!(begin.elapsed() < PATIENCE, "{what}: none is closed");
        meanwhile();
        assert_eq!(other.ask("hello"), "hello");
        assert_eq!(other.ask("get 0"), "0");
    }
}

#[test]
fn those_that_read_nothing_make_room_for_others() {
    for config in modes(16) {
        let (server, _) = start(&config);
        let clients =
            silent(&server, 60, format!("blob 0 {0}\nblob 1 {0}\n", 4 * MEGABYTE).repeat(3).as_bytes());
        until_shed(&server, "replies", || {});
        let mut last = Client::connect(&server);
        last.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        last.send(&format!("blob 1 {MEGABYTE}\nhello\n"));
        assert_eq!(last.bytes(MEGABYTE), vec![b'b'; MEGABYTE]);
        assert_eq!(last.line(), "hello", "{config:?}");
        drop(clients);
        server.stop().unwrap();
    }
}

/// Reports whether a new client gets a value of `bytes` bytes back before it is disconnected.
fn is_echoed(server: &RunningServer, bytes: usize) -> bool {
    let value = vec![b'v'; bytes];
    let mut client = Client::connect(server);
    client.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut reply = vec![0; bytes];
    let mut exchange = || {
        client.stream.write_all(format!("echo 1 {bytes}\n").as_bytes())?;
        client.stream.write_all(&value)?;
        client.stream.read_exact(&mut reply)
    };
    exchange().is_ok_and(|()| reply == value)
}

#[test]
fn requests_that_do_not_end_make_room_for_others() {
    let text = [format!("echo 0 {}\n", 4 * MEGABYTE).into_bytes(), vec![b'e'; 3 * MEGABYTE]].concat();
    for config in modes(16) {
        let (server, _) = start(&config);
        let mut clients = silent(&server, 20, &text);
        until_shed(&server, "requests", || go_on(&mut clients, &text));
        let others = Others::watch();
        // The requests of the others are older, so theirs are closed. A client that gets no processor for long counts
        // as stalled, and has to connect again.
        let first = is_echoed(&server, MEGABYTE);
        assert!(
            first || others.were_busy() && (0..TRIES).any(|_| is_echoed(&server, MEGABYTE)),
            "{config:?}"
        );
        drop(clients);
        server.stop().unwrap();
    }
}

#[test]
fn those_behind_tls_count_too() {
    let folder = tempfile::tempdir().unwrap();
    let tls = certificate(folder.path());
    for io in backends() {
        let listen = vec![Listen::Tls { address: any_port(), tls: tls.clone() }];
        let (server, _) = start(&Config { io, listen, limits: limits(8), ..config(2) });
        let mut silent = Vec::new();
        for _ in 0..12 {
            let mut client = connect(tls_address(&server), folder.path());
            client.write_all(format!("blob 0 {0}\nblob 1 {0}\n", 8 * MEGABYTE).as_bytes()).unwrap();
            silent.push(client);
        }
        let begin = Instant::now();
        while server.stats().total().shed == 0 {
            assert!(begin.elapsed() < PATIENCE, "{io:?}: none is closed");
            thread::yield_now();
        }
        let mut last = connect(tls_address(&server), folder.path());
        last.sock.set_read_timeout(Some(PATIENCE)).unwrap();
        last.write_all(format!("blob 1 {MEGABYTE}\n").as_bytes()).unwrap();
        let mut blob = vec![0; MEGABYTE];
        last.read_exact(&mut blob).unwrap();
        assert_eq!(blob, vec![b'b'; MEGABYTE]);
        drop(silent);
        server.stop().unwrap();
    }
}

/// More than memory holds at once, by clients that all read: they wait for each other, and none is closed.
#[test]
fn those_that_read_wait_for_each_other() {
    const BLOBS: usize = 20;
    for config in modes(4) {
        let others = Others::watch();
        let (server, _) = start(&config);
        let answered = thread::scope(|scope| {
            let clients: Vec<_> = (0..8)
                .map(|number| {
                    let mut client = Client::connect(&server);
                    client.stream.set_read_timeout(Some(PATIENCE)).unwrap();
                    scope.spawn(move || {
                        client.send(&format!("blob {number} {MEGABYTE}\n").repeat(BLOBS));
                        let mut blobs = vec![0; BLOBS * MEGABYTE];
                        client.stream.read_exact(&mut blobs).is_ok()
                    })
                })
                .collect();
            clients.into_iter().all(|client| client.join().unwrap())
        });
        // A client that gets no processor for long has stalled.
        assert!(answered || others.were_busy(), "{config:?}: {:?}", server.stats().total());
        server.stop().unwrap();
    }
}
