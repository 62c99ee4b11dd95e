//! A digest of everything a run observed, for 'the same bytes on every machine'.
//!
//! 128 bits from two 64-bit lanes. Each word `w` (little-endian integers, floats by their bits, text by its length and
//! then eight bytes at a time) is mixed into both:
//!
//! ```text
//! lane = rotate_left(lane ^ (w * multiplier), rotation) * odd + 1
//! ```
//!
//! which is a permutation of the lane for every word and of the word for every lane, so that a single changed word
//! always changes the digest. The end mixes the lanes with SplitMix64's finaliser. Integer arithmetic only; not
//! cryptographic.
//!
//! Four things of an [`Outcome`] are left out, because they may change while the observations do not, or are not
//! observations: the wording of warnings, the count of events handled (the two port engines need different numbers of
//! them for the same result), the captured packets (which the run directory does not keep), and the list of faults
//! (which the scenario has). Observations, extra load, links, the drops of dead links and of hosts leave no trace where
//! there are none. The retransmissions of a series are left out as well: they were added after digests of series had
//! been published, and the sum of each connection is taken in. The patterns below name every field, so that a new one
//! does not compile until it is taken in.

use std::fmt;
use std::str::FromStr;

use plimsoll_fabric::net::HostId;
use plimsoll_units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::outcome::{
    CircuitUse, CircuitWeek, ConnectionRecord, Counter, Counters, ExtraLoad, GoodputInterval,
    IterationRecord, LinkTotals, MessageRecord, Observation, Outcome, ProcessorTotals, QueryRecord,
    QueueObservation, RankRecord, ScheduleTimes, SeriesPoint, Split, When, WorkloadInfo,
};

/// 128 bits that differ whenever two runs observed something different. Written as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Digest(u128);

impl Digest {
    /// Returns the digest of an outcome.
    pub fn of(outcome: &Outcome) -> Digest {
        let mut hasher = Hasher::new();
        outcome.feed(&mut hasher);
        let Outcome { observations, extra, links, .. } = outcome;
        if !(observations.is_empty() && extra.is_empty()) {
            observations.feed(&mut hasher);
            extra.feed(&mut hasher);
        }
        if !links.is_empty() {
            links.feed(&mut hasher);
        }
        if !outcome.iterations.is_empty() {
            outcome.iterations.feed(&mut hasher);
            outcome.ranks.feed(&mut hasher);
        }
        let counters = |when| counters_fed(when).map(|counter| (counter, (counter.get)(&outcome.counters)));
        if counters(When::WithFaults).any(|(_, value)| value > 0) {
            counters(When::WithFaults).for_each(|(_, value)| value.feed(&mut hasher));
        }
        if !(outcome.circuits.is_empty() && outcome.circuit_weeks.is_empty()) {
            outcome.circuits.feed(&mut hasher);
            outcome.circuit_weeks.feed(&mut hasher);
            counters(When::WithCircuits).for_each(|(_, value)| value.feed(&mut hasher));
        }
        if !outcome.processors.is_empty() {
            outcome.processors.feed(&mut hasher);
        }
        for (counter, value) in counters(When::IfAny).filter(|(_, value)| *value > 0) {
            counter.name.replace('_', " ").feed(&mut hasher);
            value.feed(&mut hasher);
        }
        hasher.finish()
    }

    /// The digest of a text, such as a merged scenario.
    pub fn of_text(text: &str) -> Digest {
        let mut hasher = Hasher::new();
        text.feed(&mut hasher);
        hasher.finish()
    }

