//! DeTail's adaptive load balancing (SIGCOMM 2012): each packet leaves by a port that is *good*, not by the
//! best one, which would take too many comparisons.
//!
//! ```text
//! drain bytes(port, p)  bytes that must leave before a new packet of priority p:
//!                       all that wait at the port with the same or a higher priority
//!
//!      band 0        band 1          band 2           thresholds, 16 KB and 64 KB
//! |-------------|-------------|------------------->   drain bytes
//!             16 KB         64 KB
//!
//! choose   the ports of the lowest band; of these the shortest paths, if there are any; of these any,
//!          by chance
//! ```
//!
//! It needs hop-by-hop flow control ([`crate::pfc`]): a switch's own queue reflects the state of a path only because
//! congestion further on holds packets back.

use plimsoll_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::uniform;
use crate::InvalidParam;
use crate::mechanism::{EngineNeed, Mechanism, Section, Table};

/// Adaptive load balancing of DeTail: each packet takes a port whose queue for its priority is short.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdaptiveParams {
    /// The drain bytes that divide ports into bands, in rising order, up to 15 of them. Fewer bytes than the
    /// first are the best band. Default `["16KB", "64KB"]` (our choice: DeTail's own could not be
    /// confirmed).
    pub thresholds: Vec<Bytes>,
}

impl Default for AdaptiveParams {
    fn default() -> AdaptiveParams {
        AdaptiveParams { thresholds: vec![Bytes::new(16_000), Bytes::new(64_000)] }
    }
}

impl Mechanism for AdaptiveParams {
    const TABLE: Table =
        Table::replaced_whole(Section::Paths, "adaptive", "the load does not choose the path")
            .needs(EngineNeed::GeneralAtSwitches);

    fn validate(&self) -> Result<(), InvalidParam> {
        let count = self.thresholds.len();
        InvalidParam::unless(count <= 15, "thresholds", count, "at most 15 of them")?;
        let rises = self.thresholds.is_sorted_by(|a, b| a < b);
        let shown = self.thresholds.iter().map(Bytes::to_string).collect::<Vec<_>>().join(", ");
        InvalidParam::unless(rises, "thresholds", shown, "each more than the one before")
    }
}

/// Counts the bytes that wait at one port, by priority.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DrainBytes {
    /// Bytes that wait with this or a higher priority.
    ahead: [u64; PRIORITIES],
}

impl DrainBytes {
    /// A packet of `bytes` bytes joins the port's queue with `priority`, 0 to 7, 7 being served first.
    ///
    /// # Panics
    /// If `priority` is 8 or more.
    #[inline]
    pub fn on_enqueue(&mut self, priority: u8, bytes: u64) {
        for ahead in &mut self.ahead[..=usize::from(priority)] {
            *ahead += bytes;
        }
    }

    /// A packet of `bytes` bytes and `priority` leaves the queue, sent or dropped.
    ///
    /// # Panics
    /// If `priority` is 8 or more, or as many bytes are not there: bytes would have been made up.
    #[inline]
    pub fn on_dequeue(&mut self, priority: u8, bytes: u64) {
        for ahead in &mut self.ahead[..=usize::from(priority)] {
            assert!(*ahead >= bytes, "more leaves than is waiting");
            *ahead -= bytes;
        }
    }

    /// Bytes that must leave before a new packet of `priority`.
    ///
    /// # Panics
    /// If `priority` is 8 or more.
    #[inline]
    pub fn of(&self, priority: u8) -> u64 {
        self.ahead[usize::from(priority)]
    }
}

/// A packet may leave by this port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CandidatePort {
    /// The index of the port among the candidates.
    pub port: u32,
    /// Its drain bytes for the packet's priority.
    pub drain_bytes: u64,
    /// Whether it is on a shortest path. Others are taken only if they are in a better band.
    pub shortest: bool,
}

/// The rule, without state: the switch keeps a [`DrainBytes`] for each port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Adaptive {
    thresholds: [u64; THRESHOLDS_MAX],
    count: usize,
}

impl Adaptive {
    /// The rule that `params`, which must be valid, describe.
    pub fn new(params: &AdaptiveParams) -> Adaptive {
        let mut thresholds = [0; THRESHOLDS_MAX];
        for (slot, threshold) in thresholds.iter_mut().zip(&params.thresholds) {
            *slot = threshold.get();
        }
        Adaptive { thresholds, count: params.thresholds.len().min(THRESHOLDS_MAX) }
    }

    /// Returns the band of a port with `drain` bytes, 0 the best.
    #[inline]
    pub fn band(&self, drain_bytes: u64) -> usize {
        self.thresholds[..self.count].iter().take_while(|threshold| drain_bytes >= **threshold).count()
    }

    /// Returns the port by which a packet leaves; `None` without a candidate. It iterates over `candidates` twice.
    pub fn choose(
        &self,
        candidates: impl Iterator<Item = CandidatePort> + Clone,
        draw: impl FnOnce() -> u64,
    ) -> Option<u32> {
        let order = |candidate: &CandidatePort| (self.band(candidate.drain_bytes), !candidate.shortest);
        let mut best = (usize::MAX, true);
        let mut equals = 0;
        for candidate in candidates.clone() {
            let this = order(&candidate);
            if this < best {
                (best, equals) = (this, 1);
            } else if this == best {
                equals += 1;
            }
        }
        let chosen = uniform(equals, draw) as usize;
        let mut good = candidates.filter(|candidate| order(candidate) == best);
        good.nth(chosen).map(|candidate| candidate.port)
    }
}

