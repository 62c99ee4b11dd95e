//! [`each_flow`]: the flows of a run without the run.
//!
//! Sources of flows act at times known before, whatever the network does. So they are driven here by their own times,
//! and number their connections as in a run: the hash of the connection then leads each flow over the same links.

use plimsoll_fabric::net::topology::Hashing;
use plimsoll_fabric::net::{HostId, Network, Packet};
use plimsoll_scenario::model::Model;
use plimsoll_traffic::{Actions, Traffic};
use plimsoll_units::{Streams, Time};

use crate::RunError;

/// A flow of the run, as its source starts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flow {
    pub(super) workload: u16,
    /// Its number within the workload.
    pub(super) index: u64,
    pub(super) source: HostId,
    pub(super) destination: HostId,
    pub(super) bytes: u64,
    pub(super) start: Time,
    /// The number of its connection, by which switches choose among paths.
    connection: u32,
}

impl Flow {
    /// Returns its first packet, which takes the path of all.
    pub(super) fn packet(&self, size: u16) -> Packet {
        Packet::new(self.source, self.destination, self.connection, size)
    }
}

/// Returns the network of the run, whose switches choose among paths as in the run.
pub(super) fn network(model: &Model) -> Result<Network, RunError> {
    let spec = model.fabric_spec()?;
    let salt = Streams::new(model.run.seed).word("paths");
    Ok(spec.network.with_hashing(Hashing { salt, symmetric: spec.symmetric_paths }))
}

/// Calls `visit` for each flow of the run, in the order of their starts.
pub(super) fn each_flow(model: &Model, mut visit: impl FnMut(&Flow)) -> Result<(), RunError> {
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
