//! Long pipelines, most of which is not answered, to the program in every mode and to memcached.

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::common::random::Random;
use crate::common::server::Server;
use crate::common::{Theirs, ask, have_memcached};
use crate::differential::binary::{extras, mark, packet};
use crate::differential::program::{shown, without_cas};

/// The longest wait for an event that must occur.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest pipeline.
const COMMANDS: u64 = 5000;
/// The number of keys that are set.
const KEYS: u64 = 20;

/// The options of every way to wait for clients and of every number of threads.
fn modes() -> Vec<[String; 4]> {
    let mut modes = Vec::new();
    for io in ["epoll", "fastest"] {
        for threads in ["1", "2", "4"] {
            for poll in ["block", "spin"] {
                let extended = format!("chronos_io={io},chronos_poll={poll}");
                modes.push(["-t".to_owned(), threads.to_owned(), "-o".to_owned(), extended]);
            }
        }
    }
    modes
}

fn start(mode: &[String]) -> Server {
    Server::start(&mode.iter().map(String::as_str).collect::<Vec<_>>(), &[])
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.tcp)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// A command of text or meta, which most times has no answer.
fn line(random: &mut Random) -> Vec<u8> {
    let key = random.below(KEYS);
    let value = vec![b'v'; random.below(40) as usize];
    let bytes = value.len();
    let head = match random.below(100) {
        0..40 => format!("set k{key} 0 0 {bytes} noreply"),
        40..60 => format!("ms k{key} {bytes} q"),
        60..75 => return format!("mg none{key} v q\r\n").into_bytes(),
        75..80 => return format!("delete k{key} noreply\r\n").into_bytes(),
        80..85 => return format!("md k{key} q\r\n").into_bytes(),
        85..90 => return format!("touch none{key} 0 noreply\r\n").into_bytes(),
        90..95 => {
            let misses: String = (0..random.below(150)).map(|number| format!(" none{number}")).collect();
            return format!("get k{key}{misses}\r\n").into_bytes();
        }
        95..98 => return format!("incr none{key} 1 noreply\r\n").into_bytes(),
        _ => return format!("get k{key}\r\n").into_bytes(),
    };
    [head.as_bytes(), b"\r\n", &value, b"\r\n"].concat()
}

/// A binary request, which most times has no answer.
fn quiet_packet(random: &mut Random) -> Vec<u8> {
    let key = format!("b{}", random.below(KEYS)).into_bytes();
    let none = format!("none{}", random.below(KEYS)).into_bytes();
    let value = vec![b'v'; random.below(40) as usize];
    match random.below(20) {
        0..8 => packet(0x11, &key, &extras(1, 0), &value, 0),
        8..13 => packet(0x09, &none, b"", b"", 0),
        13..17 => packet(0x0d, &none, b"", b"", 0),
        17..19 => packet(0x14, &key, b"", b"", 0),
        _ => packet(0x00, &key, b"", b"", 0),
    }
}

/// Returns a number of commands, drawn so that the logarithms of all lengths are equally likely.
fn length(random: &mut Random) -> u64 {
    let bits = 1 + random.below(13);
    (1 + random.below(1 << bits)).min(COMMANDS)
}

/// Asks memcached a few commands at a time: it stops reading while its answers are not read.
fn ask_in_parts(stream: &mut UnixStream, commands: &[Vec<u8>], mark: &[u8], answer: &[u8]) -> Vec<u8> {
    commands.chunks(50).flat_map(|commands| ask(stream, &commands.concat(), mark, answer)).collect()
}

#[test]
fn long_silent_pipelines_are_answered_as_by_memcached() {
    if !have_memcached() {
        return;
    }
    for (seed, mode) in (1..).zip(modes()) {
        let (theirs, ours) = (Theirs::start(&["-o", "no_lru_maintainer"]), start(&mode));
        let (mut text, mut binary) = ((connect(&ours), theirs.connect()), (connect(&ours), theirs.connect()));
        let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed) | 1);
        let mut lengths = vec![1, 64, 65, COMMANDS];
        lengths.extend((0..4).map(|_| length(&mut random)));
        for length in lengths {
            let lines: Vec<Vec<u8>> = (0..length).map(|_| line(&mut random)).collect();
            let (request, reply) = (b"mn\r\n", b"MN\r\n");
            let got = ask(&mut text.0, &lines.concat(), request, reply);
            let expected = ask_in_parts(&mut text.1, &lines, request, reply);
            assert!(got == expected, "{length} lines, {mode:?}\n{}\n{}", shown(&got), shown(&expected));
            let packets: Vec<Vec<u8>> = (0..length).map(|_| quiet_packet(&mut random)).collect();
            let (request, reply) = mark();
            let got = without_cas(ask(&mut binary.0, &packets.concat(), &request, &reply));
            let expected = without_cas(ask_in_parts(&mut binary.1, &packets, &request, &reply));
            assert!(got == expected, "{length} packets, {mode:?}\n{}\n{}", shown(&got), shown(&expected));
        }
    }
}

/// Returns the number of open descriptors of a process.
fn descriptors(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).expect("it runs").count()
}

#[test]
fn clients_that_leave_amid_a_silent_pipeline_leave_no_descriptor() {
    const CLIENTS: u64 = 100;
    for (seed, mode) in (1..).zip(modes()) {
        let server = start(&mode);
        let mut random = Random(0xa076_1d64_78bd_642f_u64.wrapping_mul(seed) | 1);
        let mut stays = connect(&server);
        assert_eq!(ask(&mut stays, b"", b"mn\r\n", b"MN\r\n"), b"");
        let before = descriptors(server.id());
        for number in 0..CLIENTS {
            let mut pipeline: Vec<u8> = match number % 2 {
                0 => (0..length(&mut random)).flat_map(|_| line(&mut random)).collect(),
                _ => (0..length(&mut random)).flat_map(|_| quiet_packet(&mut random)).collect(),
            };
            pipeline.truncate(pipeline.len() - random.below(10) as usize);
            connect(&server).write_all(&pipeline).expect("it takes requests");
        }
        let begin = Instant::now();
        while descriptors(server.id()) != before {
            // Answers to the client that stays follow the answers to earlier clients.
            assert_eq!(ask(&mut stays, b"", b"mn\r\n", b"MN\r\n"), b"", "{mode:?}");
            let now = descriptors(server.id());
            assert!(begin.elapsed() < PATIENCE, "{now} descriptors, {before} before, {mode:?}");
        }
    }
}
