//! The links of a cell, by the tiers that they connect.

use super::TierSummary;
use crate::link_map::paused_share;
use crate::outcome::{LinkTotals, Outcome};
use crate::stats;

/// One for each kind of link, in the order in which they first appear; none where links were not counted.
pub(super) fn summarise(outcomes: &[&Outcome]) -> Vec<TierSummary> {
    let links: Vec<&LinkTotals> = outcomes.iter().flat_map(|outcome| &outcome.links).collect();
    let mut names: Vec<&str> = Vec::new();
    for link in &links {
        if !names.contains(&link.tier.as_str()) {
            names.push(&link.tier);
        }
    }
    let of = |name: &str| links.iter().copied().filter(|link| link.tier == name).collect::<Vec<_>>();
    let blocked_ns = |name: &str| -> u64 {
        let tiers = outcomes.iter().flat_map(|outcome| &outcome.blocked.tiers);
        tiers.filter(|tier| tier.tier == name).map(|tier| tier.blocked_ns).sum()
    };
    names.into_iter().map(|name| tier(name, &of(name), blocked_ns(name), outcomes.len())).collect()
}

fn tier(name: &str, links: &[&LinkTotals], blocked_ns: u64, runs: usize) -> TierSummary {
    let used: Vec<f64> = links.iter().map(|link| utilisation(link)).collect();
    let paused: Vec<f64> = links.iter().map(|link| paused_share(link)).collect();
    let observed: f64 = links.iter().map(|link| link.observed.as_secs_f64()).sum();
    TierSummary {
        name: name.to_owned(),
        links: (links.len() / runs.max(1)) as u64,
        utilisation: stats::mean(&used).unwrap_or(0.0),
        utilisation_most: used.iter().copied().fold(0.0, f64::max),
        drops: links.iter().map(|link| link.drops).sum(),
        pauses: links.iter().map(|link| link.pauses).sum(),
        paused: stats::mean(&paused).unwrap_or(0.0),
        blocked: if observed > 0.0 { blocked_ns as f64 * 1e-9 / observed } else { 0.0 },
    }
}

/// Share of the time in which a link sent.
fn utilisation(link: &LinkTotals) -> f64 {
    let room = link.rate.as_bps() as f64 * link.observed.as_secs_f64();
    if room > 0.0 { link.bytes as f64 * 8.0 / room } else { 0.0 }
}
