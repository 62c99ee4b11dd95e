//! [`ConnectionPool`]: which messages find a connection of their pair open and idle.
//!
//! ```text
//! a message begins ──> open(pair): an idle one? yes: no handshake    no: one more, with its handshake
//! a connection has done its work ──> close(pair): idle, and stays open
//! ```

use std::collections::BTreeMap;

use plimsoll_fabric::net::HostId;
use plimsoll_mechanisms::tcp::TransportParams;
use plimsoll_scenario::model::Model;

/// The open connections of every pair of hosts.
#[derive(Debug)]
pub(super) struct ConnectionPool {
    /// By workload: the pool that its connections come from, which is that of all workloads with an equal transport,
    /// and the number of connections that a pair has before its first message; 0 where there is no pool.
    of_workload: Vec<(u16, u32)>,
    /// The connections of each pool, client and server.
    pairs: BTreeMap<(u16, HostId, HostId), HostPair>,
}

#[derive(Clone, Copy, Debug)]
struct HostPair {
    open: u32,
    busy: u32,
}

impl ConnectionPool {
    /// Builds the pools of the workloads of `model`; `None` where no workload has one.
    pub(super) fn new(model: &Model) -> Option<Box<ConnectionPool>> {
        let transports: Vec<_> = model.workload.keys().map(|name| model.transport_of(name)).collect();
        let pool = |own: &&TransportParams| {
            let first = transports.iter().position(|other| other == own).unwrap_or_default();
            (first as u16, own.pool)
        };
        let of_workload: Vec<(u16, u32)> = transports.iter().map(pool).collect();
        let has_some = of_workload.iter().any(|(_, initial)| *initial > 0);
        has_some.then(|| Box::new(ConnectionPool { of_workload, pairs: BTreeMap::new() }))
    }

    /// A workload needs a connection of `client` to `server`. Returns whether one is open and idle, so that none must
    /// be opened.
    pub(super) fn open(&mut self, workload: u16, client: HostId, server: HostId) -> bool {
        let (pool, initial) = self.of_workload[usize::from(workload)];
        if initial == 0 {
            return false;
        }
        let new = HostPair { open: initial, busy: 0 };
        let pair = self.pairs.entry((pool, client, server)).or_insert(new);
        let has_idle = pair.busy < pair.open;
        pair.busy += 1;
        pair.open = pair.open.max(pair.busy);
        has_idle
    }

    /// Returns a connection of the pair to its pool.
    pub(super) fn close(&mut self, workload: u16, client: HostId, server: HostId) {
        let (pool, _) = self.of_workload[usize::from(workload)];
        if let Some(pair) = self.pairs.get_mut(&(pool, client, server)) {
            pair.busy -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_grows_to_the_most_that_were_busy_at_once() {
        let mut pool = ConnectionPool { of_workload: vec![(0, 1), (1, 1), (2, 0)], pairs: BTreeMap::new() };
        let (a, b) = (HostId(0), HostId(1));
        assert!(pool.open(0, a, b));
        assert!(!pool.open(0, a, b));
        assert!(pool.open(0, b, a), "the other way is another pair");
        assert!(pool.open(1, a, b), "another transport has another pool");
        assert!(!pool.open(2, a, b), "a transport without a pool opens anew");
        pool.close(0, a, b);
        pool.close(0, a, b);
        pool.close(2, a, b);
        assert!(pool.open(0, a, b));
        assert!(pool.open(0, a, b));
        assert!(!pool.open(0, a, b));
    }
}
