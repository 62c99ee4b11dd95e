//! Runs the generator against servers that reply incorrectly, drop, reject and disconnect: each fault is found and
//! counted, over real sockets.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Output};
use std::thread;

use plimsoll_chronos_load::report::Report;

fn run(words: &[&str]) -> (Output, Option<Report>) {
    let output = Command::new(env!("CARGO_BIN_EXE_chronos-load"))
        .args(["run", "--format=json", "--warm-up=0s", "--wait=block", "--keys=50", "--connections=1"])
        .args(words)
        .output()
        .unwrap();
    let report = serde_json::from_slice(&output.stdout).ok();
    (output, report)
}

/// Starts a server that answers request n of each connection with `answer(n, key of a get)`, and skips the bytes of
/// values; none closes the connection. Returns its address.
fn tcp(answer: impl Fn(usize, Option<&str>) -> Option<Vec<u8>> + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = answer.clone();
            thread::spawn(move || serve(&stream.unwrap(), answer));
        }
    });
    address
}

fn serve(mut stream: &TcpStream, answer: impl Fn(usize, Option<&str>) -> Option<Vec<u8>>) {
    let mut reader = BufReader::new(stream);
    for number in 0.. {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let key = (words[0] == "get").then(|| words[1]);
        if key.is_none() {
            reader.read_exact(&mut vec![0; words[4].parse::<usize>().unwrap() + 2]).unwrap();
        }
        match answer(number, key) {
            Some(reply) if stream.write_all(&reply).is_ok() => {}
            Some(_) | None => return,
        }
    }
}

fn value(key: &str) -> Option<Vec<u8>> {
    Some(format!("VALUE {key} 0 20\r\n{}\r\nEND\r\n", "x".repeat(20)).into_bytes())
}

fn stored() -> Option<Vec<u8>> {
    Some(b"STORED\r\n".to_vec())
}

#[test]
fn values_that_nobody_stored_are_told_with_their_keys() {
    let server = tcp(|_, key| key.map_or_else(stored, value));
    let (output, report) = run(&["--server", &server, "--time=50ms", "--value-size=20", "--ratio=1:0"]);
    let report = report.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(report.counts.wrong > 0 && report.counts.wrong == report.counts.hits, "{report}");
    assert!(report.suspect.iter().any(|reason| reason.contains("values are wrong")), "{report}");
    let example = &report.examples[0];
    assert!(example.starts_with("wrong value of key `key:") && example.contains("`xxxx"), "{example}");
}

#[test]
fn a_connection_that_ends_loses_what_was_outstanding() {
    // The load uses a connection of its own; of the run's, the fifth request is not answered.
    let server = tcp(|number, key| match (number, key) {
        (4, Some(_)) => None,
        (_, Some(_)) => Some(b"END\r\n".to_vec()),
        _ => stored(),
    });
    let (output, report) =
        run(&["--server", &server, "--time=10s", "--value-size=20", "--ratio=1:0", "--outstanding=3"]);
    let counts = report.unwrap().counts;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!((counts.completed, counts.lost, counts.closed, counts.misses), (4, 3, 1, 4));
}

#[test]
fn a_server_that_refuses_ends_the_load_phase_with_its_words() {
    let server = tcp(|_, _| Some(b"SERVER_ERROR out of memory storing object\r\n".to_vec()));
    let (output, _) = run(&["--server", &server, "--time=50ms"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("0 of 50 stored") && text.contains("out of memory storing object"), "{text}");
}

#[test]
fn datagrams_without_an_answer_are_lost_and_counted() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    // The server answers all requests but the third, sixth and so on.
    thread::spawn(move || {
        let mut buffer = [0; 2048];
        for number in 1.. {
            let (_, client) = socket.recv_from(&mut buffer).unwrap();
            if number % 3 != 0 {
                let reply = [&buffer[..2], b"\0\0\0\x01\0\0END\r\n"].concat();
                socket.send_to(&reply, client).unwrap();
            }
        }
    });
    let server = format!("udp:{address}");
    let words =
        ["--server", &server, "--time=100ms", "--no-load", "--ratio=1:0", "--rate=1000", "--timeout=300ms"];
    let counts = run(&words).1.unwrap().counts;
    assert!(counts.lost > 0 && counts.late == 0, "{counts:?}");
    // Every third of n requests is lost: n/3, rounded down.
    assert_eq!(counts.lost, counts.gets / 3, "{counts:?}");
}

#[test]
fn nobody_there_is_an_error_that_names_the_server() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let (output, _) = run(&["--server", &address]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains(&format!("cannot connect to {address} (connection 1 of 1)")), "{text}");
}

#[test]
fn posting_lists_must_stay_the_same() {
    let terms = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(terms.path(), "alpha\nbeta\n").unwrap();
    let words = |server: &str| {
        let terms = terms.path().display();
        let words =
            format!("run --server={server} --protocol=search --terms={terms} --time=50ms --warm-up=0s");
        let output = Command::new(env!("CARGO_BIN_EXE_chronos-load"))
            .args(words.split(' '))
            .args(["--connections=1", "--wait=block", "--format=json"])
            .output()
            .unwrap();
        serde_json::from_slice::<Report>(&output.stdout).unwrap().counts
    };
    let steady = words(&tcp(|_, key| value(key.unwrap())));
    assert!(steady.hits > 2 && steady.wrong == 0 && steady.sets == 0, "{steady:?}");
    let changing = words(&tcp(|number, key| {
        Some(format!("VALUE {} 0 20\r\n{number:020}\r\nEND\r\n", key.unwrap()).into_bytes())
    }));
    // All values but the first of each term are wrong.
    assert!(changing.hits > 2 && changing.hits - changing.wrong <= 2, "{changing:?}");
}
