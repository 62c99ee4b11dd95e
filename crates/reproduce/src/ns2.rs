//! The flows that ns-2 scripts start, recomputed from their seeds.
//!
//! [`PairArrivals`]: pFabric's scripts, which other studies have taken over, because their flows
//! are not a Poisson process.
//!
//! Every ordered pair (i, j) of hosts has two generators: gaps are drawn with the seed 17 i + 1244 j, sizes with
//! 33 i + 4369 j. ns-2 writes a seed into all six words of MRG32k3a's state, and the generator is linear: its k-th
//! number is, up to a modulus, k's own constant times the seed. So neighbours i and i + 1 draw a gap that
//! differs by a hundred-and-seventieth of the range, and a size by a ninetieth: hosts next to each other start flows of
//! about the same size to the same destination shortly after each other. Large flows meet at their destination 1.8
//! times as often as they would by chance.
//!
//! [`RoundRobinTransfers`]: the transfers of HULL's semester project, because a run of 100 s has so few of them that
//! their percentiles depend on the draw. Its scripts take all from ns-2's default generator, whose seed is 1, in
//! this order: two numbers for each TCP agent (six agents a server), the gaps between all queries, the gaps between all
//! transfers, the gaps between all small requests. The rule of two numbers an agent is the only one that gives the
//! numbers of requests in the study's raw data (Table II: 1868 and 1892 transfers, 9366 and 9493 small requests).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write;

use plimsoll_text::csv::{CsvRecord, rows};

use plimsoll_experiment::measure::SEGMENT_BYTES;

/// Flows between all pairs of hosts, as the scripts of pFabric and QJump generate them in ns-2.
#[derive(Clone, PartialEq, Debug)]
pub struct PairArrivals {
    /// The number n of hosts, h0 to h(n - 1).
    pub hosts: u64,
    /// Share of a host's 10 Gb/s link that the scripts mean to load: it counts 1500 B for a packet of 1460 B.
    pub load: f64,
    /// The mean size in packets by which the scripts compute the load; not quite that of the sizes they draw.
    pub mean_packets: f64,
    /// The sizes as a bundled CSV: bytes and cumulative share.
    pub sizes: &'static str,
}

/// Transfers of 10 MB to one client, from its servers in turn, after the queries of the same run were drawn.
#[derive(Clone, PartialEq, Debug)]
pub struct RoundRobinTransfers {
    /// Servers, h1 to h(n); the client is h0.
    pub servers: u64,
    /// The mean gap between queries in seconds, which ask every server; `None` if there are none.
    pub query_gap: Option<f64>,
    /// The load of all transfers together, in Mb/s.
    pub mbps: f64,
    /// How long requests are created, in seconds.
    pub seconds: f64,
}

/// MRG32k3a (L'Ecuyer 1999), with its state as ns-2 seeds it.
#[derive(Clone, Debug)]
struct Mrg32k3a {
    first: [i64; 3],
    second: [i64; 3],
}

const M1: i64 = 4_294_967_087;
const M2: i64 = 4_294_944_443;

impl Mrg32k3a {
    fn new(seed: u64) -> Mrg32k3a {
        Mrg32k3a { first: [seed as i64; 3], second: [seed as i64; 3] }
    }

    /// Draws a number between 0 and 1, both excluded.
    fn uniform(&mut self) -> f64 {
        let [a, b, c] = self.first;
        let next = (1_403_580 * b - 810_728 * a).rem_euclid(M1);
        self.first = [b, c, next];
        let [a, b, c] = self.second;
        let other = (527_612 * c - 1_370_589 * a).rem_euclid(M2);
        self.second = [b, c, other];
        let difference = if next > other { next - other } else { next - other + M1 };
        difference as f64 / (M1 + 1) as f64
    }

    /// Draws from the exponential distribution with this mean.
    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(self.uniform())
    }
}

/// A pair's generators, and when its next flow starts.
struct PairGenerators {
    source: u64,
    destination: u64,
    gaps: Mrg32k3a,
    sizes: Mrg32k3a,
    /// Seconds since the scripts start the traffic.
    next: f64,
}

