//! The results of a run: its [`Outcome`] in the form of a simulated run's, with further observations.

use plimsoll_fabric::CircuitLosses;
use plimsoll_results::outcome::{self, Outcome};
use plimsoll_scenario::model::{Fault, Model};
use plimsoll_traffic::record::Records;
use plimsoll_units::Time;

use super::options::Options;
use crate::agents::agent::{Counts, DriverRecords};
use crate::agents::programs::{Program, ProgramEnd};
use crate::edge::EdgeCounts;

/// Returns a fault as the outcome has it, by the workloads' clock.
pub(super) fn listed(fault: &Fault) -> outcome::FaultRecord {
    outcome::FaultRecord {
        link: fault.link_name(),
        from: Time::ZERO + fault.at,
        until: fault.until.map(|until| Time::ZERO + until),
        rate: fault.rate,
    }
}

/// Returns the warning about a program that has failed.
pub(super) fn of_program(end: &ProgramEnd) -> Option<String> {
    let Program { host, command, .. } = &end.program;
    let status = end.status.filter(|_| end.has_failed())?;
    Some(format!("the program `{command}` on h{host} ended with {status}"))
}

/// Returns the warnings about the congestion control.
pub(super) fn of_congestion(options: &Options, guarded: u64) -> Vec<String> {
    let asked = options.congestion_control.as_ref().map(|name| {
        format!("the hosts ran the congestion control `{name}` in place of the one in `transport.kind`")
    });
    let put_back = (guarded > 0).then(|| {
        format!("suspect: DCTCP's guard put back {guarded} windows: this kernel passes over eBPF callbacks")
    });
    asked.into_iter().chain(put_back).collect()
}

/// Returns the warning of packets that the circuit switch has lost: a controller that works loses none.
pub(super) fn of_circuits(losses: Option<CircuitLosses>) -> Option<String> {
    let losses = losses.filter(|losses| losses.total() > 0)?;
    let CircuitLosses { dark, unmatched } = losses;
    Some(format!(
        "the circuit switch lost {} packets: {dark} while it was dark, {unmatched} by a circuit to another host; a \
         longer `circuits.drain` gives what is on its way time to pass",
        losses.total()
    ))
}

pub(super) fn warnings(
    model: &Model,
    seen: &EdgeCounts,
    counts: Counts,
    verified: Option<bool>,
    is_sampled: bool,
) -> Vec<String> {
    let mut warnings = vec![
        "emulated: the kernel's TCP ran. Of `transport` it took kind, recovery, dup_ack_threshold, segment, header, \
         min_rto, initial_window, ecn and connections; where a message's time went, and segments and marks \
         by connection, are not known"
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
        (observe.flow_series.is_some() && !is_sampled, "flow_series"),
        (observe.goodput_every.is_some(), "goodput_every"),
        (observe.packets.is_some(), "packets"),
        (observe.links, "links"),
    ];
    for (_, key) in not_observed.into_iter().filter(|(asked, _)| *asked) {
        warnings.push(format!("`observe.{key}` is not observed in an emulated run"));
    }
    warnings
}

/// Adds the records of sources, ordered by workload and index.
pub(super) fn take(records: Vec<DriverRecords>, outcome: &mut Outcome) {
    let mut all = Records::default();
    for DriverRecords { mut of_source, connections } in records {
        all.append(&mut of_source);
        outcome.connections.extend(connections);
    }
    all.sort();
    let Records {
        messages,
        queries,
        observations,
        extra,
        iterations,
        ranks,
        operations,
        path_waits: _,
        repeats: _,
    } = all;
    (outcome.messages, outcome.queries, outcome.observations) = (messages, queries, observations);
    (outcome.extra, outcome.iterations, outcome.ranks) = (extra, iterations, ranks);
    outcome.operations = operations;
}
