//! [`LinkModel`]: the run of one link, which is a scenario like any other.
//!
//! ```text
//! senders ── their own links ──> U ── the link ──> V ── links without queues ──> receivers
//! ```
//!
//! All flows that cross the link in this direction are in it, each when and as fast as the links before let it come.
//! One that they slow has a link of its own, at its pace; the others of a sender share one. The other links of a path
//! are replaced by their time, of propagation and of a packet on the wire. A receiver's link is faster than all others.

use indexmap::IndexSet;
use plimsoll_fabric::net::topology::Link;
use plimsoll_fabric::net::{HostId, Network, Node, PortId};
use plimsoll_scenario::model::{Graph, GraphLink, ListedFlow, Model};
use plimsoll_units::{Bytes, Rate, Span, Time};

use super::alone::Chain;
use super::flows::Flow;
use super::task::Task;

/// A flow over the link, and where on its path the link is.
#[derive(Clone, Debug)]
pub(super) struct CrossingFlow {
    pub(super) flow: Flow,
    /// The links before this one: class and port.
    pub(super) links: Box<[(u16, PortId)]>,
    /// The links before this one; none where it is the sender's.
    pub(super) before: Option<Hops>,
    /// The links behind this one; none where it is the receiver's.
    pub(super) behind: Option<Hops>,
    /// The number of links on its path.
    pub(super) hops: u8,
}

/// Some links of a path in a row, as far as a flow on idle links notices.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Hops {
    /// The rate of the slowest.
    pub(super) rate: Rate,
    /// Half the time of a full packet and its acknowledgement on the wire of these links, and propagation.
    pub(super) delay: Span,
}

/// The sizes of packets by which links are replaced by their time.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketSizes {
    pub(super) full: u64,
    pub(super) ack: u64,
}

impl PacketSizes {
    pub(super) fn of(model: &Model) -> PacketSizes {
        let headers = model.carriers().map(|of| of.header.get());
        PacketSizes { full: model.packet_bytes(), ack: headers.max().unwrap_or_default() }
    }

    /// Returns half the time of a packet and its acknowledgement on a wire.
    fn half(self, rate: Rate) -> Span {
        let span = rate.byte_time().span(self.full + self.ack);
        Span::from_ps(span.as_ps() / 2)
    }

    /// Combines links in a row; `None` where there are none.
    pub(super) fn hops<'a>(self, links: impl Iterator<Item = &'a Link>) -> Option<Hops> {
        links.fold(None, |hops: Option<Hops>, link| {
            let own = Hops { rate: link.rate, delay: self.half(link.rate) + link.propagation };
            let so_far = hops.unwrap_or(Hops { rate: own.rate, delay: Span::ZERO });
            Some(Hops { rate: so_far.rate.min(own.rate), delay: so_far.delay + own.delay })
        })
    }

    /// Returns the rate and the delay of the link that stands for `hops`: the sender's own, or one of a receiver.
    fn in_place_of(self, hops: Hops, pace: Option<u32>) -> (Rate, Span) {
        let rate = match pace {
            Some(pace) => hops.rate.scaled(2_f64.powf(-f64::from(pace) / PACES)),
            None => Rate::from_bps(hops.rate.as_bps() * FASTER),
        };
        // The packet's time on this link is not waited for twice.
        (rate, Span::from_ps(hops.delay.as_ps().saturating_sub(self.half(rate).as_ps())))
    }
}

/// Returns the rates and delays that a flow meets in the scenario of the link `target`.
pub(super) fn link_chain(sizes: PacketSizes, target: &Link, crossing: &CrossingFlow, pace: u32) -> Chain {
    let before = crossing.before.map(|hops| sizes.in_place_of(hops, Some(pace)));
    let behind = crossing.behind.map(|hops| sizes.in_place_of(hops, None));
    before.into_iter().chain([(target.rate, target.propagation)]).chain(behind).collect()
}

/// Steps of pace in a factor of two.
pub(super) const PACES: f64 = 4.0;

