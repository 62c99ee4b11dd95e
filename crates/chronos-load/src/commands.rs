//! The commands of `chronos-load`. Results go to stdout; the exit status is 0, or 1 for a suspect run, or 2 for an
//! error.

pub mod agent;
pub mod compare;
pub mod line;
pub mod openflow;
pub mod run;
pub mod saturate;
mod target;

use std::process::ExitCode;

use anyhow::Context;

/// The exit status of a suspect run.
pub const SUSPECT: u8 = 1;

/// The result of a command.
pub type CommandResult = anyhow::Result<ExitCode>;

/// Writes to stdout. A closed pipe (`| head`) is not an error.
fn print(text: &str) -> anyhow::Result<()> {
    plimsoll_process::print(text).context("cannot write to stdout")
}

fn status(suspect: bool) -> ExitCode {
    if suspect { ExitCode::from(SUSPECT) } else { ExitCode::SUCCESS }
}
