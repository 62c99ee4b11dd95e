//! `--metrics`: the counters of the runtime are shown.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::support::hello;

#[test]
fn connections_of_switches_are_shown() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_chronos-openflow"))
        .args(["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = [String::new(), String::new()];
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut lines[0]).unwrap();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut lines[1]).unwrap();
    let controller = lines[0].trim().strip_prefix("listening on ").unwrap();
    let metrics = lines[1].trim().strip_prefix("metrics at ").unwrap().trim_end_matches(", path /metrics");
    let mut switch = TcpStream::connect(controller).unwrap();
    switch.write_all(&hello(4)).unwrap();
    // The controller's hello has arrived, so the connection is counted.
    switch.read_exact(&mut [0; 8]).unwrap();
    let mut stream = TcpStream::connect(metrics).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(text.contains("chronos_info{server=\"chronos-openflow\","), "{text}");
    assert!(text.contains("\nchronos_connections{thread=\"0\"} 1\n"), "{text}");
    assert!(text.contains("\nchronos_partitions{thread=\"0\"} 16\n"), "{text}");
}
