//! Multipath TCP (RFC 8684) of this kernel, in place of TCP.
//!
//! ```text
//! h0, one device: 10.0.0.1  10.16.0.1  10.32.0.1 ...  a subflow each ──> other hashes, other paths ──> h1: 10.0.0.2
//! ```
//!
//! Every emulated host has one link, so the subflows of a connection share its two ends. They differ in the way
//! between: where the network has several shortest paths, the hash of their addresses and ports gives each its path
//! (Raiciu et al., SIGCOMM 2011). Where there is only one, further subflows are refused.
//!
//! In a hybrid network the subflow between first addresses travels by the packet switch, and the other by circuits
//! (Kapoor's thesis, section 7.3.3). With the scheduler `active-path` one of them is active at a time:
//! [`ActiveSubflows`] makes the other a backup of the kernel's path manager (RFC 8684, section 3.3.8) when the schedule
//! of a week has circuits for the host and that of the week before had none, or the other way round.

use std::collections::{BTreeMap, BTreeSet};
use std::{fs, io};

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::{HostId, Network, Packet, PortId};
use plimsoll_mechanisms::mptcp::{Coupling, MptcpParams, SubflowPaths, SubflowScheduler};
use plimsoll_mechanisms::tcp::TransportParams;
use plimsoll_scenario::model::Model;
use socket2::{Domain, Protocol, Socket, Type};

use crate::edge::frame::{alias, ipv4};
use crate::net::namespaces::{IpBatch, Namespaces};
use crate::read_outs::control;

/// Subflows of a connection, as this kernel's path manager allows: `MPTCP_PM_ADDR_MAX` is 8.
pub const SUBFLOWS: std::ops::RangeInclusive<u8> = 1..=8;

/// Counters of the kernels of all hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MultipathCounts {
    /// Connections whose other end speaks MPTCP as well.
    pub connections: u64,
    /// Subflows that have joined them, beside the first of each.
    pub joined: u64,
    /// Number of times that a connection fell back to TCP.
    pub fallbacks: u64,
}

/// Counters of the kernel that count fallbacks of a connection (net/mptcp/mib.c); a counter that a kernel lacks is
/// zero.
const FALLBACKS: [&str; 10] = [
    "MPCapableFallbackACK",
    "MPCapableFallbackSYNACK",
    "MPCapableSYNTXDrop",
    "MPCapableSYNTXDisabled",
    "MPFallbackTokenInit",
    "MPCapableDataFallback",
    "MD5SigFallback",
    "DssFallback",
    "DSSCorruptionFallback",
    "SimultConnectFallback",
];

/// Returns whether sockets here can be of MPTCP.
pub(crate) fn is_here() -> bool {
    Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).is_ok()
}

/// Checks whether connections of `network`, which has circuits where it `is_hybrid`, can have `subflows` subflows.
///
/// # Errors
/// Says why not.
pub(crate) fn check(network: &Network, is_hybrid: bool, subflows: u8) -> Result<(), Unbuildable> {
    let refuse = |problem: String| Err(Unbuildable { key: "--mptcp".to_owned(), problem });
    if !SUBFLOWS.contains(&subflows) {
        let (least, most) = (SUBFLOWS.start(), SUBFLOWS.end());
        return refuse(format!("{subflows} subflows; a connection has {least} to {most}"));
    }
    if !is_here() {
        return refuse(
            "this kernel has no MPTCP (CONFIG_MPTCP); `plimsoll check` lists what it has".to_owned(),
        );
    }
    if is_hybrid {
        return match subflows {
            0..=2 => Ok(()),
            _ => refuse(format!(
                "{subflows} subflows; in a hybrid network a connection has one by the packet switch, and with \
                 `--mptcp 2` one by circuits"
            )),
        };
    }
    if subflows > 1 && !has_several_paths(network) {
        return refuse(format!(
            "{subflows} subflows would share every link: a host has one link, and between any two hosts of this \
             topology there is one path. Leaf-spines, fat-trees and Clos networks have several; `--mptcp 1` is MPTCP \
             with one subflow"
        ));
    }
    Ok(())
}

