//! The options and the output that imports of a network's own data have in common.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::ValueEnum;
use plimsoll_experiment::question::quoted;
use plimsoll_import::ImportFound;
use plimsoll_import::capture::ComparedClass;
use plimsoll_import::out::{self, ImportWriting, ImportedNetwork, NamedText};
use plimsoll_import::topology::{GRAPH_FILE, Placed, Topology};
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
    pub form: FormOption,
    /// Network of the scenario; by default a rack of the hosts found.
    ///
    /// A size with the rates of links, and their delay: `rack:40,25G`, `leaf-spine:4x40x4,25G,100G,500ns` (leaves x
    /// hosts of a leaf x spines), `fat-tree:8,10G`. Or an export with the rates of hosts and uplinks, in which hosts
    /// are matched by name or address: `lldp:FOLDER,25G,100G` (a file of `lldpctl -f json` for each system),
    /// `containerlab:topology-data.json,25G`, `graphml:FILE`, `netbox:cables.csv,25G,100G`; `hosts=PATTERN` names the
    /// hosts of an export that does not.
    #[arg(long, value_name = "SPEC")]
    pub topology: Option<String>,
    /// Keep the addresses of hosts, which are `h0` and so on otherwise.
    #[arg(long)]
    pub keep_names: bool,
}

/// The form in which a scenario has the traffic: every message, or distributions of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum FormOption {
    /// Lists of every message.
    #[default]
    Replay,
    /// Distributions and arrival processes.
    Model,
}

impl Shared {
    /// Writes the folder and prints the findings.
    ///
    /// # Errors
    /// Fails where the traffic does not fit into a scenario, or the folder cannot be written.
    pub fn write(
        &self,
        found: ImportFound,
        compared: &[ComparedClass],
        sources: &str,
        command: &str,
    ) -> Done {
        let (found, network) = self.network(found)?;
        let form = match self.form {
            FormOption::Replay => out::TrafficForm::Replay,
            FormOption::Model => out::TrafficForm::Model,
        };
        let written = out::files(
            &found,
            &ImportWriting {
                sources,
                form,
                network,
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

    /// Returns the network, and the traffic found on its hosts.
    fn network(&self, found: ImportFound) -> anyhow::Result<(ImportFound, ImportedNetwork)> {
        let Some(spec) = &self.topology else {
            let network = ImportedNetwork::rack(&found, self.keep_names);
            return Ok((found, network));
        };
        let (found, Placed { table, graph, hosts, notes }) =
            Topology::read(spec)?.place(found, self.keep_names)?;
        let files = graph.map(|text| NamedText { name: GRAPH_FILE.to_owned(), text });
        Ok((found, ImportedNetwork { table, files: files.into_iter().collect(), hosts, notes }))
    }

    /// Returns the command that makes the folder again, of which `begin` names the files.
    fn command(&self, begin: &str) -> String {
        let mut words = vec![begin.to_owned()];
        words.extend((self.form == FormOption::Model).then(|| "--as model".to_owned()));
        words.extend(self.topology.as_ref().map(|spec| format!("--topology {}", quoted(spec))));
        words.extend(self.keep_names.then(|| "--keep-names".to_owned()));
        words.push(format!("--out {}", quoted(&self.out.to_string_lossy())));
        words.join(" ")
    }
}

/// Returns the names of files without their folders, for the title of a scenario.
pub fn file_names(paths: &[PathBuf]) -> String {
    let name = |path: &PathBuf| {
        path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    };
    paths.iter().map(name).collect::<Vec<_>>().join(", ")
}
