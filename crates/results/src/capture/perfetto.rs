//! A run as a timeline for <https://ui.perfetto.dev> or `chrome://tracing`: messages as slices by the host that created
//! them, queues as counters, and the control loop of circuits where there is one. The file is Chrome's JSON trace
//! format.

use std::io::{self, Write};

use plimsoll_text::printable;
use plimsoll_units::Time;
use serde_json::{Value, json};

use super::circuit_tracks;
use crate::outcome::{MessageRecord, Outcome};
use crate::summary::workload::{CIRCUIT_TIER, WAITING_FOR_CIRCUIT};

/// The process that counters of the network are shown under; hosts come after it.
pub(super) const NETWORK: u64 = 0;

/// Writes a run as a timeline. Messages that did not complete end with the run.
///
/// # Errors
/// Errors of `out`.
pub fn write(outcome: &Outcome, mut out: impl Write) -> io::Result<()> {
    out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
    serde_json::to_writer(&mut out, &process_name(NETWORK, "network"))?;
    let senders = outcome.circuits.iter().map(|circuit| circuit.sender.0);
    let mut hosts: Vec<u32> = outcome.messages.iter().map(|message| message.source).chain(senders).collect();
    hosts.sort_unstable();
    hosts.dedup();
    for host in hosts {
        event(&mut out, &process_name(process(host), &format!("host h{host}")))?;
    }
    circuit_tracks::write(outcome, &mut out)?;
    for (id, message) in outcome.messages.iter().enumerate() {
        // Messages of a host overlap, so they are asynchronous slices, each with its own id.
        let name = outcome.workloads.get(usize::from(message.workload)).map_or("?", |w| w.name.as_str());
        let slice = |phase: &str, time: Time, args: Value| {
            json!({
                "ph": phase, "cat": name, "name": format!("{name} {}", message.index), "id": id,
                "pid": process(message.source), "tid": 0, "ts": microseconds(time), "args": args,
            })
        };
        event(&mut out, &slice("b", message.created, arguments(message, &outcome.tiers)))?;
        event(&mut out, &slice("e", message.completed.unwrap_or(outcome.end), json!({})))?;
    }
    for queue in &outcome.queues {
        let (queue_name, port) = (printable(&queue.name), printable(&queue.port));
        for (interval, bytes) in queue.mean_bytes.iter().enumerate() {
            let time = queue.from.saturating_add(queue.every.saturating_mul(interval as u64));
            let counter = json!({
                "ph": "C", "name": format!("queue {queue_name} ({port})"), "pid": NETWORK,
                "ts": microseconds(time), "args": { "bytes waiting": bytes },
            });
            event(&mut out, &counter)?;
        }
    }
    out.write_all(b"\n]}\n")?;
    out.flush()
}

pub(super) fn event(out: &mut impl Write, event: &Value) -> io::Result<()> {
    out.write_all(b",\n")?;
    Ok(serde_json::to_writer(out, event)?)
}

pub(super) fn process(host: u32) -> u64 {
    NETWORK + 1 + u64::from(host)
}

fn process_name(pid: u64, name: &str) -> Value {
    json!({ "ph": "M", "name": "process_name", "pid": pid, "args": { "name": name } })
}

/// The format counts microseconds; a double keeps nanoseconds over any run that fits a viewer.
pub(super) fn microseconds(time: Time) -> f64 {
    time.as_ps() as f64 / 1e6
}

fn arguments(message: &MessageRecord, tiers: &[String]) -> Value {
    let split = &message.split;
    let circuit = tiers.iter().position(|tier| tier == CIRCUIT_TIER);
    let in_tier = |tier: usize| split.tier.get(tier).map_or(0.0, |waited| waited.as_us_f64());
    let queues: f64 = (0..split.tier.len()).filter(|tier| Some(*tier) != circuit).map(in_tier).sum();
    let mut args = json!({
        "from": format!("h{}", message.source),
        "to": format!("h{}", message.destination),
        "bytes": message.bytes,
        "completed": message.completed.is_some(),
        "window us": split.window.as_us_f64(),
        "recovery us": split.recovery.as_us_f64(),
        "NIC queue us": split.nic.as_us_f64(),
        "pacer us": split.pacer.as_us_f64(),
        "switch queues us": queues,
        "service us": split.service.as_us_f64(),
    });
    if let Some(tier) = circuit {
        args[format!("{WAITING_FOR_CIRCUIT} us")] = json!(in_tier(tier));
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{self, Shape};

    #[test]
    fn every_message_begins_and_ends_and_every_interval_counts() {
        let outcome = synthetic::outcome(&Shape::default(), 1, "HULL");
        let mut bytes = Vec::new();
        write(&outcome, &mut bytes).unwrap();
        let trace: Value = serde_json::from_slice(&bytes).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let count = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
        assert_eq!(count("b"), outcome.messages.len());
        assert_eq!(count("e"), outcome.messages.len());
        assert_eq!(count("C"), outcome.queues[0].mean_bytes.len());
        assert_eq!(count("M"), 2);
    }

    #[test]
    fn an_empty_run_is_still_a_trace() {
        let mut bytes = Vec::new();
        write(&Outcome::default(), &mut bytes).unwrap();
        assert!(serde_json::from_slice::<Value>(&bytes).is_ok());
    }
}
