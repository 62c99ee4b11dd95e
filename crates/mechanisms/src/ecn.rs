//! The ECN threshold of a switch port, as DCTCP asks for (RFC 8257, section 3.1): a packet is marked
//! if the instantaneous queue is above K.
//!
//! ```text
//! enqueue:  mark if (waiting before the packet joined)   > K     (or >= K)
//! dequeue:  mark if (still waiting when the packet left)  > K     (or >= K)
//! ```
//!
//! 'Waiting' counts neither the packet itself nor one in transmission. Memoryless, so it needs no state
//! and marks every packet above K; [`crate::red`] is the marker of the ns-2 studies, which marks fewer.

use plimsoll_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mechanism::{EngineNeed, Marking, Mechanism, Section, Table};
use crate::{Depth, InvalidParam};

/// A plain ECN threshold on a port's queue. Marks only packets that can carry a mark (ECT); the others
/// are left alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EcnParams {
    /// K: the queue, in bytes or packets, from which packets are marked. The packet itself and one in
    /// transmission do not count. Default 30 KB, usual for 1 Gb/s; 65 packets are usual for 10 Gb/s.
    pub threshold: Depth,
    /// Whether a packet is judged by the queue that it finds (`enqueue`) or by the queue that it
    /// leaves behind (`dequeue`), which reports congestion one queueing delay earlier. Default
    /// `enqueue`.
    pub at: MarkAt,
    /// Whether a queue of exactly K marks (`at-least`, as the ns-2 studies did) or not (`more`, as RFC
    /// 8257 words it). Default `more`.
    pub compare: Compare,
}

impl Default for EcnParams {
    fn default() -> EcnParams {
        EcnParams { threshold: Depth::Bytes(Bytes::new(30_000)), at: MarkAt::Enqueue, compare: Compare::More }
    }
}

impl Mechanism for EcnParams {
    const TABLE: Table =
        Table::replaced_whole(Section::Port, "ecn", "the queue marks no packet at a threshold").marks_queue();

    fn marking(&self) -> Option<Marking> {
        let at_dequeue = self.at == MarkAt::Dequeue;
        Some(Marking { marks: true, thresholds: vec![self.threshold], at_dequeue })
    }

    /// At dequeue, a mark depends on the packets that wait when a packet leaves, which is unknown at its admission.
    fn engine(&self) -> EngineNeed {
        if self.at == MarkAt::Dequeue { EngineNeed::GeneralHere } else { EngineNeed::Either }
    }

    fn engine_setting(&self) -> &'static str {
        "ecn.at = \"dequeue\""
    }

    /// Checks that the threshold can be missed: zero with `at-least` would mark every packet.
    fn validate(&self) -> Result<(), InvalidParam> {
        let ok = self.threshold.count() > 0 || self.compare == Compare::More;
        InvalidParam::unless(ok, "threshold", self.threshold, "more than 0 where `compare` is `at-least`")
    }
}

/// When a packet is compared with the threshold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarkAt {
    /// The packet is compared as it joins the queue.
    Enqueue,
    /// The packet is compared as it leaves the queue.
    Dequeue,
}

/// How the queue is compared with the threshold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// The queue is longer than the threshold.
    More,
    /// The queue is as long as the threshold, or longer.
    AtLeast,
}

/// Marks the packets of one queue by its length: a rule without state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ecn(EcnParams);

impl Ecn {
    /// Makes the rule that `params` describe.
    pub fn new(params: &EcnParams) -> Ecn {
        Ecn(*params)
    }

    /// Whether packets are judged as they leave.
    pub fn marks_at_dequeue(&self) -> bool {
        self.0.at == MarkAt::Dequeue
    }

    /// Returns whether a packet that joins behind `waiting_bytes` in `waiting_packets` must be marked now.
    #[inline]
    pub fn on_enqueue(&self, waiting_bytes: u64, waiting_packets: u64) -> bool {
        self.0.at == MarkAt::Enqueue && self.is_over(waiting_bytes, waiting_packets)
    }

    /// Returns whether a packet that leaves `waiting_bytes` in `waiting_packets` behind must be marked now.
    #[inline]
    pub fn on_dequeue(&self, waiting_bytes: u64, waiting_packets: u64) -> bool {
        self.0.at == MarkAt::Dequeue && self.is_over(waiting_bytes, waiting_packets)
    }

    fn is_over(&self, bytes: u64, packets: u64) -> bool {
        let (waiting, threshold) = (self.0.threshold.pick(bytes, packets), self.0.threshold.count());
        match self.0.compare {
            Compare::More => waiting > threshold,
            Compare::AtLeast => waiting >= threshold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ecn(text: &str) -> Ecn {
        let params: EcnParams = toml::from_str(text).unwrap();
        params.validate().unwrap();
        Ecn::new(&params)
    }

    #[test]
    fn strictly_more_by_default() {
        let rule = ecn("threshold = '30KB'");
        assert!(!rule.on_enqueue(30_000, 31));
        assert!(rule.on_enqueue(30_001, 31));
        assert!(!rule.on_dequeue(90_000, 91));
    }

    #[test]
    fn at_least_marks_at_the_threshold() {
        let rule = ecn("threshold = '65 packets'\ncompare = 'at-least'");
        assert!(!rule.on_enqueue(1_000_000, 64));
        assert!(rule.on_enqueue(0, 65));
    }

    #[test]
    fn dequeue_looks_at_what_is_left_behind() {
        let rule = ecn("threshold = '30KB'\nat = 'dequeue'");
        assert!(!rule.on_enqueue(90_000, 91));
        assert!(rule.on_dequeue(30_001, 31));
    }

    #[test]
    fn a_threshold_that_always_marks_is_an_error() {
        let text = "threshold = '0 packets'\ncompare = 'at-least'";
        let params: EcnParams = toml::from_str(text).unwrap();
        assert_eq!(params.validate().unwrap_err().key, "threshold");
        assert!(toml::from_str::<EcnParams>("thresh = '30KB'").is_err());
    }
}
