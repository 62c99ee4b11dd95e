//! [`SlowdownBySize`]: completion times of messages over their times on idle links, by size.
//!
//! Buckets of sizes end at 1, 2 and 5 of every decade, so that two variants have the same buckets. A percentile is
//! given where the messages of a bucket reach beyond it: p99 from a hundred on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::outcome::{MessageRecord, Outcome};
use crate::stats::percentile;

/// Completion time over that on idle links ([`crate::outcome::MessageRecord::ideal`]), by size.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SlowdownBySize {
    /// The name of the variant.
    pub variant: String,
    /// Swept keys and their values.
    pub sweep: Vec<(String, String)>,
    /// The name of the workload.
    pub workload: String,
    /// The buckets that have messages, ascending.
    pub buckets: Vec<Bucket>,
}

/// The messages whose sizes are within one range, and their slowdowns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Bucket {
    /// The lower end of the range in bytes, exclusive.
    pub above: u64,
    /// The largest size of these messages in bytes.
    pub up_to: u64,
    /// The number of these messages that completed.
    pub messages: u64,
    /// Percentiles of their slowdown, in the order of [`SHARES`].
    pub slowdown: [Option<f64>; 3],
}

/// The percentiles of a [`Bucket`], with their names.
pub const SHARES: [(f64, &str); 3] = [(0.5, "p50"), (0.95, "p95"), (0.99, "p99")];

/// Returns the buckets of a workload over its runs: messages that count and completed. Empty where all have about one
/// size.
pub(crate) fn buckets(workload: &str, outcomes: &[&Outcome]) -> Vec<Bucket> {
    let mut by_edge: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for outcome in outcomes {
        for message in counted(workload, outcome) {
            if let Some(slowdown) = message.slowdown() {
                by_edge.entry(edge(message.bytes)).or_default().push(slowdown);
            }
        }
    }
    if by_edge.len() < 2 {
        return Vec::new();
    }
    by_edge
        .into_iter()
        .map(|(up_to, mut slowdowns)| {
            slowdowns.sort_unstable_by(f64::total_cmp);
            let slowdown = SHARES.map(|(share, _)| {
                let beyond = slowdowns.len() as f64 * (1.0 - share);
                percentile(&slowdowns, share).filter(|_| beyond >= 1.0 - 1e-9)
            });
            Bucket { above: edge_below(up_to), up_to, messages: slowdowns.len() as u64, slowdown }
        })
        .collect()
}

/// Returns the messages of a workload that were created after the warm-up and have an ideal time.
pub(crate) fn counted<'a>(
    workload: &str,
    outcome: &'a Outcome,
) -> impl Iterator<Item = &'a MessageRecord> + use<'a> {
    let number = outcome.workloads.iter().position(|known| known.name == workload);
    let is_counted = move |message: &&MessageRecord| {
        Some(usize::from(message.workload)) == number
            && message.created.as_ps() >= outcome.warmup.as_ps()
            && !message.ideal.is_zero()
    };
    outcome.messages.iter().filter(is_counted)
}

/// The end of the bucket of a size: the least of 1, 2, 5, 10, 20, ... that is not below it.
fn edge(bytes: u64) -> u64 {
    edges().find(|edge| *edge >= bytes).unwrap_or(u64::MAX)
}

fn edge_below(edge: u64) -> u64 {
    edges().take_while(|below| *below < edge).last().unwrap_or(0)
}

fn edges() -> impl Iterator<Item = u64> {
    (0..20).flat_map(|decade| [1, 2, 5].map(|step| 10u64.pow(decade).saturating_mul(step)))
}

#[cfg(test)]
mod tests {
    use plimsoll_units::{Span, Time};

    use super::*;
    use crate::outcome::{Split, Supply, WorkloadInfo};

    fn outcome(sizes: impl Iterator<Item = (u64, u64)>) -> Outcome {
        let info = WorkloadInfo {
            name: "w".to_owned(),
            kind: "flows".to_owned(),
            deadline: None,
            observed: None,
            supply: Supply::Duration,
            groups: Vec::new(),
        };
        let message = |(index, (bytes, factor)): (usize, (u64, u64))| MessageRecord {
            workload: 0,
            index: index as u64,
            query: None,
            source: 0,
            destination: 1,
            bytes,
            created: Time::ZERO,
            completed: Some(Time::ZERO + Span::from_us(10 * factor)),
            ideal: Span::from_us(10),
            split: Split::default(),
        };
        Outcome {
            workloads: vec![info],
            messages: sizes.enumerate().map(message).collect(),
            ..Outcome::default()
        }
    }

    #[test]
    fn sizes_fall_into_steps_of_1_2_5() {
        for (bytes, above, up_to) in
            [(1, 0, 1), (2, 1, 2), (3, 2, 5), (1_000, 500, 1_000), (1_001, 1_000, 2_000)]
        {
            assert_eq!((edge_below(edge(bytes)), edge(bytes)), (above, up_to), "{bytes}");
        }
        assert!(edge(u64::MAX) >= 10_000_000_000_000_000_000);
    }

    #[test]
    fn percentiles_are_of_the_bucket_and_only_where_it_reaches_beyond_them() {
        let small = (1..=200).map(|factor| (900, factor));
        let large = (0..15).map(|_| (1_000_000, 3));
        let outcome = outcome(small.chain(large));
        let found = buckets("w", &[&outcome]);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].above, found[0].up_to, found[0].messages), (500, 1_000, 200));
        let [p50, p95, p99] = found[0].slowdown.map(Option::unwrap);
        assert!((p50 - 100.0).abs() <= 1.0 && (p95 - 190.0).abs() <= 1.0 && (p99 - 198.0).abs() <= 1.0);
        assert_eq!(found[1].slowdown, [Some(3.0), None, None]);
    }

    #[test]
    fn one_size_has_no_curve() {
        assert!(buckets("w", &[&outcome((1..50).map(|factor| (900, factor)))]).is_empty());
        assert!(buckets("other", &[&outcome((1..50).map(|n| (n * 100, n)))]).is_empty());
    }
}
