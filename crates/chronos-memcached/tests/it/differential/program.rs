//! The program itself with two threads, over TCP, beside memcached: values up to the largest and larger.

use std::net::TcpStream;
use std::time::Duration;

use crate::common::random::Random;
use crate::common::server::Server;
use crate::common::{Theirs, ask, have_memcached};
use crate::differential::binary::{extras, mark, packet};

/// More than all keys take, so that neither server evicts.
const MEMORY: [&str; 2] = ["-m", "256"];
const STEPS: usize = 250;
const SEEDS: std::ops::Range<u64> = 1..3;
/// The value of the largest item without flags.
const LARGEST: usize = (1 << 20) - 48 - 8 - 2 - 1 - 2;
/// Keys there are, of two bytes each.
const KEYS: u64 = 12;

#[test]
fn two_threads_answer_as_memcached_whatever_the_size() {
    if !have_memcached() {
        return;
    }
    for seed in SEEDS {
        let theirs = Theirs::start(&[&MEMORY[..], &["-o", "no_lru_maintainer"]].concat());
        let ours = Server::start(&[&MEMORY[..], &["-t", "2"]].concat(), &[]);
        let connect = || {
            let stream = TcpStream::connect(("127.0.0.1", ours.tcp)).expect("it listens");
            stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
            stream
        };
        let (mut text, mut binary) = ((connect(), theirs.connect()), (connect(), theirs.connect()));
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut said = Vec::new();
        for _ in 0..STEPS {
            let (step, got, expected) = if random.once_in(4) {
                let (step, (request, reply)) = (random_packet(&mut random), mark());
                let got = ask(&mut binary.0, &step, &request, &reply);
                (step.clone(), without_cas(got), without_cas(ask(&mut binary.1, &step, &request, &reply)))
            } else {
                let step = random_lines(&mut random);
                let got = ask(&mut text.0, &step, b"mn\r\n", b"MN\r\n");
                (step.clone(), got, ask(&mut text.1, &step, b"mn\r\n", b"MN\r\n"))
            };
            said.push(shown(&step));
            assert!(
                got == expected,
                "seed {seed}, step {}\n  ours   {}\n  theirs {}\n{}",
                said.len(),
                shown(&got),
                shown(&expected),
                said[said.len().saturating_sub(10)..].join("\n")
            );
        }
        let stats = ask(&mut text.0, b"stats\r\n", b"mn\r\n", b"MN\r\n");
        let stats = String::from_utf8_lossy(&stats);
        assert!(stats.contains("STAT evictions 0\r\n"), "{stats}");
        let foreign = stats.lines().find_map(|line| line.strip_prefix("STAT chronos_requests_foreign "));
        assert!(foreign.is_some_and(|count| count != "0"), "requests cross threads: {stats}");
    }
}

/// Returns bytes with repetitions cut short.
pub fn shown(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunk_by(|before, _| *before != b'\n') {
        let line = line.escape_ascii().to_string();
        if line.len() <= 80 {
            text.push_str(&line);
        } else {
            text.push_str(&format!("{}...({} bytes)", &line[..40], line.len()));
        }
    }
    text
}

/// Returns answers of the binary protocol without their cas values: two threads have values of their own.
pub fn without_cas(mut answers: Vec<u8>) -> Vec<u8> {
    let mut rest = &mut answers[..];
    while rest.len() >= 24 {
        let body = u32::from_be_bytes(rest[8..12].try_into().expect("four bytes")) as usize;
        rest[16..24].fill(0);
        rest = rest.get_mut(24 + body..).unwrap_or_default();
    }
    answers
}

/// A length for a value: small, where values leave pages, and around the largest.
fn random_bytes(random: &mut Random) -> usize {
    let near = |random: &mut Random, middle: usize| middle - 8 + random.below(16) as usize;
    match random.below(8) {
        0 => random.below(20) as usize,
        1 => random.below(3000) as usize,
        2 => near(random, 16 << 10),
        3 => near(random, 64 << 10),
        4 => random.below(200_000) as usize,
        5 => near(random, LARGEST / 2),
        6 => near(random, LARGEST),
        _ => random.below(LARGEST as u64) as usize,
    }
}

fn random_value(random: &mut Random) -> Vec<u8> {
    let (first, bytes) = (random.below(256) as usize, random_bytes(random));
    (0..bytes).map(|place| b'a' + ((first + place / 7) % 26) as u8).collect()
}

fn random_key(random: &mut Random) -> String {
    format!("k{}", (b'a' + random.below(KEYS) as u8) as char)
}

/// Stores, and one fetch at the end: the client need not read while it writes.
fn random_lines(random: &mut Random) -> Vec<u8> {
    let mut lines: Vec<u8> = (0..random.below(5)).flat_map(|_| random_store(random)).collect();
    let key = random_key(random);
    let fetch = match random.below(4) {
        0 => format!("get {key} {} {}\r\n", random_key(random), random_key(random)),
        1 => format!("mg {key} s f v k\r\n"),
        _ => format!("get {key}\r\n"),
    };
    lines.extend_from_slice(fetch.as_bytes());
    lines
}

fn random_store(random: &mut Random) -> Vec<u8> {
    let key = random_key(random);
    let quiet = if random.once_in(8) { " noreply" } else { "" };
    let value = random_value(random);
    let (bytes, flags) = (value.len(), random.pick(&["0", "7"]));
    let head = match random.below(9) {
        0 => return format!("delete {key}{quiet}\r\n").into_bytes(),
        1 => return format!("incr {key} 5\r\n").into_bytes(),
        2 => format!("ms {key} {bytes} M{} k", random.pick(&["S", "A", "P", "E", "R"])),
        3 | 4 => format!("set {key} {flags} 0 {bytes}{quiet}"),
        5 => format!("{} {key} {flags} 0 {bytes}{quiet}", random.pick(&["add", "replace"])),
        _ => format!("{} {key} 0 0 {bytes}{quiet}", random.pick(&["append", "prepend"])),
    };
    [head.as_bytes(), b"\r\n", &value, b"\r\n"].concat()
}

fn random_packet(random: &mut Random) -> Vec<u8> {
    let key = random_key(random).into_bytes();
    match random.below(5) {
        0 => packet(0, &key, b"", b"", 0),
        1 => packet(4, &key, b"", b"", 0),
        2 => packet(1, &key, &extras(random.below(2) as u32, 0), &random_value(random), 0),
        3 => packet(0x0e, &key, b"", &random_value(random), 0),
        _ => packet(0x0f, &key, b"", &random_value(random), 0),
    }
}
