//! The `plimsoll` program: the command line with Plimsoll's own mechanisms.

use std::process::ExitCode;

use plimsoll_memory::LargePages;

#[global_allocator]
static ALLOCATOR: LargePages = LargePages;

fn main() -> ExitCode {
    plimsoll_cli::main_with(&plimsoll_scenario::Registry::new())
}
