//! What every link carried, where the scenario asks for it.

use plimsoll_fabric::net::{Network, Node, PortId};
use plimsoll_results::outcome::LinkTotals;
use plimsoll_scenario::model::Topology;
use plimsoll_units::Time;

use crate::world::World;

/// A link's ends as the scenario names them, and the tiers that it connects.
#[derive(Clone, Debug)]
pub(super) struct Named {
    from: String,
    to: String,
    tier: String,
}

/// Every link of `network`, by number.
pub(super) fn named(topology: &Topology, network: &Network) -> Vec<Named> {
    let mut tier_of_switch = vec![0; network.switches() as usize];
    for link in network.links() {
        if let Node::Switch(switch) = link.from {
            tier_of_switch[switch as usize] = link.tier;
        }
    }
    let name = |node| match node {
        Node::Host(host) => topology.host_name(host.0),
        Node::Switch(switch) => topology.switch_name(switch),
    };
    let tier = |node| match node {
        Node::Host(_) => "host",
        Node::Switch(switch) => network.tiers()[usize::from(tier_of_switch[switch as usize])],
    };
    let links = network.links().iter();
    links
        .map(|link| Named {
            from: name(link.from),
            to: name(link.to),
            tier: format!("{} -> {}", tier(link.from), tier(link.to)),
        })
        .collect()
}

/// What the `named` links carried until `end`.
pub(super) fn totals(named: Vec<Named>, world: &World, end: Time) -> Vec<LinkTotals> {
    let carried = world.tap.as_ref().map_or(&[][..], |tap| tap.carried());
    let ports = (0..).map(PortId);
    named
        .into_iter()
        .zip(ports)
        .zip(carried.iter().zip(&world.wires.drops))
        .map(|((Named { from, to, tier }, port), (&(packets, bytes), &drops))| {
            let pauses = world.wires.flow_control.as_ref().map(|control| control.pauses(port, end));
            let pauses = pauses.unwrap_or_default();
            LinkTotals {
                from,
                to,
                tier,
                rate: world.network.link(port).rate,
                observed: world.wires.window.part_of(Time::ZERO, end),
                packets,
                bytes,
                drops,
                pauses: pauses.pauses,
                paused: pauses.paused,
            }
        })
        .collect()
}
