//! Checks, at the end of every run, that no link has carried more than it can.
//!
//! ```text
//! observed links   bytes on the wire <= rate x time, and one packet that was sent as the time began
//! hosts            payload to and from it <= the rates of its links, both ways, x the run
//! ```
//!
//! An error in a port, in a pacer or in the counting of messages would make a network look faster than its links.

use std::collections::BTreeMap;

use plimsoll_fabric::LinkReading;
use plimsoll_fabric::net::{Network, Node};
use plimsoll_results::outcome::ConnectionRecord;
use plimsoll_units::{Rate, Span, Time};

/// The largest packet that the wire can have, in bytes.
const PACKET_BYTES: u128 = 65_535;

/// Checks the links of `readings` and the hosts of `connections` in a run that has ended at `end`. No fault gave a link
/// more than `fastest_fault`.
///
/// # Panics
/// Panics where more has arrived than links can carry.
pub(crate) fn check(
    network: &Network,
    fastest_fault: Rate,
    connections: &[ConnectionRecord],
    readings: &[LinkReading],
    end: Time,
) {
    for (number, link) in readings.iter().enumerate() {
        let (rate, observed) = (link.rate.max(fastest_fault), link.observed);
        let (bytes, most) = (link.carried.bytes, carried(rate, observed) + PACKET_BYTES);
        assert!(u128::from(bytes) <= most, "link {number} carried {bytes} B in {observed} at {rate}");
    }
    let mut delivered: BTreeMap<u32, u64> = BTreeMap::new();
    for connection in connections.iter().filter(|connection| connection.client != connection.server) {
        for host in [connection.client, connection.server] {
            *delivered.entry(host).or_default() += connection.delivered;
        }
    }
    let mut rates: BTreeMap<u32, u64> = BTreeMap::new();
    for link in network.links() {
        let hosts = [link.from, link.to].into_iter().filter_map(|node| match node {
            Node::Host(nic) => Some(network.nics().host_of(nic).0),
            Node::Switch(_) => None,
        });
        hosts.for_each(|host| *rates.entry(host).or_default() += link.rate.max(fastest_fault).as_bps());
    }
    for (host, bytes) in delivered {
        let rate = Rate::from_bps(rates.get(&host).copied().unwrap_or(0));
        let most = carried(rate, end.saturating_since(Time::ZERO));
        assert!(u128::from(bytes) <= most, "host {host} has sent and received {bytes} B by {end} at {rate}");
    }
}

/// Returns the bytes that a link of `rate` carries in `time`.
fn carried(rate: Rate, time: Span) -> u128 {
    const PS_PER_S: u128 = 1_000_000_000_000;
    u128::from(rate.as_bps()) * u128::from(time.as_ps()) / PS_PER_S / 8
}

#[cfg(test)]
mod tests {
    use plimsoll_fabric::net::topology::{Rack, Topology};
    use plimsoll_fabric::observed::{LinkTraffic, PauseTotals};

    use super::*;

    fn rack() -> Network {
        let rack = Rack { hosts: 2, rate: Rate::from_gbps(10), delay: Span::from_us(1) };
        Topology::Rack(rack).network().expect("a rack of two hosts")
    }

    /// A link of 10 Gb/s that has carried `bytes` in 100 us: 125,000 B fit, and a packet.
    fn link(bytes: u64) -> LinkReading {
        LinkReading {
            rate: Rate::from_gbps(10),
            observed: Span::from_us(100),
            carried: LinkTraffic { packets: 1, bytes, drops: 0 },
            pauses: PauseTotals::default(),
            blocked: Span::ZERO,
        }
    }

    /// A connection of the two hosts that has delivered `delivered` bytes, both ways.
    fn connection(delivered: u64) -> ConnectionRecord {
        ConnectionRecord { client: 0, server: 1, delivered, ..ConnectionRecord::default() }
    }

    const END: Time = Time::from_ps(100_000_000);

    #[test]
    fn full_links_pass() {
        check(&rack(), Rate::ZERO, &[connection(250_000)], &[link(125_000 + 65_535)], END);
    }

    #[test]
    #[should_panic(expected = "link 0 carried 190536 B in 100us at 10Gbps")]
    fn a_link_that_carries_a_byte_more_stops_the_run() {
        check(&rack(), Rate::ZERO, &[], &[link(125_000 + 65_536)], END);
    }

    #[test]
    #[should_panic(expected = "host 0 has sent and received 250001 B")]
    fn hosts_that_receive_more_than_their_links_carry_stop_the_run() {
        check(&rack(), Rate::ZERO, &[connection(250_001)], &[], END);
    }

    #[test]
    fn a_fault_may_give_a_link_more_than_its_own_rate() {
        check(&rack(), Rate::from_gbps(20), &[connection(500_000)], &[link(250_000 + 65_535)], END);
    }
}
