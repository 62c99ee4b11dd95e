//! Chaos: topologies, mechanisms, workloads and fault schedules drawn at random, a case for each seed.
//!
//! Whatever is drawn: packets, bytes and times are conserved, the run ends, any number of threads gives the same
//! digest, and where flow control promises that nothing is lost, nothing is. A failure prints its seed, its scenario
//! and the command that repeats it.
//!
//! ```text
//! CHAOS_CASES=5000 CHAOS_FIRST=1000 cargo test -p plimsoll-sim --test it -- truth::chaos
//! ```
#![allow(clippy::print_stderr, reason = "a test; its runner shows it where it fails")]

pub(super) mod draw;

use std::collections::BTreeSet;

use plimsoll_results::Digest;
use plimsoll_results::outcome::Outcome;
use plimsoll_sim::RunError;

use crate::truth::lab::model;
use draw::Case;

/// The most events of a run: a hundred times the usual number.
const EVENTS_MAX: u64 = 100_000_000;

/// Seeds of later cases that once failed.
const FOUND: [u64; 1] = [3_677];

/// The output of a failing case.
struct Shown<'a>(u64, &'a str);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the scenario of seed {} ---\n{}\n--- repeat with ---", self.0, self.1.trim());
            eprintln!(
                "CHAOS_FIRST={} CHAOS_CASES=1 cargo test -p plimsoll-sim --test it -- truth::chaos",
                self.0
            );
        }
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn chaos() {
    let (first, cases) = (number("CHAOS_FIRST", 1), number("CHAOS_CASES", 250));
    let mut seen = Seen::default();
    let found = FOUND.into_iter().filter(|_| first == 1);
    for seed in (first..first + cases).chain(found) {
        let case = Case::draw(seed);
        let _shown = Shown(seed, &case.text);
        let threads = [1, 2, 3, 8][seed as usize % 4];
        let outcome = match outcome_on(&case, 1) {
            Ok(outcome) => outcome,
            Err(deadlock) => {
                seen.deadlocks += 1;
                assert_eq!(outcome_on(&case, threads).err(), Some(deadlock), "on {threads} threads, too");
                continue;
            }
        };
        check(&case, &outcome);
        let again = outcome_on(&case, threads).map(|again| (again.counters, Digest::of(&again)));
        let whole = plimsoll_sim::obstacle(&model(&case.text, None, None)).unwrap();
        seen.in_parts += u64::from(threads > 1 && whole.is_none());
        assert_eq!(again, Ok((outcome.counters, Digest::of(&outcome))), "on {threads} threads, too");
        seen.add(&case, &outcome);
    }
    if first == 1 && cases >= 250 {
        seen.assert_enough();
    }
}

/// Returns the outcome; the message of a deadlock, where switches of a network with circles have paused each other.
fn outcome_on(case: &Case, threads: usize) -> Result<Outcome, String> {
    let mut most = 0;
    let run = plimsoll_sim::run_in_parts(&model(&case.text, None, None), threads, &mut |progress| {
        most = progress.events;
        progress.events < EVENTS_MAX
    });
    match run {
        Ok(outcome) => Ok(outcome),
        Err(error @ RunError::Deadlock { .. }) if case.may_deadlock => Err(error.to_string()),
        Err(error) => panic!("{error}, after {most} events"),
    }
}

fn check(case: &Case, run: &Outcome) {
    let counters = run.counters;
    assert_eq!(counters.packets_sent, counters.packets_accounted_for(), "{counters:?}");
    if !case.links_die {
        assert_eq!((counters.link_drops, counters.no_route_drops), (0, 0), "all links are alive");
    }
    if case.lossless {
        assert_eq!(counters.packets_lost(), 0, "lossless means lossless: {counters:?}");
    }
    if case.ends_whole {
        assert_eq!(run.warnings, Vec::<String>::new(), "all comes to an end");
        let open = run.messages.iter().find(|message| message.completed.is_none());
        assert_eq!(open, None, "no message is left");
    }
    for (number, info) in run.workloads.iter().enumerate() {
        let messages = run.messages.iter().filter(|message| usize::from(message.workload) == number);
        let indices: BTreeSet<u64> = messages.clone().map(|message| message.index).collect();
        assert_eq!(indices.len(), messages.count(), "an index of {} is used twice", info.name);
    }
    for message in run.messages.iter().filter(|message| message.completed.is_some()) {
        assert_eq!(Some(message.split.total()), message.latency(), "{message:?}");
    }
    let sent: u64 = run.goodput.iter().map(|interval| interval.sent.get()).sum();
    let delivered: u64 = run.goodput.iter().map(|interval| interval.delivered.get()).sum();
    assert!(if case.ends_whole { delivered == sent } else { delivered <= sent }, "{delivered} of {sent}");
}

/// What all cases together have met, so that the test does not become one of nothing.
#[derive(Default, Debug)]
struct Seen {
    deadlocks: u64,
    in_parts: u64,
    drops: u64,
    marks: u64,
    link_drops: u64,
    no_route_drops: u64,
    lossless: u64,
    retransmissions: u64,
}

impl Seen {
    fn add(&mut self, case: &Case, run: &Outcome) {
        let counters = &run.counters;
        self.drops += u64::from(counters.nic_drops + counters.switch_drops > 0);
        self.marks += u64::from(counters.marks > 0);
        self.link_drops += u64::from(counters.link_drops > 0);
        self.no_route_drops += u64::from(counters.no_route_drops > 0);
        self.lossless += u64::from(case.lossless);
        self.retransmissions += u64::from(counters.retransmissions > 0);
    }

    fn assert_enough(&self) {
        let often =
            [self.in_parts, self.drops, self.marks, self.link_drops, self.lossless, self.retransmissions];
        assert!(often.iter().all(|cases| *cases >= 20) && self.no_route_drops >= 5, "{self:?}");
        assert!(self.deadlocks < 20, "{self:?}");
    }
}
