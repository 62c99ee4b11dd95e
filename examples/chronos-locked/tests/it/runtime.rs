//! The exchanges of the runtime's tests, with every lock in place of owner threads.
#![allow(clippy::unwrap_used, reason = "tests")]

#[allow(dead_code, reason = "the runtime's tests use all of it")]
#[path = "../../../../crates/chronos/tests/it/runtime/client.rs"]
mod client;
#[path = "../../../../crates/chronos/tests/it/runtime/exchanges.rs"]
mod exchanges;
#[allow(dead_code, reason = "the runtime's tests use all of it")]
#[path = "../../../../crates/chronos/tests/it/runtime/service.rs"]
mod service;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use client::all_modes;
use plimsoll_chronos::{Config, Now, RunningServer};
use plimsoll_chronos_locked::{Lock, Locked, SharedRead};
use service::{Log, Logs, Request};

impl SharedRead for Logs {
    type Reads = ();

    fn reads(&self, _log: &Log) {}

    fn read(&self, log: &Log, _reads: &(), request: &Request<'_>, _now: Now, reply: &mut Vec<u8>) -> bool {
        Logs::read(self, log, request, reply)
    }
}

fn under(lock: Lock) -> impl Fn(&Config) -> (RunningServer, Arc<AtomicU64>) {
    move |config| {
        let logs = Logs::default();
        let disorder = logs.disorder.clone();
        (Locked::start(logs, lock, config).unwrap(), disorder)
    }
}

#[test]
fn every_lock_answers_streams_alike() {
    Lock::ALL.into_iter().for_each(|(_, lock)| exchanges::table(all_modes(), under(lock)));
}

#[test]
fn every_lock_answers_datagrams_alike() {
    Lock::ALL.into_iter().for_each(|(_, lock)| exchanges::datagrams(all_modes(), under(lock)));
}

#[test]
fn long_silent_pipelines_end_in_an_answer() {
    Lock::ALL.into_iter().for_each(|(_, lock)| exchanges::silent_pipelines(all_modes(), under(lock)));
}

#[test]
fn clients_that_leave_amid_a_silent_pipeline_are_gone() {
    Lock::ALL.into_iter().for_each(|(_, lock)| exchanges::clients_that_leave(all_modes(), under(lock)));
}

#[test]
fn the_lock_is_taken_out_of_a_command_line() {
    let read = |words: &[&str]| Lock::from_arguments(words.iter().map(Into::into));
    for (name, expected) in Lock::ALL {
        let (lock, others) = read(&["program", "-t", "2", &format!("--lock={name}"), "-v"]).unwrap();
        assert_eq!((lock, &others[..]), (expected, &["program", "-t", "2", "-v"].map(Into::into)[..]));
    }
    for (words, expected) in [
        (&["program"][..], "--lock=KIND is required, where KIND is one of global, rwlock, partition"),
        (
            &["program", "--lock=all"],
            "invalid value \"all\" for --lock: expected one of global, rwlock, partition",
        ),
    ] {
        assert_eq!(read(words).unwrap_err().to_string(), expected);
    }
}
