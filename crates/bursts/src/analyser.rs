//! [`Analyser`]: takes frames in the order of a capture and returns a [`Report`].

use std::collections::{BTreeMap, VecDeque};

use hashbrown::HashMap;
use hdrhistogram::Histogram;
use plimsoll_units::{ByteTime, Rate, Span, Time};

use crate::flows::{Acked, ActiveFlows, LastPackets, PayloadSeen};
use crate::frame::{Address, CapturedSegment, Datagram, Frame};
use crate::reader::{Interface, Skipped};
use crate::report::{
    self, Acks, LossBin, Losses, PairReport, Report, Retransmissions, Timestamps, Trains, Unresolved,
};
use crate::run::{OpenRuns, Run};
use crate::stamps::Stamps;

/// The instant of a frame that its timestamp is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stamp {
    /// The timestamp is of the first bit, as IEEE 1588 requires of hardware.
    #[default]
    Start,
    /// The timestamp is of the last bit.
    End,
}

/// The bytes that the wire is occupied for, by the bytes of a frame in the capture.
///
/// Preamble and inter-frame gap are part of it, so that back-to-back frames have a gap of zero. All gaps are the same
/// whether timestamps mark the preamble's or the frame's first bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framing {
    /// The least length of a frame in bytes; a shorter one is padded.
    pub shortest: u32,
    /// The bytes of the wire that no capture has.
    pub added: u32,
    /// The bytes of the capture that the wire does not have.
    pub removed: u32,
}

impl Framing {
    /// Ethernet (IEEE 802.3): 7 bytes of preamble, 1 of the start delimiter, at least 60 of frame, 4 of the frame check
    /// sequence, 12 of inter-frame gap.
    pub const ETHERNET: Framing = Framing { shortest: 60, added: 24, removed: 0 };
    /// A simulated run of Plimsoll: its links carry packets from the IP header on, and its captures add an Ethernet
    /// header for Wireshark.
    pub const SIMULATED: Framing = Framing { shortest: 0, added: 0, removed: 14 };

    /// Returns the bytes that a frame occupies on the wire.
    pub fn wire_bytes(&self, frame: u32) -> u64 {
        (u64::from(frame.max(self.shortest)) + u64::from(self.added)).saturating_sub(u64::from(self.removed))
    }
}

/// Parameters of an analysis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The rate of the link.
    pub rate: Rate,
    /// Frames belong to one burst if the gap between them is below this; [`scaled_gap`] if `None`.
    pub gap: Option<Span>,
    /// A train ends when a gap exceeds this.
    pub train_gap: Span,
    /// The instant of a frame that its timestamp is of.
    pub stamp: Stamp,
    /// The bytes of a frame on the wire.
    pub framing: Framing,
    /// Whether the hosts are the ones inside tunnels: VXLAN, GENEVE, GRE, ERSPAN and IP in IP.
    pub decapsulate: bool,
    /// Whether TCP segments without payload neither belong to a burst or train nor end one: pure acknowledgements, and
    /// those that open or close a connection.
    pub data_only: bool,
    /// The most pairs of hosts; the frames of further ones are counted, and not analysed.
    pub pairs_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            rate: Rate::from_gbps(10),
            gap: None,
            train_gap: Span::from_ms(1),
            stamp: Stamp::Start,
            framing: Framing::ETHERNET,
            decapsulate: false,
            data_only: false,
            pairs_max: 65_536,
        }
    }
}

/// Returns BulletTrains' threshold of 40 ns at 10 Gb/s, scaled by the rate: the time of 50 bytes.
pub fn scaled_gap(rate: Rate) -> Span {
    rate.byte_time().span(50)
}

/// The frames from which the floor of the timestamps is measured before any is analysed.
const HELD: usize = 16_384;
/// The quantile of the overlaps that gives the floor: this share of the overlapping frames has a smaller one.
const OVERLAP_QUANTILE: f64 = 0.99;
/// Overlaps rarer than one frame in this many count as chance, such as two links bundled to one.
const OVERLAPS_ONE_IN: usize = 100;
/// A longer frame was captured before it was segmented, or after it was put together again.
const JUMBO: u32 = 9_234;
/// The bursts of a pair whose lengths are remembered until a retransmission.
const RECENT: usize = 256;
/// Exact lengths are kept for this many different values; further ones are rounded to three digits.
const EXACT: usize = 65_536;

