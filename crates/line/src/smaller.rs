//! [`Smaller`]: a network of fewer racks on which a search finds about the same line in less time.
//!
//! A line depends on the resources on a message's path: the link of its receiver, the queues of its rack, the links
//! between racks. Fewer racks of the same hosts keep these, if every workload keeps its rate at each host, or at the
//! one client or server that it is about, with its fan-out; and if nearly as much of the traffic between hosts leaves
//! its rack. Where that cannot be, there is none.

use plimsoll_scenario::model::{Model, Workload};
use plimsoll_scenario::{Overrides, Scenario};
use plimsoll_traffic::facts::NetworkFacts;

/// A network with fewer racks than the scenario's.
#[derive(Clone, Debug)]
pub struct Smaller {
    /// The scenario on that network.
    pub scenario: Scenario,
    /// The parts that it keeps: `8 pods of 32, 2048 hosts of 8192`.
    pub words: String,
}

/// The number of hosts from which on a smaller network is looked for.
const LARGE: u64 = 300;
/// The least share of traffic that leaves its rack, of the whole network's.
const LEAVES: f64 = 0.9;
/// The greatest part of the whole network's hosts that is worth a search of its own.
const WORTH: f64 = 0.5;
/// Rates are equal up to this share.
const EQUAL: f64 = 0.01;

impl Smaller {
    /// Looks for the smallest network with which all points of a scenario keep what decides their lines.
    pub fn of(scenario: &Scenario) -> Option<Smaller> {
        let model = &scenario.points().first()?.model;
        let racks = model.topology.params().racks()?;
        let (count, hosts) = (u64::from(racks.count), u64::from(racks.hosts));
        if count * hosts < LARGE {
            return None;
        }
        let leaves = |count: u64| ((count - 1) * hosts) as f64 / (count * hosts - 1) as f64;
        let worth = 2..=(count as f64 * WORTH) as u64;
        let enough = worth.filter(|&fewer| leaves(fewer) >= LEAVES * leaves(count));
        enough.into_iter().find_map(|fewer| {
            let mut overrides = Overrides { replicates: 1, ..scenario.overrides().clone() };
            overrides.set.push(model.topology.params().with_racks(fewer as u32)?);
            let smaller = scenario.with_overrides(&overrides).ok()?;
            let mut pairs = scenario.points().iter().zip(smaller.points());
            let words =
                format!("{fewer} {} of {count}, {} hosts of {}", racks.name, fewer * hosts, count * hosts);
            pairs
                .all(|(whole, part)| keeps(&whole.model, &part.model))
                .then_some(Smaller { scenario: smaller, words })
        })
    }
}

/// Returns whether every workload keeps its load and its fan-out on a smaller network.
fn keeps(whole: &Model, part: &Model) -> bool {
    let hosts = |model: &Model| f64::from(NetworkFacts::host_count(&model.topology));
    let growth = hosts(part) / hosts(whole);
    let mut pairs = whole.workload.iter().zip(&part.workload);
    pairs.all(|((_, before), (_, after))| keeps_load(before, after, whole, part, growth).unwrap_or(false))
}

/// Returns whether a workload keeps its load; `None` where that cannot be determined.
fn keeps_load(before: &Workload, after: &Workload, whole: &Model, part: &Model, growth: f64) -> Option<bool> {
    let (before, after) = (before.params(), after.params());
    let is_of_one_host = before.shared_link().is_some();
    if before.load().is_none() && !is_of_one_host {
        return None;
    }
    let same = |a: f64, b: f64| (b - a).abs() <= EQUAL * a;
    let scales = |a: f64, b: f64| same(a, b) || (!is_of_one_host && same(a * growth, b));
    let expected = before.expected_records(&whole.topology, true)?;
    let fewer = after.expected_records(&part.topology, true)?;
    let rate = expected.per_second?;
    let offered = before.offered_bps(&whole.topology).zip(after.offered_bps(&part.topology));
    Some(
        scales(rate, fewer.per_second?)
            && same(expected.messages, fewer.messages)
            && same(expected.queries, fewer.queries)
            && offered.is_none_or(|(a, b)| scales(a, b)),
    )
}
