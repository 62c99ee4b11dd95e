//! [`cutoffs`]: the sizes at which unscheduled packets change their priority, from a workload's distribution of sizes.
//!
//! ```text
//! all packets in the first or the last rtt_bytes of a message, and all grants as of size 0
//!   by the bytes left in the message, the packet's included: weight = bytes on the wire x share of messages
//!   cut into parts of equal weight, one for each unscheduled level
//! ```
//!
//! The rule of the authors' simulator (PriorityResolver, WorkloadEstimator of PlatformLab/HomaSimulation). A packet has
//! the level of its own bytes left, so that later packets of a message move up.

use std::collections::BTreeMap;

use super::config::HomaConfig;

/// What a distribution of sizes says of a workload.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkloadShares {
    /// The mean bytes of a message.
    pub mean: f64,
    /// The bytes of messages over the bytes on the wire with grants: a load of the links times this is the payload.
    pub payload: f64,
    /// The share of unscheduled packets in the bytes of data packets on the wire.
    pub unscheduled: f64,
}

/// Returns the sizes up to which a packet has each unscheduled level, from the highest on; the lowest has no end.
/// `sizes` are sizes of messages with their shares.
pub fn cutoffs(config: &HomaConfig, sizes: &[(u64, f64)]) -> Vec<u64> {
    let levels = f64::from(config.unscheduled_levels());
    let mut weights: BTreeMap<u64, f64> = BTreeMap::new();
    for &(size, share) in sizes {
        let message = MessagePackets::of(config, size);
        *weights.entry(0).or_default() += share * message.grants as f64;
        message.near_the_ends(config, |left, wire| *weights.entry(left).or_default() += share * wire as f64);
    }
    let all: f64 = weights.values().sum();
    let mut cuts = Vec::new();
    let mut sum = 0.0;
    for (left, weight) in weights {
        sum += weight;
        while (cuts.len() as f64) < levels - 1.0 && sum >= all * (cuts.len() + 1) as f64 / levels - 1e-12 {
            cuts.push(left);
        }
    }
    cuts
}

/// Returns mean size, payload and unscheduled share of messages whose `sizes` have the given shares.
pub fn workload_shares(config: &HomaConfig, sizes: &[(u64, f64)]) -> WorkloadShares {
    let (mut mean, mut data, mut unscheduled, mut grants) = (0.0, 0.0, 0.0, 0.0);
    for &(size, share) in sizes {
        let message = MessagePackets::of(config, size);
        mean += share * size as f64;
        data += share * (message.unscheduled_wire + message.scheduled_wire) as f64;
        unscheduled += share * message.unscheduled_wire as f64;
        grants += share * message.grants as f64;
    }
    WorkloadShares { mean, payload: mean / (data + grants), unscheduled: unscheduled / data }
}

/// The packets of a message, in bytes on the wire.
struct MessagePackets {
    size: u64,
    unscheduled_bytes: u64,
    unscheduled_wire: u64,
    scheduled_wire: u64,
    grants: u64,
}

impl MessagePackets {
    fn of(config: &HomaConfig, size: u64) -> MessagePackets {
        let unscheduled_bytes = size.min(config.unscheduled_bytes());
        let wire = |bytes: u64, is_scheduled| {
            let payload = config.payload(is_scheduled);
            let rest = bytes % payload;
            let last = if rest > 0 { config.wire_of(rest, is_scheduled) } else { 0 };
            bytes / payload * config.wire_of(payload, is_scheduled) + last
        };
        let scheduled = size - unscheduled_bytes;
        MessagePackets {
            size,
            unscheduled_bytes,
            unscheduled_wire: wire(unscheduled_bytes, false),
            scheduled_wire: wire(scheduled, true),
            grants: scheduled.div_ceil(config.payload(true)) * config.params.control_size.get(),
        }
    }

