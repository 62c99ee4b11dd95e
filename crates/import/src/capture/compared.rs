//! [`ComparedClass`]: the measurements that a run of the imported scenario can be compared with; [`Tally`] counts them.

use hdrhistogram::Histogram;
use plimsoll_bursts::CapturedSegment;
use plimsoll_units::Span;

use super::stream::Payload;

/// The measurements of one class.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ComparedClass {
    /// The class of which these are the round-trip times and losses.
    pub class: String,
    /// Connections, or pairs of ports of UDP.
    pub connections: u64,
    /// Packets with payload, each counted once.
    pub data_packets: u64,
    /// Packets whose payload was sent again.
    pub retransmitted: u64,
    /// Packets that fill a gap: lost or reordered before they came to the place of the capture.
    pub filled: u64,
    /// Packets that a second interface has captured.
    pub copies: u64,
    /// Connections that were reset.
    pub resets: u64,
    /// Requests without a response.
    pub unanswered: u64,
    /// Times that one side has sent before it had all from the other.
    pub overlaps: u64,
    /// Packets that begin with a TLS record.
    pub tls_packets: u64,
    /// Round-trip times of handshakes.
    pub handshake: TimeQuantiles,
    /// Times from the place of the capture to the server and back, by acknowledgements without data.
    pub to_server: TimeQuantiles,
    /// Times from the place of the capture to the client and back.
    pub to_client: TimeQuantiles,
    /// Times from the first byte of a request to the last of its response.
    pub latency: TimeQuantiles,
}

/// Quantiles of lengths of time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TimeQuantiles {
    /// The number of times that were measured.
    pub count: u64,
    /// The median in microseconds.
    pub p50_us: f64,
    /// The 99th percentile in microseconds.
    pub p99_us: f64,
    /// The longest time in microseconds.
    pub max_us: f64,
}

/// The counters of one class while captures are read.
pub(super) struct Tally {
    counts: ComparedClass,
    handshake: Histogram<u64>,
    to_server: Histogram<u64>,
    to_client: Histogram<u64>,
    pub(super) unanswered: u64,
    pub(super) overlaps: u64,
    /// TCP connections with payload; of these, connections with packets of one direction alone.
    pub(super) with_data: u64,
    pub(super) one_way: u64,
    /// Payload bytes of all messages.
    pub(super) bytes: u64,
}

/// Significant digits of the histograms, in nanoseconds.
const DIGITS: u8 = 2;

fn histogram() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("the number of digits is allowed")
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            counts: ComparedClass::default(),
            handshake: histogram(),
            to_server: histogram(),
            to_client: histogram(),
            unanswered: 0,
            overlaps: 0,
            with_data: 0,
            one_way: 0,
            bytes: 0,
        }
    }
}

impl Tally {
    pub(super) fn begin(&mut self) {
        self.counts.connections += 1;
    }

    pub(super) fn count(&mut self, segment: &CapturedSegment, payload: Payload) {
        self.count_datagram(payload);
        self.counts.resets += u64::from(segment.is_reset && payload != Payload::Copy);
    }

    pub(super) fn count_datagram(&mut self, payload: Payload) {
        let counts = &mut self.counts;
        match payload {
            Payload::Copy => counts.copies += 1,
            Payload::None => {}
            Payload::New(_) => counts.data_packets += 1,
            Payload::Again => {
                (counts.data_packets, counts.retransmitted) =
                    (counts.data_packets + 1, counts.retransmitted + 1)
            }
            Payload::Fills => {
                (counts.data_packets, counts.filled) = (counts.data_packets + 1, counts.filled + 1)
            }
        }
    }

    pub(super) fn note_tls(&mut self) {
        self.counts.tls_packets += 1;
    }

    pub(super) fn handshake(&mut self, time: Span) {
        add(&mut self.handshake, time);
    }

    /// Counts the time until an end has acknowledged received data.
    pub(super) fn turnaround(&mut self, by_server: bool, time: Span) {
        add(if by_server { &mut self.to_server } else { &mut self.to_client }, time);
    }

    /// Adds the counters of another class, which becomes part of this one.
    pub(super) fn merge(&mut self, other: &Tally) {
        let (own, of) = (&mut self.counts, &other.counts);
        own.connections += of.connections;
        own.data_packets += of.data_packets;
        own.retransmitted += of.retransmitted;
        own.filled += of.filled;
        own.copies += of.copies;
        own.resets += of.resets;
        own.tls_packets += of.tls_packets;
        let histograms = [
            (&mut self.handshake, &other.handshake),
            (&mut self.to_server, &other.to_server),
            (&mut self.to_client, &other.to_client),
        ];
        for (own, of) in histograms {
            own.add(of).expect("a histogram that resizes takes any value");
        }
        self.unanswered += other.unanswered;
        self.overlaps += other.overlaps;
        self.with_data += other.with_data;
        self.one_way += other.one_way;
        self.bytes += other.bytes;
    }

    /// Returns the measurements of the class, of whose requests these are the latencies.
    pub(super) fn compared(&self, class: String, latencies: impl Iterator<Item = Span>) -> ComparedClass {
        let mut latency = histogram();
        latencies.for_each(|time| add(&mut latency, time));
        ComparedClass {
            class,
            unanswered: self.unanswered,
            overlaps: self.overlaps,
            handshake: times(&self.handshake),
            to_server: times(&self.to_server),
            to_client: times(&self.to_client),
            latency: times(&latency),
            ..self.counts.clone()
        }
    }
}

fn add(histogram: &mut Histogram<u64>, time: Span) {
    histogram.record(time.as_ps() / 1_000).expect("a histogram that resizes takes any value");
}

fn times(histogram: &Histogram<u64>) -> TimeQuantiles {
    let us = |ns: u64| ns as f64 / 1e3;
    let at = |share| us(histogram.value_at_quantile(share));
    match histogram.len() {
        0 => TimeQuantiles::default(),
        count => TimeQuantiles { count, p50_us: at(0.5), p99_us: at(0.99), max_us: us(histogram.max()) },
    }
}
