//! The tracks of a hybrid network's control loop in a timeline:
//!
//! ```text
//! network   controller      read demand | gather demand | compute schedule   ! schedule ready
//!           week            week 1 (its bytes by the packet switch) | week 2 ...
//!           circuit switch  dark | configuration 0 (its circuits) | dark | configuration 1 ...
//! host h0   circuit         to h3 (bytes, share filled) | to h5 ...
//! ```

use std::io::{self, Write};

use plimsoll_units::{Span, Time};
use serde_json::{Map, Value, json};

use super::perfetto::{NETWORK, event, microseconds, process};
use crate::outcome::{CircuitUse, CircuitWeek, Outcome, ScheduleTimes};

/// The tracks of the process `network`.
const CONTROLLER: u64 = 1;
const WEEK: u64 = 2;
const CIRCUIT_SWITCH: u64 = 3;
/// The track of a host's circuits, beside its messages.
const CIRCUIT: u64 = 1;

/// Writes the tracks of the control loop; nothing for a network without circuits.
pub(super) fn write(outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    if outcome.circuit_weeks.is_empty() {
        return Ok(());
    }
    for (track, name) in [(CONTROLLER, "controller"), (WEEK, "week"), (CIRCUIT_SWITCH, "circuit switch")] {
        event(out, &track_name(NETWORK, track, name))?;
    }
    for week in &outcome.circuit_weeks {
        write_week(week, out)?;
    }
    let mut dark_since = Time::ZERO;
    for circuits in outcome.circuits.chunk_by(|a, b| a.configuration == b.configuration) {
        let CircuitUse { week, configuration, from, until, .. } = circuits[0];
        if from > dark_since {
            event(out, &slice(NETWORK, CIRCUIT_SWITCH, "dark", dark_since, from, json!({})))?;
        }
        let mut args = Map::from_iter([("week".to_owned(), json!(week))]);
        args.extend(
            circuits.iter().map(|c| (format!("h{}", c.sender.0), json!(format!("h{}", c.receiver.0)))),
        );
        let name = format!("configuration {configuration}");
        event(out, &slice(NETWORK, CIRCUIT_SWITCH, &name, from, until, Value::Object(args)))?;
        dark_since = until;
    }
    if outcome.end > dark_since {
        event(out, &slice(NETWORK, CIRCUIT_SWITCH, "dark", dark_since, outcome.end, json!({})))?;
    }
    let mut senders: Vec<u32> = outcome.circuits.iter().map(|circuit| circuit.sender.0).collect();
    senders.sort_unstable();
    senders.dedup();
    for sender in senders {
        event(out, &track_name(process(sender), CIRCUIT, "circuit"))?;
    }
    outcome.circuits.iter().try_for_each(|circuit| write_circuit(circuit, out))
}

fn write_week(week: &CircuitWeek, out: &mut impl Write) -> io::Result<()> {
    let name = format!("week {}", week.week);
    let args = json!({
        "configurations": week.configurations,
        "bytes by the packet switch": week.packet_bytes,
        "packets lost in the dark": week.lost_dark,
        "packets lost without a circuit": week.lost_unmatched,
    });
    event(out, &slice(NETWORK, WEEK, &name, week.begins, week.ends, args))?;
    let Some(ScheduleTimes { read, gathered, ready }) = week.made else { return Ok(()) };
    let of = json!({ "for week": week.week });
    event(out, &slice(NETWORK, CONTROLLER, "gather demand", read, gathered, of.clone()))?;
    event(out, &slice(NETWORK, CONTROLLER, "compute schedule", gathered, ready, of.clone()))?;
    let moments = [("read demand", read), ("schedule ready", ready), ("week begins", week.begins)];
    moments.into_iter().try_for_each(|(name, at)| {
        let instant = json!({
            "ph": "i", "s": "t", "cat": "circuits", "name": name, "pid": NETWORK, "tid": CONTROLLER,
            "ts": microseconds(at), "args": of,
        });
        event(out, &instant)
    })
}

