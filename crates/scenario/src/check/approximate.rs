//! What an approximate run leaves out: links must depend on each other by nothing but their packets.

use plimsoll_fabric::net::Network;
use plimsoll_fabric::net::topology::HostNics;
use plimsoll_mechanisms::Active;
use plimsoll_mechanisms::tcp::{Connections, Kind};
use plimsoll_mechanisms::transports::Carrier;
use plimsoll_traffic::record::Supply;
use plimsoll_traffic::{SourceReach, Traffic};
use plimsoll_units::{Rate, Streams};

use super::{Checker, LINKS_LEAST, MESSAGES_LEAST};
use crate::model::{Completion, Model};

/// Mechanisms that act at one port on the packets that wait there, and on nothing else.
const AT_ONE_PORT: &[&str] = &["ecn", "red", "phantom_queue", "classes"];

/// The controllers that were compared with whole runs.
const COMPARED: &[Kind] = &[Kind::Tcp, Kind::Cubic, Kind::Dctcp, Kind::Swift];

/// How much faster than a NIC each link between switches is at least, so that no flow fills one by itself.
const FASTER_INSIDE: u64 = 4;

impl Checker<'_> {
    /// Reports everything by which links depend on more than their packets, where the run is approximate.
    pub(super) fn approximate(&mut self, model: &Model) {
        let Some(size) = model.run.approximate() else { return };
        for (key, value, least) in
            [("links", size.links, LINKS_LEAST), ("messages", size.messages, MESSAGES_LEAST)]
        {
            if value < least {
                let path = ["run", "approximate", key];
                self.error(&path, format!("{value} are too few for a tail"), format!("{least} or more"));
            }
        }
        for workload in model.workload.keys() {
            self.approximate_transport(model, workload);
        }
        self.approximate_paths(model);
        self.approximate_hosts(model);
        self.approximate_ports(model);
        // Sources and links are made of a model without errors only.
        if self.found.errors.is_empty() {
            self.approximate_sources(model);
            self.approximate_links(model);
        }
    }

    fn leaves_out(&mut self, path: &[&str], reason: &str) {
        let report = self.report(path, format!("an approximate run leaves it out, since {reason}"));
        let help = "run the whole network: without `--approximate`, or with `run.approximate = \"off\"`";
        self.found.errors.push(report.help(help));
    }

    /// Reports the keys of a workload's transport by which messages depend on more than one link at a time.
    fn approximate_transport(&mut self, model: &Model, workload: &str) {
        let (params, section) = (model.transport_of(workload), model.transport_section(workload));
        let (kind, outside) = model.controller_of(workload);
        let table: Vec<&str> = section.split('.').collect();
        let key = |key| [table.as_slice(), &[key]].concat();
        let carrier = model.transport_config(workload).map(|config| config.carrier());
        if carrier.is_ok_and(Carrier::grants) {
            let reason = "credit of a receiver, and trimmed headers, depend on the whole path";
            self.leaves_out(&key("kind"), reason);
        } else if outside.is_some() || !COMPARED.contains(&kind) {
            let reason = "it was not compared with whole runs: `tcp`, `cubic`, `dctcp` and `swift` were";
            self.leaves_out(&key("kind"), reason);
        }
        if params.connections != Connections::PerMessage {
            let reason = "messages of two hosts wait for each other: set `per-message`";
            self.leaves_out(&key("connections"), reason);
        }
        if params.pool > 0 {
            self.leaves_out(&key("pool"), "a handshake depends on what is under way");
        }
        if params.mptcp.is_some() {
            self.leaves_out(&key("mptcp"), "subflows take several paths");
        }
    }

    fn approximate_paths(&mut self, model: &Model) {
        if model.topology.nics() != HostNics::One {
            self.leaves_out(&["topology"], "a host has several NICs");
        }
        let several = "packets of a flow do not take one path";
        for active in model.paths.mechanisms().active() {
            self.leaves_out(&["paths", active.table.key], several);
        }
        if model.outside.selector.is_some() {
            self.leaves_out(&["paths", "selector"], several);
        }
        if model.circuits.is_some() {
            self.leaves_out(&["circuits"], "circuits are scheduled for the whole network");
        }
        if model.has_scheduled_faults() {
            self.leaves_out(&["fault"], "paths change during the run");
        }
    }

    fn approximate_hosts(&mut self, model: &Model) {
        if !model.program.is_empty() {
            self.leaves_out(&["program"], "it is not simulated");
        }
        if model.host.loss > 0.0 {
            self.leaves_out(&["host", "loss"], "each link would lose the packets again");
        }
        for active in model.host.mechanisms().active() {
            let reason = "it acts on all packets of a host, and a link has a part of them";
            self.leaves_out(&["host", active.table.key], reason);
        }
        if model.observe.completion == Completion::Acknowledged {
            let reason = "acknowledgements wait at links that are not simulated";
            self.leaves_out(&["observe", "completion"], reason);
        }
    }

    fn approximate_ports(&mut self, model: &Model) {
        let tiers = model.topology.tiers().iter().map(|tier| (*tier, model.port.of_tier(tier)));
        for (name, port) in tiers.chain([("host", &model.port.host)]) {
            let beyond = |active: &Active| !AT_ONE_PORT.contains(&active.table.key);
            for active in port.mechanisms().active().into_iter().filter(beyond) {
                let reason = match active.table.key {
                    "pfc" | "lossless" => "pauses of one link hold the packets of others",
                    "trim" => "what is trimmed at one link is sent again over all",
                    "int" => "a sender needs the telemetry of its whole path",
                    "shared_buffer" => "ports share their memory",
                    _ => "it was not compared with whole runs",
                };
                let path = self.path_of(name, active.table.key);
                self.leaves_out(&path.each_ref().map(String::as_str), reason);
            }
        }
    }

    /// Reports workloads whose messages do not all start at times known before.
    fn approximate_sources(&mut self, model: &Model) {
        let Ok(traffic) = Traffic::new(&model.traffic_spec(), &Streams::new(model.run.seed)) else { return };
        for (source, (name, workload)) in traffic.sources.iter().zip(&model.workload) {
            let path = ["workload", name, "kind"];
            if workload.params().supply() == Supply::Endless {
                self.leaves_out(&path, "its flows have no end");
            } else if source.reach() != SourceReach::Receiver {
                self.leaves_out(&path, "what it sends depends on what has arrived (a closed loop)");
            }
        }
    }

    /// Reports links between switches that one flow can fill. Flows that meet at such a link are slowed there and do
    /// not fill the others of their paths, of which a link by itself knows nothing: with links as fast as NICs the 90th
    /// percentile was found up to twice too high.
    fn approximate_links(&mut self, model: &Model) {
        let Some((nic, inner)) = model.topology.network().ok().as_ref().and_then(slowest_inner) else {
            return;
        };
        if inner.as_bps() < nic.as_bps() * FASTER_INSIDE {
            let reason = format!(
                "one flow can fill a link between switches, which has {inner} and needs {FASTER_INSIDE} times a \
                 NIC's {nic}"
            );
            self.leaves_out(&["topology"], &reason);
        }
    }
}

/// Returns the rates of the fastest NIC and of the slowest link between switches.
fn slowest_inner(network: &Network) -> Option<(Rate, Rate)> {
    let (nics, inner) = network.links().split_at(2 * network.hosts() as usize);
    let fastest = nics.iter().map(|link| link.rate).max()?;
    Some((fastest, inner.iter().map(|link| link.rate).min()?))
}
