//! `chronos-memcached-locked --lock=KIND ...`: chronos-memcached under a lock, with the same flags.

use std::process::ExitCode;

use plimsoll_chronos_locked::{Lock, Locked};
use plimsoll_chronos_memcached::program;

fn main() -> ExitCode {
    program::main(|| {
        let (lock, arguments) = Lock::from_arguments(std::env::args_os())?;
        program::run(arguments, |service, config| Locked::start(service, lock, config))
    })
}
