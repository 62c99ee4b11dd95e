//! [`Workload`]: demand as Solstice's paper generates it (section 5.1): a few large flows and more small ones a
//! port.
//!
//! At 64 ports a port has 4 large flows with 70 % of its bytes and 12 small ones with the rest; with n ports it has
//! about n/16 and 3n/16. Together they fill 96 % of a circuit's capacity in a window; every flow differs by up to 0.3 %
//! of the same, the noise.

use plimsoll_units::Streams;
use rand::Rng;
use rand_pcg::Pcg64;

use crate::bits::Bipartite;
use crate::demand::Demand;
use crate::scheduler::Switching;

/// Parameters of a generated demand.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// The number of ports, at least 2.
    pub ports: usize,
    /// Large flows of a port.
    pub large: usize,
    /// Small flows of a port.
    pub small: usize,
    /// The share of a port's bytes that large flows have, 0 to 1.
    pub large_share: f64,
    /// A port's bytes as a share of its circuit's capacity in a window.
    pub load: f64,
    /// Each flow is larger or smaller by up to this share of a circuit's capacity in a window.
    pub noise: f64,
    /// The rule by which flows get their receivers.
    pub placement: FlowPlacement,
    /// The share of flows that are missing, 0 to 1; the others do not grow.
    pub sparsity: f64,
}

/// The rule by which the flows of a generated demand get their receivers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum FlowPlacement {
    /// Every port receives as many large and as many small flows as it sends: random permutations that share no pair of
    /// ports.
    Equal,
    /// The k-th port of a random order is chosen as receiver in proportion to k to the power of minus this skew; 0 is
    /// uniform. Afterwards all flows shrink until no port receives more than its load.
    Skewed(f64),
}

impl Workload {
    /// Returns the paper's workload for `ports` ports.
    pub fn paper(ports: usize) -> Workload {
        let (large, small) = flows_of_a_port(ports);
        Workload {
            ports,
            large,
            small,
            large_share: 0.7,
            load: 0.96,
            noise: 0.003,
            placement: FlowPlacement::Equal,
            sparsity: 0.0,
        }
    }

    /// Draws the demand of a seed and a number.
    ///
    /// # Panics
    /// As [`Workload::draw`].
    pub fn demand(&self, switching: &Switching, seed: u64, number: u32) -> Demand {
        self.draw(switching, &mut Streams::new(seed).stream(&format!("circuits/demand/{number}")))
    }

    /// Draws a demand.
    ///
    /// # Panics
    /// If a port has more flows than there are other ports.
    pub fn draw(&self, switching: &Switching, stream: &mut Pcg64) -> Demand {
        assert!(self.large + self.small < self.ports.max(1), "a port has a flow to each other port at most");
        let capacity = switching.circuit_bytes(switching.window) as f64;
        let size = |share: f64, flows: usize| capacity * self.load * share / flows.max(1) as f64;
        let large_share = if self.small == 0 { 1.0 } else { self.large_share };
        let large_share = if self.large == 0 { 0.0 } else { large_share };
        let large = size(large_share, self.large);
        let small = size(1.0 - large_share, self.small);
        let mut demand = Demand::new(self.ports);
        let pairs = match self.placement {
            FlowPlacement::Equal => self.permutations(stream),
            FlowPlacement::Skewed(skew) => self.choices(skew, stream),
        };
        for (flow, sender, receiver) in pairs {
            let mean = if flow < self.large { large } else { small };
            let noise = capacity * self.noise * (2.0 * unit(stream) - 1.0);
            let is_there = unit(stream) >= self.sparsity;
            if is_there {
                *demand.get_mut(sender, receiver) += (mean + noise).max(1.0) as u64;
            }
        }
        let most = (capacity * self.load) as u64;
        match self.placement {
            FlowPlacement::Skewed(_) if demand.diameter() > most => demand.scaled(most, demand.diameter()),
            _ => demand,
        }
    }

    /// Returns flow number, sender and receiver of random permutations without a pair twice, and without a port to
    /// itself.
    fn permutations(&self, stream: &mut Pcg64) -> Vec<(usize, usize, usize)> {
        let ports = self.ports;
        let mut taken = vec![false; ports * ports];
        (0..ports).for_each(|port| taken[port * ports + port] = true);
        let mut pairs = Vec::new();
        for flow in 0..self.large + self.small {
            // The unused pairs form a regular graph, which has a perfect matching; its ports in random order make it
            // random.
            let (senders, receivers) = (shuffled(ports, stream), shuffled(ports, stream));
            let mut graph = Bipartite::default();
            graph.reset(ports);
            for (row, sender) in senders.iter().enumerate() {
                for (column, receiver) in receivers.iter().enumerate() {
                    if !taken[sender * ports + receiver] {
                        graph.join(row, column);
                    }
                }
            }
            assert!(graph.make_perfect(), "a regular graph has a perfect matching");
            for (row, sender) in senders.iter().enumerate() {
                let receiver = receivers[graph.receiver(row)];
                taken[sender * ports + receiver] = true;
                pairs.push((flow, *sender, receiver));
            }
        }
        pairs
    }

