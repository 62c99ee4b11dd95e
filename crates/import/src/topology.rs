//! [`Topology`]: the network of an imported scenario, from a spec or from the export of another tool.
//!
//! ```text
//! rack:40,25G                          ─┐
//! leaf-spine:4x40x4,25G,100G            ├─> [topology]
//! fat-tree:8,10G                       ─┘
//! lldp:FOLDER  containerlab:FILE       ─┬─> Cables ──> Graph ──> network.toml
//! graphml:FILE netbox:FILE             ─┘    nodes,      hosts, switches, rates
//! ```

mod cables;
mod containerlab;
mod graph;
mod graphml;
mod lldp;
mod netbox;
mod place;
mod spec;
mod xml;

pub use graph::{Graph, GraphHost, GraphLink};
pub use place::{GRAPH_FILE, Placed};

use std::path::Path;

use plimsoll_files::Origin;

use crate::found::Note;
use crate::invalid::Invalid;
use spec::Spec;

/// A network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    /// The network's hosts, switches and links.
    pub shape: Shape,
    /// What the spec or the export does not say, and the values that were taken.
    pub notes: Vec<Note>,
}

/// The hosts, switches and links of a network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A network that is generated from numbers: the lines of `[topology]`, and the number of its hosts.
    #[allow(missing_docs, reason = "the sentence above has them")]
    Generated { table: String, hosts: u32 },
    /// A network whose links are listed.
    Listed(Graph),
}

impl Topology {
    /// Returns the network of a spec such as `leaf-spine:4x40x4,25G,100G` or `lldp:exports,25G,100G`.
    ///
    /// # Errors
    /// Returns an error that names the part of the spec, or the place in a file of the export.
    pub fn read(spec: &str) -> Result<Topology, Invalid> {
        let spec = Spec::parse(spec)?;
        let read = match spec.kind {
            "lldp" => lldp::read,
            "containerlab" => containerlab::read,
            "graphml" => graphml::read,
            "netbox" => netbox::read,
            _ => return spec.generated(),
        };
        let (graph, notes) = read(Path::new(spec.what))?.graph(&spec)?;
        Ok(Topology { shape: Shape::Listed(graph), notes })
    }
}

/// Reads the text of an export.
fn text_of(path: &Path) -> Result<String, Invalid> {
    const BYTES_MAX: u64 = 64 << 20;
    plimsoll_files::read_text(path, Origin::Argument, BYTES_MAX)
        .map_err(|error| Invalid::unreadable(path.display().to_string(), &error))
}
