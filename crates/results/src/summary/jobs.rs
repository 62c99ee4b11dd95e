//! Jobs of a cell: iterations beside their ideal times, bandwidths, exposed communication and critical paths.

use std::collections::BTreeMap;

use plimsoll_units::Span;
use serde::{Deserialize, Serialize};

use crate::outcome::{IterationRecord, Outcome, RankRecord, RepeatRecord, Split};
use crate::stats;

/// The iterations of a job in a cell; times are means in us.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JobSummary {
    /// The scenario's name for its workload.
    pub workload: String,
    /// The iterations that have ended, of all replicates.
    pub iterations: u64,
    /// The time of an iteration.
    pub took_us: f64,
    /// The same where each message has idle links, but for the others of its ends.
    pub ideal_us: f64,
    /// The size of a collective operation, or the payload of a job, over the time: GB/s.
    pub algbw: f64,
    /// The bytes that a link carries at least, over the time: GB/s.
    pub busbw: f64,
    /// The time from the end of the first rank to that of the last.
    pub skew_us: f64,
    /// The parts of the critical path.
    pub path: PathSummary,
    /// Where messages on the critical path waited, the most first. The sum is that of queues in NICs and switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceSummary>,
    /// The communication groups, the first for all communication.
    pub groups: Vec<GroupSummary>,
    /// What was replayed in place of simulated, of all replicates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<RepeatRecord>,
}

/// The time that messages on the critical path of an iteration waited at a place.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PlaceSummary {
    /// The place, as [`PathWait::at`](crate::outcome::PathWait::at) names it.
    pub at: String,
    /// The mean over iterations, in us.
    pub waited_us: f64,
}

/// The parts of an iteration's time on its critical path, in us, which sum to it.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PathSummary {
    /// Computation, overheads, and waiting for a stream.
    pub operations_us: f64,
    /// Messages that wait in the transport: window, pace, and bytes ahead.
    pub transport_us: f64,
    /// Time that lost packets cost.
    pub recovery_us: f64,
    /// Queues of NICs, and pacers.
    pub nic_us: f64,
    /// Time in queues of switches.
    pub switches_us: f64,
    /// Serialisation and propagation.
    pub wire_us: f64,
}

/// What ranks did for a communication group in an iteration, in us.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GroupSummary {
    /// The name of the group; empty for all communication.
    pub name: String,
    /// The time in which a rank waited for its messages: the mean of ranks.
    pub waited_us: f64,
    /// The time of these in which it did not compute: the mean of ranks.
    pub exposed_us: f64,
    /// The same of the rank with the most.
    pub exposed_most_us: f64,
}

/// Summarises the jobs over the replicates of a cell.
pub(super) fn summarise(outcomes: &[&Outcome]) -> Vec<JobSummary> {
    let Some(first) = outcomes.first() else { return Vec::new() };
    let job = |(number, info): (u16, &crate::outcome::WorkloadInfo)| {
        let iterations: Vec<&IterationRecord> = outcomes
            .iter()
            .flat_map(|outcome| outcome.iterations.iter().filter(|one| one.workload == number))
            .collect();
        let ranks = || {
            outcomes.iter().flat_map(|outcome| outcome.ranks.iter().filter(move |one| one.workload == number))
        };
        let mean = |value: &dyn Fn(&IterationRecord) -> f64| {
            stats::mean(&iterations.iter().map(|one| value(one)).collect::<Vec<_>>())
        };
        let skews: Vec<f64> = outcomes
            .iter()
            .flat_map(|outcome| outcome.queries.iter().filter(|query| query.workload == number))
            .filter_map(|query| {
                Some((query.completed? - query.created).saturating_sub(query.response_min).as_us_f64())
            })
            .collect();
        let part = |pick: fn(&Split) -> f64| mean(&|one| pick(&one.split)).unwrap_or(0.0);
        Some(JobSummary {
            workload: info.name.clone(),
            iterations: iterations.len() as u64,
            took_us: mean(&|one| one.took.as_us_f64())?,
            ideal_us: mean(&|one| one.ideal.as_us_f64())?,
            algbw: mean(&|one| one.bytes as f64 / one.took.as_ns_f64())?,
            busbw: mean(&|one| one.bus_bytes as f64 / one.took.as_ns_f64())?,
            skew_us: stats::mean(&skews).unwrap_or(0.0),
            path: PathSummary {
                operations_us: part(|split| split.service.as_us_f64()),
                transport_us: part(|split| split.window.as_us_f64()),
                recovery_us: part(|split| split.recovery.as_us_f64()),
                nic_us: part(|split| split.nic.as_us_f64() + split.pacer.as_us_f64()),
                switches_us: part(|split| split.tier.iter().map(|tier| tier.as_us_f64()).sum()),
                wire_us: part(|split| split.serialisation.as_us_f64() + split.propagation.as_us_f64()),
            },
            places: places(outcomes, number, iterations.len()),
            groups: (0..)
                .zip(&info.groups)
                .map(|(group, name)| group_summary(name, ranks(), group))
                .collect(),
            repeats: repeats(outcomes, number),
        })
    };
    (0..).zip(&first.workloads).filter_map(job).collect()
}

/// The mean waiting time at each place over so many iterations.
fn places(outcomes: &[&Outcome], number: u16, iterations: usize) -> Vec<PlaceSummary> {
    let mut sums: BTreeMap<&str, Span> = BTreeMap::new();
    for wait in outcomes.iter().flat_map(|outcome| &outcome.path_waits).filter(|wait| wait.workload == number)
    {
        *sums.entry(&wait.at).or_default() += wait.waited;
    }
    let mut sums: Vec<(&str, Span)> = sums.into_iter().collect();
    // Equal ones keep the order of their names.
    sums.sort_by_key(|(_, waited)| std::cmp::Reverse(*waited));
    let mean = |(at, waited): (&str, Span)| PlaceSummary {
        at: at.to_owned(),
        waited_us: waited.as_us_f64() / iterations.max(1) as f64,
    };
    sums.into_iter().map(mean).collect()
}

/// Adds up what was replayed of a job over all replicates.
fn repeats(outcomes: &[&Outcome], number: u16) -> Option<RepeatRecord> {
    let all = outcomes.iter().flat_map(|outcome| &outcome.repeats).filter(|one| one.workload == number);
    all.copied().reduce(|sum, one| RepeatRecord {
        workload: number,
        is_exact: sum.is_exact && one.is_exact,
        iterations: sum.iterations + one.iterations,
        replayed_iterations: sum.replayed_iterations + one.replayed_iterations,
        rounds: sum.rounds + one.rounds,
        replayed_rounds: sum.replayed_rounds + one.replayed_rounds,
        largest_difference: sum.largest_difference.max(one.largest_difference),
    })
}

fn group_summary<'a>(name: &str, ranks: impl Iterator<Item = &'a RankRecord>, group: u8) -> GroupSummary {
    let of_group: Vec<&RankRecord> = ranks.filter(|rank| rank.group == group).collect();
    let times =
        |pick: fn(&RankRecord) -> f64| -> Vec<f64> { of_group.iter().map(|rank| pick(rank)).collect() };
    let exposed = times(|rank| rank.exposed.as_us_f64());
    GroupSummary {
        name: name.to_owned(),
        waited_us: stats::mean(&times(|rank| rank.waited.as_us_f64())).unwrap_or(0.0),
        exposed_us: stats::mean(&exposed).unwrap_or(0.0),
        exposed_most_us: exposed.into_iter().fold(0.0, f64::max),
    }
}
