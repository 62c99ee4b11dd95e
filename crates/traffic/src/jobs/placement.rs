//! [`Placement`]: which host carries out which rank.

use plimsoll_fabric::net::HostId;
use plimsoll_units::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::draw::uniform_choice;

/// The order in which ranks take the hosts that a job names. A list of hosts names them rank by rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// The order of the hosts.
    #[default]
    Packed,
    /// A random order, drawn once.
    Random,
    /// As NICs of servers on rails: of the hosts, the first share has the first NIC of every server, the next share the
    /// second, and so on. `scale_up.ranks` is the number of NICs of a server.
    Rail,
}

impl Placement {
    /// Returns the host of each rank. `hosts` are at least as many; `per_server` is the number of ranks of a server.
    pub(crate) fn place(
        self,
        hosts: &[HostId],
        ranks: u32,
        per_server: u32,
        streams: &Streams,
        name: &str,
    ) -> Vec<HostId> {
        let ranks = ranks as usize;
        match self {
            Placement::Packed => hosts[..ranks].to_vec(),
            Placement::Random => {
                let mut hosts = hosts.to_vec();
                let mut stream = streams.stream(&format!("workload/{name}/placement"));
                for last in (1..hosts.len()).rev() {
                    hosts.swap(last, uniform_choice(&mut stream, last as u64 + 1) as usize);
                }
                hosts.truncate(ranks);
                hosts
            }
            Placement::Rail => {
                let rails = per_server.max(1) as usize;
                let servers = hosts.len() / rails;
                (0..ranks).map(|rank| hosts[rank % rails * servers + rank / rails]).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_take_hosts_in_order_at_random_or_by_rails() {
        let hosts: Vec<HostId> = (10..18).map(HostId).collect();
        let place = |placement: Placement, seed: u64| -> Vec<u32> {
            let placed = placement.place(&hosts, 6, 4, &Streams::new(seed), "job");
            placed.iter().map(|host| host.0).collect()
        };
        assert_eq!(place(Placement::Packed, 1), [10, 11, 12, 13, 14, 15]);
        // Server 0 has the first host of each of four rails, server 1 the second.
        assert_eq!(place(Placement::Rail, 1), [10, 12, 14, 16, 11, 13]);
        let random = place(Placement::Random, 1);
        assert_eq!(random, place(Placement::Random, 1));
        assert!(random != place(Placement::Random, 2) && random != [10, 11, 12, 13, 14, 15]);
        let mut sorted = random;
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 6);
    }
}
