//! [`LatencyOverTime`]: the p50 and the p99 of a workload by slot of time, over all replicates of a point.
//!
//! A message belongs to the slot in which it was created. One that never completed is slower than all that did, so a
//! percentile that falls on it is unknown. A slot has a p99 from a hundred messages on. The slots hold two hundred on
//! average, and their length is 1, 2 or 5 times a power of ten, so that two variants usually have the same slots.

use plimsoll_units::Time;
use serde::{Deserialize, Serialize};

use crate::stats::percentile;

/// Least number of messages of a slot with percentiles: a p99 of fewer would be their maximum.
const LEAST_MESSAGES: usize = 100;

/// Mean number of messages of a slot, where the run is not so long that the limit of slots decides.
const MEAN_MESSAGES: usize = 200;

/// Least number of slots that are worth a figure.
const LEAST_SLOTS: usize = 3;

/// The latency of a workload over time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LatencyOverTime {
    /// The name of the variant.
    pub variant: String,
    /// Swept keys and their values.
    pub sweep: Vec<(String, String)>,
    /// The name of the workload.
    pub workload: String,
    /// The slots that have percentiles, in the order of time.
    pub slots: Vec<LatencySlot>,
}

/// The messages that were created in one slot of time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LatencySlot {
    /// Middle of the slot in ms.
    pub ms: f64,
    /// Messages that were created in it.
    pub messages: u64,
    /// The median of their latencies in us.
    pub p50_us: f64,
    /// The 99th percentile of their latencies in us.
    pub p99_us: f64,
}

/// Returns at most `most` slots of values in us by their beginning, where `None` did not complete. Empty where there
/// are too few values for three slots.
pub(crate) fn slots(begun: &[(Time, Option<f64>)], most: usize) -> Vec<LatencySlot> {
    let times = || begun.iter().map(|(time, _)| time.as_ps());
    let wanted = (begun.len() / MEAN_MESSAGES).min(most);
    let (Some(from), Some(until)) = (times().min(), times().max()) else { return Vec::new() };
    if wanted < LEAST_SLOTS {
        return Vec::new();
    }
    let length = round_up((until - from) / wanted as u64 + 1);
    let first = from / length;
    let mut by_slot: Vec<Vec<f64>> = vec![Vec::new(); (until / length - first + 1) as usize];
    for (time, us) in begun {
        by_slot[(time.as_ps() / length - first) as usize].push(us.unwrap_or(f64::INFINITY));
    }
    let slot = |(number, mut us): (usize, Vec<f64>)| {
        us.sort_unstable_by(f64::total_cmp);
        let known = |share| percentile(&us, share).filter(|us| us.is_finite());
        let middle = (first + number as u64) as f64 + 0.5;
        (us.len() >= LEAST_MESSAGES).then_some(())?;
        Some(LatencySlot {
            ms: middle * length as f64 / 1e9,
            messages: us.len() as u64,
            p50_us: known(0.5)?,
            p99_us: known(0.99)?,
        })
    };
    let slots: Vec<LatencySlot> = by_slot.into_iter().enumerate().filter_map(slot).collect();
    // One slot is no change over time.
    if slots.len() > 1 { slots } else { Vec::new() }
}

/// Returns the least of 1, 2, 5, 10, 20, ... that is not below `value`.
fn round_up(value: u64) -> u64 {
    let decades = (0..19).map(|decade| 10u64.pow(decade));
    let steps = decades.flat_map(|decade| [1, 2, 5].map(|step| decade.saturating_mul(step)));
    steps.into_iter().find(|step| *step >= value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use plimsoll_units::Span;

    use super::*;

    /// One message a microsecond for 2 ms: 10 us long, 100 us in the third quarter.
    fn burst() -> Vec<(Time, Option<f64>)> {
        let at =
            |n: u64| (Time::ZERO + Span::from_us(1_000 + n), Some(if n / 500 == 2 { 100.0 } else { 10.0 }));
        (0..2_000).map(at).collect()
    }

    #[test]
    fn a_burst_is_in_the_slots_of_its_time_and_no_other() {
        let slots = slots(&burst(), 100);
        let ms: Vec<f64> = slots.iter().map(|slot| slot.ms).collect();
        assert_eq!(ms, [1.1, 1.3, 1.5, 1.7, 1.9, 2.1, 2.3, 2.5, 2.7, 2.9]);
        assert!(slots.iter().all(|slot| slot.messages == 200));
        let p99: Vec<f64> = slots.iter().map(|slot| slot.p99_us).collect();
        assert_eq!(p99, [10.0, 10.0, 10.0, 10.0, 10.0, 100.0, 100.0, 100.0, 10.0, 10.0]);
        assert_eq!(slots[5].p50_us, 100.0);
    }

    #[test]
    fn a_percentile_that_falls_on_unfinished_messages_is_unknown() {
        let mut begun = burst();
        begun.iter_mut().take(200).step_by(50).for_each(|(_, us)| *us = None);
        let slots = slots(&begun, 100);
        assert_eq!((slots.len(), slots[0].ms), (9, 1.3));
    }

    #[test]
    fn few_messages_have_no_slots_and_many_have_at_most_the_limit() {
        assert!(slots(&burst()[..599], 100).is_empty());
        assert!(slots(&[], 100).is_empty());
        assert!((2..=5).contains(&slots(&burst(), 4).len()));
        let at_once: Vec<(Time, Option<f64>)> = burst().iter().map(|(_, us)| (Time::ZERO, *us)).collect();
        assert!(slots(&at_once, 100).is_empty());
    }
}
