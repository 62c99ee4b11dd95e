//! Exchanges between clients and a server of [`super::service::Logs`] that must pass whatever the server is made of.
//! `start` starts one, and returns it with its count of requests that ran out of order.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use plimsoll_chronos::{Config, Listen, RunningServer};

use super::client::{Client, any_port, ask};

/// The longest time that an exchange may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Lengths of pipelines, around the number of pieces that one send takes, and far above.
const LENGTHS: [u32; 7] = [1, 63, 64, 65, 200, 1000, 5000];
/// Requests and their replies.
const TABLE: &[(&str, &str)] = &[
    ("hello\n", "hello\n"),
    ("put 0 7 0\nput 1 7 0\nput 2 7 0\nput 3 7 0\n", "ok 0 0\nok 1 0\nok 2 0\nok 3 0\n"),
    ("put 0 7 1\nhello\nput 1 7 1\nnonsense\nput 0 7 2\n", "ok 0 1\nhello\nok 1 1\nwhat?\nok 0 2\n"),
    ("get 0\nget 1\nget 2\nget 31\n", "3\n2\n1\n0\n"),
    ("put 5 7 0\nsum\nput 5 7 1\nsum\nhello\n", "ok 5 0\n8\nok 5 1\n9\nhello\n"),
    ("echo 0 5\nabcdeecho 1 3\nxy\necho 1 0\nget 5\n", "abcdexy\n2\n"),
    ("skip 4\nabcdhello\n", "skipped\nhello\n"),
    ("put 0 7 9\n", "disorder 0 9 3\n"),
];

/// A function that starts a server.
pub trait Start: Fn(&Config) -> (RunningServer, Arc<AtomicU64>) {}

impl<F: Fn(&Config) -> (RunningServer, Arc<AtomicU64>)> Start for F {}

/// One table of requests and replies is answered alike in every mode, over TCP and UNIX sockets.
pub fn table(modes: Vec<Config>, start: impl Start) {
    for mut config in modes {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        config.listen = vec![Listen::Tcp(any_port()), Listen::Unix { path: path.clone(), mode: 0o600 }];
        for whole in [true, false] {
            let (server, _) = start(&config);
            if whole {
                let stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
                check(&mut Client::over(stream.try_clone().unwrap(), stream), whole);
            } else {
                check(&mut Client::connect(&server), whole);
            }
            server.stop().unwrap_or_else(|error| panic!("{config:?}: {error}"));
            assert!(!path.exists());
        }
    }
}

fn check<S: std::io::Read + std::io::Write>(client: &mut Client<S>, whole: bool) {
    for (request, reply) in TABLE {
        if whole {
            client.send(request);
        } else {
            // Byte by byte: a request may come in any pieces.
            request.chars().for_each(|char| client.send(&char.to_string()));
        }
        let answer = client.bytes(reply.len());
        assert_eq!(String::from_utf8_lossy(&answer), *reply, "to {request:?}");
    }
    client.send("quit\n");
    assert!(client.is_closed());
}

/// Datagrams are answered alike in every mode.
pub fn datagrams(modes: Vec<Config>, start: impl Start) {
    for config in modes {
        let config = Config { listen: vec![Listen::Udp(any_port())], ..config };
        let (server, disorder) = start(&config);
        // The kernel chooses a thread by the client's port: several clients reach them all.
        for number in 0..8_u8 {
            let socket = udp_client(&server);
            let puts = format!("put 0 {number} 0\nput 1 {number} 0\nsum\nhello\n");
            let sum = 2 * (number + 1);
            let expected = format!("ok 0 0\nok 1 0\n{sum}\nhello\n");
            assert_eq!(ask(&socket, number, puts.as_bytes(), 1), expected.as_bytes(), "{config:?}");
            let blobs = ask(&socket, number, b"blob 0 30000\nblob 1 30000\n", 60);
            assert!(blobs.len() == 60_000 && blobs.iter().all(|&byte| byte == b'b'));
            let big = [b"echo 1 60000\n".to_vec(), vec![b'e'; 60_000]].concat();
            assert_eq!(ask(&socket, number, &big, 60), big[13..]);
        }
        assert_eq!(disorder.load(std::sync::atomic::Ordering::Relaxed), 0);
        assert!(server.stats().total().datagrams >= 24);
        server.stop().unwrap();
    }
}

fn udp_address(server: &RunningServer) -> SocketAddr {
    let udp = |listen: &Listen| if let Listen::Udp(address) = listen { Some(*address) } else { None };
    server.bound().iter().find_map(udp).unwrap()
}

/// Returns a socket that is connected to the first UDP port of a server.
pub fn udp_client(server: &RunningServer) -> UdpSocket {
    let socket = UdpSocket::bind(any_port()).unwrap();
    socket.connect(udp_address(server)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket
}

/// Returns `length` requests, about one in fifty of which is answered, and the answers. `puts` counts the puts of each
/// partition.
fn pipeline(length: u32, random: &mut u64, puts: &mut [u64]) -> (String, Vec<String>) {
    let (mut requests, mut answers) = (String::new(), Vec::new());
    for _ in 0..length {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let partition = (*random >> 40) as usize % puts.len();
        match (*random >> 33) % 100 {
            0 => {
                requests += "hello\n";
                answers.push("hello".to_owned());
            }
            1 => {
                writeln!(requests, "get {partition}").unwrap();
                answers.push(puts[partition].to_string());
            }
            _ => {
                writeln!(requests, "note {partition}").unwrap();
                puts[partition] += 1;
            }
        }
    }
    requests += "hello\n";
    answers.push("hello".to_owned());
    (requests, answers)
}

/// Long pipelines with few answers end in an answer.
pub fn silent_pipelines(modes: Vec<Config>, start: impl Start) {
    for config in modes {
        let (server, _) = start(&config);
        let mut puts = vec![0; 8];
        let mut random = 7;
        let mut client = Client::connect(&server);
        client.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        for length in LENGTHS {
            let (requests, answers) = pipeline(length, &mut random, &mut puts);
            client.send(&requests);
            for answer in answers {
                assert_eq!(client.line(), answer, "{length} requests, {config:?}");
            }
        }
        server.stop().unwrap();
    }
}

/// Clients that leave in the middle of a silent pipeline are removed, with their descriptors.
pub fn clients_that_leave(modes: Vec<Config>, start: impl Start) {
    for config in modes {
        let (server, _) = start(&config);
        let mut random = 11;
        for number in 0..40 {
            let (requests, _) = pipeline(LENGTHS[number % LENGTHS.len()], &mut random, &mut [0; 8]);
            let mut client = Client::connect(&server);
            client.stream.write_all(&requests.as_bytes()[..requests.len() - number % 6]).unwrap();
        }
        let begin = Instant::now();
        while server.stats().total().connections > 0 || server.stats().total().connections_total < 40 {
            assert!(begin.elapsed() < PATIENCE, "{:?}, {config:?}", server.stats().total());
            std::thread::yield_now();
        }
        server.stop().unwrap();
    }
}
