//! Long pipelines of requests that are not answered, in every mode.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use plimsoll_chronos::{Config, Poll};

use crate::runtime::client::{Client, all_modes, backends, config, start};

/// How long what has an end may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Around the number of pieces that one send takes, and far more.
const LENGTHS: [u32; 7] = [1, 63, 64, 65, 200, 1000, 5000];

/// Every access mode with two threads, and one thread and four whose partitions are their own.
fn modes() -> Vec<Config> {
    let mut modes = all_modes();
    for threads in [1, 4] {
        for poll in [Poll::Block, Poll::Spin] {
            modes.extend(backends().into_iter().map(|io| Config { poll, io, ..config(threads) }));
        }
    }
    modes
}

/// `length` requests, about one in fifty of which is answered, and the answers. The first of `puts` is what partition 0 has
/// been given.
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

#[test]
fn long_silent_pipelines_end_in_an_answer() {
    for config in modes() {
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

/// Clients that leave in the middle of a silent pipeline are gone, and so are their descriptors.
#[test]
fn clients_that_leave_amid_a_silent_pipeline_are_gone() {
    for config in modes() {
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
