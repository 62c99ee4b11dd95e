//! [`BlockedSummary`]: the packets of a workload that waited for pauses in the runs of a variant, as a sentence.

use std::fmt;

use plimsoll_text::grouped;
use plimsoll_units::Span;
use serde::{Deserialize, Serialize};

use crate::outcome::BlockedWorkload;
use crate::point::PointOutcome;

/// A workload of which packets waited for pauses, in all runs of a variant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BlockedSummary {
    /// The name of the variant.
    pub variant: String,
    /// The sums over all runs of the variant.
    #[serde(flatten)]
    pub blocked: BlockedWorkload,
}

impl BlockedSummary {
    /// Adds up the runs of each of `variants`, by workload.
    pub(super) fn of(points: &[PointOutcome], variants: &[String]) -> Vec<BlockedSummary> {
        let mut all: Vec<BlockedSummary> = Vec::new();
        for variant in variants {
            let first = all.len();
            let of_variant = points.iter().filter(|point| point.key.variant == *variant);
            for blocked in of_variant.flat_map(|point| &point.outcome.blocked.workloads) {
                match all[first..].iter_mut().find(|known| known.blocked.workload == blocked.workload) {
                    Some(known) => known.blocked.merge(blocked),
                    None => all.push(BlockedSummary { variant: variant.clone(), blocked: blocked.clone() }),
                }
            }
        }
        all
    }
}

impl fmt::Display for BlockedSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BlockedSummary { variant, blocked } = self;
        let BlockedWorkload { workload, flows, victims, blocked_ns, victims_blocked_ns } = blocked;
        // To the microsecond.
        let time = |ns: u64| Span::from_us(ns.div_ceil(1_000));
        let (flows, number) = (grouped(&flows.to_string()), grouped(&victims.to_string()));
        write!(f, "{variant}: packets of `{workload}` waited {} behind pauses in all", time(*blocked_ns))?;
        match victims {
            0 => write!(f, "; none of its {flows} blocked flows is a victim"),
            _ => {
                let of_victims = time(*victims_blocked_ns);
                write!(f, ", {of_victims} of this in {number} victims among its {flows} blocked flows")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences() {
        let said = |victims, victims_blocked_ns| {
            let mut blocked = BlockedWorkload {
                workload: "bulk".into(),
                flows: 1_199,
                victims: 0,
                blocked_ns: 2_000_000,
                victims_blocked_ns: 0,
            };
            blocked.merge(&BlockedWorkload {
                workload: "bulk".into(),
                flows: 1,
                victims,
                blocked_ns: 100,
                victims_blocked_ns,
            });
            BlockedSummary { variant: "A".into(), blocked }.to_string()
        };
        let none = "A: packets of `bulk` waited 2.001ms behind pauses in all; none of its 1,200 blocked flows is a \
                    victim";
        assert_eq!(said(0, 0), none);
        let some = "A: packets of `bulk` waited 2.001ms behind pauses in all, 1us of this in 3 victims among its 1,200 \
                    blocked flows";
        assert_eq!(said(3, 90), some);
    }
}
