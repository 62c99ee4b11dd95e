//! [`needs`]: the memory that a run will use, as far as its scenario determines it before the run.
//!
//! ```text
//! samples  = length of the run / interval * ports or connections
//! messages = (run.duration - warmup) * arrivals per second, `count` at most
//! ```
//!
//! Only certain numbers are counted: arrivals of open loops, rounds that have a number, intervals of a run that has a
//! length. So a run that is refused for its needs could not have been finished; one that is not may still need more
//! (queues that grow, loops that go as fast as the network lets them), which the progress shows while it runs.

use plimsoll_mechanisms::tcp::Connections;
use plimsoll_results::outcome::{MessageRecord, Observation, QueryRecord, SeriesPoint};
use plimsoll_scenario::model::{Approximate, Model, Workload};
use plimsoll_traffic::kind::WorkingMemory;
use plimsoll_units::Span;

use crate::error::RunError;

/// One thing that a run keeps.
#[derive(Clone, PartialEq, Debug)]
pub struct Need {
    /// The name of the things, in the plural: `queue samples`.
    pub what: &'static str,
    /// The number of these things that the run keeps.
    pub count: f64,
    /// How much memory they take.
    pub bytes: f64,
    /// The key that asks for them.
    pub key: String,
    /// The change that makes them fewer.
    less: Less,
}

/// A change that makes a run need less.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Less {
    /// A longer interval; the run has the length.
    Interval { every: Span, of: Span },
    /// A shorter run; `uncounted` of it precedes the time that counts.
    Duration { uncounted: Span, counted: Span },
    /// A smaller number of them.
    Number,
}

impl Need {
    /// Returns what to change so that a run fits into `limit` bytes, as the command line takes it.
    pub fn advice(&self, limit: u64) -> String {
        // Room for what else there is.
        let too_much = (self.bytes * 4.0 / limit.max(1) as f64).max(2.0);
        let key = &self.key;
        match self.less {
            Less::Interval { every, of } => {
                let longer = round_up(every.as_ps() as f64 * too_much);
                if longer < of.as_ps() as f64 {
                    format!("observe less often with `--set {key}={}`", Span::from_ps(longer as u64))
                } else {
                    format!("leave `{key}` out")
                }
            }
            Less::Duration { uncounted, counted } => {
                let shorter = round_up(counted.as_ps() as f64 / too_much / 2.0);
                if shorter >= 1e6 {
                    let duration = Span::from_ps(uncounted.as_ps().saturating_add(shorter as u64));
                    format!("make the run shorter with `--set run.duration={duration}`, or `{key}` lower")
                } else {
                    format!("make `{key}` lower")
                }
            }
            Less::Number => format!("make `{key}` smaller"),
        }
    }
}

/// Returns the next of 1, 2, 5, 10, 20, ...
fn round_up(number: f64) -> f64 {
    let mut power = 1.0;
    while power * 5.0 < number {
        power *= 10.0;
    }
    [1.0, 2.0, 5.0].into_iter().map(|digit| digit * power).find(|&round| round >= number).unwrap_or(number)
}

/// Returns the memory that the run of a checked model will use, the largest need first.
pub fn needs(model: &Model) -> Vec<Need> {
    if let Some(size) = model.run.approximate() {
        return approximate(model, *size);
    }
    let mut needs = vec![network(model)];
    if let Some(duration) = model.run.duration {
        samples(model, duration, &mut needs);
    }
    for (name, workload) in &model.workload {
        records(model, name, workload, &mut needs);
    }
    needs.sort_by(|a, b| b.bytes.total_cmp(&a.bytes));
    needs
}

/// Returns how many bytes the run of a checked model will keep, as far as that is known.
///
/// # Errors
/// Fails if they exceed `limit`; the error names their purpose and the keys to change.
pub fn check(model: &Model, limit: u64) -> Result<f64, RunError> {
    let needs = needs(model);
    let total: f64 = needs.iter().map(|need| need.bytes).sum();
    match needs.into_iter().next().filter(|_| total > limit as f64) {
        None => Ok(total),
        Some(need) => {
            let advice = need.advice(limit);
            Err(RunError::TooLarge {
                what: need.what,
                key: need.key,
                bytes: need.bytes,
                total,
                limit,
                advice,
            })
        }
    }
}

/// The bytes of a port, its link, and what refers to both: less than the 600 of a fat-tree of 65,536 hosts, which has
/// 393,216 ports and takes 250 MB (`docs/operating.md`).
const PORT_BYTES: f64 = 400.0;

