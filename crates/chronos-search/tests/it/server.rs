//! `chronos-search` as a process: both protocols on one address, every mode, signals.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::Write;
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::server::{Server, both_protocols};

#[test]
fn both_protocols_in_every_mode() {
    let modes: [&[&str]; 5] = [
        &[],
        &["--threads=2"],
        &["--threads=2", "--snapshots"],
        &["--threads=2", "--io=epoll"],
        &["--threads=2", "--io=io-uring"],
    ];
    modes.into_iter().for_each(both_protocols);
}

#[test]
fn the_paper_experiment() {
    let server = Server::start(&["--preset=paper", "--threads=2"]);
    let value = "v".repeat(1400);
    let mut input = String::new();
    for key in 0..100 {
        input += &format!("set key{key:07} 0 0 1400\r\n{value}\r\n");
    }
    for key in 0..100 {
        input += &format!("get key{key:07}\r\n");
    }
    let mut expected = "STORED\r\n".repeat(100);
    for key in 0..100 {
        expected += &format!("VALUE key{key:07} 0 1400\r\n{value}\r\nEND\r\n");
    }
    assert_eq!(server.ask(&(input + "quit\r\n")), expected);
}

/// The server closes by its own clock, in every mode.
#[test]
fn a_head_that_does_not_end_is_closed_at_its_deadline() {
    for mode in ["--io=epoll", "--io=fastest", "--snapshots"] {
        let server = Server::start(&[mode, "--head-timeout=1"]);
        for head in ["GET /stats HTTP/1.1\r\n", "get sun"] {
            assert_eq!(server.ask(head), "", "{mode}: {head}");
        }
    }
}

/// A query over TLS, by the machine's own client.
#[test]
fn queries_come_by_tls() {
    if Command::new("curl").arg("--version").output().is_err() {
        return plimsoll_testing::skipped!("no curl (Debian package curl)");
    }
    let folder = tempfile::tempdir().unwrap();
    let [chain, both] = ["chain.pem", "both.pem"].map(|name| folder.path().join(name));
    let certify = || {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(&chain, made.cert.pem()).unwrap();
        std::fs::write(&both, made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
    };
    certify();
    let server = Server::start(&["--tls-certificate", both.to_str().unwrap()]);
    let address = format!("https://localhost:{}/stats", server.address.port());
    let ask = || {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--ipv4", "--noproxy", "*", "--cacert"]);
        let output = command.args([chain.to_str().unwrap(), &address]).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    assert!(ask().contains("\"documents\""), "{}", ask());
    certify();
    assert!(!ask().contains("\"documents\""), "the new certificate is shown before it is read");
    let status = Command::new("kill").args(["-HUP", &server.child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let begin = Instant::now();
    while !ask().contains("\"documents\"") {
        assert!(begin.elapsed() < Duration::from_secs(30), "{}", ask());
    }
}

#[test]
fn a_signal_ends_it_in_order() {
    let mut server = Server::start(&[]);
    let status = Command::new("kill").arg(server.child.id().to_string()).status().unwrap();
    assert!(status.success());
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn what_is_wrong_is_told() {
    for (arguments, reason) in [
        (&["--preset=paper", "/dev/null"][..], "nothing to index"),
        (&["/nowhere"], "/nowhere"),
        (&["--threads=2", "--partitions=1"], "partitions: 1"),
        (&["--listen=80"], "not an address"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_chronos-search")).args(arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.contains(reason), "{arguments:?}: {error}");
        assert!(!error.contains("Error:") && !error.contains("Caused by"), "{arguments:?}: {error}");
    }
}

/// Clients that do not read their answers are closed when others wait for the memory that the answers take.
#[test]
fn clients_that_read_nothing_make_room_for_others() {
    const BYTES: usize = 1_000_000;
    for io in ["--io=epoll", "--io=fastest"] {
        let options = ["--threads=2", "--sets=postings", "--connection-memory=8000000", io];
        let server = Server::start(&options);
        let value = "v".repeat(BYTES);
        assert_eq!(server.ask(&format!("set word 0 0 {BYTES}\r\n{value}\r\nquit\r\n")), "STORED\r\n");
        let silent: Vec<TcpStream> = (0..30)
            .map(|_| {
                let mut stream = TcpStream::connect(server.address).unwrap();
                stream.write_all("get word\r\n".repeat(20).as_bytes()).unwrap();
                stream
            })
            .collect();
        let begin = Instant::now();
        while server.ask("stats\r\nquit\r\n").contains("STAT connections_shed 0\r\n") {
            assert!(begin.elapsed() < Duration::from_secs(60), "{io}: none is closed");
        }
        let found = server.ask("get word\r\nquit\r\n");
        assert!(found == format!("VALUE word 0 {BYTES}\r\n{value}\r\nEND\r\n"), "{io}");
        drop(silent);
    }
}
