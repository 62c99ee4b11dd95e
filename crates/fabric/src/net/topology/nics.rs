//! [`HostNics`]: which NICs each host has.
//!
//! ```text
//! host ──HostNics::nic──> NIC = port = address of packets ──HostNics::host_of──> host
//! ```
//!
//! Links, ports, paths and packets know NICs alone, so that a packet-hop costs the same with any number of them. The
//! transports choose the NICs of a connection when it is opened. Where every host has one NIC, it has the host's
//! number.

use std::sync::Arc;

use plimsoll_units::mix64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::net::HostId;

/// Which NICs, by their numbers in the network, each host has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum HostNics {
    /// Every host has one.
    #[default]
    One,
    /// Every host has `count` NICs, each at another switch: a switch has `each` hosts, and `count` switches in turn
    /// have the same hosts.
    Rails {
        /// The number of NICs of a host, at least 2.
        count: u32,
        /// The number of hosts of a switch.
        each: u32,
    },
    /// By host the number of its first NIC, and at the end the number of all NICs.
    Listed(Arc<[u32]>),
}

/// How the two NICs of a connection are chosen, where hosts have several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NicChoice {
    /// Both ends take their NIC of the same number, one number after the other for the connections of a run: the
    /// rails of a training network.
    #[default]
    Rail,
    /// Each end takes a NIC by a hash of the connection, as a bond of links does: dual homing.
    Hash,
}

impl HostNics {
    /// Returns the number of hosts that have `nics` NICs together.
    pub fn hosts(&self, nics: u32) -> u32 {
        match self {
            HostNics::One => nics,
            HostNics::Rails { count, .. } => nics / count,
            HostNics::Listed(firsts) => firsts.len() as u32 - 1,
        }
    }

    /// Returns the number of NICs of a host.
    pub fn count(&self, host: HostId) -> u32 {
        match self {
            HostNics::One => 1,
            HostNics::Rails { count, .. } => *count,
            HostNics::Listed(firsts) => firsts[host.0 as usize + 1] - firsts[host.0 as usize],
        }
    }

    /// Returns a NIC of a host by its number there, from zero on.
    pub fn nic(&self, host: HostId, number: u32) -> HostId {
        match self {
            HostNics::One => host,
            HostNics::Rails { count, each } => {
                HostId((host.0 / each * count + number) * each + host.0 % each)
            }
            HostNics::Listed(firsts) => HostId(firsts[host.0 as usize] + number),
        }
    }

    /// Returns the host of a NIC.
    #[inline]
    pub fn host_of(&self, nic: HostId) -> HostId {
        if *self == HostNics::One { nic } else { self.place_of(nic).0 }
    }

    /// Returns the host of a NIC, and its number there.
    pub fn place_of(&self, nic: HostId) -> (HostId, u32) {
        match self {
            HostNics::One => (nic, 0),
            HostNics::Rails { count, each } => {
                let switch = nic.0 / each;
                (HostId(switch / count * each + nic.0 % each), switch % count)
            }
            HostNics::Listed(firsts) => {
                let host = firsts.partition_point(|first| *first <= nic.0) - 1;
                (HostId(host as u32), nic.0 - firsts[host])
            }
        }
    }

    /// Returns the NICs of `ends` that flow number `flow` takes; `salt` changes the choice by hash.
    #[inline]
    pub fn of_flow(&self, choice: NicChoice, ends: [HostId; 2], flow: u32, salt: u64) -> [HostId; 2] {
        if *self == HostNics::One {
            return ends;
        }
        let counts = ends.map(|host| self.count(host));
        let numbers = match choice {
            NicChoice::Rail => [flow % counts[0].min(counts[1]); 2],
            NicChoice::Hash => {
                let hash = mix64(salt ^ u64::from(flow));
                [hash as u32 % counts[0], (hash >> 32) as u32 % counts[1]]
            }
        };
        [0, 1].map(|end| self.nic(ends[end], numbers[end]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nic_has_a_host_and_a_number_there() {
        let listed = HostNics::Listed([0, 2, 3, 6].into());
        for (nics, all) in [(HostNics::One, 12), (HostNics::Rails { count: 3, each: 2 }, 12), (listed, 6)] {
            let hosts = (0..nics.hosts(all)).map(HostId);
            let mut found: Vec<u32> = hosts
                .flat_map(|host| (0..nics.count(host)).map(move |number| (host, number)))
                .map(|(host, number)| {
                    let nic = nics.nic(host, number);
                    assert_eq!(nics.place_of(nic), (host, number), "{nics:?}");
                    assert_eq!(nics.host_of(nic), host, "{nics:?}");
                    nic.0
                })
                .collect();
            found.sort_unstable();
            assert_eq!(found, (0..all).collect::<Vec<_>>(), "{nics:?}");
        }
    }

    #[test]
    fn a_rail_is_the_same_at_both_ends_and_a_hash_need_not_be() {
        let nics = HostNics::Rails { count: 4, each: 2 };
        let numbers = |choice, flow| {
            nics.of_flow(choice, [HostId(0), HostId(3)], flow, 7).map(|nic| nics.place_of(nic).1)
        };
        assert_eq!([0, 1, 2, 3, 4].map(|flow| numbers(NicChoice::Rail, flow)[0]), [0, 1, 2, 3, 0]);
        assert!((0..40).all(|flow| numbers(NicChoice::Rail, flow)[0] == numbers(NicChoice::Rail, flow)[1]));
        let mut seen = [[0; 4]; 4];
        for flow in 0..16_000 {
            let [from, to] = numbers(NicChoice::Hash, flow);
            seen[from as usize][to as usize] += 1;
        }
        assert!(seen.iter().flatten().all(|count| (850..1_150).contains(count)), "{seen:?}");
    }
}
