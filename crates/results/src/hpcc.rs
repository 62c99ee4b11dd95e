//! Completion times as HPCC's simulator writes them (`fct.txt` of alibaba-edu/High-Precision-Congestion-Control), for
//! scripts that read such files.
//!
//! ```text
//! source address (hex)  destination address (hex)  source port  destination port  bytes  start  time  ideal time
//! 0b000001 0b000501 10000 100 20000 2000001000 8123 6812
//! ```
//!
//! Times are in nanoseconds. Node `n` has the address 11.(n / 256).(n mod 256).1; ports count up from 10000 for each
//! pair of nodes. The ideal time is Plimsoll's, of a flow on idle links ([`crate::outcome::MessageRecord::ideal`]).

use std::collections::BTreeMap;
use std::fmt::Write;

use plimsoll_traffic::Workload;
use plimsoll_units::{Span, Time};

use crate::outcome::{MessageRecord, Outcome};

/// Every completed message that was created after the warm-up, in the order of completion. `node` is the number that
/// a host has in the other simulator.
pub fn fct(outcome: &Outcome, node: &dyn Fn(u32) -> u32) -> String {
    let mut ports: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let counted = |message: &&MessageRecord| message.created.as_ps() >= outcome.warmup.as_ps();
    let mut lines: Vec<(Time, String)> = Vec::new();
    for message in outcome.messages.iter().filter(counted) {
        let (Some(completed), Some(latency)) = (message.completed, message.latency()) else { continue };
        let (from, to) = ends(outcome, message);
        let port = ports.entry((from, to)).or_insert(FIRST_PORT);
        let mut line = String::new();
        let _ = writeln!(
            line,
            "{:08x} {:08x} {port} 100 {} {} {} {}",
            address(node(from)),
            address(node(to)),
            message.bytes,
            ns(message.created.saturating_since(Time::ZERO)),
            ns(latency),
            ns(message.ideal)
        );
        *port += 1;
        lines.push((completed, line));
    }
    // The sort is stable: messages of one instant stay in the order of workload and index.
    lines.sort_by_key(|(completed, _)| *completed);
    lines.into_iter().map(|(_, line)| line).collect()
}

const FIRST_PORT: u32 = 10_000;

/// Returns the sender and the receiver of the bytes: for a request's response, the server sends.
fn ends(outcome: &Outcome, message: &MessageRecord) -> (u32, u32) {
    let kind = outcome.workloads.get(usize::from(message.workload)).map_or("", |info| info.kind.as_str());
    if Workload::FLOWS.contains(&kind) {
        (message.source, message.destination)
    } else {
        (message.destination, message.source)
    }
}

fn address(node: u32) -> u32 {
    // Beyond 65,536 nodes addresses wrap, as they do there.
    0x0b00_0001u32.wrapping_add((node / 256).wrapping_mul(0x1_0000)).wrapping_add(node % 256 * 0x100)
}

/// To the nearest nanosecond.
fn ns(span: Span) -> u64 {
    (span.as_ps() + 500) / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Split, Supply, WorkloadInfo};

    fn message(workload: u16, index: u64, created: u64, took: Option<u64>) -> MessageRecord {
        let at = |us| Time::ZERO + Span::from_us(us);
        MessageRecord {
            workload,
            index,
            query: None,
            source: 0,
            destination: 261,
            bytes: 20_000,
            created: at(created),
            completed: took.map(|took| at(created + took)),
            ideal: Span::from_ps(6_812_499),
            split: Split::default(),
        }
    }

    #[test]
    fn lines_are_those_of_the_other_simulator() {
        let info = |name: &str, kind: &str| WorkloadInfo {
            name: name.to_owned(),
            kind: kind.to_owned(),
            deadline: None,
            observed: None,
            supply: Supply::Duration,
            groups: Vec::new(),
        };
        let outcome = Outcome {
            workloads: vec![info("w", "flow-list"), info("asked", "rpc")],
            warmup: Span::from_us(1),
            messages: vec![
                message(0, 0, 0, Some(5)),
                message(0, 1, 10, Some(90)),
                message(0, 2, 20, Some(20)),
                message(0, 3, 30, None),
                message(1, 0, 40, Some(7)),
            ],
            ..Outcome::default()
        };
        assert_eq!(
            fct(&outcome, &|host| host),
            "0b000001 0b010501 10001 100 20000 20000 20000 6812\n\
             0b010501 0b000001 10000 100 20000 40000 7000 6812\n\
             0b000001 0b010501 10000 100 20000 10000 90000 6812\n"
        );
    }
}