    /// Returns flow number, sender and receiver of flows whose receivers are chosen by weight, each once by a sender.
    fn choices(&self, skew: f64, stream: &mut Pcg64) -> Vec<(usize, usize, usize)> {
        let order = shuffled(self.ports, stream);
        let mut weights = vec![0.0; self.ports];
        for (rank, port) in order.into_iter().enumerate() {
            // A power in pure Rust, so that draws are the same on every machine.
            weights[port] = libm::pow(rank as f64 + 1.0, -skew);
        }
        let mut pairs = Vec::new();
        for sender in 0..self.ports {
            let mut left = weights.clone();
            left[sender] = 0.0;
            for flow in 0..self.large + self.small {
                let mut at = unit(stream) * left.iter().sum::<f64>();
                let is_it = |weight: &f64| {
                    at -= weight;
                    *weight > 0.0 && at < 0.0
                };
                let last = || left.iter().rposition(|weight| *weight > 0.0);
                let receiver = left.iter().position(is_it).or_else(last);
                let receiver = receiver.expect("a receiver is left");
                left[receiver] = 0.0;
                pairs.push((flow, sender, receiver));
            }
        }
        pairs
    }
}

/// Returns the large and the small flows of a port in the paper's workload: 4 and 12 at 64 ports, in proportion to the
/// ports elsewhere, and at least one large flow. A fraction of a small flow is none, so that 8 ports have two flows
/// each, as many as the paper's configurations for them.
fn flows_of_a_port(ports: usize) -> (usize, usize) {
    let large = (ports / 16).max(1);
    let small = (ports * 3 / 16).min(ports.saturating_sub(1 + large));
    (large.min(ports.saturating_sub(1)), small)
}

fn shuffled(ports: usize, stream: &mut Pcg64) -> Vec<usize> {
    let mut all: Vec<usize> = (0..ports).collect();
    for last in (1..ports).rev() {
        let other = (u128::from(stream.next_u64()) * (last as u128 + 1)) >> 64;
        all.swap(last, other as usize);
    }
    all
}

/// Draws a number from 0 to below 1.
fn unit(stream: &mut Pcg64) -> f64 {
    (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use plimsoll_units::{Rate, Span};
    use rand::SeedableRng as _;

    use super::*;

    const SWITCHING: Switching = Switching {
        circuit_rate: Rate::from_gbps(100),
        packet_rate: Rate::from_gbps(10),
        night: Span::from_us(20),
        window: Span::from_ms(3),
    };

    #[test]
    fn a_port_has_the_papers_flows() {
        for (ports, large, small) in [(2, 1, 0), (4, 1, 0), (8, 1, 1), (16, 1, 3), (64, 4, 12), (512, 32, 96)]
        {
            assert_eq!(flows_of_a_port(ports), (large, small), "{ports} ports");
        }
        // 37.5 MB pass a circuit in 3 ms.
        let demand = Workload::paper(64).draw(&SWITCHING, &mut Pcg64::seed_from_u64(1));
        for port in 0..64 {
            let row = demand.row(port);
            assert_eq!(row.iter().filter(|bytes| (6_187_500..6_412_500).contains(*bytes)).count(), 4);
            assert_eq!(row.iter().filter(|bytes| (787_500..1_012_500).contains(*bytes)).count(), 12);
            assert_eq!(row.iter().filter(|bytes| **bytes == 0).count(), 48);
            assert_eq!(demand.get(port, port), 0);
            assert_eq!(demand.rows().filter(|row| row[port] > 0).count(), 16);
        }
    }

    #[test]
    fn skew_concentrates_and_sparsity_removes() {
        let draw = |workload: Workload| workload.draw(&SWITCHING, &mut Pcg64::seed_from_u64(7));
        let flows = |demand: &Demand| demand.bytes().iter().filter(|bytes| **bytes > 0).count();
        let uniform = draw(Workload { placement: FlowPlacement::Skewed(0.0), ..Workload::paper(64) });
        let skewed = draw(Workload { placement: FlowPlacement::Skewed(1.5), ..Workload::paper(64) });
        assert_eq!((flows(&uniform), flows(&skewed)), (1024, 1024));
        let most = |demand: &Demand| (0..64).map(|port| demand.received_by(port)).max().unwrap_or(0) as f64;
        let share = |demand: &Demand| most(demand) / demand.total() as f64;
        assert!(share(&skewed) > 1.5 * share(&uniform), "{} and {}", share(&skewed), share(&uniform));
        assert!(most(&skewed) <= 36_000_000.0 && most(&uniform) <= 36_000_000.0);
        let sparse = draw(Workload { sparsity: 0.75, ..Workload::paper(64) });
        assert!((200..312).contains(&flows(&sparse)), "{}", flows(&sparse));
    }

    #[test]
    fn a_seed_is_a_demand() {
        let draw = |seed| Workload::paper(16).draw(&SWITCHING, &mut Pcg64::seed_from_u64(seed));
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
        assert_eq!(draw(3).total(), PINNED);
    }

    /// The bytes of the demand of seed 3, so that another generator does not go unnoticed.
    const PINNED: u64 = 576_330_553;
}
