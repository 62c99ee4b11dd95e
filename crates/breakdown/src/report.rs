//! [`Report`]: the breakdown of all requests, as numbers.

use serde::{Serialize, Serializer};

use crate::part::{Layer, Part, PartSpan};
use crate::request::{Reason, Request};

/// The breakdown of the requests of one server.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The requests with a breakdown.
    pub requests: u64,
    /// The time for which it traced, in seconds.
    pub seconds: f64,
    /// The mean payload of a request in bytes.
    pub bytes_in: f64,
    /// The mean payload of a reply in bytes.
    pub bytes_out: f64,
    /// The mean packets of a request, as the stack received them.
    pub packets_in: f64,
    /// The mean packets of a reply, before segmentation by the device.
    pub packets_out: f64,
    /// The latency inside the server, from the first packet in to the last packet out.
    pub latency: Quantiles,
    /// The requests that count as the slowest 1 %: at least that many, in whole buckets of latency that are 1.6 % wide.
    pub slowest_requests: u64,
    /// The lowest latency of these, in ns.
    pub slowest_from_ns: u64,
    /// The mean latency of these, in ns.
    pub slowest_mean_ns: f64,
    /// The parts, in the order of a request.
    pub parts: Vec<PartReport>,
    /// The layers of the parts.
    pub layers: Vec<LayerReport>,
    /// The requests without a breakdown.
    pub unmatched: UnmatchedReport,
    /// The slowest requests, the slowest first.
    pub slowest: Vec<SlowRequest>,
}

impl Report {
    /// Returns the time on the wire of a mean request and its reply, as whole frames at this rate, in ns.
    pub fn serialisation_ns(&self, bits_per_s: u64) -> f64 {
        let bytes = self.bytes_in + self.bytes_out + FRAME_BYTES * (self.packets_in + self.packets_out);
        bytes * 8e9 / bits_per_s as f64
    }

    /// Returns the layer with the largest share of the slowest requests' time.
    pub fn owner_of_tail(&self) -> Option<&LayerReport> {
        self.layers.iter().max_by(|a, b| a.share_of_slowest.total_cmp(&b.share_of_slowest))
    }

    /// Returns the part with the largest share of the slowest requests' time.
    pub fn largest_part_of_tail(&self) -> Option<&PartReport> {
        self.parts.iter().max_by(|a, b| a.share_of_slowest.total_cmp(&b.share_of_slowest))
    }
}

/// Bytes of a frame around the payload: Ethernet 38 with preamble and gap, IPv4 20, TCP 32 with time stamps.
const FRAME_BYTES: f64 = 90.0;

/// Quantiles of a time, in ns.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Quantiles {
    #[allow(missing_docs)]
    pub mean_ns: f64,
    /// The median, which is the 50th percentile.
    pub p50_ns: u64,
    #[allow(missing_docs)]
    pub p90_ns: u64,
    #[allow(missing_docs)]
    pub p99_ns: u64,
    /// The 99.9th percentile of the time.
    pub p999_ns: u64,
    #[allow(missing_docs)]
    pub max_ns: u64,
}

/// One part of the latency, over all requests. Medians and percentiles of parts do not add up, means do.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct PartReport {
    /// The part that the numbers are of.
    pub part: Part,
    /// The name of the part in tables.
    pub name: &'static str,
    /// The layer that the part belongs to.
    pub layer: Layer,
    /// `measured` by events, or `remainder`.
    pub source: &'static str,
    /// The time that requests spend in the part.
    pub time: Quantiles,
    /// The part's share of the time of all requests, 0 to 1.
    pub share: f64,
    /// The part's share of the time of the slowest 1 %, 0 to 1.
    pub share_of_slowest: f64,
}

/// One layer's shares of the latency.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LayerReport {
    /// The layer that the numbers are of.
    pub layer: Layer,
    /// The name of the layer in tables.
    pub name: &'static str,
    /// The time that requests spend in the layer.
    pub time: Quantiles,
    /// The layer's share of the time of all requests, 0 to 1.
    pub share: f64,
    /// The layer's share of the time of the slowest 1 %, 0 to 1.
    pub share_of_slowest: f64,
}

/// The requests without a breakdown.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct UnmatchedReport {
    /// Their number, without requests that were cut off.
    pub requests: u64,
    /// Their share of all requests, 0 to 1.
    pub share: f64,
    /// Their numbers by reason.
    #[serde(serialize_with = "as_map")]
    pub by_reason: Vec<(Reason, u64)>,
    /// The requests that had begun before tracing did, or had not ended when it ended.
    pub cut_off: u64,
}

fn as_map<S: Serializer>(pairs: &[(Reason, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(reason, requests)| (reason, requests)))
}

/// A slow request with all its spans.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SlowRequest {
    /// The client's address and port.
    pub client: String,
    /// When it was received, in ns of CLOCK_MONOTONIC.
    pub received_ns: u64,
    /// The latency inside the server, in ns.
    pub latency_ns: u64,
    /// The thread that read it.
    pub reader: u32,
    /// The thread that sent the reply.
    pub sender: u32,
    /// The payload of the request in bytes.
    pub bytes_in: u64,
    /// The payload of the reply in bytes.
    pub bytes_out: u64,
    /// The adjacent spans, from the first packet in to the last packet out.
    pub spans: Vec<PartSpan>,
}

impl SlowRequest {
    pub(crate) fn of(request: &Request) -> SlowRequest {
        SlowRequest {
            client: request.flow.to_string(),
            received_ns: request.received,
            latency_ns: request.latency,
            reader: request.reader,
            sender: request.sender,
            bytes_in: request.bytes_in,
            bytes_out: request.bytes_out,
            spans: request.spans.clone(),
        }
    }

    /// Returns the time of each part in ns, in the order of [`Part::ALL`].
    pub fn parts(&self) -> Vec<(Part, u64)> {
        let of = |part: Part| {
            let spans = self.spans.iter().filter(|span| span.part == part);
            (part, spans.map(|span| span.to - span.from).sum())
        };
        Part::ALL.into_iter().map(of).collect()
    }
}
