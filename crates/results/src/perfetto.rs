//! Operations of jobs as a timeline for Perfetto: Chrome's JSON of trace events.
//!
//! A rank is a process and a stream a thread; times are in us.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::outcome::{OperationRecord, Outcome};

/// Returns the timeline of a run's jobs; `None` where no operation was recorded.
pub fn trace(outcome: &Outcome) -> Option<String> {
    if outcome.operations.is_empty() {
        return None;
    }
    let mut events: Vec<Value> = outcome.operations.iter().map(|one| event(outcome, one)).collect();
    // Ranks of several jobs have processes of their own.
    let ranks: BTreeMap<u64, &OperationRecord> =
        outcome.operations.iter().map(|one| (process(one), one)).collect();
    for (process, one) in ranks {
        let job = &outcome.workloads[usize::from(one.workload)].name;
        events.push(json!({
            "ph": "M", "name": "process_name", "pid": process, "args": { "name": format!("{job}, rank {}", one.rank) },
        }));
        events.push(json!({
            "ph": "M", "name": "process_sort_index", "pid": process, "args": { "sort_index": process },
        }));
    }
    Some(json!({ "displayTimeUnit": "ns", "traceEvents": events }).to_string())
}

fn process(one: &OperationRecord) -> u64 {
    u64::from(one.workload) << 32 | u64::from(one.rank)
}

fn event(outcome: &Outcome, one: &OperationRecord) -> Value {
    let groups = &outcome.workloads[usize::from(one.workload)].groups;
    let group = groups.get(usize::from(one.group)).map_or("", String::as_str);
    let peer = one.peer.map_or("any".to_owned(), |peer| peer.to_string());
    let what = match one.action {
        0 => "compute".to_owned(),
        1 => format!("send to {peer}"),
        _ => format!("receive from {peer}"),
    };
    let name = if group.is_empty() { what } else { format!("{group}: {what}") };
    json!({
        "ph": "X",
        "name": name,
        "cat": if group.is_empty() { "job" } else { group },
        "pid": process(one),
        "tid": one.stream,
        "ts": one.began.as_ps() as f64 / 1e6,
        "dur": (one.ended - one.began).as_us_f64(),
        "args": { "iteration": one.index, "operation": one.operation, "bytes": one.bytes },
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_units::{Span, Time};

    use super::*;
    use crate::outcome::{Supply, WorkloadInfo};

    #[test]
    fn operations_are_events_of_their_rank_and_stream() {
        assert_eq!(trace(&Outcome::default()), None);
        let info = WorkloadInfo {
            name: "train".to_owned(),
            kind: "training".to_owned(),
            deadline: None,
            observed: None,
            supply: Supply::Fixed,
            groups: vec![String::new(), "dp".to_owned()],
        };
        let at = |us: u64| Time::ZERO + Span::from_us(us);
        let send = OperationRecord {
            workload: 0,
            index: 2,
            operation: 7,
            rank: 3,
            stream: 1,
            group: 1,
            action: 1,
            peer: Some(4),
            bytes: 4_096,
            began: at(5),
            ended: at(9),
            path: None,
        };
        let compute = OperationRecord { group: 0, action: 0, peer: None, bytes: 0, ..send };
        let outcome =
            Outcome { workloads: vec![info], operations: vec![send, compute], ..Outcome::default() };
        let text = trace(&outcome).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 4, "two operations, and the name and place of a rank");
        assert_eq!(
            (&events[0]["name"], &events[0]["pid"], &events[0]["tid"], &events[0]["ts"], &events[0]["dur"]),
            (&json!("dp: send to 4"), &json!(3), &json!(1), &json!(5.0), &json!(4.0))
        );
        assert_eq!((&events[1]["name"], &events[1]["cat"]), (&json!("compute"), &json!("job")));
        assert_eq!(events[2]["args"]["name"], "train, rank 3");
    }
}
