//! The commands of `chronos-load`. stdout is results; exit status 0, 1 where a run is not to be believed, 2 for errors.

pub mod compare;
pub mod openflow;
pub mod run;
pub mod saturate;
mod target;

use std::process::ExitCode;

use anyhow::Context;

/// Exit status of a run that is not to be believed.
pub const SUSPECT: u8 = 1;

/// What a command ends with.
pub type Done = anyhow::Result<ExitCode>;

/// Writes to stdout. A reader that has gone away (`| head`) is no error.
fn print(text: &str) -> anyhow::Result<()> {
    plimsoll_stdio::print(text).context("cannot write to stdout")
}

fn status(suspect: bool) -> ExitCode {
    if suspect { ExitCode::from(SUSPECT) } else { ExitCode::SUCCESS }
}
