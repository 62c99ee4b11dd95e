//! [`AloneTimes`]: what a flow without others takes beyond its ideal time, such as the round trips of slow start.
//!
//! ```text
//! chain of links, workload, sizes ──> flows one by one in one run ──> extra time of each size
//! ```
//!
//! A few sizes are run as they are. Of many, every number of packets up to 64 is run, and above that every fourth root
//! of two: the time of others lies between.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_scenario::model::{Graph, GraphLink, ListedFlow, Model};
use plimsoll_units::{Bytes, Rate, Span};

use super::task::{Answer, Task};

/// Rates and delays of the links of a path, in its order.
pub(super) type Chain = Vec<(Rate, Span)>;

/// Extra times in picoseconds, by path, workload and size in bytes.
#[derive(Debug, Default)]
pub(super) struct AloneTimes {
    times: BTreeMap<(Chain, u16), BTreeMap<u64, i64>>,
}

/// The run of a chain with one workload's flows.
pub(super) struct AloneRun {
    chain: Chain,
    workload: u16,
    sizes: Vec<u64>,
    pub(super) task: Task,
}

/// Sizes in bytes to be run, by path and workload.
#[derive(Debug, Default)]
pub(super) struct AloneRequests {
    wanted: BTreeMap<(Chain, u16), BTreeSet<u64>>,
}

/// The most sizes that are run as they are, and the largest number of packets of which each is run.
const EACH_UP_TO: u64 = 64;

impl AloneRequests {
    /// Asks for the time of a flow of `bytes`.
    pub(super) fn want(&mut self, chain: Chain, workload: u16, bytes: u64) {
        self.wanted.entry((chain, workload)).or_default().insert(bytes);
    }

    /// Returns the runs that answer all of it. A scenario's switches have the ports of `tier`.
    pub(super) fn runs(self, model: &Model, tier: &str) -> Vec<AloneRun> {
        let runs = self.wanted.into_iter().map(|((chain, workload), sizes)| {
            let segment = segment(model, workload);
            let sizes: Vec<u64> = match sizes.len() as u64 <= EACH_UP_TO {
                true => sizes.into_iter().collect(),
                false => {
                    let grid = sizes.iter().flat_map(|bytes| around(bytes.div_ceil(segment)));
                    let grid: BTreeSet<u64> = grid.map(|packets| packets * segment).collect();
                    grid.into_iter().collect()
                }
            };
            AloneRun { task: alone_task(model, tier, &chain, workload, &sizes), chain, workload, sizes }
        });
        runs.collect()
    }
}

/// Returns the payload of a workload's packets in bytes.
fn segment(model: &Model, workload: u16) -> u64 {
    let name = model.workload.keys().nth(usize::from(workload)).map_or("", String::as_str);
    model.transport_of(name).segment.get()
}

impl AloneTimes {
    /// Notes the times of a run.
    pub(super) fn add(&mut self, run: &AloneRun, answer: &Answer) {
        let times = self.times.entry((run.chain.clone(), run.workload)).or_default();
        for message in &answer.messages {
            times.insert(run.sizes[message.index as usize], message.extra.unwrap_or(0));
        }
    }

    /// Returns the extra time of a flow of `bytes` in picoseconds: that of its size, or between those of the sizes
    /// next to it that were run.
    pub(super) fn extra(&self, chain: &Chain, workload: u16, bytes: u64) -> i64 {
        let Some(times) = self.times.get(&(chain.clone(), workload)) else { return 0 };
        let below = times.range(..=bytes).next_back();
        let above = times.range(bytes..).next();
        match (below, above) {
            (Some((&low, &least)), Some((&high, &most))) if low < high => {
                let share = (bytes - low) as f64 / (high - low) as f64;
                least + ((most - least) as f64 * share) as i64
            }
            (Some((_, &extra)), _) | (None, Some((_, &extra))) => extra,
            (None, None) => 0,
        }
    }
}

/// Returns the numbers of packets that are run next to `packets`.
fn around(packets: u64) -> [u64; 2] {
    let packets = packets.max(1);
    if packets <= EACH_UP_TO {
        return [packets, packets];
    }
    let step = |step: u32| (EACH_UP_TO as f64 * 2_f64.powf(f64::from(step) / 4.0)).round() as u64;
    let above = (1..).map(step).find(|grid| *grid >= packets).unwrap_or(packets);
    let below = (0..).map(step).take_while(|grid| *grid < packets).last().unwrap_or(EACH_UP_TO);
    if above == packets { [above, above] } else { [below, above] }
}

/// Builds the run of a path on which one flow after the other has all links for itself.
fn alone_task(model: &Model, tier: &str, chain: &Chain, workload: u16, sizes: &[u64]) -> Task {
    let switches = chain.len() as u32 - 1;
    // Hosts are nodes 0 and 1, and the switches between them follow.
    let node = |place: u32| match place {
        0 => 0,
        place if place > switches => 1,
        place => 1 + place,
    };
    let links = (0..).zip(chain);
    let links = links.map(|(place, (rate, delay))| GraphLink {
        from: node(place),
        to: node(place + 1),
        rate: *rate,
        delay: *delay,
    });
    let graph = Graph {
        hosts: vec!["h0".to_owned(), "h1".to_owned()],
        switches: (0..switches).map(|switch| format!("switch{switch}")).collect(),
        links: links.collect(),
    };
    let segment = segment(model, workload);
    let slowest = chain.iter().map(|(rate, _)| *rate).min().unwrap_or(Rate::from_bps(1));
    let mut start = Span::ZERO;
    let mut flows = Vec::new();
    for bytes in sizes {
        let size = Bytes::new(*bytes);
        flows.push(ListedFlow { start, source: 0, destination: 1, size, class: String::new() });
        // Long enough for repeated timeouts, and for many times its bytes.
        let on_wire = bytes.div_ceil(segment) * model.packet_bytes();
        start = start + LONGEST_TIMEOUTS + slowest.byte_time().span(on_wire * 16);
    }
    let mut lists = vec![Vec::new(); model.workload.len()];
    lists[usize::from(workload)] = flows;
    let mut alone = Task::new(model, graph, tier, lists);
    alone.warmup = Span::ZERO;
    alone.duration = Some(start);
    alone
}

const LONGEST_TIMEOUTS: Span = Span::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_packets_are_run_themselves_and_many_lie_between_two_runs() {
        assert_eq!(around(0), [1, 1]);
        assert_eq!(around(64), [64, 64]);
        assert_eq!(around(65), [64, 76]);
        assert_eq!(around(128), [128, 128]);
        let [low, high] = around(20_001);
        assert!(low < 20_001 && 20_001 < high && high as f64 / low as f64 <= 1.2, "{low} {high}");
    }
}