/// 802.1Q has eight priorities.
const PRIORITIES: usize = 8;
const THRESHOLDS_MAX: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn adaptive() -> Adaptive {
        Adaptive::new(&AdaptiveParams::default())
    }

    fn candidates(of: &[(u64, bool)]) -> Vec<CandidatePort> {
        let numbered = of.iter().zip(0..);
        numbered
            .map(|(&(drain_bytes, shortest), port)| CandidatePort { port, drain_bytes, shortest })
            .collect()
    }

    /// The ports that draws all over their range lead to.
    fn reached(of: &[(u64, bool)]) -> Vec<u32> {
        let candidates = candidates(of);
        let draw = |nth: u64| adaptive().choose(candidates.iter().copied(), || nth << 58).unwrap();
        let mut ports: Vec<_> = (0..64).map(draw).collect();
        ports.dedup();
        ports
    }

    #[test]
    fn bands() {
        let bands = [0, 15_999, 16_000, 63_999, 64_000, u64::MAX].map(|bytes| adaptive().band(bytes));
        assert_eq!(bands, [0, 0, 1, 1, 2, 2]);
        let none = Adaptive::new(&AdaptiveParams { thresholds: vec![] });
        assert_eq!(none.band(u64::MAX), 0);
    }

    #[test]
    fn any_port_of_the_best_band() {
        // The choice is not limited to the emptiest port.
        assert_eq!(reached(&[(15_000, true), (20_000, true), (0, true), (90_000, true)]), [0, 2]);
        assert_eq!(reached(&[(70_000, true), (20_000, true), (63_000, true)]), [1, 2]);
        assert_eq!(reached(&[(70_000, true), (1 << 40, true)]), [0, 1]);
    }

    #[test]
    fn shortest_paths_first_within_a_band() {
        assert_eq!(reached(&[(0, false), (15_000, true), (1, false), (2, true)]), [1, 3]);
        // But a longer path in a better band has precedence.
        assert_eq!(reached(&[(15_000, false), (16_000, true), (3, false)]), [0, 2]);
    }

    #[test]
    fn without_a_choice_nothing_is_drawn() {
        let no_draw = || -> u64 { panic!("a draw was taken") };
        let of = |of: &[(u64, bool)]| adaptive().choose(candidates(of).into_iter(), no_draw);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(1 << 40, false)]), Some(0));
        assert_eq!(of(&[(0, false), (0, true)]), Some(1));
    }

    #[test]
    fn what_waits_ahead() {
        let mut port = DrainBytes::default();
        port.on_enqueue(0, 1);
        port.on_enqueue(3, 20);
        port.on_enqueue(7, 300);
        let ahead: Vec<_> = (0..8).map(|priority| port.of(priority)).collect();
        assert_eq!(ahead, [321, 320, 320, 320, 300, 300, 300, 300]);
        port.on_dequeue(3, 20);
        assert_eq!((port.of(0), port.of(2), port.of(7)), (301, 300, 300));
    }

    #[test]
    fn ranges() {
        AdaptiveParams::default().validate().unwrap();
        for text in ["thresholds = ['2KB', '2KB']", "thresholds = ['2KB', '1KB']"] {
            let params: AdaptiveParams = toml::from_str(text).unwrap();
            let error = params.validate().unwrap_err();
            assert!(error.key == "thresholds" && error.value.starts_with("2KB, "), "{error}");
        }
        let many = AdaptiveParams { thresholds: (1..=16).map(Bytes::new).collect() };
        assert!(many.validate().is_err());
        assert!(toml::from_str::<AdaptiveParams>("bands = 3").is_err());
    }

    proptest! {
        /// Drain bytes agree with sums over the waiting packets, at each packet.
        #[test]
        fn drain_bytes_follow_the_queue(ops in prop::collection::vec((any::<bool>(), 0u8..8, 1u64..9_000), 1..100)) {
            let mut port = DrainBytes::default();
            let mut waiting: Vec<(u8, u64)> = Vec::new();
            for (joins, priority, bytes) in ops {
                if joins {
                    port.on_enqueue(priority, bytes);
                    waiting.push((priority, bytes));
                } else if !waiting.is_empty() {
                    let (priority, bytes) = waiting.swap_remove(bytes as usize % waiting.len());
                    port.on_dequeue(priority, bytes);
                }
                for priority in 0..8 {
                    let ahead = waiting.iter().filter(|packet| packet.0 >= priority);
                    prop_assert_eq!(port.of(priority), ahead.map(|packet| packet.1).sum::<u64>());
                }
            }
        }

        /// The choice is among the best, and every port as good can be chosen.
        #[test]
        fn the_choice_is_the_best_class(
            of in prop::collection::vec((0u64..100_000, any::<bool>()), 1..20),
            draw in any::<u64>(),
        ) {
            let rule = adaptive();
            let all = candidates(&of);
            let class = |port: &CandidatePort| 2 * rule.band(port.drain_bytes) + usize::from(!port.shortest);
            let best = all.iter().map(class).min().unwrap();
            let good: Vec<_> = all.iter().filter(|candidate| class(candidate) == best).collect();
            let chosen = rule.choose(all.iter().copied(), || draw).unwrap();
            let expected = good[uniform(good.len() as u32, || draw) as usize].port;
            prop_assert_eq!(chosen, expected);
        }
    }
}
