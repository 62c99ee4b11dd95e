//! [`Watched`]: the queues that the scenario observes.

use plimsoll_fabric::net::{HostId, Network, Node, PortId};
use plimsoll_scenario::model::Model;
use plimsoll_units::Span;

use crate::{Unbuildable, error};

/// A watched queue: one port of it, as the scenario names it.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The scenario's name for the queue.
    pub name: String,
    /// The port.
    pub port: PortId,
    /// Length of an interval.
    pub every: Span,
}

/// The ports that the scenario watches. A port that is watched twice has the same interval in both.
///
/// # Errors
/// If a queue names a host that there is not.
pub fn watched(model: &Model, network: &Network) -> Result<Vec<Watched>, Unbuildable> {
    let mut watched = Vec::new();
    for (name, queue) in &model.observe.queue {
        let key = || format!("observe.queue.{name}.port");
        let host = |text: &str| {
            let number =
                model.topology.host(text).ok_or_else(|| error(key(), format!("no host `{text}`")))?;
            Ok::<HostId, Unbuildable>(HostId(number))
        };
        let watch = |name: String, port| Watched { name, port, every: queue.every };
        if let Some(nic) = queue.port.strip_prefix("nic:") {
            watched.push(watch(name.clone(), PortId(host(nic)?.0)));
        } else if let Some(tier) = queue.port.strip_prefix("tier:") {
            let ports = network.links().iter().enumerate().filter(|(_, link)| {
                matches!(link.from, Node::Switch(_)) && network.tiers()[usize::from(link.tier)] == tier
            });
            watched.extend(ports.map(|(port, _)| watch(name.clone(), PortId(port as u32))));
        } else {
            watched.push(watch(name.clone(), network.port_towards(host(&queue.port)?)));
        }
    }
    Ok(watched)
}