/// Checks that this kernel's MPTCP supports the table `mptcp` of the transport `params`, which is that of `section`.
///
/// # Errors
/// Says why not.
pub(crate) fn check_scenario(
    model: &Model,
    section: &str,
    params: &TransportParams,
) -> Result<(), Unbuildable> {
    let Some(MptcpParams { coupling, scheduler, paths, .. }) = &params.mptcp else {
        return Ok(());
    };
    let is_hybrid = control::control(model).is_some();
    let problem = match () {
        () if *coupling != Coupling::Uncoupled => "coupling: the kernel's subflows are `uncoupled`",
        () if *scheduler == SubflowScheduler::RoundRobin || keeps_one_active(params) && !is_hybrid => {
            "scheduler: the kernel has its own, `default`, and in a hybrid network also `active-path`"
        }
        () if (*paths == SubflowPaths::Classes) != is_hybrid || *paths == SubflowPaths::Distinct => {
            "paths: the kernel's subflows have `classes` in a hybrid network and `hash` in others"
        }
        () => return Ok(()),
    };
    Err(Unbuildable::new(format!("{section}.mptcp"), problem))
}

/// Returns whether one subflow of a connection is active at a time.
pub(crate) fn keeps_one_active(params: &TransportParams) -> bool {
    let mptcp = params.mptcp.as_ref();
    mptcp.is_some_and(|mptcp| mptcp.scheduler == SubflowScheduler::ActivePath)
}

/// The active subflows of all hosts' connections: by the packet switch at first, or by circuits. A host's connections
/// to all hosts have the same, for the path manager tells endpoints apart by their own address alone.
#[derive(Debug)]
pub(crate) struct ActiveSubflows(Vec<IpBatch>);

impl ActiveSubflows {
    /// Starts what changes the active subflows of `hosts` hosts.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn start(namespaces: &Namespaces, hosts: u32) -> io::Result<ActiveSubflows> {
        Ok(ActiveSubflows((0..hosts).map(|host| namespaces.ip_batch(host)).collect::<io::Result<_>>()?))
    }

    /// Has the connections of `host` send by circuits, or by the packet switch.
    pub(crate) fn set(&mut self, host: HostId, by_circuits: bool) {
        let (first, other) = (ipv4(host), alias(host, 1));
        let (active, backup) = if by_circuits { (other, first) } else { (first, other) };
        let batch =
            format!("mptcp endpoint change {active} nobackup\nmptcp endpoint change {backup} backup\n");
        // Where iproute2 has ended, `finish` returns its message.
        let _ = self.0[host.0 as usize].run(&batch);
    }

    /// Waits until all changes have been made.
    ///
    /// # Errors
    /// If one has failed.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.0.into_iter().try_for_each(IpBatch::finish)
    }
}

fn has_several_paths(network: &Network) -> bool {
    let hosts = || (0..network.hosts()).map(HostId);
    (0..network.switches()).any(|switch| hosts().any(|host| network.choices(switch, host).count > 1))
}

impl MultipathCounts {
    /// Returns the counters of the namespace that this thread is in.
    ///
    /// # Errors
    /// If the kernel does not report them.
    pub(crate) fn read() -> io::Result<MultipathCounts> {
        Ok(MultipathCounts::of(&fs::read_to_string("/proc/thread-self/net/netstat")?))
    }

    /// Parses the two lines of MPTCP in `/proc/net/netstat`.
    fn of(netstat: &str) -> MultipathCounts {
        let mut lines = netstat.lines().filter(|line| line.starts_with("MPTcpExt:"));
        let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
        let all = names.split_whitespace().zip(values.split_whitespace());
        let sum = |wanted: &[&str]| -> u64 {
            let wanted = all.clone().filter(|(name, _)| wanted.contains(name));
            wanted.filter_map(|(_, value)| value.parse::<u64>().ok()).sum()
        };
        MultipathCounts {
            connections: sum(&["MPCapableACKRX"]),
            joined: sum(&["MPJoinAckRx"]),
            fallbacks: sum(&FALLBACKS),
        }
    }
}

impl std::ops::AddAssign for MultipathCounts {
    fn add_assign(&mut self, other: MultipathCounts) {
        self.connections += other.connections;
        self.joined += other.joined;
        self.fallbacks += other.fallbacks;
    }
}

/// The flows between two hosts: from, to, and the hashes by which the fabric chooses their paths.
pub(crate) type FlowHashes = BTreeMap<(HostId, HostId), BTreeSet<u32>>;

