//! Checks of `workload.*`: hosts that exist, traffic that ends, loads that fit.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_units::{Bytes, Rate, Span};

use super::{Checker, PACKET_MAX};
use crate::distribution::{Distribution, DistributionError, Quantity};
use crate::flow_list;
use crate::model::{
    AllToAll, FanOut, FlowList, Flows, HostName, Hosts, Incast, Model, Packets, Rpc, Topology, Transfer,
    Workload,
};
use crate::quantity::Load;

mod probe;
mod rounds;
mod service;

/// What all kinds have in common, gathered while one is checked.
#[derive(Default)]
struct Demand {
    /// It stops by itself: `count`, `size` or `rounds`.
    ends: bool,
    start: Span,
    /// Bits per second towards a host.
    towards: Option<(u32, f64)>,
}

impl Checker<'_> {
    pub(super) fn workloads(&mut self, model: &mut Model) {
        if model.workload.is_empty() {
            self.error(&["workload"], "nothing is sent", "at least one [workload.NAME]");
        }
        let limited = model.host.qjump().is_some();
        let Model { workload: workloads, topology, run, .. } = model;
        let mut towards: Vec<(u32, f64)> = Vec::new();
        for (name, workload) in workloads {
            self.name(name);
            let before = self.found.errors.len();
            let demand = self.workload(name, workload, topology);
            if self.found.errors.len() > before {
                continue;
            }
            if !demand.ends && run.duration.is_none() {
                let missing = match workload {
                    Workload::Flows(_) | Workload::Permutation(_) => "size",
                    Workload::Shuffle(_) => "waves",
                    Workload::Barrier(_) => "rounds",
                    _ => "count",
                };
                let message = format!("it never ends: neither `{missing}` nor `run.duration` is given");
                self.error(&["workload", name], message, format!("`run.duration`, or `{missing}` here"));
            }
            if let Some(duration) =
                run.duration.filter(|duration| demand.start >= *duration && !demand.start.is_zero())
            {
                let message = format!("it starts at {}, when the run of {duration} is over", demand.start);
                self.error(&["workload", name, "start"], message, "less than run.duration");
            }
            if let Some((host, bits)) = demand.towards {
                match towards.iter_mut().find(|(known, _)| *known == host) {
                    Some((_, total)) => *total += bits,
                    None => towards.push((host, bits)),
                }
            }
        }
        for (host, bits) in towards {
            let share = bits / topology.host_rate(host).as_bps() as f64;
            // A limiter at the hosts lets less than that into the network.
            if share > 1.0 && !limited {
                let message = format!("load {share:.3} of the link towards `{}`", topology.host_name(host));
                self.warn(&["workload"], message, "queues grow as long as the run lasts; lower the loads");
            }
        }
    }

    /// Names appear in objectives (`p99(small) < 1ms`) and in file names.
    fn name(&mut self, name: &str) {
        let good = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if !good {
            let report = crate::error::Report::at(
                self.sources,
                &self.tree.nearest_at(&["workload", name]).key,
                crate::node::dotted(&["workload", name]),
                format!("{name:?} is no name for a workload"),
            );
            self.found.errors.push(report.allowed("a letter, then letters, digits, _ and -"));
        }
    }

    fn workload(&mut self, name: &str, workload: &mut Workload, topology: &Topology) -> Demand {
        match workload {
            Workload::Flows(flows) => self.flows(name, flows, topology),
            Workload::Rpc(rpc) => self.rpc(name, rpc, topology),
            Workload::Transfer(transfer) => self.transfer(name, transfer, topology),
            Workload::FanOut(fan_out) => self.fan_out(name, fan_out, topology),
            Workload::AllToAll(all) => self.all_to_all(name, all, topology),
            Workload::Permutation(permutation) => {
                self.some_bytes(&["workload", name, "size"], permutation.size.unwrap_or(Bytes::new(1)));
                Demand { ends: permutation.size.is_some(), ..Demand::default() }
            }
            Workload::Incast(incast) => self.incast(name, incast, topology),
            Workload::FlowList(list) => self.flow_list(name, list, topology),
            Workload::Packets(packets) => self.packets(name, packets, topology),
            Workload::Ping(ping) => self.ping(name, ping, topology),
            Workload::ClosedLoop(closed) => self.closed_loop(name, closed, topology),
            Workload::Shuffle(shuffle) => self.shuffle(name, shuffle, topology),
            Workload::Barrier(barrier) => self.barrier(name, barrier, topology),
            Workload::Commit(commit) => self.commit(name, commit, topology),
            Workload::Pages(pages) => self.pages(name, pages, topology),
            Workload::Ptp(ptp) => self.ptp(name, ptp, topology),
        }
    }

    fn flows(&mut self, name: &str, flows: &Flows, topology: &Topology) -> Demand {
        let at = |key| ["workload", name, key];
        let to = self.host_named(&at("to"), &flows.to.0, topology);
        self.hosts(&at("from"), &flows.from, topology, to);
        self.some_bytes(&at("size"), flows.size.unwrap_or(Bytes::new(1)));
        Demand { ends: flows.size.is_some(), start: flows.start, towards: None }
    }

    fn rpc(&mut self, name: &str, rpc: &mut Rpc, topology: &Topology) -> Demand {
        let at = |key| ["workload", name, key];
        let client = self.host_named(&at("client"), &rpc.client.0, topology);
        let servers = self.hosts(&at("servers"), &rpc.servers, topology, client);
        self.some_bytes(&at("request"), rpc.request);
        self.distribution(&at("response"), &mut rpc.response);
        self.distribution(&at("service"), &mut rpc.service);
        self.deadline(&at("deadline"), rpc.deadline);
        let bits = self.load(&at("load"), rpc.load, client.map(|host| topology.host_rate(host)));
        if let (Some(response), Some(service)) = (mean(&rpc.response), mean(&rpc.service)) {
            let requests = bits / 8.0 / response;
            self.service(&at("service"), requests / servers.max(1) as f64, service);
        }
        let towards = client.map(|client| (client, bits));
        Demand { ends: rpc.count.is_some(), start: rpc.start, towards }
    }

    fn transfer(&mut self, name: &str, transfer: &mut Transfer, topology: &Topology) -> Demand {
        let at = |key| ["workload", name, key];
        let client = self.host_named(&at("client"), &transfer.client.0, topology);
        self.hosts(&at("servers"), &transfer.servers, topology, client);
        self.some_bytes(&at("request"), transfer.request);
        self.distribution(&at("size"), &mut transfer.size);
        let bits = self.load(&at("load"), transfer.load, client.map(|host| topology.host_rate(host)));
        let towards = client.map(|client| (client, bits));
        Demand { ends: transfer.count.is_some(), start: transfer.start, towards }
    }

    fn fan_out(&mut self, name: &str, fan_out: &mut FanOut, topology: &Topology) -> Demand {
        let at = |key| ["workload", name, key];
        let client = self.host_named(&at("client"), &fan_out.client.0, topology);
        let servers = self.hosts(&at("servers"), &fan_out.servers, topology, client);
        self.some_bytes(&at("request"), fan_out.request);
        self.distribution(&at("response"), &mut fan_out.response);
        self.distribution(&at("service"), &mut fan_out.service);
        self.deadline(&at("deadline"), fan_out.deadline);
        let queries = fan_out.queries_per_second;
        if !(queries > 0.0 && queries.is_finite()) {
            self.error(&at("queries_per_second"), format!("{queries} queries per second"), "more than 0");
            return Demand::default();
        }
        if let Some(service) = mean(&fan_out.service) {
            self.service(&at("service"), queries, service);
        }
        let bits = mean(&fan_out.response).map(|response| queries * servers as f64 * response * 8.0);
        Demand { ends: fan_out.count.is_some(), start: fan_out.start, towards: client.zip(bits) }
    }

    fn all_to_all(&mut self, name: &str, all: &mut AllToAll, topology: &Topology) -> Demand {
        let at = |key| ["workload", name, key];
        self.distribution(&at("size"), &mut all.size);
        let bits = self.load(&at("load"), all.load, Some(topology.host_rate(0)));
        self.oversubscription(&at("load"), bits, topology);
        Demand { ends: all.count.is_some(), start: all.start, towards: None }
    }

    fn incast(&mut self, name: &str, incast: &Incast, topology: &Topology) -> Demand {
        let at = |key| ["workload", name, key];
        let to = self.host_named(&at("to"), &incast.to.0, topology);
        self.hosts(&at("from"), &incast.from, topology, to);
        self.some_bytes(&at("size"), incast.size);
        if incast.rounds == 0 {
            self.error(&at("rounds"), "no round at all", "at least 1");
        }
        if incast.every.is_zero() && incast.rounds > 1 {
            self.error(&at("every"), "all rounds at once", "more than 0s");
        }
        Demand { ends: true, start: incast.start, towards: None }
    }

    fn flow_list(&mut self, name: &str, list: &mut FlowList, topology: &Topology) -> Demand {
        let text = self.files.read_flow_list(&list.path);
        if let Some(text) = self.readable(&["workload", name, "path"], &list.path, text) {
            match flow_list::parse(&list.path, &text, topology) {
                Ok(flows) => list.flows = Arc::new(flows),
                Err(mut reports) => self.found.errors.append(&mut reports),
            }
        }
        Demand { ends: true, ..Demand::default() }
    }

    fn packets(&mut self, name: &str, packets: &mut Packets, topology: &Topology) -> Demand {
        let at = |key| ["workload", name, key];
        let to = self.host_named(&at("to"), &packets.to.0, topology);
        let senders = self.hosts(&at("from"), &packets.from, topology, to);
        self.distribution(&at("size"), &mut packets.size);
        if let Distribution::Constant(size) = packets.size
            && size > PACKET_MAX
        {
            self.error(&at("size"), format!("a packet of {size}"), format!("at most {}B", PACKET_MAX.get()));
        }
        let share = self.bursts(name, packets);
        let bits = self.load(&at("load"), packets.load, Some(topology.host_rate(0)));
        let towards = to.map(|to| (to, bits * senders as f64 * share));
        Demand { ends: packets.count.is_some(), start: Span::ZERO, towards }
    }

    /// The share of the time in which packets are sent.
    fn bursts(&mut self, name: &str, packets: &Packets) -> f64 {
        match packets.burst {
            None if !packets.pause.is_zero() => {
                self.error(&["workload", name, "pause"], "a pause between no bursts", "only with `burst`");
                1.0
            }
            None => 1.0,
            Some(Span::ZERO) => {
                self.error(&["workload", name, "burst"], "a burst of no length", "more than 0s");
                1.0
            }
            Some(burst) => burst.as_secs_f64() / (burst + packets.pause).as_secs_f64(),
        }
    }

    /// How many hosts a selection has; none, unknown ones and the host at the other end are errors.
    fn hosts(&mut self, path: &[&str], hosts: &Hosts, topology: &Topology, other: Option<u32>) -> usize {
        self.host_names(path, hosts, topology);
        let Ok(found) = hosts.resolve(topology, other) else { return 0 };
        self.some_hosts(path, &found, topology, other.as_slice());
        found.len()
    }

    /// The hosts of a selection that takes each of them once; none, unknown ones, one twice and those at the
    /// other end are errors.
    fn members(&mut self, path: &[&str], hosts: &Hosts, topology: &Topology, others: &[u32]) -> Vec<u32> {
        self.host_names(path, hosts, topology);
        let Ok(found) = hosts.resolve_except(topology, others) else { return Vec::new() };
        self.some_hosts(path, &found, topology, others);
        let mut known = BTreeSet::new();
        if let Some(&host) = found.iter().find(|&&host| !known.insert(host)) {
            let message = format!("host `{}` is named twice", topology.host_name(host));
            self.error(path, message, "each host once");
        }
        found
    }

    fn host_names(&mut self, path: &[&str], hosts: &Hosts, topology: &Topology) {
        if let Hosts::List(names) = hosts {
            for (index, HostName(name)) in names.iter().enumerate() {
                let item = index.to_string();
                let path: Vec<&str> = path.iter().copied().chain([item.as_str()]).collect();
                self.host_named(&path, name, topology);
            }
        } else if let Hosts::Selector(text) = hosts
            && text != "all"
        {
            match text.split_once("..") {
                Some((first, last)) => {
                    self.host_named(path, first.trim(), topology);
                    self.host_named(path, last.trim(), topology);
                }
                None => {
                    self.host_named(path, text, topology);
                }
            }
        }
    }

    fn some_hosts(&mut self, path: &[&str], found: &[u32], topology: &Topology, others: &[u32]) {
        if found.is_empty() {
            self.error(path, "no host is left", "at least one host");
        }
        let known: BTreeSet<u32> = found.iter().copied().collect();
        if let Some(&other) = others.iter().find(|other| known.contains(other)) {
            let message = format!("host `{}` would talk to itself", topology.host_name(other));
            self.error(path, message, "hosts other than the one at the other end; \"others\" leaves it out");
        }
    }

    /// A number that is at least one.
    fn at_least_one(&mut self, path: &[&str], number: u64, message: &str) {
        if number == 0 {
            self.error(path, message, "at least 1");
        }
    }

    /// A message that has to fit into one packet, to which the transport's header is added.
    fn one_packet(&mut self, path: &[&str], size: Bytes) {
        self.some_bytes(path, size);
        let most = PACKET_MAX.get() - HEADER_MAX;
        if size.get() > most {
            self.error(path, format!("{size} in one packet"), format!("at most {most}B"));
        }
    }

    fn some_bytes(&mut self, path: &[&str], size: Bytes) {
        if size == Bytes::ZERO {
            self.error(path, "a message without bytes", "at least 1B");
        }
    }

    fn deadline(&mut self, path: &[&str], deadline: Option<Span>) {
        if deadline == Some(Span::ZERO) {
            self.error(path, "every response misses a deadline of 0s", "more than 0s");
        }
    }

    fn distribution<Q: Quantity>(&mut self, path: &[&str], distribution: &mut Distribution<Q>) {
        if let Distribution::Constant(value) = distribution
            && Q::NAME == "size"
            && value.to_f64() == 0.0
        {
            return self.error(path, "a message without bytes", "at least 1B");
        }
        match distribution.validate().and_then(|()| distribution.load(&|name| self.files.read(name))) {
            Ok(()) => {}
            Err(DistributionError::Parameter { key, value, allowed }) => {
                let path: Vec<&str> = path.iter().copied().chain([key]).collect();
                self.error(&path, format!("{value} does not fit"), allowed);
            }
            Err(DistributionError::Choice { message, allowed }) => self.error(path, message, allowed),
            Err(DistributionError::Cdf(error)) => {
                let path: Vec<&str> = path.iter().copied().chain(["cdf"]).collect();
                let mut report = self.report(&path, error.message).maybe_help(error.help);
                report.allowed = error.allowed;
                self.found.errors.push(report);
            }
        }
    }

    /// Bits per second; a load above 1 is allowed, and said. Without a link (an unknown host) there is
    /// nothing to judge.
    fn load(&mut self, path: &[&str], load: Load, link: Option<Rate>) -> f64 {
        let Some(link) = link else { return 0.0 };
        let bits = load.bits_per_second(link);
        if !(bits > 0.0 && bits.is_finite()) {
            self.error(path, format!("a load of {load}"), "a share more than 0, or a rate more than 0bps");
        } else if link > Rate::ZERO && load.share_of(link) > 1.0 {
            let message = format!("load {:.3} of a link of {link}", load.share_of(link));
            self.warn(path, message, "queues grow as long as the run lasts; lower the load");
        }
        bits
    }

    /// A server that cannot keep up.
    fn service(&mut self, path: &[&str], per_second: f64, service_ps: f64) {
        let busy = per_second * service_ps / 1e12;
        if busy >= 1.0 {
            let message = format!("each server is asked to work {busy:.3} of its time");
            self.warn(
                path,
                message,
                "its queue grows as long as the run lasts; lower the load or add servers",
            );
        }
    }

    /// All-to-all traffic meets the links between the tiers.
    fn oversubscription(&mut self, path: &[&str], bits: f64, topology: &Topology) {
        let hosts = f64::from(topology.host_count());
        // What so many hosts send to all others.
        let leaving = |inside: f64| bits * inside * (hosts - inside) / (hosts - 1.0);
        let cuts: Vec<(&str, f64)> = match topology {
            Topology::LeafSpine { leaves, spines, hosts_per_leaf, rate, fabric_rate, .. } if *leaves > 1 => {
                let fabric = fabric_rate.unwrap_or(*rate).as_bps() as f64 * f64::from(*spines);
                vec![("the links from a leaf to the spines", leaving(f64::from(*hosts_per_leaf)) / fabric)]
            }
            Topology::Clos { pods, edges, aggregations, cores, hosts_per_edge, rate, .. } => {
                let (rate, below) = (rate.as_bps() as f64, f64::from(*hosts_per_edge));
                let up = rate * f64::from(*aggregations);
                let edge = ("the links from an edge switch to its pod", leaving(below) / up);
                let pod = leaving(below * f64::from(*edges)) / (up * f64::from(*cores));
                let pod = (*pods > 1).then_some(("the links from a pod to the cores", pod));
                [edge].into_iter().chain(pod).collect()
            }
            Topology::Dumbbell { left, bottleneck_rate, .. } => {
                let share = leaving(f64::from(*left)) / bottleneck_rate.as_bps() as f64;
                vec![("the link between the switches", share)]
            }
            Topology::File { graph: Some(graph), .. } => {
                let shares = graph.switches_with_hosts().into_iter().map(|(below, up)| leaving(below) / up);
                vec![("the links from a switch with hosts to the others", shares.fold(0.0, f64::max))]
            }
            _ => return,
        };
        let Some((place, share)) = cuts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)) else { return };
        if share > 1.0 {
            let message = format!("load {share:.3} of {place} (oversubscription)");
            self.warn(path, message, "queues grow as long as the run lasts; lower the load");
        }
    }
}

/// The largest `transport.header`.
const HEADER_MAX: u64 = 500;

/// The mean of a distribution in its smallest unit, unless it is one that could not be read.
fn mean<Q: Quantity>(distribution: &Distribution<Q>) -> Option<f64> {
    match distribution {
        Distribution::Cdf { table: None, .. } => None,
        known => Some(known.sampler().mean()).filter(|mean| mean.is_finite()),
    }
}
