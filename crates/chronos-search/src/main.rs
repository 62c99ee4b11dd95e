//! `chronos-search`: the index's command line.

use std::process::ExitCode;

use plimsoll_chronos::Runtime;
use plimsoll_chronos_search::program;

fn main() -> ExitCode {
    program::main(|| program::run(std::env::args_os(), Runtime::start))
}
