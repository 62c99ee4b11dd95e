//! `chronos-search-locked --lock=KIND ...`: chronos-search under a lock, with the same flags.

use std::process::ExitCode;

use anyhow::ensure;
use plimsoll_chronos_locked::{Lock, Locked};
use plimsoll_chronos_search::program;

fn main() -> ExitCode {
    program::main(|| {
        let (lock, arguments) = Lock::from_arguments(std::env::args_os())?;
        ensure!(
            arguments.iter().all(|argument| argument != "--snapshots"),
            "--snapshots and --lock are two baselines: choose one"
        );
        program::run(arguments, |service, config| Locked::start(service, lock, config))
    })
}
