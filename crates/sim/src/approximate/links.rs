//! [`Links`]: classes of links that are alike, their loads, and a sample of them.

use std::collections::BTreeMap;

use plimsoll_fabric::net::topology::Link;
use plimsoll_fabric::net::{Network, Node, PortId};
use plimsoll_units::{Rate, Span, mix64};

/// The links of a network, in classes.
pub(super) struct Links {
    /// The number of each port's class.
    class_of: Vec<u16>,
    pub(super) classes: Vec<LinkClass>,
}

/// Links with the same place in the network: one direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct LinkClass {
    pub(super) from: LinkEnd,
    pub(super) to: LinkEnd,
    pub(super) rate: Rate,
    propagation: Span,
}

/// A host, or a switch by its tier, at an end of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum LinkEnd {
    Host,
    /// A switch of this tier.
    Tier(u8),
}

/// Marks a port that is not in the sample.
const NONE: u32 = u32::MAX;

/// Some links, each with both directions.
pub(super) struct Sample {
    /// The two ports of each link.
    pub(super) links: Vec<[PortId; 2]>,
    /// By port: the number of its link here.
    number: Vec<u32>,
}

impl Links {
    pub(super) fn new(network: &Network) -> Links {
        let mut tiers = vec![0; network.switches() as usize];
        for link in network.links() {
            if let Node::Switch(switch) = link.from {
                tiers[switch as usize] = link.tier;
            }
        }
        let end = |node| match node {
            Node::Host(_) => LinkEnd::Host,
            Node::Switch(switch) => LinkEnd::Tier(tiers[switch as usize]),
        };
        let class = |link: &Link| LinkClass {
            from: end(link.from),
            to: end(link.to),
            rate: link.rate,
            propagation: link.propagation,
        };
        let mut numbers: BTreeMap<LinkClass, u16> = BTreeMap::new();
        let mut classes = Vec::new();
        let class_of = network.links().iter().map(|link| {
            let class = class(link);
            *numbers.entry(class).or_insert_with(|| {
                classes.push(class);
                classes.len() as u16 - 1
            })
        });
        let class_of = class_of.collect();
        Links { class_of, classes }
    }

    /// Returns the number of a port's class.
    pub(super) fn class_of(&self, port: PortId) -> u16 {
        self.class_of[port.0 as usize]
    }

    /// Returns the load of the busiest link. `flows` has the number of flows of each port, and `bits_per_flow` the mean
    /// bits of a flow per second of the run.
    ///
    /// A short run has few flows on each link, so that the most on any says more of chance than of load. As many as
    /// chance gives equal links (a Poisson distribution) count as equal loads; the rest of the variance is that of
    /// loads, by which the number of each link is drawn towards the mean of its class (empirical Bayes).
    pub(super) fn busiest(&self, flows: &[u32], bits_per_flow: f64) -> f64 {
        let classes = self.classes.iter().zip(0..).map(|(class, number)| {
            let of_class = || flows.iter().zip(&self.class_of).filter(move |(_, class)| **class == number);
            let counts = || of_class().map(|(count, _)| f64::from(*count));
            let links = counts().count().max(1) as f64;
            let mean = counts().sum::<f64>() / links;
            let variance = counts().map(|count| (count - mean).powi(2)).sum::<f64>() / links;
            let of_loads = if variance > mean { 1.0 - mean / variance } else { 0.0 };
            let most = counts().fold(0.0, f64::max);
            (mean + of_loads * (most - mean)) * bits_per_flow / class.rate.as_bps() as f64
        });
        classes.fold(0.0, f64::max)
    }

    /// Chooses up to `most` links of each class by `word`, each with its other direction.
    pub(super) fn sample(&self, network: &Network, most: usize, word: u64) -> Sample {
        let mut by_class: Vec<Vec<(u64, PortId)>> = vec![Vec::new(); self.classes.len()];
        let mut taken = vec![false; self.classes.len()];
        for (class, number) in self.classes.iter().zip(0_usize..) {
            let reverse = LinkClass { from: class.to, to: class.from, ..*class };
            let reverse = self.classes.iter().position(|other| *other == reverse).unwrap_or(number);
            taken[number] = reverse >= number;
        }
        for (port, class) in (0..).map(PortId).zip(&self.class_of) {
            let of = &mut by_class[usize::from(*class)];
            if taken[usize::from(*class)] {
                of.push((mix64(word ^ u64::from(port.0)), port));
                // Twice the sample at most is kept while ports go by.
                if of.len() >= 2 * most.max(1) + 1_024 {
                    of.select_nth_unstable(most);
                    of.truncate(most);
                }
            }
        }
        let chosen = by_class.into_iter().flat_map(|mut of| {
            of.sort_unstable();
            of.truncate(most);
            of.into_iter().map(|(_, port)| port)
        });
        Sample::new(network, chosen.collect())
    }
}

impl Sample {
    /// Pairs each of `ports` with the port of the other direction; of several links between two nodes, the first with
    /// the first.
    fn new(network: &Network, ports: Vec<PortId>) -> Sample {
        let mut between: BTreeMap<(Node, Node), Vec<PortId>> = BTreeMap::new();
        for port in &ports {
            let Link { from, to, .. } = *network.link(*port);
            between.entry((from, to)).or_default();
            between.entry((to, from)).or_default();
        }
        for (link, port) in network.links().iter().zip(0..) {
            if let Some(ports) = between.get_mut(&(link.from, link.to)) {
                ports.push(PortId(port));
            }
        }
        let mut sample = Sample { links: Vec::new(), number: vec![NONE; network.links().len()] };
        for port in ports {
            if sample.number_of(port).is_some() {
                continue;
            }
            let Link { from, to, .. } = *network.link(port);
            let place = between[&(from, to)].iter().position(|other| *other == port);
            let Some(&back) = place.and_then(|place| between[&(to, from)].get(place)) else { continue };
            for port in [port, back] {
                sample.number[port.0 as usize] = sample.links.len() as u32;
            }
            sample.links.push([port, back]);
        }
        sample
    }

    /// Returns the number of the link that `port` sends on, if it is in the sample.
    pub(super) fn number_of(&self, port: PortId) -> Option<usize> {
        let number = self.number[port.0 as usize];
        (number != NONE).then_some(number as usize)
    }
}
