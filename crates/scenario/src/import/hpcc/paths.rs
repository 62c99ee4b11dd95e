//! [`LongestPath`]: the base round-trip time of a topology, as the released simulator computes it (`maxRtt`).
//!
//! ```text
//! round trip = 2 x propagation + the time of a full packet's payload on each link, one way
//! ```
//!
//! Of several shortest paths, by links, the first in the file counts.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_units::{Rate, Span};

use crate::import::GraphText;

/// The slowest of the shortest paths between two hosts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct LongestPath {
    pub round_trip: Span,
    pub links: u32,
}

/// One way from a switch to a node.
#[derive(Clone, Copy)]
struct OneWay {
    propagation: Span,
    serialisation: Span,
    links: u32,
}

impl LongestPath {
    /// Finds it for packets with `payload` bytes.
    pub(super) fn of(graph: &GraphText, payload: u64) -> LongestPath {
        let number: BTreeMap<&str, usize> =
            graph.hosts.iter().chain(&graph.switches).map(String::as_str).zip(0..).collect();
        let hosts = graph.hosts.len();
        let time = |rate: Rate| Span::from_ns(payload * 8 * 1_000_000_000 / rate.as_bps());
        let mut neighbours = vec![Vec::new(); number.len()];
        // Hosts with equal links at one switch have equal paths: how many there are.
        let mut accesses: BTreeMap<(usize, Span, Span), u32> = BTreeMap::new();
        for (from, to, rate, delay) in &graph.links {
            let (from, to) = (number[from.as_str()], number[to.as_str()]);
            for (one, other) in [(from, to), (to, from)] {
                if one < hosts {
                    *accesses.entry((other, *delay, time(*rate))).or_default() += 1;
                } else if other >= hosts {
                    neighbours[one].push((other, *delay, time(*rate)));
                }
            }
        }
        let mut longest = LongestPath::default();
        let mut from_switch: (usize, Vec<Option<OneWay>>) = (usize::MAX, Vec::new());
        for (own, count) in &accesses {
            if from_switch.0 != own.0 {
                from_switch = (own.0, all_from(own.0, &neighbours));
            }
            let others = accesses.keys().filter(|other| *other != own || *count > 1);
            for (other, way) in others.filter_map(|other| Some((other, from_switch.1[other.0]?))) {
                let propagation = own.1 + way.propagation + other.1;
                let round_trip = propagation + propagation + own.2 + way.serialisation + other.2;
                longest = longest.max(LongestPath { round_trip, links: way.links + 2 });
            }
        }
        longest
    }
}

/// Returns the ways from `switch` to all switches, by breadth first.
fn all_from(switch: usize, neighbours: &[Vec<(usize, Span, Span)>]) -> Vec<Option<OneWay>> {
    let mut found = vec![None; neighbours.len()];
    let mut next =
        VecDeque::from([(switch, OneWay { propagation: Span::ZERO, serialisation: Span::ZERO, links: 0 })]);
    found[switch] = next.front().map(|(_, way)| *way);
    while let Some((at, way)) = next.pop_front() {
        for &(to, delay, time) in &neighbours[at] {
            if found[to].is_none() {
                let way = OneWay {
                    propagation: way.propagation + delay,
                    serialisation: way.serialisation + time,
                    links: way.links + 1,
                };
                found[to] = Some(way);
                next.push_back((to, way));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pods_of_hpccs_paper_are_12_24_us_apart() {
        // Hosts at 100 Gb/s, and links of 400 Gb/s from their switches over an aggregation switch and a core and back.
        let (host, fabric, us) = (Rate::from_gbps(100), Rate::from_gbps(400), Span::from_us(1));
        let path = ["h0", "tor0", "agg0", "core", "agg1", "tor1", "h1"];
        let rates = [host, fabric, fabric, fabric, fabric, host];
        let links = path.windows(2).zip(rates);
        let mut links: Vec<_> =
            links.map(|(ends, rate)| (ends[0].to_owned(), ends[1].to_owned(), rate, us)).collect();
        links.push(("h2".to_owned(), "tor0".to_owned(), host, us));
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let graph = GraphText { hosts: named(&["h0", "h1", "h2"]), switches: named(&path[1..6]), links };
        // 12 us of propagation, 2 x 80 ns and 4 x 20 ns of a packet of 1,000 B.
        let longest = LongestPath { round_trip: Span::from_ns(12_240), links: 6 };
        assert_eq!(LongestPath::of(&graph, 1_000), longest);
    }
}