fn write_circuit(circuit: &CircuitUse, out: &mut impl Write) -> io::Result<()> {
    let args = json!({
        "week": circuit.week,
        "configuration": circuit.configuration,
        "packets": circuit.packets,
        "bytes": circuit.bytes,
        "share filled": circuit.filled(),
    });
    let name = format!("to h{}", circuit.receiver.0);
    event(out, &slice(process(circuit.sender.0), CIRCUIT, &name, circuit.from, circuit.until, args))
}

fn track_name(pid: u64, tid: u64, name: &str) -> Value {
    json!({ "ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": { "name": name } })
}

fn slice(pid: u64, tid: u64, name: &str, from: Time, until: Time, args: Value) -> Value {
    let length: Span = until.saturating_since(from);
    json!({
        "ph": "X", "cat": "circuits", "name": name, "pid": pid, "tid": tid,
        "ts": microseconds(from), "dur": length.as_us_f64(), "args": args,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::perfetto;
    use crate::synthetic::{self, Shape};

    fn events(outcome: &Outcome) -> Vec<Value> {
        let mut bytes = Vec::new();
        perfetto::write(outcome, &mut bytes).unwrap();
        let trace: Value = serde_json::from_slice(&bytes).unwrap();
        trace["traceEvents"].as_array().unwrap().clone()
    }

    #[test]
    fn the_loop_has_its_tracks_and_time_has_no_gap() {
        let mut outcome = synthetic::outcome(&Shape { requests: 1, ..Shape::default() }, 1, "TCP");
        synthetic::with_circuits(&mut outcome, 3, 4);
        let events = events(&outcome);
        let of = |pid: u64, tid: u64, phase: &str| -> Vec<&Value> {
            let mine = |e: &&Value| e["pid"] == pid && e["tid"] == tid && e["ph"] == phase;
            events.iter().filter(mine).collect()
        };
        let names = |events: &[&Value]| {
            events.iter().map(|e| e["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&of(NETWORK, CONTROLLER, "X"))[..2], ["gather demand", "compute schedule"]);
        assert_eq!(
            names(&of(NETWORK, CONTROLLER, "i"))[..3],
            ["read demand", "schedule ready", "week begins"]
        );
        assert_eq!(of(NETWORK, CONTROLLER, "i").len(), 4 * 3);
        assert_eq!(names(&of(NETWORK, WEEK, "X")), ["week 0", "week 1", "week 2", "week 3", "week 4"]);
        let switch = of(NETWORK, CIRCUIT_SWITCH, "X");
        assert_eq!(names(&switch)[..3], ["dark", "configuration 0", "dark"]);
        assert_eq!(switch[1]["args"], json!({ "week": 1, "h0": "h1", "h1": "h2", "h2": "h0" }));
        let mut now = 0.0;
        for slice in &switch {
            let (from, length) = (slice["ts"].as_f64().unwrap(), slice["dur"].as_f64().unwrap());
            assert!((from - now).abs() < 1e-6, "{slice} begins at {from}, not at {now}");
            now = from + length;
        }
        assert!((now - microseconds(outcome.end)).abs() < 1e-3);
        let circuits = of(process(2), CIRCUIT, "X");
        assert_eq!(circuits.len(), 8);
        assert_eq!((&circuits[0]["name"], &circuits[0]["args"]["bytes"]), (&json!("to h0"), &json!(882_000)));
        // Every process and every track of circuits has a name.
        assert_eq!(of(process(2), CIRCUIT, "M").len(), 1);
        assert!(events.iter().any(|e| e["name"] == "process_name" && e["pid"] == process(2)));
    }

    #[test]
    fn a_network_without_circuits_has_none_of_the_tracks() {
        let outcome = synthetic::outcome(&Shape::default(), 1, "TCP");
        assert!(events(&outcome).iter().all(|e| e["ph"] != "X" && e["name"] != "thread_name"));
    }
}
