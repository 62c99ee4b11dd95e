//! [`Report`]: the numbers of an analysis, as they are written as JSON.

use std::collections::{BTreeMap, BTreeSet};

use hdrhistogram::Histogram;
use serde::Serialize;

/// The bursts, trains, acknowledgements and losses of a capture.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The number of frames.
    pub frames: u64,
    /// The sum of their bytes, from the Ethernet header to the end of the payload.
    pub bytes: u64,
    /// The time from the first to the last timestamp, summed over the captures.
    pub seconds: f64,
    /// The rate that gaps are computed with.
    pub rate_bps: u64,
    /// The requested threshold of bursts.
    pub gap_asked_ns: f64,
    /// The threshold of bursts that was used: the floor of the timestamps, if that is larger.
    pub gap_ns: f64,
    /// The maximum inter-car gap of a train.
    pub train_gap_ns: f64,
    /// The precision of the timestamps.
    pub timestamps: Timestamps,
    /// The number of frames longer than Ethernet's jumbo frames, which were captured before segmentation.
    pub large_frames: u64,
    /// The number of frames without a host that the capture shows, which are not analysed.
    pub unknown_frames: u64,
    /// The number of packets that were left out, since the link type of their interface is not supported.
    pub unsupported_frames: u64,
    /// These link types, ascending.
    pub unsupported_link_types: BTreeSet<u32>,
    /// The number of packets that were left out, since they have no timestamp.
    pub untimed_frames: u64,
    /// The number of frames of pairs beyond the limit of pairs, which are not analysed.
    pub left_out_frames: u64,
    /// True if bursts and trains have no TCP segments without payload.
    pub data_only: bool,
    /// The number of these segments, which bursts and trains leave out.
    pub frames_without_payload: u64,
    /// The number of bursts.
    pub bursts: u64,
    /// The number of bursts of each length in packets.
    pub lengths_packets: BTreeMap<u64, u64>,
    /// The number of bursts of each length in bytes.
    pub lengths_bytes: BTreeMap<u64, u64>,
    /// Bursts that are too short for the timestamps.
    pub unresolved: Unresolved,
    /// How long bursts last: the on periods of a pair.
    pub on_ns: Distribution,
    /// The gaps between bursts of one pair: its off periods.
    pub off_ns: Distribution,
    /// Trains of packets, as Jain defines them.
    pub trains: Trains,
    /// Acknowledgements of all pairs.
    pub acks: Acks,
    /// Losses of all pairs.
    pub losses: Losses,
    /// The pairs of source and destination, the most bytes first.
    pub pairs: Vec<PairReport>,
}

/// The precision of a capture's timestamps.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Timestamps {
    /// The resolution that the capture declares.
    pub declared_ns: f64,
    /// The step of the timestamps: the largest that divides all differences, where there are enough different ones.
    pub granularity_ns: f64,
    /// The smallest difference of consecutive timestamps that is not zero.
    pub least_difference_ns: Option<f64>,
    /// The shortest time that the timestamps resolve: the granularity, or the overlap that 99 % of overlapping frames
    /// stay below, where at least one frame in a hundred overlaps.
    pub floor_ns: f64,
    /// True if the floor is above the requested threshold.
    pub too_coarse: bool,
    /// The share of gaps below the floor.
    pub below_floor: f64,
    /// The share of frames that start before the previous one of their pair ends, which no wire allows.
    pub overlapping: f64,
    /// The number of timestamps that equal the one before them.
    pub equal: u64,
    /// The number of timestamps earlier than the one ahead of them.
    pub backwards: u64,
    /// The number of timestamps more than an hour before the first or more than 213 days after it, each of which counts
    /// as one day after the one ahead of it.
    pub jumps: u64,
}

/// Bursts that take less time than the timestamps resolve.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Unresolved {
    /// The number of bursts.
    pub bursts: u64,
    /// The number of their frames.
    pub frames: u64,
    /// The sum of their bytes.
    pub bytes: u64,
}

impl Unresolved {
    pub(crate) fn add(&mut self, other: &Unresolved) {
        self.bursts += other.bursts;
        self.frames += other.frames;
        self.bytes += other.bytes;
    }
}

/// A distribution by its moments, percentiles and points.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Distribution {
    /// The number of values.
    pub count: u64,
    /// The arithmetic mean of the values.
    pub mean: f64,
    /// The median, to three digits as all values below.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The largest value.
    pub max: f64,
    /// Ascending values, each with the share of all that are not larger; at most about 200.
    pub cdf: Vec<(f64, f64)>,
}

/// Trains of one pair in one direction.
///
/// Jain and Routhier count both directions of a pair as one train; a burst has one direction, and so have these.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Trains {
    /// The number of trains.
    pub count: u64,
    /// Their lengths in packets (cars).
    pub packets: Distribution,
    /// Their lengths in bytes.
    pub bytes: Distribution,
    /// How long they last: on periods at the scale of trains.
    pub duration_ns: Distribution,
    /// The gaps within trains.
    pub inter_car_ns: Distribution,
    /// The gaps between trains: off periods at the scale of trains.
    pub inter_train_ns: Distribution,
}

/// Acknowledgements without payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Acks {
    /// The number of all acknowledgements without payload.
    pub pure: u64,
    /// Acknowledgements of new bytes. The first one of a flow has none before it, and is excluded.
    pub advancing: u64,
    /// Repetitions of the last acknowledgement, with its window, while data is outstanding (RFC 5681, section 2).
    pub duplicate: u64,
    /// Repetitions of it with another window.
    pub window_updates: u64,
    /// Repetitions of it while nothing is outstanding, and the keep-alives that they answer (RFC 9293, section 3.8.4).
    pub keep_alives: u64,
    /// The bytes that the advancing ones acknowledge.
    pub bytes: u64,
}

