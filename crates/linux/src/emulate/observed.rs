//! What a run has come to: its [`Outcome`] as a simulated run has it, and what is to be said beside it.

use std::collections::BTreeMap;

use plimsoll_fabric::net::{HostId, Packet, ideal_time};
use plimsoll_mechanisms::tcp::Config;
use plimsoll_results::outcome::{self, Connection, Message, Outcome, Query, Split};
use plimsoll_scenario::model::{Fault, Model};
use plimsoll_units::{Span, Time};

use super::Options;
use crate::agent::plan::{Lane, Plan};
use crate::agent::{Counts, Done, Records};
use crate::edge::Seen;
use crate::live::LiveFabric;
use crate::programs::{Program, ProgramEnd};

/// A fault as the outcome has it, by the workloads' clock.
pub(super) fn listed(fault: &Fault) -> outcome::Fault {
    outcome::Fault {
        link: fault.link_name(),
        from: Time::ZERO + fault.at,
        until: fault.until.map(|until| Time::ZERO + until),
        rate: fault.rate,
    }
}

/// What is to be said of a program that has failed.
pub(super) fn of_program(end: &ProgramEnd) -> Option<String> {
    let Program { host, command, .. } = &end.program;
    let status = end.status.filter(|_| end.has_failed())?;
    Some(format!("the program `{command}` on h{host} ended with {status}"))
}

/// What is to be said of the congestion control.
pub(super) fn of_congestion(options: &Options, guarded: u64) -> Vec<String> {
    let asked = options.congestion_control.as_ref().map(|name| {
        format!("the hosts ran the congestion control `{name}` in place of the one in `transport.kind`")
    });
    let put_back = (guarded > 0).then(|| {
        format!("suspect: DCTCP's guard put back {guarded} windows: this kernel passes over eBPF callbacks")
    });
    asked.into_iter().chain(put_back).collect()
}

pub(super) fn warnings(model: &Model, seen: &Seen, counts: Counts, verified: Option<bool>) -> Vec<String> {
    let mut warnings = vec![
        "emulated: the kernel's TCP ran. Of `transport` it took kind, recovery, dup_ack_threshold, segment, header, \
         min_rto, initial_window, ecn and connections; where a message's time went, and segments and marks by connection, are not known"
            .to_owned(),
    ];
    if seen.refused > 0 {
        warnings.push(format!("suspect: hosts' devices did not take {} frames", seen.refused));
    }
    let Counts { lost, unread, .. } = counts;
    if lost > 0 {
        warnings.push(format!("suspect: hosts' devices lost {lost} frames before the fabric read them"));
    }
    if unread > 0 {
        warnings.push(format!("suspect: hosts' sockets lost {unread} datagrams before the agent read them"));
    }
    if verified == Some(false) {
        warnings.push("suspect: the replay of what came in gave another digest: a defect".to_owned());
    }
    let observe = &model.observe;
    let not_observed = [
        (observe.flow_series.is_some(), "flow_series"),
        (observe.goodput_every.is_some(), "goodput_every"),
        (observe.packets.is_some(), "packets"),
        (observe.links, "links"),
    ];
    for (_, key) in not_observed.into_iter().filter(|(asked, _)| *asked) {
        warnings.push(format!("`observe.{key}` is not observed in an emulated run"));
    }
    warnings
}

/// Adds what driven sources have recorded.
pub(super) fn take(records: Vec<Records>, outcome: &mut Outcome) {
    for Records { messages, queries, observations, extra, connections } in records {
        outcome.messages.extend(messages);
        outcome.queries.extend(queries);
        outcome.observations.extend(observations);
        outcome.extra.extend(extra);
        outcome.connections.extend(connections);
    }
    outcome.messages.sort_unstable_by_key(|message| (message.workload, message.index));
    outcome.queries.sort_unstable_by_key(|query| (query.workload, query.index));
    outcome.observations.sort_unstable_by_key(|seen| (seen.workload, seen.index));
}

pub(super) fn connections(plan: &Plan, delivered: &[u64]) -> Vec<Connection> {
    let of_lane = |(lane, delivered): (&Lane, &u64)| Connection {
        workload: lane.workload,
        client: lane.client,
        server: lane.server,
        delivered: *delivered,
        ..Connection::default()
    };
    plan.lanes.iter().zip(delivered).map(of_lane).collect()
}

/// Every message created from the warm-up until `end`, and the queries that they belong to.
pub(super) fn messages(
    model: &Model,
    plan: &Plan,
    transport: &Config,
    fabric: &LiveFabric,
    done: &[Done],
    end: Time,
) -> (Vec<Message>, Vec<Query>) {
    let whole: BTreeMap<(usize, usize), Time> =
        done.iter().map(|done| ((done.lane, done.item), done.completed)).collect();
    let counted = |at: Time| (Time::ZERO + model.run.warmup..=end).contains(&at);
    let mut messages = Vec::new();
    for (number, lane) in plan.lanes.iter().enumerate() {
        for (index, item) in lane.items.iter().enumerate().filter(|(_, item)| counted(item.at)) {
            let Some(bytes) = item.bytes else { continue };
            let (there, back) = (HostId(lane.client), HostId(lane.server));
            let ideal = |from, to, bytes| {
                let packet = Packet::new(from, to, number as u32, 0);
                ideal_time(fabric.network(), transport, bytes, packet, false)
            };
            let answered =
                item.answer.map_or(Span::ZERO, |(bytes, service)| ideal(back, there, bytes) + service);
            messages.push(Message {
                workload: lane.workload,
                index: item.index,
                query: item.query,
                source: lane.client,
                destination: lane.server,
                bytes: item.answer.map_or(bytes, |(bytes, _)| bytes),
                created: item.at,
                completed: whole.get(&(number, index)).copied(),
                ideal: ideal(there, back, bytes) + answered,
                split: Split::default(),
            });
        }
    }
    messages.sort_unstable_by_key(|message| (message.workload, message.index));
    let queries = queries(plan, &messages);
    (messages, queries)
}

fn queries(plan: &Plan, messages: &[Message]) -> Vec<Query> {
    let mut parts: BTreeMap<(u16, u64), Vec<&Message>> = BTreeMap::new();
    for message in messages {
        if let Some(query) = message.query {
            parts.entry((message.workload, query)).or_default().push(message);
        }
    }
    let query = |((workload, index), parts): ((u16, u64), Vec<&Message>)| {
        let latencies: Vec<Span> = parts.iter().filter_map(|part| part.latency()).collect();
        let deadline = plan.workloads[usize::from(workload)].deadline;
        let met = latencies.iter().filter(|latency| deadline.is_none_or(|deadline| **latency < deadline));
        let completed = parts.iter().map(|part| part.completed).collect::<Option<Vec<Time>>>();
        Query {
            workload,
            index,
            created: parts[0].created,
            completed: completed.and_then(|times| times.into_iter().max()),
            servers: parts.len() as u32,
            in_deadline: met.count() as u32,
            response_mean: latencies.iter().copied().sum::<Span>() / (latencies.len() as u64).max(1),
            response_min: latencies.iter().copied().min().unwrap_or(Span::MAX),
        }
    };
    parts.into_iter().map(query).collect()
}
