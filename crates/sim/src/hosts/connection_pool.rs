//! [`ConnectionPool`]: which messages find a connection of their pair open and idle.
//!
//! ```text
//! a message begins ──> open(pair): an idle one? yes: no handshake    no: one more, with its handshake
//! a connection has done its work ──> close(pair): idle, and stays open
//! ```

use std::collections::BTreeMap;

use plimsoll_fabric::net::HostId;

/// The open connections of every pair of hosts.
#[derive(Debug)]
pub(super) struct ConnectionPool {
    /// The number of connections that a pair has before its first message.
    initial: u32,
    /// The connections of each client and server.
    pairs: BTreeMap<(HostId, HostId), Pair>,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    open: u32,
    busy: u32,
}

impl ConnectionPool {
    pub(super) fn new(initial: u32) -> ConnectionPool {
        ConnectionPool { initial, pairs: BTreeMap::new() }
    }

    /// `client` needs a connection to `server`. Returns whether one is open and idle, so that none must be opened.
    pub(super) fn open(&mut self, client: HostId, server: HostId) -> bool {
        let new = Pair { open: self.initial, busy: 0 };
        let pair = self.pairs.entry((client, server)).or_insert(new);
        let has_idle = pair.busy < pair.open;
        pair.busy += 1;
        pair.open = pair.open.max(pair.busy);
        has_idle
    }

    /// Returns a connection of the pair to the pool.
    pub(super) fn close(&mut self, client: HostId, server: HostId) {
        let pair = self.pairs.get_mut(&(client, server)).expect("it was opened");
        pair.busy -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_grows_to_the_most_that_were_busy_at_once() {
        let mut pool = ConnectionPool::new(1);
        let (a, b) = (HostId(0), HostId(1));
        assert!(pool.open(a, b));
        assert!(!pool.open(a, b));
        assert!(pool.open(b, a), "the other way is another pair");
        pool.close(a, b);
        pool.close(a, b);
        assert!(pool.open(a, b));
        assert!(pool.open(a, b));
        assert!(!pool.open(a, b));
    }
}
