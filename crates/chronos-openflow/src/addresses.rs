//! [`Addresses`]: the port of each station of one switch. The table is bounded, and entries expire.
//!
//! ```text
//! (VLAN, MAC address) ──> port, last heard          a hand goes round the entries, as in the CLOCK page replacement:
//!                                                   it drops the expired, and where there is no room, the oldest of
//!                                                   the next few
//! ```
//!
//! Least-recently-used order is kept approximately: exact order costs two more links an entry and a write to three
//! entries for each packet.

use indexmap::IndexMap;
use plimsoll_openflow::Ethernet;

/// A switch's table of stations.
#[derive(Default)]
pub struct Addresses {
    entries: IndexMap<u64, StationEntry>,
    hand: usize,
}

/// The size of a table, and the age at which its entries expire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The largest number of entries, 1 or more.
    pub entries: usize,
    /// Seconds without a packet after which a station is forgotten, 1 or more.
    pub age_seconds: u32,
}

/// The change made by learning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Learned {
    /// Only the time was updated.
    Known,
    /// The station was not known.
    New,
    /// The station was behind this other port.
    Moved,
}

#[derive(Clone, Copy)]
struct StationEntry {
    port: u32,
    heard_seconds: u32,
}

impl Addresses {
    /// Learns from a frame that arrived by `port`: its sender is behind it.
    pub fn learn(&mut self, frame: &Ethernet, port: u32, now_seconds: u32, limits: Limits) -> Learned {
        let heard = StationEntry { port, heard_seconds: now_seconds };
        let station = key(frame.source, frame.vlan);
        if let Some(entry) = self.entries.get_mut(&station) {
            let before = std::mem::replace(entry, heard);
            return match (before.is_fresh(now_seconds, limits), before.port == port) {
                (false, _) => Learned::New,
                (true, true) => Learned::Known,
                (true, false) => Learned::Moved,
            };
        }
        if self.entries.len() >= limits.entries {
            self.make_room();
        }
        self.entries.insert(station, heard);
        Learned::New
    }

    /// Returns the port behind which the frame's receiver is, if the receiver has sent lately.
    pub fn find(&self, frame: &Ethernet, now_seconds: u32, limits: Limits) -> Option<u32> {
        let entry = self.entries.get(&key(frame.destination, frame.vlan))?;
        entry.is_fresh(now_seconds, limits).then_some(entry.port)
    }

    /// Removes all stations behind `port`.
    pub fn forget_port(&mut self, port: u32) {
        self.entries.retain(|_, entry| entry.port != port);
    }

    /// Examines the next `count` entries and drops the expired.
    pub fn sweep(&mut self, count: usize, now_seconds: u32, limits: Limits) {
        for _ in 0..count.min(self.entries.len()) {
            let index = self.at_hand();
            if self.entries[index].is_fresh(now_seconds, limits) {
                self.hand = index + 1;
            } else {
                // The last entry moves here, and is examined next.
                self.entries.swap_remove_index(index);
            }
        }
    }

    /// Returns the number of known stations, including expired ones that are not swept away yet.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Reports whether no station is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn make_room(&mut self) {
        /// Entries that are compared.
        const SAMPLE: usize = 8;
        let start = self.at_hand();
        let sample = (start..start + SAMPLE).map(|index| index % self.entries.len());
        let oldest = sample.min_by_key(|&index| self.entries[index].heard_seconds);
        self.hand = start + SAMPLE;
        self.entries.swap_remove_index(oldest.expect("the sample is not empty"));
    }

    fn at_hand(&self) -> usize {
        if self.hand < self.entries.len() { self.hand } else { 0 }
    }
}

impl StationEntry {
    fn is_fresh(&self, now_seconds: u32, limits: Limits) -> bool {
        now_seconds.saturating_sub(self.heard_seconds) < limits.age_seconds
    }
}

/// VLANs learn independently of each other (802.1Q); frames without a tag are one of their own.
fn key(address: [u8; 6], vlan: Option<u16>) -> u64 {
    let [a, b, c, d, e, f] = address;
    u64::from(vlan.unwrap_or(u16::MAX)) << 48 | u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits { entries: 16, age_seconds: 10 };

    fn frame(from: u8, to: u8) -> Ethernet {
        Ethernet { source: [2, 0, 0, 0, 0, from], destination: [2, 0, 0, 0, 0, to], vlan: None }
    }

    #[test]
    fn stations_are_learnt_move_and_expire() {
        let mut table = Addresses::default();
        assert_eq!(table.learn(&frame(1, 2), 7, 100, LIMITS), Learned::New);
        assert_eq!(table.learn(&frame(1, 2), 7, 101, LIMITS), Learned::Known);
        assert_eq!(table.find(&frame(2, 1), 110, LIMITS), Some(7));
        assert_eq!(table.learn(&frame(1, 2), 8, 105, LIMITS), Learned::Moved);
        assert_eq!(table.find(&frame(2, 1), 114, LIMITS), Some(8));
        assert_eq!(table.find(&frame(2, 1), 115, LIMITS), None);
        assert_eq!(table.find(&Ethernet { vlan: Some(5), ..frame(2, 1) }, 106, LIMITS), None);
        assert_eq!(table.learn(&frame(1, 2), 7, 115, LIMITS), Learned::New);
        table.forget_port(7);
        assert!(table.is_empty());
    }

    #[test]
    fn a_full_table_forgets_old_stations_first() {
        let mut table = Addresses::default();
        for station in 0..16 {
            table.learn(&frame(station, 0), 1, u32::from(station == 3), LIMITS);
        }
        for station in 100..108 {
            table.learn(&frame(station, 0), 1, 2, LIMITS);
        }
        assert_eq!(table.len(), 16);
        let known = |station| table.find(&frame(0, station), 3, LIMITS).is_some();
        assert!((100..108).all(known));
        assert!(known(3), "heard after the others");
    }

    proptest! {
        /// Compared with a map without limits: the table has the port that was learned last, never older than the age;
        /// nothing is removed early while there is room.
        #[test]
        fn as_a_plain_map(packets in prop::collection::vec((0..24_u8, 0..3_u32, 0..4_u32), 0..300)) {
            let mut table = Addresses::default();
            let mut heard = std::collections::HashMap::new();
            let mut now = 0;
            for (station, port, pause) in packets {
                now += pause;
                table.learn(&frame(station, 0), port, now, LIMITS);
                table.sweep(2, now, LIMITS);
                heard.insert(station, (port, now));
                prop_assert!(table.len() <= LIMITS.entries);
                for station in 0..24 {
                    let expected = heard.get(&station).filter(|(_, at)| now - at < LIMITS.age_seconds);
                    let found = table.find(&frame(0, station), now, LIMITS);
                    prop_assert!(found.is_none() || found == expected.map(|&(port, _)| port));
                    prop_assert!(found.is_some() || expected.is_none() || heard.len() > LIMITS.entries);
                }
            }
        }
    }
}
