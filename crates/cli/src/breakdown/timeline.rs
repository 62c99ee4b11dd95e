//! The timeline of `plimsoll breakdown`, in the JSON form of trace events that Perfetto reads.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_breakdown::{Request, SlowRequest, Span};
use plimsoll_text::printable_json;
use serde_json::{Value, json};

use super::shown::Shown;

/// The first requests of a trace that the timeline has, beside the slowest.
pub(super) const FIRST: usize = 5_000;

/// Writes a track for each connection, with a slice for each request and below it one for each part.
pub(super) fn render(shown: &Shown, first: &[Request]) -> String {
    let slowest = shown.report.slowest.iter().map(Drawn::of_slow);
    let mut drawn: Vec<Drawn<'_>> = slowest.chain(first.iter().map(Drawn::of)).collect();
    drawn.sort_by(|a, b| (a.received, &a.client).cmp(&(b.received, &b.client)));
    drawn.dedup_by(|a, b| (a.received, &a.client) == (b.received, &b.client));
    let clients: BTreeSet<String> = drawn.iter().map(|one| one.client.clone()).collect();
    let tracks: BTreeMap<String, usize> = clients.into_iter().zip(1..).collect();
    let process = shown.target.processes[0];
    let mut events = vec![json!({
        "ph": "M", "pid": process, "name": "process_name",
        "args": {"name": format!("{}: connections", shown.target.name)},
    })];
    for (client, track) in &tracks {
        events.push(json!({
            "ph": "M", "pid": process, "tid": track, "name": "thread_name", "args": {"name": client},
        }));
    }
    for one in &drawn {
        events.extend(one.events(process, tracks[&one.client]));
    }
    let whole = json!({
        "displayTimeUnit": "ns",
        "otherData": {"clock": "CLOCK_MONOTONIC", "shown": "the slowest requests, and the first of the trace"},
        "traceEvents": events,
    });
    printable_json(&whole.to_string()).into_owned() + "\n"
}

/// A request of the timeline.
struct Drawn<'a> {
    client: String,
    received: u64,
    latency: u64,
    bytes: [u64; 2],
    threads: [u32; 2],
    spans: &'a [Span],
}

impl Drawn<'_> {
    fn of(request: &Request) -> Drawn<'_> {
        Drawn {
            client: request.flow.to_string(),
            received: request.received,
            latency: request.latency,
            bytes: [request.bytes_in, request.bytes_out],
            threads: [request.reader, request.sender],
            spans: &request.spans,
        }
    }

    fn of_slow(request: &SlowRequest) -> Drawn<'_> {
        Drawn {
            client: request.client.clone(),
            received: request.received_ns,
            latency: request.latency_ns,
            bytes: [request.bytes_in, request.bytes_out],
            threads: [request.reader, request.sender],
            spans: &request.spans,
        }
    }

    fn events(&self, process: u32, track: usize) -> Vec<Value> {
        // The form's unit is the microsecond, with a fraction.
        let slice = |name: &str, from: u64, length: u64, args: Value| {
            json!({
                "ph": "X", "pid": process, "tid": track, "name": name,
                "ts": from as f64 / 1e3, "dur": length as f64 / 1e3, "args": args,
            })
        };
        let about = json!({
            "bytes_in": self.bytes[0], "bytes_out": self.bytes[1],
            "reader": self.threads[0], "sender": self.threads[1],
        });
        let parts = self.spans.iter().map(|span| {
            slice(
                span.part.name(),
                span.from,
                span.to - span.from,
                json!({"layer": span.part.layer().name()}),
            )
        });
        std::iter::once(slice("request", self.received, self.latency, about)).chain(parts).collect()
    }
}
