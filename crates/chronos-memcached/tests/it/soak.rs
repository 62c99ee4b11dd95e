//! The server for a while under every kind of client: three protocols over TCP, UDP and UNIX sockets, one thread and
//! two, epoll and io_uring; memory too small for the stored items; clients that reset, half-close, read late or send
//! nonsense. No answer may be wrong, memory must stay under its limit and stop growing, and descriptors must be freed.
//!
//! Twenty seconds, or `PLIMSOLL_SOAK_SECONDS`; all servers at once, at a pace that leaves processors to others. A
//! failure names its seed, and `PLIMSOLL_SOAK_SEED` draws the same commands again (the order in which the servers'
//! threads run still differs).
#![allow(clippy::print_stdout, reason = "a test; its runner shows it where it fails")]

mod book;
mod client;
mod datagrams;
mod protocol;
mod trouble;
mod values;
mod watch;

use crate::common::random;

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::server::Server;
use book::{Book, Counts};
use client::{Client, Place};
use datagrams::Datagrams;
use protocol::Protocol;
use random::Random;
use trouble::Trouble;

const SECONDS: u64 = 20;
/// Time between the starts of two rounds.
const ROUND: Duration = Duration::from_millis(100);
/// Rounds at least, on a machine that has too much to do.
const ROUNDS_MIN: u64 = 60;
/// Time between two looks at the memory, in rounds.
const LOOK_ROUNDS: u64 = 5;
/// `-m`, less than the clients' keys would take.
const MEMORY_MIB: u64 = 16;
/// Resident memory that a server may have beside its memory at the start and `-m`: 4 MiB of free buffers a thread, the
/// index, buffers of some 50 connections (a slow reader's has a megabyte and a reply, a half request nearly as much),
/// and the memory that the allocator keeps between large items.
const ALLOWANCE_KIB: u64 = 32 << 10;
/// Large buffers are mapped and go back when they are freed. By default glibc keeps them in its heaps once it has seen
/// some, up to 63 MB after half an hour: this test watches the memory that the server keeps.
/// docs/internals/memcached.md, "Soak".
const C_LIBRARY: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=131072");
/// The most by which the last third may exceed the second: pages that were never touched before, and large items, each
/// with an allocation of its own, that happen to exist.
const GROWTH_KIB: u64 = 4 << 10;

/// A server, and the ways to reach it.
#[derive(Clone, Copy, Debug)]
struct Case {
    transport: &'static str,
    threads: &'static str,
    io: &'static str,
}

/// The result of a client's work.
struct Outcome {
    counts: Counts,
    evictions: u64,
    rounds: u64,
    /// Resident memory in KiB: at the start, in the second and the last third (medians), and at most.
    resident: [u64; 4],
    descriptors: usize,
}

/// In the first seconds memory still grows towards the sizes that buffers, threads and partitions keep: 6 MiB between
/// two thirds of twenty seconds were seen. The highest resident memory is checked in any run.
const LONG_ENOUGH_TO_SETTLE: Duration = Duration::from_secs(120);

fn variable(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text}: a whole number is allowed")),
        Err(_) => default,
    }
}

#[test]
fn nothing_goes_wrong_for_a_while() {
    let seconds = variable("PLIMSOLL_SOAK_SECONDS", SECONDS);
    let seed = variable("PLIMSOLL_SOAK_SEED", 1);
    println!("PLIMSOLL_SOAK_SECONDS={seconds} PLIMSOLL_SOAK_SEED={seed}");
    let mut cases = Vec::new();
    for io in ["epoll", "uring"] {
        if let Err(errors) = Server::try_start(&["-o", &format!("chronos_io={io}")], &[]) {
            assert_eq!(io, "uring", "{errors}");
            plimsoll_testing::skipped!("chronos_io=uring: {errors}");
            continue;
        }
        for threads in ["1", "2"] {
            cases.extend(["TCP and UDP", "UNIX"].map(|transport| Case { transport, threads, io }));
        }
    }
    let soaks: Vec<_> = (0..)
        .zip(&cases)
        .map(|(number, &case)| {
            let random = Random(seed.wrapping_add(number << 32) | 1);
            let name = format!("{}, {} threads, {}, seed {seed}", case.transport, case.threads, case.io);
            let run = move || soak(case, Duration::from_secs(seconds), random);
            (name.clone(), std::thread::Builder::new().name(name).spawn(run).expect("a thread"))
        })
        .collect();
    let outcomes: Vec<_> = soaks.into_iter().map(|(name, soak)| (name, soak.join())).collect();
    for (name, outcome) in outcomes {
        let outcome = outcome.unwrap_or_else(|_| panic!("{name}: see above"));
        let Outcome { counts, evictions, rounds, resident, descriptors } = outcome;
        println!("{name}: {rounds} rounds, {counts:?}, {evictions} evictions, {descriptors} descriptors");
        println!("  resident KiB at the start, second third, last third, at most: {resident:?}");
    }
}