/// Analyses a capture frame by frame.
#[derive(Debug)]
pub struct Analyser {
    options: Options,
    byte_time: ByteTime,
    asked: Span,
    /// Frames are held until the floor is measured, and then `None`.
    held: Option<Vec<Frame>>,
    floor: Span,
    gap: Span,
    stamps: Stamps,
    has_inexact: bool,
    interfaces: Vec<Option<String>>,
    pairs: Vec<TrafficPair>,
    index: HashMap<(u32, Address, Address), u32>,
    /// The pair of the last frame, which is often the next one's.
    last: u32,
    flows: ActiveFlows,
    all: Totals,
}

/// One source and one destination on one interface.
#[derive(Debug)]
struct TrafficPair {
    key: (u32, Address, Address),
    frames: u64,
    bytes: u64,
    started: Time,
    bursts: OpenRuns,
    trains: OpenRuns,
    /// The number of the open burst, and the TCP segments with payload in it.
    number: u64,
    data: u32,
    lengths: BurstLengths,
    unresolved: Unresolved,
    burst_bytes: u64,
    on_ps: u128,
    off: Sum,
    train_count: u64,
    cars: Sum,
    between: Sum,
    acks: Acks,
    losses: Retransmissions,
    recent: VecDeque<Recent>,
    datagrams: LastPackets<Datagram>,
}

/// A burst that segments may be sent again of.
#[derive(Clone, Copy, Debug)]
struct Recent {
    number: u64,
    packets: u64,
    is_lost: bool,
}

/// The sum of times and their number.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    ps: u128,
    count: u64,
}

impl Sum {
    fn add(&mut self, span: Span) {
        self.ps += u128::from(span.as_ps());
        self.count += 1;
    }

    fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.ps as f64 / self.count as f64 / 1e3)
    }
}

/// The number of bursts of each length.
#[derive(Clone, Debug, Default)]
struct BurstLengths {
    /// Single frames, by far the most frequent.
    ones: u64,
    others: BTreeMap<u64, u64>,
}

impl BurstLengths {
    fn add(&mut self, length: u64) {
        if length == 1 {
            self.ones += 1;
        } else {
            add_to(&mut self.others, length, 1);
        }
    }

    fn into_map(self) -> BTreeMap<u64, u64> {
        let mut map = self.others;
        if self.ones > 0 {
            map.insert(1, self.ones);
        }
        map
    }
}

/// Counts a value, rounded once there are too many different ones.
fn add_to(map: &mut BTreeMap<u64, u64>, value: u64, count: u64) {
    if map.len() >= EXACT && !map.contains_key(&value) {
        let step = 10u64.pow(value.checked_ilog10().unwrap_or(0).saturating_sub(2));
        *map.entry(value / step * step).or_default() += count;
    } else {
        *map.entry(value).or_default() += count;
    }
}

#[derive(Debug)]
struct Totals {
    frames: u64,
    bytes: u64,
    large: u64,
    left_out: u64,
    without_payload: u64,
    unknown: u64,
    skipped: Skipped,
    /// The times of the first and the last frame of the open capture, and the lengths of earlier captures.
    within: Option<(Time, Time)>,
    before: Span,
    gaps: u64,
    below_floor: u64,
    overlaps: u64,
    burst_bytes: BTreeMap<u64, u64>,
    on: Histogram<u64>,
    off: Histogram<u64>,
    inter_car: Repeated,
    inter_train: Histogram<u64>,
    cars: Histogram<u64>,
    train_bytes: Histogram<u64>,
    train_on: Histogram<u64>,
    bins: Vec<LossBin>,
}

/// A histogram of values that often repeat, as gaps of frames back to back do: a repetition costs a comparison.
#[derive(Debug)]
struct Repeated {
    histogram: Histogram<u64>,
    /// The last value, and how often it has been recorded since another one.
    value: u64,
    count: u64,
}

impl Repeated {
    #[inline]
    fn record(&mut self, value: u64) {
        if value != self.value {
            self.histogram.saturating_record_n(self.value, self.count);
            (self.value, self.count) = (value, 0);
        }
        self.count += 1;
    }

    fn finish(mut self) -> Histogram<u64> {
        self.histogram.saturating_record_n(self.value, self.count);
        self.histogram
    }
}

impl Totals {
    /// Returns the sum of the captures' lengths.
    fn length(&self) -> Span {
        let within = self.within.map_or(Span::ZERO, |(first, last)| last.saturating_since(first));
        Span::from_ps(self.before.as_ps().saturating_add(within.as_ps()))
    }
}