    /// Calls `each` with the bytes left and the bytes on the wire of every packet that is unscheduled, or among the
    /// last `rtt_bytes`.
    fn near_the_ends(&self, config: &HomaConfig, mut each: impl FnMut(u64, u64)) {
        let mut sent = 0;
        while sent < self.unscheduled_bytes {
            let data = config.payload(false).min(self.unscheduled_bytes - sent);
            each(self.size - sent, config.wire_of(data, false));
            sent += data;
        }
        let payload = config.payload(true);
        // Of the scheduled packets only few are in the tail: begin with the first that may be.
        let scheduled = self.size - self.unscheduled_bytes;
        let skipped = (scheduled / payload).saturating_sub(config.params.rtt_bytes.get() / payload + 2);
        sent += skipped * payload;
        while sent < self.size {
            let (left, data) = (self.size - sent, payload.min(self.size - sent));
            if config.is_tail(left) {
                each(left, config.wire_of(data, true));
            }
            sent += data;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transports::homa::HomaParams;

    /// Returns the sizes of a bundled workload, each `unit` / `in_file` times as large as in the file.
    fn sizes(text: &str, [unit, in_file]: [u64; 2]) -> Vec<(u64, f64)> {
        let mut before = 0.0;
        let rows = text.lines().skip(1).map(|line| line.split_once(',').expect("two columns"));
        rows.map(|(bytes, share)| {
            let (bytes, share): (f64, f64) = (bytes.parse().unwrap(), share.parse().unwrap());
            (bytes as u64 * unit / in_file, share - std::mem::replace(&mut before, share))
        })
        .collect()
    }

    fn config(scheduled_levels: u8) -> HomaConfig {
        HomaConfig::new(1_472, 66, &HomaParams { scheduled_levels, ..HomaParams::default() })
    }

    /// The workloads of the paper, with the levels of its simulations.
    fn workloads() -> [(u8, Vec<(u64, f64)>); 5] {
        let same = [1, 1];
        [
            (1, sizes(include_str!("../../../../../scenarios/cdf/homa-w1.csv"), same)),
            (3, sizes(include_str!("../../../../../scenarios/cdf/homa-w2.csv"), same)),
            (4, sizes(include_str!("../../../../../scenarios/cdf/homa-w3.csv"), same)),
            (7, sizes(include_str!("../../../../../scenarios/cdf/homa-w4.csv"), same)),
            (7, sizes(include_str!("../../../../../scenarios/cdf/homa-w5.csv"), [1_442, 1_460])),
        ]
    }

    #[test]
    fn cutoffs_are_the_published_ones() {
        // None: not published here.
        let published: [&[Option<u64>]; 5] = [
            &[Some(11), Some(131), None, Some(489), Some(794), None],
            &[Some(269), Some(366), None, Some(1_463)],
            &[Some(433), None, Some(6_756)],
            &[],
            &[],
        ];
        for ((levels, sizes), published) in workloads().iter().zip(published) {
            let found = cutoffs(&config(*levels), sizes);
            assert_eq!(found.len(), published.len(), "{found:?}");
            assert!(found.is_sorted(), "{found:?}");
            for (found, published) in found.iter().zip(published) {
                assert!(published.is_none_or(|published| published == *found), "{found} {published:?}");
            }
        }
    }

    #[test]
    fn payload_is_the_published_share_of_the_load() {
        let published = [
            (0.656, 0.001, 187.5, 0.996),
            (0.7963, 0.0001, 440.8, 0.805),
            (0.8875, 0.0001, 2_927.4, 0.310),
            (0.8981, 0.0001, 127_796.6, 0.026),
            (0.8977, 0.0001, 2_515_863.3, 0.004),
        ];
        for ((levels, sizes), (payload, error, mean, unscheduled)) in workloads().iter().zip(published) {
            let found = workload_shares(&config(*levels), sizes);
            assert!((found.payload - payload).abs() < error, "{found:?} {payload}");
            assert!((found.mean / mean - 1.0).abs() < 5e-4, "{found:?} {mean}");
            assert!((found.unscheduled - unscheduled).abs() < 1e-3, "{found:?} {unscheduled}");
        }
    }

    #[test]
    fn messages_of_one_size_are_cut_by_their_packets() {
        // Four packets of equal size: each level has one.
        assert_eq!(cutoffs(&config(4), &[(4 * 1_442, 1.0)]), [1_442, 2_884, 4_326]);
    }
}
