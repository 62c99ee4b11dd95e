//! Implements `plimsoll completions`, which prints shell completions.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;
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
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "plimsoll", &mut text);
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}
