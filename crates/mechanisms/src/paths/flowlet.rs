//! Flowlets (Sinha, Kandula, Katabi, "Harnessing TCP's burstiness with flowlet switching", HotNets 2004):
//! a flow that has paused for longer than the paths differ in delay can change path without being reordered.
//!
//! ```text
//! table[flow hash]:  port, last packet
//! packet:  now - last > gap, or no such port  ->  choose anew      last = now
//! ```
//!
//! Flows that share an entry share its path, as in a switch: they are not distinguished. An entry's port counts only if
//! it is one of the possible ones, so that no flow takes a port that does not lead to its destination.

use plimsoll_units::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;
use crate::mechanism::{Mechanism, Section, Table};

/// Every switch sends flowlets by paths of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FlowletParams {
    /// The pause after which a flow may change its path, more than 0. It should exceed the difference of the paths'
    /// delays, queues included. Default 500 us (an assumption).
    pub gap: Span,
    /// Entries of a switch's table, 1 to 2^24; flows that fall on the same one share a path. Default 65536
    /// (an assumption).
    #[schemars(range(min = 1, max = 16_777_216))]
    pub entries: u32,
}

impl Default for FlowletParams {
    fn default() -> FlowletParams {
        FlowletParams { gap: Span::from_us(500), entries: 65_536 }
    }
}

impl Mechanism for FlowletParams {
    const TABLE: Table = Table::replaced_whole(Section::Paths, "flowlet", "a flow keeps its path");

    fn validate(&self) -> Result<(), InvalidParam> {
        InvalidParam::unless(!self.gap.is_zero(), "gap", self.gap, "more than 0s")?;
        let ok = (1..=1 << 24).contains(&self.entries);
        InvalidParam::unless(ok, "entries", self.entries, "1 to 16777216")
    }
}

/// The table of one switch's flowlets, by the hash of their connection.
#[derive(Clone, Debug)]
pub struct Flowlets {
    gap: Span,
    size: u32,
    /// Made by the first packet: many switches see none.
    entries: Vec<FlowletEntry>,
}

#[derive(Clone, Copy, Debug)]
struct FlowletEntry {
    port: u32,
    last: Time,
}

impl Flowlets {
    /// Makes an empty table of flowlets. `params` must be valid.
    pub fn new(params: &FlowletParams) -> Flowlets {
        Flowlets { gap: params.gap, size: params.entries, entries: Vec::new() }
    }

    /// Returns the port for a packet of the flow with hash `flow_hash`, 32 well mixed bits. `possible` returns whether
    /// a port leads to the packet's destination; `choose` returns one that does, and is called when a flowlet begins.
    pub fn port(
        &mut self,
        now: Time,
        flow_hash: u32,
        possible: impl FnOnce(u32) -> bool,
        choose: impl FnOnce() -> u32,
    ) -> u32 {
        if self.entries.is_empty() {
            self.entries = vec![FlowletEntry { port: NONE, last: Time::ZERO }; self.size as usize];
        }
        let index = (u64::from(flow_hash) * u64::from(self.size)) >> 32;
        let entry = &mut self.entries[index as usize];
        let paused = now.saturating_since(entry.last) > self.gap;
        if entry.port == NONE || paused || !possible(entry.port) {
            entry.port = choose();
        }
        entry.last = now;
        entry.port
    }
}

/// No port has this number.
const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn flowlets(entries: u32) -> Flowlets {
        Flowlets::new(&FlowletParams { gap: Span::from_us(100), entries })
    }

    #[test]
    fn a_flow_keeps_its_port_until_it_pauses() {
        let mut flowlets = flowlets(16);
        let mut next = 0;
        let mut at = |now| {
            next += 1;
            flowlets.port(us(now), 7 << 28, |_| true, || next)
        };
        // A gap of exactly 100 us is none; it is counted from the last packet.
        assert_eq!([0, 50, 150, 250, 351, 360, 2_000].map(&mut at), [1, 1, 1, 1, 5, 5, 7]);
    }

    #[test]
    fn a_port_that_leads_elsewhere_is_not_used() {
        let mut flowlets = flowlets(1);
        assert_eq!(flowlets.port(us(0), 1, |_| true, || 3), 3);
        // Another flow on the same entry, to a destination that port 3 does not lead to.
        assert_eq!(flowlets.port(us(1), 2, |port| port != 3, || 4), 4);
        assert_eq!(flowlets.port(us(2), 1, |_| true, || 5), 4);
    }

    #[test]
    fn ranges() {
        for (key, text) in
            [("gap", "gap = '0s'"), ("entries", "entries = 0"), ("entries", "entries = 16777217")]
        {
            let params: FlowletParams = toml::from_str(text).unwrap();
            assert_eq!(params.validate().unwrap_err().key, key);
        }
        FlowletParams::default().validate().unwrap();
        assert!(toml::from_str::<FlowletParams>("timeout = '1us'").is_err());
    }

    proptest! {
        /// Against a map of whole flows, in a table in which none shares an entry.
        #[test]
        fn follows_the_model(packets in prop::collection::vec((0u64..200, 0u32..8), 1..200)) {
            let mut flowlets = flowlets(8);
            let mut model = BTreeMap::<u32, (u64, u32)>::new();
            let mut now = 0;
            for (id, (wait, flow)) in packets.into_iter().enumerate() {
                now += wait;
                let port = match model.get(&flow) {
                    Some(&(last, port)) if now - last <= 100 => port,
                    _ => id as u32,
                };
                model.insert(flow, (now, port));
                prop_assert_eq!(flowlets.port(us(now), flow << 29, |_| true, || id as u32), port);
            }
        }
    }
}