fn soak(case: Case, duration: Duration, mut random: Random) -> Outcome {
    let io = format!("chronos_io={}", case.io);
    let memory = MEMORY_MIB.to_string();
    // Few partitions and classes, so that each has pages for all: with many, so little memory holds hardly anything.
    let options = ["-t", case.threads, "-m", &memory, "-f", "1.25", "-o", &io, "-o", "chronos_partitions=4"];
    let (mut server, place) = match case.transport {
        "UNIX" => {
            let (server, path) = Server::start_unix_with(&options, &[C_LIBRARY]);
            (server, Place::Unix(path))
        }
        _ => {
            let (name, value) = C_LIBRARY;
            let server = Server::start(&options, &[(name, Path::new(value))]);
            let place = Place::Tcp(server.tcp);
            (server, place)
        }
    };
    let process = server.id();
    let (descriptors, at_start) = (watch::descriptors(process), watch::resident(process));
    let (counts, rounds, samples) = load(&server, &place, duration, &mut random).unwrap_or_else(|wrong| {
        panic!("{case:?}: {wrong}; the server said: {}", server.errors());
    });
    let settled = watch::settled_descriptors(process, descriptors);
    assert_eq!(settled, descriptors, "{case:?}: descriptors are left open");
    let evictions = watch::stat(&place, "evictions");
    let third = samples.len() / 3;
    let (second, last) = (watch::median(&samples[third..2 * third]), watch::median(&samples[2 * third..]));
    let most = *samples.iter().max().expect("samples");
    let resident = [at_start, second, last, most];
    let limit = at_start + (MEMORY_MIB << 10) + ALLOWANCE_KIB;
    assert!(most <= limit, "{case:?}: {most} KiB are resident, {limit} are allowed: {samples:?}");
    if duration >= LONG_ENOUGH_TO_SETTLE {
        assert!(last <= second + GROWTH_KIB, "{case:?}: memory grows: {samples:?}");
    }
    assert!(
        evictions > 0 && counts.hits > counts.operations / 10,
        "{case:?}: {evictions} evictions, {counts:?}"
    );
    assert_eq!(watch::stat(&place, "curr_connections"), 1, "{case:?}");
    assert!(server.stop().success(), "{case:?}: {}", server.errors());
    Outcome { counts, evictions, rounds, resident, descriptors }
}

/// Runs rounds until `duration` is over; returns the outcome, their number, and samples of the memory.
fn load(
    server: &Server,
    place: &Place,
    duration: Duration,
    random: &mut Random,
) -> Result<(Counts, u64, Vec<u64>), String> {
    let mut book = Book::new();
    let mut clients: Vec<Client> = (0..6)
        .zip([Protocol::Text, Protocol::Meta, Protocol::Binary].into_iter().cycle())
        .map(|(number, protocol)| Client::new(place, protocol, number, &mut book))
        .collect();
    let mut datagrams = (server.udp != 0).then(|| Datagrams::new(server.udp, &mut book));
    let mut trouble = Trouble::new(place, &mut book);
    for client in &mut clients {
        client.fill(&mut book)?;
    }
    book.end_round();
    let (begin, mut rounds, mut samples) = (Instant::now(), 0, Vec::new());
    while begin.elapsed() < duration || rounds < ROUNDS_MIN {
        let round = Instant::now();
        clients.iter_mut().for_each(|client| client.start(&mut book, random));
        trouble.round(&mut book, random)?;
        if let Some(datagrams) = &mut datagrams {
            datagrams.round(&mut book, random)?;
        }
        for client in &mut clients {
            client.check(&mut book)?;
        }
        book.end_round();
        if rounds % LOOK_ROUNDS == 0 {
            samples.push(watch::resident(server.id()));
        }
        rounds += 1;
        // The pace, not a wait for something to happen.
        std::thread::sleep(ROUND.saturating_sub(round.elapsed()));
    }
    Ok((book.counts, rounds, samples))
}
