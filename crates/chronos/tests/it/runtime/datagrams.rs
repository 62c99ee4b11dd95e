//! Requests in datagrams.

use std::time::Duration;

use plimsoll_chronos::{Config, Listen, Runtime};

use crate::runtime::client::{Client, all_modes, any_port, ask, backends, config, start};
use crate::runtime::exchanges::{self, udp_client};
use crate::runtime::service::Logs;

#[test]
fn every_mode_answers_datagrams_alike() {
    exchanges::datagrams(all_modes(), start);
}

#[test]
fn a_reply_is_no_longer_than_the_limit_allows() {
    let mut config = Config { listen: vec![Listen::Udp(any_port())], ..config(1) };
    config.limits.output_bytes = 5000;
    let (server, _) = start(&config);
    let socket = udp_client(&server);
    // Two are beyond the limit: one more reply than fits, then nothing.
    let reply = ask(&socket, 1, b"blob 0 3000\nblob 1 3000\nblob 0 3000\nblob 1 3000\n", 6);
    assert_eq!(reply.len(), 6000);
    assert_eq!(ask(&socket, 2, b"hello\n", 1), b"hello\n", "nothing more of the first came");
    server.stop().unwrap();
}

#[test]
fn what_is_no_request_is_dropped() {
    let (server, _) = start(&Config { listen: vec![Listen::Udp(any_port())], ..config(1) });
    let socket = udp_client(&server);
    socket.send(b"").unwrap();
    socket.send(b"\x01put 0 1").unwrap();
    assert_eq!(ask(&socket, 2, b"hello\n", 1), b"hello\n");
    server.stop().unwrap();
}

/// While a thread does not answer, others receive as many datagrams as they can keep, and leave the rest to the kernel.
#[test]
fn a_flood_for_a_thread_that_is_busy_stays_with_the_kernel() {
    for io in backends() {
        let config = Config {
            io,
            listen: vec![Listen::Tcp(any_port()), Listen::Udp(any_port())],
            balancing: None,
            // With less the thread would not look at the other requests either.
            ring_messages: 8192,
            ..config(2)
        };
        let logs = Logs::default();
        let gate = logs.gate.clone();
        let server = Runtime::start(logs, &config).unwrap();
        // The kernel chooses the thread by the client's port: here, the one that the first connection has too.
        let mut stream = Client::connect(&server);
        stream.stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        assert_eq!(stream.ask("get 0"), "0");
        let socket = std::iter::repeat_with(|| udp_client(&server))
            .find(|socket| {
                let before = server.stats().threads()[0].datagrams;
                ask(socket, 0, b"hello\n", 1);
                server.stats().threads()[0].datagrams > before
            })
            .unwrap();
        let closed = gate.write().unwrap();
        // The last partition is the other thread's.
        socket.send(b"\x01wait 31\n").unwrap();
        let sent = 5000;
        for number in 0..sent {
            socket.send(b"\x02get 31\n").unwrap();
            if number % 50 == 0 {
                // The thread has had its turns when it has answered.
                assert_eq!(stream.ask("get 0"), "0");
            }
        }
        let received = server.stats().total().datagrams;
        assert!((500..1500).contains(&received), "{io:?}: {received} of {sent}");
        drop(closed);
        // All received datagrams are answered, and the server keeps running.
        assert_eq!(stream.ask("get 31"), "0");
        let mut buffer = [0; 100];
        let count = socket.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..count], b"\x01waited\n");
        server.stop().unwrap();
    }
}
