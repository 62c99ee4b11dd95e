//! Implements `plimsoll man`, which writes manual pages.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;
use plimsoll_scenario::Registry;

use crate::Cli;
use crate::output::Done;

/// Write the manual pages, one a command, for `man plimsoll-run` and the others.
#[derive(clap::Args)]
pub struct Args {
    /// Folder to write them to, such as ~/.local/share/man/man1; created if missing.
    dir: PathBuf,
}

pub fn run(args: &Args, _: &Registry) -> Done {
    fs::create_dir_all(&args.dir)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &args.dir))
        .with_context(|| format!("cannot write manual pages to {}", args.dir.display()))?;
    Ok(ExitCode::SUCCESS)
}
