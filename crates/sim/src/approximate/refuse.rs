//! [`check`]: what an approximate run refuses, each with its place in the scenario and the reason.

use plimsoll_fabric::net::Network;
use plimsoll_fabric::net::topology::HostNics;
use plimsoll_mechanisms::Active;
use plimsoll_mechanisms::tcp::{Connections, Kind};
use plimsoll_mechanisms::transports::Carrier;
use plimsoll_scenario::model::{Completion, Model};
use plimsoll_traffic::record::Supply;
use plimsoll_traffic::{SourceReach, Traffic};
use plimsoll_units::Streams;

use crate::RunError;

/// Mechanisms that act at one port on the packets that wait there, and on nothing else.
const AT_ONE_PORT: &[&str] = &["ecn", "red", "phantom_queue", "classes"];

/// The controllers that were compared with whole runs.
const COMPARED: &[Kind] = &[Kind::Tcp, Kind::Cubic, Kind::Dctcp, Kind::Swift];

/// Checks that links of the run can be simulated one by one.
pub(super) fn check(model: &Model) -> Result<(), RunError> {
    match reason(model) {
        Some((key, reason)) => Err(refused(key, reason)),
        None => sources_are_open(model),
    }
}

fn refused(key: String, reason: &str) -> RunError {
    RunError::Build {
        key,
        problem: format!("an approximate run leaves it out, since {reason}; run the whole network"),
    }
}

/// Returns the first key that links share more by than their packets.
fn reason(model: &Model) -> Option<(String, &'static str)> {
    if let Some(refused) = model.workload.keys().find_map(|name| of_transport(model, name)) {
        return Some(refused);
    }
    if model.topology.nics() != HostNics::One {
        return Some(("topology".to_owned(), "a host has several NICs"));
    }
    if let Some(active) = model.paths.mechanisms().active().first() {
        return Some((active.table.path(), "packets of a flow do not take one path"));
    }
    if model.outside.selector.is_some() {
        return Some(("paths.selector".to_owned(), "packets of a flow do not take one path"));
    }
    if !model.program.is_empty() {
        return Some(("program".to_owned(), "it is not simulated"));
    }
    if model.circuits.is_some() {
        return Some(("circuits".to_owned(), "circuits are scheduled for the whole network"));
    }
    if model.has_scheduled_faults() {
        return Some(("fault".to_owned(), "paths change during the run"));
    }
    if model.host.loss > 0.0 {
        return Some(("host.loss".to_owned(), "each link would lose the packets again"));
    }
    if let Some(active) = model.host.mechanisms().active().first() {
        return Some((
            active.table.path(),
            "it acts on all packets of a host, and a link has a part of them",
        ));
    }
    let tiers = model.topology.tiers().iter().map(|tier| model.port.of_tier(tier));
    let ports = tiers.chain([&model.port.host]);
    let beyond = |active: &Active| !AT_ONE_PORT.contains(&active.table.key);
    if let Some(active) = ports.flat_map(|port| port.mechanisms().active()).find(beyond) {
        let reason = match active.table.key {
            "pfc" | "lossless" => "pauses of one link hold the packets of others",
            "trim" => "what is trimmed at one link is sent again over all",
            "int" => "a sender needs the telemetry of its whole path",
            "shared_buffer" => "ports share their memory",
            _ => "it was not compared with whole runs",
        };
        return Some((active.table.path(), reason));
    }
    if model.observe.completion == Completion::Acknowledged {
        let reason = "acknowledgements wait at links that are not simulated";
        return Some(("observe.completion".to_owned(), reason));
    }
    None
}

/// Returns the key of a workload's transport by which messages depend on more than one link at a time.
fn of_transport(model: &Model, workload: &str) -> Option<(String, &'static str)> {
    let (params, section) = (model.transport_of(workload), model.transport_section(workload));
    let (kind, outside) = model.controller_of(workload);
    let key = |key: &str| format!("{section}.{key}");
    let carrier = model.transport_config(workload).map(|config| config.carrier());
    if carrier.is_ok_and(Carrier::grants) {
        return Some((key("kind"), "credit of a receiver, and trimmed headers, depend on the whole path"));
    }
    if outside.is_some() || !COMPARED.contains(&kind) {
        return Some((
            key("kind"),
            "it was not compared with whole runs: `tcp`, `cubic`, `dctcp` and `swift` were",
        ));
    }
    if params.connections != Connections::PerMessage {
        let reason = "messages of two hosts wait for each other: set `per-message`";
        return Some((key("connections"), reason));
    }
    if params.pool > 0 {
        return Some((key("pool"), "a handshake depends on what is under way"));
    }
    params.mptcp.as_ref().map(|_| (key("mptcp"), "subflows take several paths"))
}

/// How much faster than a NIC each link between switches is at least, so that no flow fills one by itself.
const FASTER_INSIDE: u64 = 4;

/// Checks that one flow cannot fill a link between switches. Where it can, flows that meet at one link are slowed there
/// and do not fill the others of their paths, of which a link by itself knows nothing: with links as fast as NICs the
/// 90th percentile was found up to twice too high.
pub(super) fn inner_links(network: &Network) -> Result<(), RunError> {
    let (nics, inner) = network.links().split_at(2 * network.hosts() as usize);
    let fastest = nics.iter().map(|link| link.rate).max();
    let slowest = inner.iter().map(|link| link.rate).min();
    match fastest.zip(slowest) {
        Some((nic, inner)) if inner.as_bps() < nic.as_bps() * FASTER_INSIDE => {
            let reason = format!(
                "one flow can fill a link between switches, which has {inner} and needs {FASTER_INSIDE} times a \
                 NIC's {nic}"
            );
            Err(refused("topology".to_owned(), &reason))
        }
        _ => Ok(()),
    }
}

/// Checks that all messages start at times known before.
fn sources_are_open(model: &Model) -> Result<(), RunError> {
    let sources = Traffic::new(&model.traffic_spec(), &Streams::new(model.run.seed))?.sources;
    for (source, (name, workload)) in sources.iter().zip(&model.workload) {
        let key = format!("workload.{name}.kind");
        if workload.params().supply() == Supply::Endless {
            return Err(refused(key, "its flows have no end"));
        }
        if source.reach() != SourceReach::Receiver {
            return Err(refused(key, "what it sends depends on what has arrived (a closed loop)"));
        }
    }
    Ok(())
}
