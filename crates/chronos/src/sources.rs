//! [`SourceCounts`]: the number of connections of each source address, so that one host cannot take all that are
//! allowed.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};

use socket2::SockRef;

/// Counts of connections by source, over all threads.
#[derive(Debug, Default)]
pub(crate) struct SourceCounts(Mutex<BTreeMap<IpAddr, usize>>);

/// A connection that counts with its source until this is dropped.
pub(crate) struct SourceSeat {
    sources: Arc<SourceCounts>,
    source: IpAddr,
}

impl SourceCounts {
    /// Counts the connection of `socket` with its peer's address, if that has fewer than `max`. A peer without an
    /// address has disconnected already, and counts with the unspecified one.
    pub(crate) fn admit(self: &Arc<SourceCounts>, socket: impl AsFd, max: usize) -> Option<SourceSeat> {
        let peer = SockRef::from(&socket).peer_addr().ok().and_then(|peer| peer.as_socket());
        self.count(peer.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |peer| source(peer.ip())), max)
    }

    fn count(self: &Arc<SourceCounts>, source: IpAddr, max: usize) -> Option<SourceSeat> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(source).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(SourceSeat { sources: Arc::clone(self), source })
    }
}

impl Drop for SourceSeat {
    fn drop(&mut self) {
        let mut counts = self.sources.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.get_mut(&self.source).expect("its connection was counted");
        *count -= 1;
        if *count == 0 {
            counts.remove(&self.source);
        }
    }
}

/// Returns the address that a host counts with: of IPv6 the network, since a host may take any address of its 64 bits.
fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_as_many_connections_as_are_allowed() {
        let sources = Arc::new(SourceCounts::default());
        let seat = |address: &str| sources.count(source(address.parse().unwrap()), 2);
        let first = [seat("192.0.2.1"), seat("::ffff:192.0.2.1")];
        assert!(first.iter().all(Option::is_some) && seat("192.0.2.1").is_none());
        let other =
            [seat("192.0.2.2"), seat("2001:db8::1"), seat("2001:db8::ffff:2"), seat("2001:db8:0:1::1")];
        assert!(other.iter().all(Option::is_some) && seat("2001:db8::3").is_none());
        drop(first);
        assert!(seat("192.0.2.1").is_some());
        drop(other);
        assert!(sources.0.lock().unwrap().is_empty());
    }
}
