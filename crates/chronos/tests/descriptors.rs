//! A process without file descriptors left: accepting pauses and resumes. In a process of its own, whose limit it is.
//! Only with epoll: io_uring keeps to the limit at the time when accepting began, which a test cannot lower afterwards.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "it/runtime/client.rs"]
#[expect(dead_code, reason = "shared with the other tests")]
mod client;
#[path = "it/runtime/service.rs"]
mod service;

use std::os::fd::AsRawFd;
use std::time::Instant;

use plimsoll_chronos::{Config, IoBackend};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};

use client::{Client, config, start, tcp_address};

#[test]
fn without_descriptors_accepting_pauses_and_goes_on() {
    let (server, _) = start(&Config { io: IoBackend::Epoll, ..config(1) });
    let address = tcp_address(&server);
    assert_eq!(Client::to(address).ask("hello"), "hello");
    let before = getrlimit(Resource::Nofile);
    // These have descriptors; the server has none left for some of its ends.
    let clients: Vec<Socket> =
        (0..8).map(|_| Socket::new(Domain::IPV4, Type::STREAM, None).unwrap()).collect();
    let last = clients.iter().map(|client| client.as_raw_fd() as u64).max().unwrap();
    setrlimit(Resource::Nofile, Rlimit { current: Some(last + 3), ..before }).unwrap();
    let start = Instant::now();
    clients.iter().for_each(|client| client.connect(&address.into()).unwrap());
    while server.stats().total().accept_errors == 0 {
        std::thread::yield_now();
    }
    setrlimit(Resource::Nofile, before).unwrap();
    let mut next = Client::to(address);
    assert_eq!(next.ask("hello"), "hello");
    let pauses = start.elapsed().as_millis() as u64 / 50;
    let errors = server.stats().total().accept_errors;
    assert!(errors <= pauses + 2, "{errors} errors in {pauses} pauses of 50 ms");
    drop(clients);
    server.stop().unwrap();
}
