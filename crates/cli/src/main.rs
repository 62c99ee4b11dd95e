//! The `plimsoll` program: the command line with the mechanisms that Plimsoll brings along.

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll_cli::main_with(&plimsoll_scenario::Registry::new())
}
