//! Flags of the command line, which have the same effect in both programs.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::server::{self, Server};
use crate::common::{Theirs, ask, have_memcached};

const PATIENCE: Duration = Duration::from_secs(20);

/// The lines of the port file of `command`, which is started and killed; `chosen` ports as they are, others as `any`.
fn ports(mut command: Command, directory: &Path, chosen: &[u16]) -> BTreeSet<String> {
    let file = directory.join("ports");
    command.args(["-l", "127.0.0.1"]).env("MEMCACHED_PORT_FILENAME", &file).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let begin = Instant::now();
    while !file.exists() && child.try_wait().expect("a child").is_none() {
        assert!(begin.elapsed() < PATIENCE, "no port file");
        std::thread::yield_now();
    }
    let text = std::fs::read_to_string(&file).unwrap_or_else(|_| "it did not start".to_owned());
    // Both fail only if it has ended already.
    drop(child.kill());
    drop(child.wait());
    let shown = |line: &str| match line.rsplit_once(' ') {
        Some((kind, port)) if !chosen.iter().any(|chosen| chosen.to_string() == port) => {
            format!("{kind} any")
        }
        _ => line.to_owned(),
    };
    text.lines().map(shown).collect()
}

/// A port that is free for TCP and for UDP.
fn free_port() -> u16 {
    loop {
        let port =
            UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

#[test]
fn ports_are_those_of_memcached() {
    if !have_memcached() {
        return;
    }
    // Without -p and -U both would take memcached's own port, which may be in use.
    for words in [
        "-p -1",
        "-U -1",
        "-U 1",
        "-p -1 -U -1",
        "-p -1 -U 1",
        "-p 0 -U 1",
        "-p 0 -U -1",
        "-p 0",
        "-p 1 -U 0",
        "-p 1 -U -1",
    ] {
        let directories =
            [tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory")];
        // 1 is replaced by a port that is free now.
        let port = free_port();
        let words: Vec<String> = words
            .split(' ')
            .map(|word| if word == "1" { port.to_string() } else { word.to_owned() })
            .collect();
        let mut memcached = Command::new("memcached");
        memcached.args(["-u", "root"]).args(&words);
        let expected = ports(memcached, directories[0].path(), &[port]);
        let options: Vec<&str> = words.iter().map(String::as_str).collect();
        let ours = server::command(&options, directories[1].path());
        assert_eq!(ports(ours, directories[1].path(), &[port]), expected, "{words:?}");
    }
}

/// Returns the number of a field of `stats`.
fn field(text: &[u8], name: &str) -> u64 {
    let text = String::from_utf8_lossy(text);
    let value =
        text.lines().find_map(|line| line.strip_prefix("STAT ")?.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} is not in {text}"))
}

/// With `-R 1`, six commands that come at once take six turns.
#[test]
fn a_connection_gives_way_as_often_as_asked() {
    if !have_memcached() {
        return;
    }
    const COMMANDS: u64 = 6;
    let options = ["-R", "1"];
    let (theirs, ours) = (Theirs::start(&options), Server::start(&options, &[]));
    let (mut stream, mut other) =
        (TcpStream::connect(("127.0.0.1", ours.tcp)).expect("it listens"), theirs.connect());
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let commands = b"set a 0 0 1\r\nx\r\n".repeat(COMMANDS as usize);
    for answers in
        [ask(&mut stream, &commands, b"mn\r\n", b"MN\r\n"), ask(&mut other, &commands, b"mn\r\n", b"MN\r\n")]
    {
        assert_eq!(answers, b"STORED\r\n".repeat(COMMANDS as usize));
    }
    for stats in [
        ask(&mut stream, b"stats\r\n", b"mn\r\n", b"MN\r\n"),
        ask(&mut other, b"stats\r\n", b"mn\r\n", b"MN\r\n"),
    ] {
        assert!(field(&stats, "conn_yields") >= COMMANDS - 1, "{}", String::from_utf8_lossy(&stats));
    }
}

/// Memory that is too little for the partitions of four threads makes fewer of them.
#[test]
fn little_memory_is_enough_to_start() {
    for words in [&["-m", "2"][..], &["-m", "3", "-M"], &["-m", "2", "-t", "32"]] {
        let server = Server::start(words, &[]);
        let mut stream = TcpStream::connect(("127.0.0.1", server.tcp)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let value = vec![b'x'; 60_000];
        stream.write_all(b"set a 0 0 60000\r\n").expect("it takes requests");
        let stored = ask(&mut stream, &[&value[..], b"\r\n"].concat(), b"mn\r\n", b"MN\r\n");
        assert_eq!(stored, b"STORED\r\n", "{words:?}");
        let stats = ask(&mut stream, b"stats\r\n", b"mn\r\n", b"MN\r\n");
        assert_eq!(field(&stats, "limit_maxbytes"), if words[1] == "2" { 2 << 20 } else { 3 << 20 });
    }
}
