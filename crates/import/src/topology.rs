//! [`Topology`]: the network of an imported scenario, from a spec or from the export of another tool.
//!
//! ```text
//! rack:40,25G                          ─┐
//! leaf-spine:4x40x4,25G,100G            ├─> [topology]
//! fat-tree:8,10G                       ─┘
//! lldp:FOLDER  containerlab:FILE       ─┬─> Cables ──> FoundGraph ──> network.toml
//! graphml:FILE netbox:FILE             ─┘    nodes,      hosts, switches, rates
//! ```

mod cables;
mod containerlab;
mod export;
mod graph;
mod graphml;
mod lldp;
mod netbox;
mod place;
mod shape;
mod spec;
mod xml;

pub use graph::{FoundGraph, FoundLink, GraphHost};
pub use place::{GRAPH_FILE, Placed};
pub use shape::{Topology, TopologyShape};

use std::path::Path;

use crate::invalid::Invalid;
use spec::Spec;

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
        Ok(Topology { shape: TopologyShape::Listed(graph), notes })
    }
}
