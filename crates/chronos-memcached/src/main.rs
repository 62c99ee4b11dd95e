//! `chronos-memcached`: memcached's flags, and the server behind them.

use std::process::ExitCode;

use plimsoll_chronos::Runtime;
use plimsoll_chronos_memcached::program;

fn main() -> ExitCode {
    program::main(|| program::run(std::env::args_os(), Runtime::start))
}
