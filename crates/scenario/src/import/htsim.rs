//! The fat-trees of htsim (Broadcom/csg-htsim, `sim/datacenter`): `.topo` files of two or three tiers.
//!
//! ```text
//! Nodes 32
//! Tiers 2
//! Podsize 32
//! Tier 0 ... Tier 1 ... (a key and a value a line)
//! ```
//!
//! A switch's latency, which Plimsoll's switches do not have, is put half on each link beside it, so that every path
//! takes as long as there.

use std::collections::BTreeSet;

use plimsoll_units::{Rate, Span};

use super::{GraphText, Imported, Lines, NODES_MAX};
use crate::error::{ScenarioError, did_you_mean};

/// The keys of a tier, in lower case as htsim compares them.
const TIER_KEYS: [&str; 9] = [
    "downlink_speed_gbps",
    "downlink_latency_ns",
    "radix_down",
    "radix_up",
    "switch_latency_ns",
    "oversubscribed",
    "bundle",
    // Sizes of queues in bytes, which are of ports and not of links.
    "queue_up",
    "queue_down",
];

/// One tier as the file gives it.
#[derive(Clone, Copy, Default)]
struct Tier {
    values: [Option<u64>; TIER_KEYS.len()],
}

impl Tier {
    fn get(&self, key: &str) -> Option<u64> {
        TIER_KEYS.iter().position(|known| *known == key).and_then(|index| self.values[index])
    }
}

/// A fat-tree as a graph file: `tor0`, `agg0`, `core0` and so on, numbered and linked as in htsim.
///
/// # Errors
/// At the first word that does not fit, or if the counts make no fat-tree.
pub fn htsim_topology(name: &str, text: &str) -> Result<Imported, Box<ScenarioError>> {
    let mut lines = Lines::new(name, text);
    let mut head = [None; 3];
    let mut tiers = [Tier::default(); 3];
    let mut current = None;
    while let Some(words) = lines.next() {
        let key = words[0].to_lowercase();
        let word = *words.get(1).ok_or_else(|| lines.error(words[0], "no value", "a key and a number"))?;
        let value: u64 = lines.number(word, "whole number")?;
        if value > VALUE_MAX {
            return Err(lines.error(word, format!("`{word}` is too large"), format!("at most {VALUE_MAX}")));
        }
        if let Some(index) = ["nodes", "tiers", "podsize"].iter().position(|known| *known == key) {
            head[index] = Some(value);
        } else if key == "tier" {
            current = usize::try_from(value).ok().filter(|tier| *tier < 3);
            if current.is_none() {
                return Err(lines.error(word, format!("tier {value}"), "0 to 2"));
            }
        } else if let Some(index) = TIER_KEYS.iter().position(|known| *known == key) {
            let tier =
                current.ok_or_else(|| lines.error(words[0], "a key before the first tier", "`Tier 0`"))?;
            tiers[tier].values[index] = Some(value);
        } else {
            let mut message = format!("`{}` is not known", words[0]);
            if let Some(meant) = did_you_mean(&key, TIER_KEYS) {
                message.push_str(&format!("; {meant}"));
            }
            return Err(lines.error(words[0], message, TIER_KEYS.join(", ")));
        }
    }
    let missing = |what: String| lines.error("", format!("no {what}"), "every key of a fat-tree");
    let [nodes, levels, podsize] = head;
    let nodes = nodes.ok_or_else(|| missing("`Nodes`".to_owned()))?;
    let levels = levels.ok_or_else(|| missing("`Tiers`".to_owned()))? as usize;
    let podsize = podsize.ok_or_else(|| missing("`Podsize`".to_owned()))?;
    if !(2..=3).contains(&levels) {
        return Err(lines.error("", format!("{levels} tiers"), "2 or 3"));
    }
    for (number, tier) in tiers[..levels].iter().enumerate() {
        for key in &TIER_KEYS[..3] {
            if tier.get(key).is_none() {
                return Err(missing(format!("`{key}` in tier {number}")));
            }
        }
    }
    let shape = Shape::new(nodes, podsize, &tiers[..levels])
        .map_err(|problem| lines.error("", problem, "counts that divide each other"))?;
    let queues: BTreeSet<u64> =
        tiers.iter().flat_map(|tier| [tier.get("queue_up"), tier.get("queue_down")]).flatten().collect();
    let queues: Vec<String> = queues.iter().map(u64::to_string).collect();
    let note = format!(
        "Queue_Up and Queue_Down are left out, as a graph has no buffers: set `port.switch.buffer`, here to {} bytes",
        queues.join(" or ")
    );
    Ok(shape.graph(&tiers[..levels]).finish(name, if queues.is_empty() { Vec::new() } else { vec![note] }))
}

/// How many there are of what.
struct Shape {
    hosts: u64,
    pods: u64,
    /// Top-of-rack switches of a pod.
    tors: u64,
    aggregations: u64,
    cores: u64,
    hosts_of_a_tor: u64,
}

