//! [`NetworkFacts`]: what workloads need to know about the network before it is built.

use plimsoll_units::Rate;

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
    fn cuts(&self) -> Vec<Cut>;
}

/// The links through which a group of hosts reaches all others.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cut {
    /// What the links are, in words: `the links from a leaf to the spines`.
    pub links: &'static str,
    /// The number of hosts on one side.
    pub hosts: f64,
    /// The rate of the links together, in bits per second.
    pub bits_per_second: f64,
}