/// Returns the remarks on it for a run's outcome, in which the connections of `whom` had up to `asked` subflows.
pub(crate) fn said(whom: &str, asked: u8, counts: MultipathCounts) -> Vec<String> {
    let subflows = if asked == 1 { "one subflow".to_owned() } else { format!("up to {asked} subflows") };
    let ran = format!("{whom} were MPTCP, with {subflows}, in place of TCP");
    let MultipathCounts { connections, joined, fallbacks } = counts;
    let fell_back = format!(
        "suspect: MPTCP fell back to TCP {fallbacks} times; {connections} connections had it at both ends"
    );
    let further = connections * u64::from(asked - 1);
    let fewer = format!(
        "of {further} further subflows that {connections} connections may have had, {joined} joined; a short \
         connection ends before they do"
    );
    let warnings = [(true, ran), (fallbacks > 0, fell_back), (joined < further, fewer)];
    warnings.into_iter().filter(|(is_said, _)| *is_said).map(|(_, text)| text).collect()
}

/// Returns the warnings of hosts whose flows' hashes all chose one path, where the network has several.
pub(crate) fn shared_paths(network: &Network, flows: &FlowHashes) -> Vec<String> {
    let mut warnings = Vec::new();
    for (&(from, to), flows) in flows.iter().filter(|(_, flows)| flows.len() > 1) {
        let path = |flow| network.path(&Packet::new(from, to, flow, 0)).collect::<Vec<PortId>>();
        let taken: BTreeSet<Vec<PortId>> = flows.iter().map(|&flow| path(flow)).collect();
        let paths = network.tiers_between(from, to).map(|(_, links)| links).max().unwrap_or(1);
        if taken.len() == 1 && paths > 1 {
            warnings.push(format!(
                "all {} flows from h{} to h{} took one path of several, which their hashes chose; the ports \
                 of another run may choose others",
                flows.len(),
                from.0,
                to.0
            ));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use plimsoll_scenario::Scenario;

    use super::*;
    use crate::edge::live::LiveFabric;

    #[test]
    fn counters_are_found_by_name() {
        let text = "TcpExt: A B\nTcpExt: 1 2\n\
                    MPTcpExt: MPCapableACKRX Other MPJoinAckRx DssFallback MPFallbackTokenInit\n\
                    MPTcpExt: 5 100 7 1 2\n";
        let counts = MultipathCounts { connections: 5, joined: 7, fallbacks: 3 };
        assert_eq!(MultipathCounts::of(text), counts);
        assert_eq!(MultipathCounts::of("TcpExt: A\nTcpExt: 1\n"), MultipathCounts::default());
        let warnings = said("connections", 4, counts);
        assert!(warnings[1].contains("suspect: MPTCP fell back to TCP 3 times"), "{warnings:?}");
        assert!(warnings[2].contains("of 15 further subflows that 5 connections"), "{warnings:?}");
        assert_eq!(said("connections", 2, MultipathCounts { fallbacks: 0, ..counts }).len(), 1);
        assert_eq!(said("connections", 1, MultipathCounts::default()).len(), 1);
    }

    #[test]
    fn flows_of_one_path_where_there_are_two_are_told() {
        let text = "version = 1\ntitle = 'paths'\n[topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = 2\n\
                    hosts_per_leaf = 2\nrate = '1Gbps'\ndelay = '1us'\n\
                    [workload.w]\nkind = 'flows'\nfrom = 'h1'\nto = 'h0'\nsize = '1KB'\n";
        let scenario = Scenario::parse("paths", text, Path::new(".")).unwrap();
        let network = LiveFabric::new(&scenario.points()[0].model).unwrap().network().clone();
        let (h0, h1, h2) = (HostId(0), HostId(1), HostId(2));
        let path = |flow| network.path(&Packet::new(h0, h2, flow, 0)).collect::<Vec<_>>();
        let same: BTreeSet<u32> = (0..100).filter(|&flow| path(flow) == path(0)).take(3).collect();
        let told = shared_paths(&network, &FlowHashes::from([((h0, h2), same.clone())]));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("all 3 flows from h0 to h2 took one path of several"), "{told:?}");
        // Several paths, one flow, and hosts with one path between them need no remark.
        let both = (0..100).collect();
        let fine = FlowHashes::from([((h0, h2), both), ((h2, h0), [7].into()), ((h0, h1), same)]);
        assert_eq!(shared_paths(&network, &fine), Vec::<String>::new());
    }
}