impl PairArrivals {
    /// Returns the first `flows` of them as a flow list.
    pub fn list(&self, flows: u64) -> String {
        const PACKET_BITS: f64 = 1500.0 * 8.0;
        let table = table(self.sizes);
        let of_host = self.load * 10e9 / (self.mean_packets * PACKET_BITS);
        let mean_gap = (self.hosts - 1) as f64 / of_host;
        let mut pairs = Vec::new();
        let mut due = BinaryHeap::new();
        for source in 0..self.hosts {
            for destination in (0..self.hosts).filter(|host| *host != source) {
                let mut gaps = Mrg32k3a::new(17 * source + 1244 * destination);
                let sizes = Mrg32k3a::new(33 * source + 4369 * destination);
                let next = -mean_gap * libm::log(gaps.uniform());
                due.push(Reverse((picoseconds(next), pairs.len())));
                pairs.push(PairGenerators { source, destination, gaps, sizes, next });
            }
        }
        let mut list = "start,source,destination,size,class\n".to_owned();
        for _ in 0..flows {
            let Some(Reverse((start, index))) = due.pop() else { break };
            let pair = &mut pairs[index];
            let bytes = packets(&table, pair.sizes.uniform()) * SEGMENT_BYTES;
            let (source, destination) = (pair.source, pair.destination);
            // Writing to a text does not fail.
            let _ = writeln!(list, "{start}ps,h{source},h{destination},{bytes}B,");
            pair.next -= mean_gap * libm::log(pair.gaps.uniform());
            due.push(Reverse((picoseconds(pair.next), index)));
        }
        list
    }
}

impl RoundRobinTransfers {
    /// Returns the transfers as the CSV text of a flow list.
    pub fn list(&self) -> String {
        let mut list = "start,source,destination,size,class\n".to_owned();
        for (seconds, server) in self.starts(&mut self.default_generator()) {
            // Writing to a text does not fail.
            let _ = writeln!(list, "{}ps,h{server},h0,10MB,", picoseconds(seconds));
        }
        list
    }

    /// Returns ns-2's default generator as it is when the first request is drawn.
    fn default_generator(&self) -> Mrg32k3a {
        const AGENTS_A_SERVER: u64 = 6;
        const NUMBERS_AN_AGENT: u64 = 2;
        let mut generator = Mrg32k3a::new(1);
        for _ in 0..self.servers * AGENTS_A_SERVER * NUMBERS_AN_AGENT {
            generator.uniform();
        }
        generator
    }

    /// Returns when each transfer starts, in seconds, and the number of its server.
    fn starts(&self, generator: &mut Mrg32k3a) -> Vec<(f64, u64)> {
        if let Some(gap) = self.query_gap {
            let mut next = generator.exponential(gap);
            while next < self.seconds {
                next += generator.exponential(gap);
            }
        }
        const MEGABITS: f64 = 80.0;
        requests_in_turn(generator, self.servers, MEGABITS / self.mbps, self.seconds)
    }
}

/// Draws requests to servers in turn as the scripts do: by whole rounds, of which those after the end are not sent.
fn requests_in_turn(generator: &mut Mrg32k3a, servers: u64, gap: f64, seconds: f64) -> Vec<(f64, u64)> {
    let mut starts = Vec::new();
    let mut next = generator.exponential(gap);
    while next < seconds {
        for server in 1..=servers {
            if next < seconds {
                starts.push((next, server));
            }
            next += generator.exponential(gap);
        }
    }
    starts
}

fn picoseconds(seconds: f64) -> u64 {
    (seconds * 1e12).round() as u64
}

/// Reads sizes in packets and their cumulative shares.
fn table(sizes: &str) -> Vec<(f64, f64)> {
    let number = |text: &str| text.parse::<f64>().expect("a bundled table has numbers");
    let point = |row: CsvRecord<'_>| match row.cells()[..] {
        [bytes, share] => (number(bytes) / SEGMENT_BYTES as f64, number(share)),
        _ => panic!("a bundled table has two columns"),
    };
    rows(sizes, None).skip(1).map(point).collect()
}