fn network(model: &Model) -> Need {
    let ports = 2.0 * model.topology.link_count() as f64;
    Need {
        what: "ports",
        count: ports,
        bytes: ports * PORT_BYTES,
        key: "topology".to_owned(),
        less: Less::Number,
    }
}

/// Returns the needs of an approximate run, which builds no ports.
fn approximate(model: &Model, size: Approximate) -> Vec<Need> {
    let (ports, messages) = (2.0 * model.topology.link_count() as f64, f64::from(size.messages));
    let need = |what, count, bytes: f64, key: &str| Need {
        what,
        count,
        bytes: count * bytes,
        key: key.to_owned(),
        less: Less::Number,
    };
    vec![
        need("ports", ports, SURVEYED_PORT_BYTES, "topology"),
        need("messages", messages, MEASURED_BYTES, "run.approximate.messages"),
    ]
}

/// The bytes of a link of which the flows are counted.
const SURVEYED_PORT_BYTES: f64 = 80.0;

/// The bytes of a measured message, with its path and its record.
const MEASURED_BYTES: f64 = 500.0;

/// Adds the samples that are taken at intervals of a run that has a length.
fn samples(model: &Model, duration: Span, needs: &mut Vec<Need>) {
    let observe = &model.observe;
    let mut add = |what, key: String, every: Span, of: Span, each: f64, bytes: f64| {
        let count = (of.as_ps() / every.as_ps().max(1)) as f64 * each;
        needs.push(Need { what, count, bytes: count * bytes, key, less: Less::Interval { every, of } });
    };
    for (name, queue) in &observe.queue {
        let ports = queue.port.strip_prefix("tier:").map_or(1, |tier| model.topology.tier_ports(tier));
        let of = duration - model.run.warmup.min(duration);
        let key = format!("observe.queue.{name}.every");
        // A mean and a maximum.
        add("queue samples", key, queue.every, of, ports as f64, 16.0);
    }
    if let Some(every) = observe.goodput_every {
        let each = model.workload.len() as f64;
        let bytes = 16.0 + 24.0 / each.max(1.0);
        add("goodput samples", "observe.goodput_every".to_owned(), every, duration, each, bytes);
    }
    if let Some(every) = observe.flow_series {
        let lasting = |(name, workload): (&String, &Workload)| {
            let kept = model.transport_of(name).connections == Connections::LongLived;
            workload.params().lasting_connections(&model.topology, kept)
        };
        let each: f64 = model.workload.iter().map(lasting).sum();
        let bytes = size_of::<SeriesPoint>() as f64;
        add("samples of connections", "observe.flow_series".to_owned(), every, duration, each, bytes);
    }
}

/// Adds the records that a workload makes: its messages, queries and observations.
fn records(model: &Model, name: &str, workload: &Workload, needs: &mut Vec<Need>) {
    let has_duration = model.run.duration.is_some();
    let Some(records) = workload.params().expected_records(&model.topology, has_duration) else { return };
    if let Some(WorkingMemory { things, count, bytes, key }) = records.working {
        let key = format!("workload.{name}.{key}");
        needs.push(Need { what: things, count, bytes: count * bytes, key, less: Less::Number });
    }
    let (uncounted, counted) = match model.run.duration {
        Some(duration) => {
            let uncounted = model.run.warmup.max(records.start).min(duration);
            (uncounted, duration - uncounted)
        }
        None => (Span::ZERO, Span::ZERO),
    };
    let in_time = records.per_second.map(|rate| rate * counted.as_secs_f64());
    let (number, less) = match (model.run.duration, in_time, records.limit) {
        (Some(_), Some(in_time), limit) => {
            (in_time.min(limit.unwrap_or(f64::INFINITY)), Less::Duration { uncounted, counted })
        }
        (None, _, Some(limit)) => (limit, Less::Number),
        _ => return,
    };
    let kinds = [
        ("messages", records.messages, size_of::<MessageRecord>()),
        ("queries", records.queries, size_of::<QueryRecord>()),
        ("observations", records.observations, size_of::<Observation>()),
    ];
    for (what, each, bytes) in kinds {
        let (count, key) = (number * each, format!("workload.{name}.{}", records.key));
        if count > 0.0 {
            needs.push(Need { what, count, bytes: count * bytes as f64, key, less });
        }
    }
}

/// Returns a number of bytes as people say it: `8.6 TB`.
pub fn about(bytes: f64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes.max(0.0);
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1_000.0;
        unit += 1;
    }
    match unit {
        0 => format!("{value:.0} B"),
        _ if value >= 1e6 => format!("{value:.1e} {}", units[unit]),
        _ if value < 9.95 => format!("{value:.1} {}", units[unit]),
        _ => format!("{value:.0} {}", units[unit]),
    }
}