impl Acks {
    /// Returns the ACK ratio: the bytes acknowledged by an acknowledgement that advances.
    pub fn ratio(&self) -> Option<f64> {
        (self.advancing > 0).then(|| self.bytes as f64 / self.advancing as f64)
    }

    pub(crate) fn add(&mut self, other: &Acks) {
        self.pure += other.pure;
        self.advancing += other.advancing;
        self.duplicate += other.duplicate;
        self.window_updates += other.window_updates;
        self.keep_alives += other.keep_alives;
        self.bytes += other.bytes;
    }
}

/// TCP segments with payload, and the number that was captured again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Retransmissions {
    /// The number of segments with payload.
    pub segments: u64,
    /// Segments whose range, or a part of it, was captured before.
    pub retransmitted: u64,
    /// The retransmitted ones whose first burst has been forgotten, or is unresolved.
    pub unknown_burst: u64,
    /// Segments that fill a hole: reordered, or lost before the place of the capture and sent again.
    pub filled: u64,
    /// TCP segments and UDP datagrams that were captured twice, as by a mirror of two ports; no other count of segments
    /// or acknowledgements has the second copies.
    pub copies: u64,
}

impl Retransmissions {
    pub(crate) fn add(&mut self, other: &Retransmissions) {
        self.segments += other.segments;
        self.retransmitted += other.retransmitted;
        self.unknown_burst += other.unknown_burst;
        self.filled += other.filled;
        self.copies += other.copies;
    }
}

/// Losses as far as retransmissions show them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Losses {
    /// Segments and retransmissions.
    #[serde(flatten)]
    pub seen: Retransmissions,
    /// The losses by the length of the burst that the first transmission was in.
    pub by_length: Vec<LossBin>,
}

/// Bursts with TCP payload whose lengths are in one range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct LossBin {
    /// The least length, in packets.
    pub from: u64,
    /// The largest length.
    pub to: u64,
    /// The number of bursts.
    pub bursts: u64,
    /// Bursts of which a segment was retransmitted.
    pub bursts_with_loss: u64,
    /// The number of segments with payload in these bursts.
    pub segments: u64,
    /// Segments that were retransmitted.
    pub retransmitted: u64,
}

/// One source and one destination.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PairReport {
    /// The number of the interface that captured the frames.
    pub interface: u32,
    /// The interface's name, where the capture has one.
    pub interface_name: Option<String>,
    /// The address of the source.
    pub source: String,
    /// The address of the destination.
    pub destination: String,
    /// The number of frames.
    pub frames: u64,
    /// The sum of their bytes.
    pub bytes: u64,
    /// The number of bursts.
    pub bursts: u64,
    /// The mean length of a burst in bytes.
    pub mean_burst_bytes: Option<f64>,
    /// The mean time of a burst.
    pub mean_on_ns: Option<f64>,
    /// The mean gap between bursts.
    pub mean_off_ns: Option<f64>,
    /// The number of trains.
    pub trains: u64,
    /// The mean gap within trains.
    pub mean_inter_car_ns: Option<f64>,
    /// The mean gap between trains.
    pub mean_inter_train_ns: Option<f64>,
    /// The acknowledgements that the source sent.
    pub acks: Acks,
    /// The segments that the source sent.
    pub losses: Retransmissions,
    /// Bursts that are too short for the timestamps.
    pub unresolved: Unresolved,
    /// The number of bursts of each length in packets.
    pub lengths_packets: BTreeMap<u64, u64>,
}

/// Returns the least length that this share of the bursts does not exceed.
pub fn quantile(lengths: &BTreeMap<u64, u64>, share: f64) -> Option<u64> {
    let all: u64 = lengths.values().sum();
    let wanted = (share * all as f64).ceil().max(1.0) as u64;
    let mut count = 0;
    lengths.iter().find_map(|(length, bursts)| {
        count += bursts;
        (count >= wanted).then_some(*length)
    })
}

/// Returns ascending lengths, each with the share of the bursts that are not longer.
pub fn cdf(lengths: &BTreeMap<u64, u64>) -> Vec<(f64, f64)> {
    let all: u64 = lengths.values().sum();
    thinned(all, lengths.iter().map(|(length, count)| (*length as f64, *count)))
}

/// Returns the distribution of a histogram whose values are multiplied by `unit`.
pub(crate) fn distribution(histogram: &Histogram<u64>, unit: f64) -> Distribution {
    if histogram.is_empty() {
        return Distribution::default();
    }
    let at = |share| histogram.value_at_quantile(share) as f64 * unit;
    let values = histogram.iter_recorded();
    Distribution {
        count: histogram.len(),
        mean: histogram.mean() * unit,
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        max: histogram.max() as f64 * unit,
        cdf: thinned(
            histogram.len(),
            values.map(|value| (value.value_iterated_to() as f64 * unit, value.count_since_last_iteration())),
        ),
    }
}

/// Leaves out points that raise the share by less than half a percent; the first and the last stay.
fn thinned(all: u64, values: impl Iterator<Item = (f64, u64)>) -> Vec<(f64, f64)> {
    let (mut count, mut shown) = (0, 0.0);
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (value, more) in values {
        count += more;
        let share = count as f64 / all.max(1) as f64;
        if points.is_empty() || share - shown >= 0.005 || count == all {
            points.push((value, share));
            shown = share;
        }
    }
    points
}
