//! [`Topology`]: a network as numbers or as a list of links, with the assumptions about it.

use super::graph::FoundGraph;
use crate::found::Note;

/// A network, generated or listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    /// The network's hosts, switches and links.
    pub shape: TopologyShape,
    /// Values that the spec or the export lacks, and the ones that were taken.
    pub notes: Vec<Note>,
}

/// The hosts, switches and links of a network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TopologyShape {
    /// A network that is generated from numbers: the lines of `[topology]`, and the number of its hosts.
    #[allow(missing_docs, reason = "the sentence above has them")]
    Generated { table: String, hosts: u32 },
    /// A network whose links are listed.
    Listed(FoundGraph),
}
