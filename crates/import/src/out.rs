//! The findings as a folder: a scenario, the lists or distributions that it names, and a page about the import.
//!
//! ```text
//! ImportFound ──┬─ replay: every message ───────> request lists, flow lists ──┐
//!               └─ model: fits, and judges them ─> distributions, rates ──────┼──> scenario.toml, import.html
//! ImportedNetwork: a rack of the hosts found, or the user's own ──────────────┘
//! ```

mod fit;
mod folder;
mod gravity;
mod model;
mod network;
mod page;
mod parts;
mod replay;
mod writing;

use std::fmt::Write as _;

use plimsoll_report::Findings;

use crate::found::ImportFound;
use parts::{OWN_CONNECTIONS, WorkloadText, Workloads};

pub use folder::write_folder;
pub use network::ImportedNetwork;
pub use parts::{NamedText, WriteError};
pub use writing::{ImportWriting, TrafficForm};

/// The files of a folder, and the text for a terminal.
#[derive(Clone, Debug)]
pub struct WrittenImport {
    /// The files of the folder.
    pub files: Vec<NamedText>,
    /// The tables and sentences of the import.
    pub findings: Findings,
}

/// Makes the files of a folder.
///
/// # Errors
/// Fails where the network has too few hosts, or a model would have too many workloads.
pub fn files(found: &ImportFound, writing: &ImportWriting<'_>) -> Result<WrittenImport, WriteError> {
    let ImportWriting { network, .. } = writing;
    if found.hosts.len() < 2 {
        return Err(WriteError::Hosts { hosts: found.hosts.len() });
    }
    if network.hosts.len() < found.hosts.len() {
        return Err(WriteError::Network { hosts: network.hosts.len(), found: found.hosts.len() });
    }
    if writing.form == TrafficForm::Model && found.duration.is_zero() {
        return Err(WriteError::Instant);
    }
    let workloads = match writing.form {
        TrafficForm::Replay => replay::workloads(found, &network.hosts)?,
        TrafficForm::Model => model::workloads(found, &network.hosts)?,
    };
    let mut notes = found.notes.clone();
    notes.extend(network.notes.iter().chain(&workloads.notes).cloned().chain(network::overload(found)));
    let scenario = scenario(found, writing, &workloads);
    let findings = page::findings(found, &workloads, &notes);
    let page = page::page(found, &workloads, &notes, &findings, writing, &scenario);
    let mut files: Vec<NamedText> = network.files.clone();
    files.extend(workloads.all.into_iter().flat_map(|workload| workload.files));
    files.push(NamedText { name: "scenario.toml".to_owned(), text: scenario });
    files.push(NamedText { name: "import.html".to_owned(), text: page });
    Ok(WrittenImport { files, findings })
}

/// Returns the text of the scenario.
fn scenario(found: &ImportFound, writing: &ImportWriting<'_>, workloads: &Workloads) -> String {
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