/// Makes a histogram of three digits without an upper limit.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 1 << 62, 3).expect("the bounds and the digits are within the library's")
}

impl Analyser {
    /// Makes an analyser that has seen no frame.
    pub fn new(options: Options) -> Analyser {
        let asked = options.gap.unwrap_or_else(|| scaled_gap(options.rate));
        Analyser {
            options,
            byte_time: options.rate.byte_time(),
            asked,
            held: Some(Vec::new()),
            floor: Span::ZERO,
            gap: asked,
            stamps: Stamps::default(),
            has_inexact: false,
            interfaces: Vec::new(),
            pairs: Vec::new(),
            index: HashMap::new(),
            last: 0,
            flows: ActiveFlows::default(),
            all: Totals {
                frames: 0,
                bytes: 0,
                large: 0,
                left_out: 0,
                without_payload: 0,
                unknown: 0,
                skipped: Skipped::default(),
                within: None,
                before: Span::ZERO,
                gaps: 0,
                below_floor: 0,
                overlaps: 0,
                burst_bytes: BTreeMap::new(),
                on: histogram(),
                off: histogram(),
                inter_car: Repeated { histogram: histogram(), value: 0, count: 0 },
                inter_train: histogram(),
                cars: histogram(),
                train_bytes: histogram(),
                train_on: histogram(),
                bins: Vec::new(),
            },
        }
    }

    /// Begins a further capture, whose clock has another origin, and returns the number of its first interface.
    pub fn begin_capture(&mut self) -> u32 {
        self.all.before = self.all.length();
        self.all.within = None;
        self.interfaces.len() as u32
    }

    /// Describes the interfaces from number `first` on.
    pub fn interfaces(&mut self, first: u32, interfaces: &[Interface]) {
        self.interfaces.truncate(first as usize);
        for interface in interfaces {
            self.interfaces.push(interface.name.clone());
            self.stamps.declare(interface.tick);
            self.has_inexact |= !interface.exact;
        }
    }

    /// Returns the parameters of the analysis.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Adds the packets that the reader of a capture left out.
    pub fn skipped(&mut self, more: &Skipped) {
        let all = &mut self.all.skipped;
        all.unsupported += more.unsupported;
        all.untimed += more.untimed;
        all.jumps += more.jumps;
        all.link_types.extend(&more.link_types);
    }

    /// Returns the number of frames so far.
    pub fn frames(&self) -> u64 {
        self.all.frames
    }

    /// Analyses the next frame.
    pub fn frame(&mut self, frame: &Frame) {
        self.all.frames += 1;
        self.all.bytes += u64::from(frame.bytes);
        self.all.large += u64::from(frame.bytes > JUMBO);
        let (first, last) = self.all.within.unwrap_or((frame.time, frame.time));
        self.all.within = Some((first.min(frame.time), last.max(frame.time)));
        self.stamps.on_stamp(frame.interface, frame.time);
        match &mut self.held {
            None => self.take(frame),
            Some(held) => {
                held.push(*frame);
                if held.len() == HELD {
                    self.settle();
                }
            }
        }
    }

    /// Returns when a frame is on the wire.
    fn on_wire(&self, frame: &Frame) -> (Time, Time) {
        let span = self.byte_time.span(self.options.framing.wire_bytes(frame.bytes));
        match self.options.stamp {
            Stamp::Start => (frame.time, frame.time.saturating_add(span)),
            Stamp::End => (Time::ZERO + frame.time.saturating_since(Time::ZERO + span), frame.time),
        }
    }

    /// Measures the floor from the frames that are held, and analyses them.
    fn settle(&mut self) {
        let Some(held) = self.held.take() else { return };
        self.floor = self.granularity();
        let mut before: HashMap<(u32, Address, Address), (Time, Time)> = HashMap::new();
        let (mut overlaps, mut gaps) = (Vec::new(), 0usize);
        for frame in &held {
            let (start, end) = self.on_wire(frame);
            let key = (frame.interface, frame.source, frame.destination);
            if let Some((started, ended)) = before.insert(key, (start, end)) {
                gaps += 1;
                let overlap = ended.saturating_since(start);
                // A frame from before the one ahead of it is out of order, so the stamps' precision cannot be judged by
                // it.
                if overlap > self.floor && start >= started {
                    overlaps.push(overlap);
                }
            }
        }
        if !overlaps.is_empty() && overlaps.len() * OVERLAPS_ONE_IN >= gaps {
            overlaps.sort_unstable();
            let at = (overlaps.len() as f64 * OVERLAP_QUANTILE) as usize;
            self.floor = overlaps[at.min(overlaps.len() - 1)];
        }
        self.gap = self.asked.max(self.floor);
        held.iter().for_each(|frame| self.take(frame));
    }

