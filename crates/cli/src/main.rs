//! The `plimsoll` program: the command line with Plimsoll's own mechanisms.

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll_cli::main_with(&plimsoll_scenario::Registry::new())
}
