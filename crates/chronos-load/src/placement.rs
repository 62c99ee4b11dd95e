//! [`KeyPlacement`] maps keys to servers.

use clap::ValueEnum;

use crate::draws::mix64;

/// The function that maps keys to servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Sharding {
    /// The key's hash modulo the number of servers: even, but most keys move when a server is added or removed.
    Modulo,
    /// A ring of 160 points a server, as in libketama: only one server's keys move when it is added or removed. Points
    /// and keys are hashed by this program's own function, so other clients have a different ring.
    Ketama,
}

/// The mapping of keys to servers.
#[derive(Clone, Debug)]
pub struct KeyPlacement {
    servers: u32,
    /// The points of the ring with their servers, in order; empty for modulo.
    ring: Vec<(u64, u32)>,
}

impl KeyPlacement {
    /// Creates a mapping to the servers of these names, at least one.
    pub fn new(sharding: Sharding, names: &[String]) -> KeyPlacement {
        let servers = names.len() as u32;
        let mut ring = Vec::new();
        if sharding == Sharding::Ketama {
            for (server, name) in (0..servers).zip(names) {
                let start = name.bytes().fold(NAME, |hash, byte| mix64(hash ^ u64::from(byte)));
                ring.extend((0..POINTS).map(|point| (mix64(start ^ point), server)));
            }
            ring.sort_unstable();
        }
        KeyPlacement { servers, ring }
    }

    /// Returns the number of servers.
    pub fn servers(&self) -> u32 {
        self.servers
    }

    /// Returns the server of `key`.
    pub fn owner(&self, key: u64) -> u32 {
        if self.servers == 1 {
            return 0;
        }
        let hash = mix64(key ^ NAME);
        if self.ring.is_empty() {
            return (hash % u64::from(self.servers)) as u32;
        }
        let next = self.ring.partition_point(|&(point, _)| point < hash);
        self.ring.get(next).unwrap_or(&self.ring[0]).1
    }
}

/// The number of points of a server on the ring.
const POINTS: u64 = 160;
const NAME: u64 = 0x7365_7276_6572_0001;

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(placement: &KeyPlacement) -> Vec<u32> {
        let mut counts = vec![0; placement.servers() as usize];
        (0..100_000).for_each(|key| counts[placement.owner(key) as usize] += 1);
        counts
    }

    fn names(count: u32) -> Vec<String> {
        (0..count).map(|server| format!("10.0.0.{server}:11211")).collect()
    }

    #[test]
    fn modulo_is_even() {
        let counts = shares(&KeyPlacement::new(Sharding::Modulo, &names(4)));
        // The standard deviation is 137.
        assert!(counts.iter().all(|&count| count.abs_diff(25_000) < 700), "{counts:?}");
    }

    #[test]
    fn a_server_more_takes_only_its_own_keys_from_the_ring() {
        let (four, five) =
            (KeyPlacement::new(Sharding::Ketama, &names(4)), KeyPlacement::new(Sharding::Ketama, &names(5)));
        // With 160 points, shares are within about 3 / sqrt(160) of the mean.
        assert!(shares(&five).iter().all(|&count| count.abs_diff(20_000) < 5_000), "{:?}", shares(&five));
        let moved = (0..100_000).filter(|&key| four.owner(key) != five.owner(key));
        assert!(moved.clone().count() > 10_000);
        assert!(moved.clone().all(|key| five.owner(key) == 4));
    }
}
