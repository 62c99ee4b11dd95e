//! Implements `plimsoll completions`, which prints shell completions.

use std::process::ExitCode;

use clap::CommandFactory;
use plimsoll_command_line::{Shell, completions};
use plimsoll_scenario::Registry;

use crate::Cli;
use crate::output::{self, Done};

/// Print the completions of a shell for this command.
#[derive(clap::Args)]
pub struct Args {
    /// Shell that will use the completions.
    shell: Shell,
}

pub fn run(args: &Args, _: &Registry) -> Done {
    output::print(&completions(args.shell, &mut Cli::command()))?;
    Ok(ExitCode::SUCCESS)
}