/// How much faster a receiver's link is than any on the path to it, so that nothing waits there.
const FASTER: u64 = 10;

/// The scenario of one link, and which of its messages is which flow.
pub(super) struct LinkModel {
    pub(super) task: Task,
    /// By workload: the numbers of its flows among the crossing ones, in the order of their records, and their paces.
    pub(super) order: Vec<Vec<(u32, u32)>>,
}

/// A host of the link's scenario.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum HostKey {
    /// At an end of the link itself: 0 or 1.
    End(usize),
    /// With its pace; one that is slower than its NIC has a link of its own.
    Sender(HostId, Hops, u32, Option<u32>),
    Receiver(HostId, Hops),
}

/// Builds the scenario of the link that `port` sends on. `arrival` returns how much later than it starts a flow comes
/// to the link, and in how many steps of pace it is slower than its NIC.
pub(super) fn link_model(
    model: &Model,
    network: &Network,
    port: PortId,
    crossing: &[CrossingFlow],
    arrival: impl Fn(&CrossingFlow) -> (Span, u32),
) -> LinkModel {
    let sizes = PacketSizes::of(model);
    let target = network.link(port);
    let ends = [target.from, target.to];
    let mut hosts: IndexSet<HostKey> = IndexSet::new();
    for (end, node) in ends.iter().enumerate() {
        if let Node::Host(_) = node {
            hosts.insert(HostKey::End(end));
        }
    }
    let mut lists: Vec<Vec<(ListedFlow, (u32, u32))>> = vec![Vec::new(); model.workload.len()];
    for (crossing, number) in crossing.iter().zip(0..) {
        let flow = &crossing.flow;
        let (late, pace) = arrival(crossing);
        let sender = |hops| HostKey::Sender(flow.source, hops, pace, (pace > 0).then_some(number));
        let receiver = |hops| HostKey::Receiver(flow.destination, hops);
        let source = hosts.insert_full(crossing.before.map_or(HostKey::End(0), sender)).0;
        let destination = hosts.insert_full(crossing.behind.map_or(HostKey::End(1), receiver)).0;
        let listed = ListedFlow {
            start: flow.start.saturating_since(Time::ZERO) + late,
            source: source as u32,
            destination: destination as u32,
            size: Bytes::new(flow.bytes),
            class: String::new(),
        };
        lists[usize::from(flow.workload)].push((listed, (number, pace)));
    }
    for list in &mut lists {
        list.sort_by_key(|(listed, _)| listed.start);
    }
    // An end that is a host has no switch.
    let switches = ends.iter().filter(|end| matches!(end, Node::Switch(_))).count();
    let count = hosts.len() as u32;
    let nodes = match ends {
        [Node::Switch(_), Node::Switch(_)] => [count, count + 1],
        [Node::Host(_), Node::Switch(_)] => [0, count],
        [Node::Switch(_), Node::Host(_)] => [count, 0],
        [Node::Host(_), Node::Host(_)] => [0, 1],
    };
    let [from, to] = nodes;
    let mut links = vec![GraphLink { from, to, rate: target.rate, delay: target.propagation }];
    for (key, number) in hosts.iter().zip(0..) {
        let (at, (rate, delay)) = match *key {
            HostKey::End(_) => continue,
            HostKey::Sender(_, hops, pace, _) => (from, sizes.in_place_of(hops, Some(pace))),
            HostKey::Receiver(_, hops) => (to, sizes.in_place_of(hops, None)),
        };
        links.push(GraphLink { from: number, to: at, rate, delay });
    }
    let hosts = (0..count).map(|host| format!("h{host}")).collect();
    let switches = (0..switches).map(|switch| format!("switch{switch}")).collect();
    let graph = Graph { hosts, switches, links };
    let tier = network.tiers().get(usize::from(target.tier)).copied().unwrap_or_default();
    let (lists, order) =
        lists.into_iter().map(|list| list.into_iter().unzip()).unzip::<_, _, Vec<_>, Vec<_>>();
    LinkModel { task: Task::new(model, graph, tier, lists), order }
}