    /// Returns the step of the timestamps; a simulated clock's is the declared one.
    fn granularity(&self) -> Span {
        if self.has_inexact { self.stamps.granularity() } else { self.stamps.declared() }
    }

    fn is_coarse(&self) -> bool {
        self.floor > self.asked
    }

    /// Returns the index of a frame's pair, or `None` where there are too many pairs.
    #[inline]
    fn pair_of(&mut self, frame: &Frame) -> Option<usize> {
        let key = (frame.interface, frame.source, frame.destination);
        let last = self.last as usize;
        if self.pairs.get(last).is_some_and(|pair| pair.key == key) {
            return Some(last);
        }
        let index = match self.index.get(&key) {
            Some(index) => *index,
            None if self.pairs.len() >= self.options.pairs_max => return None,
            None => {
                let index = self.pairs.len() as u32;
                self.index.insert(key, index);
                self.pairs.push(TrafficPair::new(key));
                index
            }
        };
        self.last = index;
        Some(index as usize)
    }

    fn take(&mut self, frame: &Frame) {
        if frame.source == Address::Unknown || frame.destination == Address::Unknown {
            self.all.unknown += 1;
            return;
        }
        let (start, end) = self.on_wire(frame);
        let Some(index) = self.pair_of(frame) else {
            self.all.left_out += 1;
            return;
        };
        let pair = &mut self.pairs[index];
        pair.frames += 1;
        pair.bytes += u64::from(frame.bytes);
        if self.options.data_only && frame.segment.is_some_and(|segment| segment.payload == 0) {
            self.all.without_payload += 1;
        } else {
            self.join(index, start, end, u64::from(frame.bytes));
        }
        let pair = &mut self.pairs[index];
        if let Some(segment) = &frame.segment {
            let (from, to) = segment.ports;
            let reverse = || {
                let pair = self.index.get(&(frame.interface, frame.destination, frame.source))?;
                Some((*pair, to, from))
            };
            let key = (index as u32, from, to);
            let (seen, acked) = self.flows.on_segment(key, reverse, segment, frame.time, pair.number);
            pair.on_segment(segment, seen, acked, &mut self.all.bins);
        }
        if let Some(datagram) = frame.datagram
            && pair.datagrams.is_copy(datagram, datagram.is_identified, frame.time)
        {
            pair.losses.copies += 1;
        }
    }

    /// Adds a frame of a pair, which is on the wire from `start` to `end`, to the pair's bursts and trains.
    #[inline]
    fn join(&mut self, index: usize, start: Time, end: Time, bytes: u64) {
        let (gap, floor, is_coarse) = (self.gap, self.floor, self.is_coarse());
        let pair = &mut self.pairs[index];
        let before = pair.bursts.open().map(|run| run.end);
        // A frame from long before the one ahead of it does not belong to that one's burst.
        if start.saturating_add(gap) < pair.started {
            if let Some(run) = pair.bursts.close() {
                pair.end_burst(&run, floor, is_coarse, &mut self.all);
            }
            if let Some(train) = pair.trains.close() {
                pair.end_train(&train, &mut self.all);
            }
        } else if let Some(before) = before {
            let silent = start.saturating_since(before);
            self.all.gaps += 1;
            self.all.below_floor += u64::from(silent < floor || start < before);
            self.all.overlaps += u64::from((pair.started..before).contains(&start));
            if silent >= gap {
                pair.off.add(silent);
                self.all.off.saturating_record(silent.as_ps());
            }
            if silent <= self.options.train_gap {
                pair.cars.add(silent);
                self.all.inter_car.record(silent.as_ps());
            } else {
                pair.between.add(silent);
                self.all.inter_train.saturating_record(silent.as_ps());
            }
        }
        pair.started = start;
        if let Some(run) = pair.bursts.on_frame(start, end, bytes, gap) {
            pair.end_burst(&run, floor, is_coarse, &mut self.all);
        }
        // Gaps are whole picoseconds, so one more makes the maximum part of the train.
        let apart = Span::from_ps(self.options.train_gap.as_ps().saturating_add(1));
        if let Some(train) = pair.trains.on_frame(start, end, bytes, apart) {
            pair.end_train(&train, &mut self.all);
        }
    }

