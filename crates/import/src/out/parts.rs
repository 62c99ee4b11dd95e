//! The parts of a folder that the forms of traffic have in common: files, workloads, and why they cannot be written.

use super::fit::ModelFit;
use crate::found::{Note, Remark};

/// A text file of the folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedText {
    /// The name of the file within the folder of the import.
    pub name: String,
    /// The content of the file.
    pub text: String,
}

/// The reasons why traffic cannot become a scenario.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum WriteError {
    #[error(
        "all traffic is of one instant: a model needs a rate; allowed: `--as replay`, or files of a longer time"
    )]
    Instant,
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
pub(super) struct WorkloadText {
    pub(super) name: String,
    pub(super) table: String,
    pub(super) files: Vec<NamedText>,
}

/// The workloads of a scenario, with notes about them.
#[derive(Clone, Debug, Default)]
pub(super) struct Workloads {
    pub(super) all: Vec<WorkloadText>,
    pub(super) fits: Vec<ModelFit>,
    pub(super) notes: Vec<Note>,
    /// Whether the scenario ends with the time of the files rather than with the lists.
    pub(super) has_duration: bool,
}

/// The line of a workload each of whose messages has a connection.
pub(super) const OWN_CONNECTIONS: &str = "transport = \"flows\"\n";

pub(super) fn assumed(text: String) -> Note {
    Note { remark: Remark::Assumed, text }
}
