//! [`Weights`]: weights of hosts as senders and receivers of flows, from a file.
//!
//! ```text
//! host,send,receive
//! h0,2Gbps,500Mbps
//! ```
//!
//! With weights s and r, host i is the sender of a flow with the probability `s_i / sum s`, and host j its receiver
//! with `r_j / (sum r - r_i)`.

use plimsoll_units::{Rate, Stream};

use crate::check::InvalidWorkload;
use crate::draw::uniform_choice;
use crate::facts::NetworkFacts;
use crate::listed;

/// The weights of a host as a sender and as a receiver of flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostWeights {
    /// The number of the host.
    pub host: u32,
    /// The weight of the host as a sender.
    pub send: Rate,
    /// The weight of the host as a receiver.
    pub receive: Rate,
}

const HEADER: &str = "host,send,receive";

/// Parses a file of weights; host names are the network's.
pub(crate) fn parse(
    name: &str,
    text: &str,
    facts: &dyn NetworkFacts,
) -> Result<Vec<HostWeights>, Vec<InvalidWorkload>> {
    listed::parse(name, text, HEADER, facts, |row| {
        row.cells::<3>()?;
        Ok(HostWeights { host: row.host(0)?, send: row.quantity(1)?, receive: row.quantity(2)? })
    })
}

/// Returns why no pair of hosts can be drawn by these weights: a host is there twice, no host sends, or one has no
/// other host to send to.
pub(crate) fn problem(weights: &[HostWeights], facts: &dyn NetworkFacts) -> Option<String> {
    let mut hosts: Vec<u32> = weights.iter().map(|of| of.host).collect();
    hosts.sort_unstable();
    if let Some(twice) = hosts.windows(2).find(|pair| pair[0] == pair[1]) {
        return Some(format!("host {} is there twice", facts.host_name(twice[0])));
    }
    let sum = |weight: fn(&HostWeights) -> Rate| {
        weights.iter().try_fold(0u64, |sum, of| sum.checked_add(weight(of).as_bps()))
    };
    let (Some(sent), Some(received)) = (sum(|of| of.send), sum(|of| of.receive)) else {
        return Some("the sum of the rates is too large".to_owned());
    };
    if sent == 0 {
        return Some("no host sends".to_owned());
    }
    let mut senders = weights.iter().filter(|of| of.send > Rate::ZERO);
    let alone = senders.find(|of| of.receive.as_bps() == received)?;
    Some(format!("no other host receives what {} sends", facts.host_name(alone.host)))
}

/// The hosts with their weights, added up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Weights {
    hosts: Vec<u32>,
    /// The sums of the weights up to each host, with its own.
    send: Vec<u64>,
    receive: Vec<u64>,
}

impl Weights {
    pub(crate) fn new(weights: &[HostWeights]) -> Weights {
        let sums = |weight: fn(&HostWeights) -> Rate| {
            let mut sum = 0u64;
            let add = |of: &HostWeights| {
                sum += weight(of).as_bps();
                sum
            };
            weights.iter().map(add).collect::<Vec<u64>>()
        };
        let hosts = weights.iter().map(|of| of.host).collect();
        Weights { hosts, send: sums(|of| of.send), receive: sums(|of| of.receive) }
    }

    /// Draws the sender and the receiver of a flow.
    pub(crate) fn draw(&self, stream: &mut Stream) -> Option<(u32, u32)> {
        let at = |sums: &[u64], place: u64| sums.partition_point(|sum| *sum <= place);
        let source = at(&self.send, uniform_choice(stream, *self.send.last()?));
        let before = source.checked_sub(1).map_or(0, |host| self.receive[host]);
        let own = self.receive[source] - before;
        let place = uniform_choice(stream, *self.receive.last()? - own);
        let destination = at(&self.receive, if place < before { place } else { place + own });
        Some((self.hosts[source], self.hosts[destination]))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use plimsoll_units::Streams;

    use super::*;

    /// Of many draws, each pair has its share: of the sender, and of the receiver among the other hosts.
    #[test]
    fn pairs_are_drawn_by_weights() {
        let of = |host, send, receive| HostWeights {
            host,
            send: Rate::from_bps(send),
            receive: Rate::from_bps(receive),
        };
        let all = [of(3, 3_000_000, 1_000_000), of(5, 1_000_000, 2_000_000), of(6, 0, 1_000_000)];
        let weights = Weights::new(&all);
        const DRAWS: u32 = 40_000;
        let mut counts: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for number in 0..u64::from(DRAWS) {
            let pair = weights.draw(&mut Streams::keyed(7, number)).expect("there are weights");
            *counts.entry(pair).or_default() += 1;
        }
        let expected = [((3, 5), 0.5), ((3, 6), 0.25), ((5, 3), 0.125), ((5, 6), 0.125)];
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), expected.map(|(pair, _)| pair));
        for (pair, share) in expected {
            let drawn = f64::from(counts[&pair]) / f64::from(DRAWS);
            // Four standard deviations.
            assert!(
                (drawn - share).abs() < 4.0 * (share * (1.0 - share) / f64::from(DRAWS)).sqrt(),
                "{pair:?}: {drawn}"
            );
        }
        assert_eq!(Weights::default().draw(&mut Streams::keyed(7, 0)), None);
    }
}