impl Shape {
    /// The counts that htsim takes from radix, speed and oversubscription of each tier.
    fn new(hosts: u64, podsize: u64, tiers: &[Tier]) -> Result<Shape, String> {
        let radix = |tier: usize| tiers[tier].get("radix_down").unwrap_or(0);
        let speed = |tier: usize| tiers[tier].get("downlink_speed_gbps").unwrap_or(0);
        let oversubscribed = |tier: usize| tiers[tier].get("oversubscribed").unwrap_or(1);
        let share = |what: &str, of: u64, by: u64| match of.checked_rem(by) {
            Some(0) if of >= by => Ok(of / by),
            _ => Err(format!("{what}: {of} by {by} is not whole")),
        };
        if hosts > u64::from(NODES_MAX) {
            return Err(format!("{hosts} nodes, and at most {NODES_MAX} can be run"));
        }
        // No product overflows: a value is at most a thousand million.
        let uplinks = |what, links: u64, tier: usize| {
            share(what, links * speed(tier), speed(tier + 1) * oversubscribed(tier))
        };
        let pods = share("pods, nodes by podsize", hosts, podsize)?;
        let tors = share("switches of tier 0 in a pod, podsize by radix", podsize, radix(0))?;
        let tor_uplinks = uplinks("uplinks of tier 0", hosts, 0)?;
        let aggregations = share("switches of tier 1 in a pod", tor_uplinks, pods * radix(1))?;
        if tor_uplinks > LINKS_MAX {
            return Err(format!(
                "{tor_uplinks} links between tiers 0 and 1, and at most {LINKS_MAX} can be run"
            ));
        }
        let cores = match tiers.len() {
            2 => 0,
            _ => share("switches of tier 2", uplinks("uplinks of tier 1", tor_uplinks, 1)?, radix(2))?,
        };
        if cores > 0 && cores % aggregations != 0 {
            return Err(format!("{cores} switches of tier 2 cannot be shared by {aggregations} of tier 1"));
        }
        if tiers.len() == 2 && pods != 1 {
            return Err(format!("{pods} pods, which two tiers do not connect"));
        }
        let bundled = |tier: usize| tiers.get(tier).and_then(|tier| tier.get("bundle")).unwrap_or(1);
        let product = |counts: &[u64]| counts.iter().fold(1u64, |all, count| all.saturating_mul(*count));
        let links = product(&[pods, tors, aggregations, bundled(1)]).saturating_add(product(&[
            pods,
            cores,
            bundled(2),
        ]));
        if links > LINKS_MAX {
            return Err(format!("{links} links between switches, and at most {LINKS_MAX} can be run"));
        }
        // A switch's uplinks follow from the other counts, so a file that says otherwise means another network.
        let upwards = [aggregations.saturating_mul(bundled(1)), cores / aggregations * bundled(2)];
        for (number, (tier, links)) in tiers.iter().zip(upwards).enumerate().take(tiers.len() - 1) {
            if let Some(said) = tier.get("radix_up").filter(|said| *said != links) {
                return Err(format!(
                    "Radix_Up {said} in tier {number}, and its switches have {links} links upwards"
                ));
            }
        }
        Ok(Shape { hosts, pods, tors, aggregations, cores, hosts_of_a_tor: radix(0) })
    }

    fn graph(&self, tiers: &[Tier]) -> GraphText {
        let Shape { hosts, pods, tors, aggregations, cores, hosts_of_a_tor } = *self;
        let rate =
            |tier: usize| Rate::from_bps(tiers[tier].get("downlink_speed_gbps").unwrap_or(0) * 1_000_000_000);
        let half_switch =
            |tier: usize| Span::from_ps(tiers[tier].get("switch_latency_ns").unwrap_or(0) * 500);
        let delay = |tier: usize| {
            let link = Span::from_ns(tiers[tier].get("downlink_latency_ns").unwrap_or(0));
            let below = tier.checked_sub(1).map_or(Span::ZERO, half_switch);
            link + half_switch(tier) + below
        };
        let bundle = |tier: usize| tiers[tier].get("bundle").unwrap_or(1);
        let mut graph = GraphText {
            hosts: (0..hosts).map(|host| format!("h{host}")).collect(),
            switches: (0..pods * tors).map(|tor| format!("tor{tor}")).collect(),
            links: Vec::new(),
        };
        graph.switches.extend((0..pods * aggregations).map(|aggregation| format!("agg{aggregation}")));
        graph.switches.extend((0..cores).map(|core| format!("core{core}")));
        let mut link = |below: String, above: String, tier: usize, count: u64| {
            for _ in 0..count {
                graph.links.push((below.clone(), above.clone(), rate(tier), delay(tier)));
            }
        };
        for host in 0..hosts {
            link(format!("h{host}"), format!("tor{}", host / hosts_of_a_tor), 0, 1);
        }
        for tor in 0..pods * tors {
            for aggregation in 0..aggregations {
                let above = tor / tors * aggregations + aggregation;
                link(format!("tor{tor}"), format!("agg{above}"), 1, bundle(1));
            }
        }
        for aggregation in 0..pods * aggregations {
            // Aggregation switch a of every pod is connected to the cores a, a + A, a + 2A, ....
            for core in (aggregation % aggregations..cores).step_by(aggregations as usize) {
                link(format!("agg{aggregation}"), format!("core{core}"), 2, bundle(2));
            }
        }
        graph
    }
}

/// As many as a scenario may have.
const LINKS_MAX: u64 = 4_000_000;

/// The largest number in a topology that makes sense: a second in nanoseconds.
const VALUE_MAX: u64 = 1_000_000_000;