/// Returns the size at a share: linear between two of the table, rounded up to a packet.
fn packets(table: &[(f64, f64)], share: f64) -> u64 {
    let above = table.iter().position(|(_, of)| *of >= share).unwrap_or(table.len() - 1);
    let (size, of) = table[above];
    let Some(&(below_size, below)) = above.checked_sub(1).map(|below| &table[below]) else {
        return size.ceil() as u64;
    };
    let exact = below_size + (share - below) / (of - below) * (size - below_size);
    // A size of the table itself must not become a packet more by rounding.
    (exact - 1e-9).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEB_SEARCH: &str = include_str!("../../../scenarios/cdf/websearch-pfabric.csv");

    fn web_search(load: f64, flows: u64) -> String {
        PairArrivals { hosts: 144, load, mean_packets: 1138.0, sizes: WEB_SEARCH }.list(flows)
    }

    /// L'Ecuyer's own first number of the seed 12345.
    #[test]
    fn the_generator_is_mrg32k3a() {
        assert!((Mrg32k3a::new(12_345).uniform() - 0.127_011_122_046_577_4).abs() < 1e-15);
    }

    #[test]
    fn the_first_flows_of_the_scripts() {
        let list = web_search(0.5, 3);
        let starts: Vec<&str> = list.lines().skip(1).collect();
        assert_eq!(starts[0], "8285059ps,h5,h36,477420B,");
        assert_eq!(starts[1], "16570202ps,h10,h72,26280B,");
    }

    /// The numbers of requests in the raw data of Table II, which say how the generator's numbers are used.
    #[test]
    fn as_many_requests_as_in_the_raw_data_of_hull() {
        for (mbps, seconds, transfers, small) in
            [(200.0, 750.0, 1868, 9366), (400.0, 380.0, 1892, 9493), (600.0, 250.0, 1868, 9366)]
        {
            let of = RoundRobinTransfers { servers: 9, query_gap: None, mbps, seconds };
            let mut generator = of.default_generator();
            assert_eq!(of.starts(&mut generator).len(), transfers, "{mbps} Mb/s");
            let small_gap = 7_200.0 / (mbps * 450.0);
            assert_eq!(requests_in_turn(&mut generator, 9, small_gap, seconds).len(), small, "{mbps} Mb/s");
        }
    }

    /// The statements of the page: sizes have the right mean, and large flows meet at their destination.
    #[test]
    fn large_flows_meet_at_their_destinations() {
        let list = web_search(0.5, 100_000);
        let mut large: Vec<(u64, u64, &str, &str)> = Vec::new();
        let mut bytes_in_all = 0;
        for line in list.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let bytes: u64 = cells[3].trim_end_matches('B').parse().unwrap();
            let start: u64 = cells[0].trim_end_matches("ps").parse().unwrap();
            bytes_in_all += bytes;
            if bytes > 6_666 * SEGMENT_BYTES {
                large.push((start, start + bytes * 800, cells[1], cells[2]));
            }
        }
        let mean = bytes_in_all as f64 / SEGMENT_BYTES as f64 / 1e5;
        assert!((1_130.0..1_150.0).contains(&mean), "{mean} packets");
        // Pairs of which the later one starts while the earlier one would still have the link to itself.
        let meet = |same: &dyn Fn(usize, usize) -> bool| {
            let pairs = (0..large.len()).flat_map(|late| (0..late).map(move |early| (early, late)));
            pairs.filter(|(early, late)| large[*early].1 > large[*late].0 && same(*early, *late)).count()
        };
        let chance = meet(&|_, _| true) as f64 / 144.0;
        let at_destination = meet(&|early, late| large[early].3 == large[late].3) as f64;
        let at_source = meet(&|early, late| large[early].2 == large[late].2) as f64;
        assert!((1.7..1.9).contains(&(at_destination / chance)), "{at_destination} beside {chance}");
        assert!((1.0..1.25).contains(&(at_source / chance)), "{at_source} beside {chance}");
    }
}
