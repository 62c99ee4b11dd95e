//! [`NodeLoad`]: the work of each host and switch at the start of a run, by which the network is divided.

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::{HostId, Network, Node, PortId};
use plimsoll_units::Time;

use crate::world::{EventObserver, World};

/// The place of an event in a run on several threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EventPlace {
    /// In the process of a host or switch; with the link whose packet or pause has reached it, if any.
    At(Node, Option<PortId>),
    /// In every process that has hosts.
    WithHosts,
    /// In every process, as each changes links or circuits by itself.
    Everywhere,
    /// A departure, which may be an event or not, as the run is divided: no run counts it.
    Uncounted,
}

impl EventPlace {
    /// Returns the place of the event of `owner`, which is about to be handled.
    pub(super) fn of(owner: Owner, world: &World) -> EventPlace {
        let network = world.fabric.network();
        let link = PortId(owner.number());
        match owner.kind() {
            OwnerKind::Link => EventPlace::At(network.link(link).to, Some(link)),
            OwnerKind::Pause => EventPlace::At(network.link(link).from, Some(link)),
            OwnerKind::Pacer => EventPlace::At(Node::Host(HostId(owner.number())), None),
            OwnerKind::Endpoint | OwnerKind::Receive => {
                EventPlace::At(Node::Host(world.hosts.host_of(owner, network)), None)
            }
            OwnerKind::Workload => EventPlace::WithHosts,
            OwnerKind::Clock => EventPlace::Everywhere,
            OwnerKind::Port => EventPlace::Uncounted,
        }
    }
}

/// Returns the work of an event of `owner` at `node`, in tenths of that of a switch.
pub(super) fn work_of(owner: Owner, node: Node) -> u64 {
    if owner.kind() == OwnerKind::Link && matches!(node, Node::Host(_)) { HOSTS_WORK } else { EVENT_WORK }
}

/// The work of an event at a switch.
pub(super) const EVENT_WORK: u64 = 10;

/// The work of a packet's two hosts, in tenths of that of a switch: measured on a fat-tree of 1,024 hosts.
pub(super) const HOSTS_WORK: u64 = 23;

/// The work of each host and switch so far, in tenths of an event's at a switch.
#[derive(Debug)]
pub(super) struct NodeLoad {
    pub(super) hosts: Vec<u64>,
    pub(super) switches: Vec<u64>,
}

impl NodeLoad {
    pub(super) fn new(network: &Network) -> NodeLoad {
        NodeLoad { hosts: vec![0; network.hosts() as usize], switches: vec![0; network.switches() as usize] }
    }
}

impl EventObserver for NodeLoad {
    fn on_event(&mut self, _now: Time, owner: Owner, world: &World) {
        match EventPlace::of(owner, world) {
            EventPlace::At(node, _) => {
                let work = match node {
                    Node::Host(host) => &mut self.hosts[host.0 as usize],
                    Node::Switch(switch) => &mut self.switches[switch as usize],
                };
                *work += work_of(owner, node);
            }
            EventPlace::WithHosts | EventPlace::Everywhere | EventPlace::Uncounted => {}
        }
    }
}
