//! [`NetworkFacts`]: facts about the network that workloads need before it is built.

use plimsoll_fabric::net::topology::Topology;
use plimsoll_units::Rate;

pub use plimsoll_fabric::net::topology::{Inside, TopologyCut};

/// The hosts of a network, their links, and where links are shared.
pub trait NetworkFacts {
    /// Returns the number of hosts.
    fn host_count(&self) -> u32;
    /// Returns the number of the host of that name: `client` is the first.
    fn host(&self, name: &str) -> Option<u32>;
    /// Returns the name of a host.
    fn host_name(&self, host: u32) -> String;
    /// Returns the rate of a host's link.
    fn host_rate(&self, host: u32) -> Rate;
    /// Returns the cuts of the network that traffic between all hosts may overload.
    fn cuts(&self) -> Vec<TopologyCut>;
}

impl NetworkFacts for Topology {
    fn host_count(&self) -> u32 {
        self.host_count()
    }

    fn host(&self, name: &str) -> Option<u32> {
        self.host(name)
    }

    fn host_name(&self, host: u32) -> String {
        self.host_name(host)
    }

    fn host_rate(&self, host: u32) -> Rate {
        self.host_rate(host)
    }

    fn cuts(&self) -> Vec<TopologyCut> {
        self.params().cuts()
    }
}
