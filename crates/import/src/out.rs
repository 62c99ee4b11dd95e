//! What was found, as a folder: a scenario, the lists or distributions that it names, and a page about the import.
//!
//! ```text
//! Found ──┬─ replay: every message ───────> request lists, flow lists ──┐
//!         └─ model: fits, and judges them ─> distributions, rates ──────┼──> scenario.toml, import.html
//! Network: a rack of the hosts found, or the user's own ────────────────┘
//! ```

mod fit;
mod folder;
mod model;
mod network;
mod page;
mod replay;

use std::fmt::Write as _;

use plimsoll_report::Findings;

use crate::capture::Compared;
use crate::found::{Found, Note, Remark};

pub use folder::write_folder;
pub use network::Network;

/// How traffic is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Form {
    /// Every message that was found, at its time.
    #[default]
    Replay,
    /// Distributions and arrival processes that are fitted to the messages.
    Model,
}

/// What an import writes, beside the traffic.
#[derive(Clone, Debug)]
pub struct Writing<'a> {
    /// The names of the user's files.
    pub sources: &'a str,
    /// How traffic is written.
    pub form: Form,
    /// The network of the scenario; its hosts are those that were found, by number.
    pub network: Network,
    /// What a run can be compared with, by class.
    pub compared: &'a [Compared],
    /// The command that makes the folder again.
    pub command: &'a str,
    /// The version of plimsoll.
    pub version: &'a str,
    /// The commit that plimsoll was built from, where known.
    pub commit: Option<&'a str>,
}

/// A text file of the folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedText {
    /// The name of the file.
    pub name: String,
    /// The content of the file.
    pub text: String,
}

/// The files of a folder, and what a terminal shows.
#[derive(Clone, Debug)]
pub struct Written {
    /// The files.
    pub files: Vec<NamedText>,
    /// The tables and sentences of the import.
    pub findings: Findings,
}

/// Traffic cannot be written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum WriteError {
    #[error("{hosts} host with traffic: a scenario needs two or more")]
    Hosts { hosts: usize },
    #[error("the network has {hosts} hosts, and {found} were found: name a larger one by --topology")]
    Network { hosts: usize, found: usize },
    #[error(
        "{class}: {parts} clients or receivers, each a workload of the model; allowed: at most {most}; \
         `--as replay` has no such limit"
    )]
    Workloads { class: String, parts: usize, most: usize },
}

/// A workload of the scenario: its name and the lines of its table, and the files that it names.
#[derive(Clone, Debug)]
struct WorkloadText {
    name: String,
    table: String,
    files: Vec<NamedText>,
}

/// The workloads of a scenario, with what has to be known about them.
#[derive(Clone, Debug, Default)]
struct Workloads {
    all: Vec<WorkloadText>,
    fits: Vec<fit::Fit>,
    notes: Vec<Note>,
    /// Whether the scenario ends with the time of the files rather than with the lists.
    has_duration: bool,
}

/// Makes the files of a folder.
///
/// # Errors
/// Fails where the network has too few hosts, or a model would have too many workloads.
pub fn files(found: &Found, writing: &Writing<'_>) -> Result<Written, WriteError> {
    let Writing { network, .. } = writing;
    if found.hosts.len() < 2 {
        return Err(WriteError::Hosts { hosts: found.hosts.len() });
    }
    if network.hosts.len() < found.hosts.len() {
        return Err(WriteError::Network { hosts: network.hosts.len(), found: found.hosts.len() });
    }
    let workloads = match writing.form {
        Form::Replay => replay::workloads(found, &network.hosts)?,
        Form::Model => model::workloads(found, &network.hosts)?,
    };
    let mut notes = found.notes.clone();
    notes.extend(network.notes.iter().chain(&workloads.notes).cloned());
    let scenario = scenario(found, writing, &workloads);
    let findings = page::findings(found, &workloads, &notes);
    let page = page::page(found, &workloads, &notes, &findings, writing, &scenario);
    let mut files: Vec<NamedText> = network.files.clone();
    files.extend(workloads.all.into_iter().flat_map(|workload| workload.files));
    files.push(NamedText { name: "scenario.toml".to_owned(), text: scenario });
    files.push(NamedText { name: "import.html".to_owned(), text: page });
    Ok(Written { files, findings })
}

/// Writes the scenario.
fn scenario(found: &Found, writing: &Writing<'_>, workloads: &Workloads) -> String {
    let title = toml::Value::String(format!("Imported from {}", writing.sources));
    let mut text = format!("version = 1\ntitle = {title}\n");
    if workloads.has_duration {
        let _ = write!(text, "\n[run]\nduration = \"{}\"\n", found.duration);
    }
    let _ = write!(text, "\n{}", writing.network.table);
    // The latency of a capture begins with the first byte of a request, not with the handshake before it.
    text.push_str("\n[transport]\nhandshake = false\n");
    if workloads.all.iter().any(|workload| workload.table.contains(OWN_CONNECTIONS)) {
        text.push_str(
            "\n# Each flow has a connection of its own.\n[transports.flows]\nconnections = \"per-message\"\n",
        );
    }
    for WorkloadText { name, table, .. } in &workloads.all {
        let _ = write!(text, "\n[workload.{name}]\n{table}");
    }
    text
}

/// The line of a workload each of whose messages has a connection.
const OWN_CONNECTIONS: &str = "transport = \"flows\"\n";

fn assumed(text: String) -> Note {
    Note { remark: Remark::Assumed, text }
}
