//! [`each_flow`]: the flows of a run without the run.
//!
//! Sources of flows act at times known before, whatever the network does. So they are driven here by their own times,
//! and number their connections as in a run: the hash of the connection then leads each flow over the same links.

use plimsoll_fabric::net::{HostId, Network, Packet};
use plimsoll_fabric::net::topology::Hashing;
use plimsoll_scenario::model::Model;
use plimsoll_sim::RunError;
use plimsoll_traffic::{Actions, Source, Traffic};
use plimsoll_units::{Streams, Time};

/// A flow of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flow {
    pub(crate) workload: u16,
    /// Its number within the workload.
    pub(crate) index: u64,
    pub(crate) source: HostId,
    pub(crate) destination: HostId,
    pub(crate) bytes: u64,
    pub(crate) start: Time,
    /// The number of its connection, by which switches choose among paths.
    connection: u32,
}

impl Flow {
    /// Returns its first packet, which takes the path of all.
    pub(crate) fn packet(&self, size: u16) -> Packet {
        Packet::new(self.source, self.destination, self.connection, size)
    }
}

/// Returns the network of the run, whose switches choose among paths as in the run.
pub(crate) fn network(model: &Model) -> Result<Network, RunError> {
    let spec = model.fabric_spec()?;
    let salt = Streams::new(model.run.seed).word("paths");
    Ok(spec.network.with_hashing(Hashing { salt, symmetric: spec.symmetric_paths }))
}

/// Calls `visit` for each flow of the run, in the order of their starts.
pub(crate) fn each_flow(model: &Model, mut visit: impl FnMut(&Flow)) -> Result<(), RunError> {
    let mut sources = Traffic::new(&model.traffic_spec(), &Streams::new(model.run.seed))?.sources;
    // No host is here, so that no source keeps a flow until it arrives.
    let here = vec![false; model.topology.host_count() as usize].into_boxed_slice();
    let mut actions = Actions { here: Some(here), ..Actions::default() };
    loop {
        let next = sources.iter().zip(0..).map(|(source, workload)| (source.next_due(), workload)).min();
        let Some((now, workload)) = next.filter(|(due, _)| *due < Time::MAX) else { return Ok(()) };
        sources[usize::from(workload)].on_due(now, &mut actions);
        for write in &actions.writes {
            let opened = actions.opened[(write.connection - actions.next_connection) as usize];
            visit(&Flow {
                workload,
                index: write.tag,
                source: opened.client,
                destination: opened.server,
                bytes: write.bytes,
                start: write.created,
                connection: write.connection,
            });
        }
        actions.next_connection += actions.opened.len() as u32;
        actions.opened.clear();
        actions.writes.clear();
    }
}

/// Returns the sources of a run, to ask what they are.
pub(crate) fn sources(model: &Model) -> Result<Vec<Box<dyn Source>>, RunError> {
    Ok(Traffic::new(&model.traffic_spec(), &Streams::new(model.run.seed))?.sources)
}
