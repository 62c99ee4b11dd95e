//! The program chronos-memcached-locked, with every lock.

#[path = "../../../../crates/chronos-memcached/tests/it/common/server.rs"]
mod server;
#[path = "../../../../crates/chronos-memcached/tests/it/common/table.rs"]
mod table;

use std::io::{Read, Write};
use std::net::TcpStream;

use plimsoll_chronos_locked::Lock;
use server::Server;
use table::{PATIENCE, one_table};

#[test]
fn one_table_with_every_lock() {
    for (name, _) in Lock::ALL {
        for threads in ["1", "3"] {
            one_table(&["-t", threads, &format!("--lock={name}")]);
        }
    }
}

/// Gets that share the lock are counted as others are.
#[test]
fn reads_that_share_the_lock_are_counted() {
    let server = Server::start(&["-t", "2", "--lock=rwlock"], &[]);
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
