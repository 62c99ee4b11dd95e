//! The options and the output that imports of a network's own data have in common.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::ValueEnum;
use plimsoll_experiment::question::quoted;
use plimsoll_import::Found;
use plimsoll_import::capture::Compared;
use plimsoll_import::out::{self, Network, Writing};
use plimsoll_process::note;

use crate::output::{self, Done};

/// Where an import is written, and how.
#[derive(clap::Args, Debug)]
pub struct Shared {
    /// Folder for the scenario, which is new or empty: it is written whole or not at all.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// How traffic is written. `replay` keeps every message; `model` fits distributions and arrival processes, and
    /// judges them.
    #[arg(long = "as", value_enum, value_name = "FORM", default_value_t)]
    pub form: Form,
    /// Keep the addresses of hosts, which are `h0` and so on otherwise.
    #[arg(long)]
    pub keep_names: bool,
}

/// How traffic is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Form {
    /// Lists of every message.
    #[default]
    Replay,
    /// Distributions and arrival processes.
    Model,
}

impl Shared {
    /// Writes the folder and prints what was found.
    ///
    /// # Errors
    /// Fails where the traffic does not fit into a scenario, or the folder cannot be written.
    pub fn write(&self, found: &Found, compared: &[Compared], sources: &str, command: &str) -> Done {
        let form = match self.form {
            Form::Replay => out::Form::Replay,
            Form::Model => out::Form::Model,
        };
        let written = out::files(
            found,
            &Writing {
                sources,
                form,
                network: Network::rack(found, self.keep_names),
                compared,
                command: &self.command(command),
                version: output::VERSION,
                commit: output::commit(),
            },
        )?;
        out::write_folder(&self.out, &written.files)
            .with_context(|| format!("cannot write {}", self.out.display()))?;
        output::print(&written.findings.to_terminal(&output::style()))?;
        let scenario = self.out.join("scenario.toml");
        note!("Page     {}", self.out.join("import.html").display());
        note!("Run it   plimsoll run {}", quoted(&scenario.to_string_lossy()));
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the command that makes the folder again, of which `begin` names the files.
    fn command(&self, begin: &str) -> String {
        let mut words = vec![begin.to_owned()];
        words.extend((self.form == Form::Model).then(|| "--as model".to_owned()));
        words.extend(self.keep_names.then(|| "--keep-names".to_owned()));
        words.push(format!("--out {}", quoted(&self.out.to_string_lossy())));
        words.join(" ")
    }
}