    /// Returns its lower half, where 64 bits are enough to distinguish runs.
    pub fn low(self) -> u64 {
        self.0 as u64
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not 32 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not a digest (32 hexadecimal digits)")]
pub struct ParseDigestError(String);

impl FromStr for Digest {
    type Err = ParseDigestError;
    fn from_str(text: &str) -> Result<Digest, ParseDigestError> {
        let digits = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let value = digits.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        value.map(Digest).ok_or_else(|| ParseDigestError(text.to_owned()))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A checksum of bytes that arrive in pieces: the digest of all of them, with any division into pieces.
#[derive(Clone)]
pub struct Checksum {
    hasher: Hasher,
    /// The bytes that do not fill a word yet.
    pending: [u8; 8],
    filled: usize,
    bytes: u64,
}

impl Default for Checksum {
    fn default() -> Checksum {
        Checksum { hasher: Hasher::new(), pending: [0; 8], filled: 0, bytes: 0 }
    }
}

impl Checksum {
    /// Adds the next bytes to the checksum.
    pub fn update(&mut self, mut bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if self.filled > 0 {
            let fits = bytes.len().min(8 - self.filled);
            let (now, later) = bytes.split_at(fits);
            self.pending[self.filled..self.filled + fits].copy_from_slice(now);
            self.filled += fits;
            bytes = later;
            if self.filled < 8 {
                return;
            }
            self.hasher.word(u64::from_le_bytes(self.pending));
            self.filled = 0;
        }
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.hasher.word(u64::from_le_bytes(*word)));
        self.pending[..rest.len()].copy_from_slice(rest);
        self.filled = rest.len();
    }

    /// Returns the checksum of all bytes so far.
    pub fn finish(mut self) -> Digest {
        if self.filled > 0 {
            self.pending[self.filled..].fill(0);
            self.hasher.word(u64::from_le_bytes(self.pending));
        }
        self.hasher.word(self.bytes);
        self.hasher.finish()
    }
}

#[derive(Clone)]
struct Hasher {
    a: u64,
    b: u64,
    words: u64,
}

impl Hasher {
    /// Starts with fractions of pi: constants without a hidden choice.
    fn new() -> Hasher {
        Hasher { a: 0x243F_6A88_85A3_08D3, b: 0x1319_8A2E_0370_7344, words: 0 }
    }

    #[inline]
    fn word(&mut self, word: u64) {
        self.words += 1;
        self.a = (self.a ^ word.wrapping_mul(0x9E37_79B9_7F4A_7C15))
            .rotate_left(31)
            .wrapping_mul(0xBF58_476D_1CE4_E5B9)
            .wrapping_add(1);
        self.b = (self.b ^ word.wrapping_mul(0xC2B2_AE3D_27D4_EB4F))
            .rotate_left(27)
            .wrapping_mul(0x94D0_49BB_1331_11EB)
            .wrapping_add(1);
    }

    fn finish(self) -> Digest {
        let a = finalise(self.a ^ self.words);
        let b = finalise(self.b.wrapping_add(a));
        Digest(u128::from(finalise(a ^ b.rotate_left(32))) << 64 | u128::from(b))
    }
}

fn finalise(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A value that can be taken into a digest.
trait Feed {
    fn feed(&self, hasher: &mut Hasher);
}

macro_rules! feed_as_word {
    ($($type:ty: $value:ident => $word:expr;)*) => {
        $(impl Feed for $type {
            fn feed(&self, hasher: &mut Hasher) {
                let $value = *self;
                hasher.word($word);
            }
        })*
    };
}

feed_as_word! {
    u8: value => u64::from(value);
    u16: value => u64::from(value);
    u32: value => u64::from(value);
    u64: value => value;
    // Minus zero and zero are the same observation.
    f64: value => (value + 0.0).to_bits();
    Span: value => value.as_ps();
    Time: value => value.as_ps();
    Rate: value => value.as_bps();
    Bytes: value => value.get();
}

impl Feed for str {
    fn feed(&self, hasher: &mut Hasher) {
        hasher.word(self.len() as u64);
        for chunk in self.as_bytes().chunks(8) {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            hasher.word(u64::from_le_bytes(bytes));
        }
    }
}

impl Feed for String {
    fn feed(&self, hasher: &mut Hasher) {
        self.as_str().feed(hasher);
    }
}

impl<T: Feed> Feed for [T] {
    fn feed(&self, hasher: &mut Hasher) {
        hasher.word(self.len() as u64);
        self.iter().for_each(|item| item.feed(hasher));
    }
}

impl<T: Feed> Feed for Vec<T> {
    fn feed(&self, hasher: &mut Hasher) {
        self.as_slice().feed(hasher);
    }
}

impl<T: Feed> Feed for [T; 3] {
    fn feed(&self, hasher: &mut Hasher) {
        self.iter().for_each(|item| item.feed(hasher));
    }
}

impl<T: Feed> Feed for Option<T> {
    fn feed(&self, hasher: &mut Hasher) {
        hasher.word(u64::from(self.is_some()));
        self.iter().for_each(|item| item.feed(hasher));
    }
}

impl<A: Feed, B: Feed> Feed for (A, B) {
    fn feed(&self, hasher: &mut Hasher) {
        self.0.feed(hasher);
        self.1.feed(hasher);
    }
}

/// Feeds the named fields of a struct in order; the pattern must name all of them, with the excluded ones after
/// `except`.
macro_rules! feed_fields {
    ($type:ident { $($field:ident),* } $(except { $($left_out:ident),* })?) => {
        impl Feed for $type {
            fn feed(&self, hasher: &mut Hasher) {
                let $type { $($field,)* $($($left_out: _),*)? } = self;
                $($field.feed(hasher);)*
            }
        }
    };
}

feed_fields!(Outcome {
    workloads, tiers, end, warmup, messages, queries, queues, connections, series, goodput, counters
} except {
    observations, extra, iterations, ranks, operations, path_waits, repeats, links, processors, circuits, circuit_weeks,
    delivered, faults, capture, warnings, mechanisms,
    blocked, approximation
});
feed_fields!(WorkloadInfo { name, kind, deadline } except { observed, supply, groups });
feed_fields!(Observation { workload, index, host, begun, value });
feed_fields!(IterationRecord { workload, index, took, ideal, bytes, bus_bytes, split });
feed_fields!(RankRecord { workload, index, rank, host, group, took, computed, waited, exposed });
feed_fields!(ExtraLoad { workload, retries, replicas, bytes });
feed_fields!(LinkTotals { from, to, tier, rate, observed, packets, bytes, drops, pauses, paused });
feed_fields!(ProcessorTotals { host, busy, frames_received, frames_sent, ring_drops });
feed_fields!(MessageRecord {
    workload,
    index,
    query,
    source,
    destination,
    bytes,
    created,
    completed,
    ideal,
    split
});
feed_fields!(QueryRecord {
    workload,
    index,
    created,
    completed,
    servers,
    in_deadline,
    response_mean,
    response_min
});
impl Feed for HostId {
    fn feed(&self, hasher: &mut Hasher) {
        u64::from(self.0).feed(hasher);
    }
}

feed_fields!(CircuitUse {
    week, configuration, from, until, sender, receiver, packets, bytes, rate
} except { first, onset });
feed_fields!(CircuitWeek {
    week,
    made,
    begins,
    ends,
    configurations,
    packet_packets,
    packet_bytes,
    lost_dark,
    lost_unmatched
} except { known_bytes, known_sent_bytes });
feed_fields!(ScheduleTimes { read, gathered, ready });
feed_fields!(ConnectionRecord {
    workload,
    client,
    server,
    delivered,
    active,
    segments,
    retransmissions,
    timeouts,
    marked,
    pacer_associations,
    pacer_renewals,
    pacer_dissociations
});
impl Feed for Counters {
    fn feed(&self, hasher: &mut Hasher) {
        counters_fed(When::Always).for_each(|counter| (counter.get)(self).feed(hasher));
    }
}

/// Returns the counters that digests cover at these times.
fn counters_fed(when: When) -> impl Iterator<Item = &'static Counter> {
    Counters::ALL.iter().filter(move |counter| counter.digest == when)
}

feed_fields!(Split { window, recovery, nic, pacer, tier, serialisation, propagation, service });
feed_fields!(QueueObservation {
    name,
    port,
    rate,
    every,
    from,
    mean_bytes,
    max_bytes,
    time_at,
    drops,
    marks,
    packets,
    bytes
});
// The samples of a connection's subflows are in the order of their numbers.
feed_fields!(SeriesPoint { time, connection, cwnd, ssthresh, alpha, rate } except { retransmissions, subflow });
// The length follows from the scenario.
feed_fields!(GoodputInterval { time, workload, sent, delivered } except { length });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn the_digest_of_a_text_never_changes() {
        // These values are the definition: every machine and every version gives them.
        assert_eq!(Digest::of_text("").to_string(), "0475a8d91ed35ad2c7f03a4cb3dc1a42");
        assert_eq!(Digest::of_text("plimsoll").to_string(), "0557e939c6e3f8276bc39680f1c3dfeb");
    }

    const SEEN: Observation =
        Observation { workload: 0, index: 0, host: 0, begun: Time::ZERO, value: Span::ZERO };

    #[test]
    fn a_checksum_does_not_depend_on_the_pieces_and_sees_every_bit() {
        let bytes: Vec<u8> = (0..=255).collect();
        let of = |pieces: &[&[u8]]| {
            let mut checksum = Checksum::default();
            pieces.iter().for_each(|piece| checksum.update(piece));
            checksum.finish()
        };
        for length in [0, 1, 7, 8, 9, 200] {
            let whole = of(&[&bytes[..length]]);
            for cut in 0..=length {
                assert_eq!(of(&[&bytes[..cut], &bytes[cut..length]]), whole, "{length}, {cut}");
                assert_ne!(of(&[&bytes[..cut], &[0], &bytes[cut..length]]), whole, "{length}, {cut}");
            }
            for bit in 0..8 * length {
                let mut other = bytes[..length].to_vec();
                other[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(of(&[&other]), whole, "{length}, {bit}");
            }
        }
    }

    #[test]
    fn every_observation_counts() {
        let outcome = synthetic::outcome(&synthetic::Shape::default(), 7, "TCP");
        let digest = Digest::of(&outcome);
        assert_eq!(Digest::of(&outcome.clone()), digest);
        type Edit = fn(&mut Outcome);
        let changed: [(&str, Edit); 18] = [
            ("end", |o| o.end += Span::from_ps(1)),
            ("workload name", |o| o.workloads[0].name.push('x')),
            ("completion", |o| o.messages[5].completed = None),
            ("split", |o| o.messages[5].split.tier[2] = Span::from_ps(1)),
            ("order", |o| o.messages.swap(0, 1)),
            ("query", |o| o.queries[0].in_deadline += 1),
            ("observation", |o| o.observations.push(Observation { value: Span::from_ps(1), ..SEEN })),
            ("extra load", |o| o.extra.push(ExtraLoad { retries: 1, ..ExtraLoad::default() })),
            ("link", |o| o.links.clear()),
            ("processor", |o| o.processors.push(ProcessorTotals::default())),
            ("circuit", |o| synthetic::with_circuits(o, 2, 1)),
            ("queue mean", |o| o.queues[0].mean_bytes[3] += 1e-9),
            ("queue bin", |o| o.queues[0].time_at[0] += 1),
            ("connection", |o| o.connections[1].timeouts += 1),
            ("series", |o| o.series[0].alpha += 1e-12),
            ("goodput", |o| o.goodput[0].sent = Bytes::new(1)),
            ("counter", |o| o.counters.marks += 1),
            ("host drops", |o| o.counters.host_drops += 1),
        ];
        for (name, change) in changed {
            let mut other = outcome.clone();
            change(&mut other);
            assert_ne!(Digest::of(&other), digest, "{name} went unseen");
        }
    }

    #[test]
    fn wording_events_captures_and_sampled_retransmissions_do_not_count() {
        let outcome = synthetic::outcome(&synthetic::Shape::default(), 7, "TCP");
        let mut other = outcome.clone();
        other.warnings.push("another wording".to_owned());
        other.counters.events += 1;
        other.series[0].retransmissions += 1;
        other.capture.ports.push("tor -> h0".to_owned());
        assert_eq!(Digest::of(&other), Digest::of(&outcome));
    }

    #[test]
    fn text_form_reads_back() {
        let digest = Digest::of_text("x");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert!("123".parse::<Digest>().is_err());
        assert!("+0000000000000000000000000000000".parse::<Digest>().is_err());
    }
}
