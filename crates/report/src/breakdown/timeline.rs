//! The timeline of a breakdown, in the JSON form of trace events that Perfetto reads.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_breakdown::{SlowRequest, Traced};
use plimsoll_text::printable_json;
use serde_json::{Value, json};

/// Writes a track for each connection, with a slice for each request and below it one for each part: of the slowest
/// requests, and of the first of the trace.
pub fn timeline(traced: &Traced) -> String {
    let key = |request: &SlowRequest| (request.received_ns, request.client.clone());
    let mut drawn: Vec<&SlowRequest> = traced.report.slowest.iter().chain(&traced.first).collect();
    drawn.sort_by_key(|request| key(request));
    drawn.dedup_by_key(|request| key(request));
    let clients: BTreeSet<&str> = drawn.iter().map(|request| request.client.as_str()).collect();
    let tracks: BTreeMap<&str, usize> = clients.into_iter().zip(1..).collect();
    let process = traced.target.processes[0];
    let mut events = vec![json!({
        "ph": "M", "pid": process, "name": "process_name",
        "args": {"name": format!("{}: connections", traced.target.name)},
    })];
    for (client, track) in &tracks {
        events.push(json!({
            "ph": "M", "pid": process, "tid": track, "name": "thread_name", "args": {"name": client},
        }));
    }
    for request in &drawn {
        events.extend(slices(request, process, tracks[request.client.as_str()]));
    }
    let whole = json!({
        "displayTimeUnit": "ns",
        "otherData": {"clock": "CLOCK_MONOTONIC", "shown": "the slowest requests, and the first of the trace"},
        "traceEvents": events,
    });
    printable_json(&whole.to_string()).into_owned() + "\n"
}

/// Makes the slice of a request, and one for each of its parts.
fn slices(request: &SlowRequest, process: u32, track: usize) -> Vec<Value> {
    // The form's unit is the microsecond, with a fraction.
    let slice = |name: &str, from: u64, length: u64, args: Value| {
        json!({
            "ph": "X", "pid": process, "tid": track, "name": name,
            "ts": from as f64 / 1e3, "dur": length as f64 / 1e3, "args": args,
        })
    };
    let about = json!({
        "bytes_in": request.bytes_in, "bytes_out": request.bytes_out,
        "reader": request.reader, "sender": request.sender,
    });
    let parts = request.spans.iter().map(|span| {
        let layer = json!({"layer": span.part.layer().name()});
        slice(span.part.name(), span.from, span.to - span.from, layer)
    });
    std::iter::once(slice("request", request.received_ns, request.latency_ns, about)).chain(parts).collect()
}
