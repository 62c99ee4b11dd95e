//! [`ConnectionPool`]: which messages find a connection of their pair open and idle.
//!
//! ```text
//! a message begins ──> open(pair): an idle one? yes: no handshake    no: one more, with its handshake
//! a connection has done its work ──> close(pair): idle, and stays open
//! ```

use std::collections::BTreeMap;

use plimsoll_fabric::net::HostId;
use plimsoll_mechanisms::tcp::Config;

/// The open connections of every pair of hosts.
#[derive(Debug)]
pub(crate) struct ConnectionPool {
    /// How many a pair has before its first message.
    initial: u32,
    /// By client and server.
    pairs: BTreeMap<(HostId, HostId), Pair>,
    /// The transport of a connection that is open already.
    established: Config,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    open: u32,
    busy: u32,
}

impl ConnectionPool {
    pub(crate) fn new(initial: u32, transport: &Config) -> ConnectionPool {
        let established = Config { handshake: false, ..transport.clone() };
        ConnectionPool { initial, pairs: BTreeMap::new(), established }
    }

    /// `client` needs a connection to `server`: the transport that an open one has, or none if a new one must be
    /// opened.
    pub(crate) fn open(&mut self, client: HostId, server: HostId) -> Option<&Config> {
        let new = Pair { open: self.initial, busy: 0 };
        let pair = self.pairs.entry((client, server)).or_insert(new);
        let has_idle = pair.busy < pair.open;
        pair.busy += 1;
        pair.open = pair.open.max(pair.busy);
        has_idle.then_some(&self.established)
    }

    /// A connection of the pair is idle again.
    pub(crate) fn close(&mut self, client: HostId, server: HostId) {
        let pair = self.pairs.get_mut(&(client, server)).expect("it was opened");
        pair.busy -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_mechanisms::tcp::TransportParams;

    #[test]
    fn a_pool_grows_to_the_most_that_were_busy_at_once() {
        let transport = TransportParams::default().resolve().expect("the defaults are valid");
        let mut pool = ConnectionPool::new(1, &transport);
        let (a, b) = (HostId(0), HostId(1));
        assert!(pool.open(a, b).is_some_and(|config| !config.handshake));
        assert!(pool.open(a, b).is_none());
        assert!(pool.open(b, a).is_some(), "the other way is another pair");
        pool.close(a, b);
        pool.close(a, b);
        assert!(pool.open(a, b).is_some());
        assert!(pool.open(a, b).is_some());
        assert!(pool.open(a, b).is_none());
    }
}