    /// Closes the open bursts and trains, and returns the report.
    pub fn finish(mut self) -> Report {
        self.settle();
        let (floor, is_coarse) = (self.floor, self.is_coarse());
        for pair in &mut self.pairs {
            if let Some(run) = pair.bursts.close() {
                pair.end_burst(&run, floor, is_coarse, &mut self.all);
            }
            if let Some(train) = pair.trains.close() {
                pair.end_train(&train, &mut self.all);
            }
        }
        let timestamps = Timestamps {
            declared_ns: self.stamps.declared().as_ns_f64(),
            granularity_ns: self.granularity().as_ns_f64(),
            least_difference_ns: self.stamps.least().map(Span::as_ns_f64),
            floor_ns: floor.as_ns_f64(),
            too_coarse: is_coarse,
            below_floor: share(self.all.below_floor, self.all.gaps),
            overlapping: share(self.all.overlaps, self.all.gaps),
            equal: self.stamps.zero,
            backwards: self.stamps.backwards,
            jumps: self.all.skipped.jumps,
        };
        let mut lengths = BTreeMap::new();
        let (mut unresolved, mut acks, mut losses) =
            (Unresolved::default(), Acks::default(), Retransmissions::default());
        let mut pairs: Vec<PairReport> = Vec::with_capacity(self.pairs.len());
        for pair in self.pairs {
            let report = pair.report(&self.interfaces);
            report.lengths_packets.iter().for_each(|(length, count)| add_to(&mut lengths, *length, *count));
            unresolved.add(&report.unresolved);
            acks.add(&report.acks);
            losses.add(&report.losses);
            pairs.push(report);
        }
        pairs.sort_by_key(|pair| std::cmp::Reverse(pair.bytes));
        let all = self.all;
        let seconds = all.length().as_secs_f64();
        Report {
            frames: all.frames,
            bytes: all.bytes,
            seconds,
            rate_bps: self.options.rate.as_bps(),
            gap_asked_ns: self.asked.as_ns_f64(),
            gap_ns: self.gap.as_ns_f64(),
            train_gap_ns: self.options.train_gap.as_ns_f64(),
            timestamps,
            large_frames: all.large,
            unknown_frames: all.unknown,
            unsupported_frames: all.skipped.unsupported,
            unsupported_link_types: all.skipped.link_types,
            untimed_frames: all.skipped.untimed,
            left_out_frames: all.left_out,
            data_only: self.options.data_only,
            frames_without_payload: all.without_payload,
            bursts: lengths.values().sum(),
            lengths_packets: lengths,
            lengths_bytes: all.burst_bytes,
            unresolved,
            on_ns: report::distribution(&all.on, 1e-3),
            off_ns: report::distribution(&all.off, 1e-3),
            trains: Trains {
                count: all.cars.len(),
                packets: report::distribution(&all.cars, 1.0),
                bytes: report::distribution(&all.train_bytes, 1.0),
                duration_ns: report::distribution(&all.train_on, 1e-3),
                inter_car_ns: report::distribution(&all.inter_car.finish(), 1e-3),
                inter_train_ns: report::distribution(&all.inter_train, 1e-3),
            },
            acks,
            losses: Losses {
                seen: losses,
                by_length: all.bins.into_iter().filter(|bin| bin.bursts > 0).collect(),
            },
            pairs,
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl TrafficPair {
    fn new(key: (u32, Address, Address)) -> TrafficPair {
        TrafficPair {
            key,
            frames: 0,
            bytes: 0,
            started: Time::ZERO,
            bursts: OpenRuns::default(),
            trains: OpenRuns::default(),
            number: 0,
            data: 0,
            lengths: BurstLengths::default(),
            unresolved: Unresolved::default(),
            burst_bytes: 0,
            on_ps: 0,
            off: Sum::default(),
            train_count: 0,
            cars: Sum::default(),
            between: Sum::default(),
            acks: Acks::default(),
            losses: Retransmissions::default(),
            recent: VecDeque::new(),
            datagrams: LastPackets::default(),
        }
    }

    /// Registers a burst. A coarse capture does not show a burst shorter than its floor.
    fn end_burst(&mut self, run: &Run, floor: Span, is_coarse: bool, all: &mut Totals) {
        let is_resolved = !is_coarse || run.duration() >= floor;
        if is_resolved {
            self.lengths.add(run.packets);
            self.burst_bytes += run.bytes;
            self.on_ps += u128::from(run.duration().as_ps());
            add_to(&mut all.burst_bytes, run.bytes, 1);
            all.on.saturating_record(run.duration().as_ps());
        } else {
            self.unresolved.bursts += 1;
            self.unresolved.frames += run.packets;
            self.unresolved.bytes += run.bytes;
        }
        if self.data > 0 && is_resolved {
            let bin = bin_of(&mut all.bins, run.packets);
            bin.bursts += 1;
            bin.segments += u64::from(self.data);
            if self.recent.len() == RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(Recent { number: self.number, packets: run.packets, is_lost: false });
        }
        self.number += 1;
        self.data = 0;
    }

    fn end_train(&mut self, train: &Run, all: &mut Totals) {
        self.train_count += 1;
        all.cars.saturating_record(train.packets);
        all.train_bytes.saturating_record(train.bytes);
        all.train_on.saturating_record(train.duration().as_ps());
    }

    fn on_segment(
        &mut self,
        segment: &CapturedSegment,
        seen: PayloadSeen,
        acked: Acked,
        bins: &mut Vec<LossBin>,
    ) {
        if seen == PayloadSeen::Copy {
            self.losses.copies += 1;
            return;
        }
        if segment.payload > 0 {
            self.data += 1;
            self.losses.segments += 1;
        }
        match seen {
            PayloadSeen::New | PayloadSeen::Copy => {}
            PayloadSeen::Fills => self.losses.filled += 1,
            PayloadSeen::Forgotten => {
                self.losses.retransmitted += 1;
                self.losses.unknown_burst += 1;
            }
            PayloadSeen::Again(burst) => {
                self.losses.retransmitted += 1;
                let found = self.recent.binary_search_by_key(&burst, |recent| recent.number);
                match found.ok().and_then(|index| self.recent.get_mut(index)) {
                    None => self.losses.unknown_burst += 1,
                    Some(recent) => {
                        let bin = bin_of(bins, recent.packets);
                        bin.retransmitted += 1;
                        bin.bursts_with_loss += u64::from(!recent.is_lost);
                        recent.is_lost = true;
                    }
                }
            }
        }
        if segment.is_pure_ack() {
            self.acks.pure += 1;
            match acked {
                Acked::Other => {}
                Acked::Advances(bytes) => {
                    self.acks.advancing += 1;
                    self.acks.bytes += u64::from(bytes);
                }
                Acked::Duplicate => self.acks.duplicate += 1,
                Acked::WindowUpdate => self.acks.window_updates += 1,
                Acked::KeepAlive => self.acks.keep_alives += 1,
            }
        }
    }

    fn report(self, interfaces: &[Option<String>]) -> PairReport {
        let lengths = self.lengths.into_map();
        let bursts: u64 = lengths.values().sum();
        let mean = |sum: f64| (bursts > 0).then(|| sum / bursts as f64);
        PairReport {
            interface: self.key.0,
            interface_name: interfaces.get(self.key.0 as usize).cloned().flatten(),
            source: self.key.1.to_string(),
            destination: self.key.2.to_string(),
            frames: self.frames,
            bytes: self.bytes,
            bursts,
            mean_burst_bytes: mean(self.burst_bytes as f64),
            mean_on_ns: mean(self.on_ps as f64 / 1e3),
            mean_off_ns: self.off.mean_ns(),
            trains: self.train_count,
            mean_inter_car_ns: self.cars.mean_ns(),
            mean_inter_train_ns: self.between.mean_ns(),
            acks: self.acks,
            losses: self.losses,
            unresolved: self.unresolved,
            lengths_packets: lengths,
        }
    }
}

/// Returns the bin of bursts of `packets` packets: a power of two up to the next.
fn bin_of(bins: &mut Vec<LossBin>, packets: u64) -> &mut LossBin {
    let index = packets.max(1).ilog2() as usize;
    while bins.len() <= index {
        let from = 1u64 << bins.len();
        bins.push(LossBin { from, to: from * 2 - 1, ..LossBin::default() });
    }
    &mut bins[index]
}
