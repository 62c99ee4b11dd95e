//! Packet spraying: each packet takes any of the shortest paths, by chance or in turn.
//!
//! In turn means one counter per switch and destination host, shared by all flows, data and acknowledgements, as in the
//! ns-2 code that QJump and pFabric were simulated with. Counters of different destinations are independent, so that a
//! switch's ports are loaded evenly only on average.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::uniform;
use crate::mechanism::{Mechanism, Section, Table};

/// Every switch sprays packets over all shortest paths.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SprayParams {
    /// How a packet's path is chosen: `random`, or `round-robin`, by a counter per destination host.
    /// Default `random`.
    pub by: SprayBy,
}

impl Mechanism for SprayParams {
    const TABLE: Table = Table::replaced_whole(Section::Paths, "spray", "packets are not sprayed");
}

/// The rule by which the path of a packet is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SprayBy {
    /// The path is drawn uniformly.
    #[default]
    Random,
    /// The paths take turns, for each destination host.
    RoundRobin,
}

/// Selects a path for each packet of one switch, at random or in turn.
#[derive(Clone, Debug)]
pub struct Spray {
    by: SprayBy,
    /// The turn of each destination host; as long as the highest host so far.
    turns: Vec<u32>,
}

impl Spray {
    /// Returns the state before the first packet; every destination begins with its first candidate.
    pub fn new(params: &SprayParams) -> Spray {
        Spray { by: params.by, turns: Vec::new() }
    }

    /// Returns the candidate, of `0..count`, that the next packet to `destination` takes; 0 if `count` is at most 1.
    /// `count` may change, as links fail and come back.
    #[inline]
    pub fn choose(&mut self, destination: u32, count: u32, draw: impl FnOnce() -> u64) -> u32 {
        match self.by {
            SprayBy::Random => uniform(count, draw),
            SprayBy::RoundRobin => self.turn(destination as usize, count),
        }
    }

    /// Returns the candidate that [`Spray::choose`] will return if no other packet is before; `draw` returns what it
    /// will draw.
    pub fn likely(&self, destination: u32, count: u32, draw: impl FnOnce() -> u64) -> u32 {
        match self.by {
            SprayBy::Random => uniform(count, draw),
            SprayBy::RoundRobin => self.next_turn(destination as usize, count),
        }
    }

    fn turn(&mut self, destination: usize, count: u32) -> u32 {
        if count <= 1 {
            return 0;
        }
        if destination >= self.turns.len() {
            self.turns.resize(destination + 1, 0);
        }
        let now = self.next_turn(destination, count);
        self.turns[destination] = now + 1;
        now
    }

    fn next_turn(&self, destination: usize, count: u32) -> u32 {
        self.turns.get(destination).copied().filter(|turn| *turn < count).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spray(text: &str) -> Spray {
        Spray::new(&toml::from_str(text).unwrap())
    }

    fn no_draw() -> u64 {
        panic!("a draw was taken")
    }

    #[test]
    fn in_turn_for_each_destination() {
        let mut spray = spray("by = 'round-robin'");
        let order = [(5, 0), (5, 1), (2, 0), (5, 2), (2, 1), (5, 3), (5, 0), (2, 2)];
        for (destination, port) in order {
            assert_eq!(spray.choose(destination, 4, no_draw), port);
        }
        // A link less: 1 was next, then 2 is too many.
        assert_eq!([2, 2, 2, 1, 2].map(|count| spray.choose(5, count, no_draw)), [1, 0, 1, 0, 0]);
    }

    #[test]
    fn by_chance() {
        let mut spray = spray("");
        let draws = [0, 1 << 62, 1 << 63, 3 << 62, u64::MAX];
        assert_eq!(draws.map(|draw| spray.choose(5, 4, || draw)), [0, 1, 2, 3, 3]);
        assert_eq!(spray.choose(5, 1, no_draw), 0);
        assert!(toml::from_str::<SprayParams>("by = 'turn'").is_err());
    }

    proptest! {
        /// In any run of packets to one destination, the paths' numbers of packets differ by at most one.
        #[test]
        fn turns_are_fair(packets in prop::collection::vec(0u32..3, 1..200), count in 2u32..6) {
            let mut spray = spray("by = 'round-robin'");
            let mut sent = vec![[0u32; 3]; count as usize];
            for destination in packets {
                let likely = spray.likely(destination, count, no_draw);
                let port = spray.choose(destination, count, no_draw);
                prop_assert_eq!(likely, port);
                sent[port as usize][destination as usize] += 1;
                let to = |port: &[u32; 3]| port[destination as usize];
                let (most, least) = (sent.iter().map(to).max().unwrap(), sent.iter().map(to).min().unwrap());
                prop_assert!(most <= least + 1);
            }
        }
    }
}
