//! [`LinkMap`]: the links that dropped packets or were paused, variants side by side; the links with the largest
//! values, and all others in one sum.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::outcome::{LinkTotals, Outcome};

/// The quantity that a map shows of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LinkQuantity {
    /// Packets that found no room, the mean of a run.
    Drops,
    /// Share of the time in which at least one priority was paused, the mean of a run.
    Paused,
}

/// One quantity of the links at a sweep point.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LinkMap {
    /// The quantity that the map shows: drops, or the share of paused time.
    pub quantity: LinkQuantity,
    /// Swept keys and their values.
    pub sweep: Vec<(String, String)>,
    /// The variants, in the order of each row's values.
    pub variants: Vec<String>,
    /// The links with the largest values, largest first: `leaf0 -> spine1`, and a value for each variant.
    pub rows: Vec<(String, Vec<f64>)>,
    /// Number of other links with values, and the sums over them.
    pub rest: (usize, Vec<f64>),
}

/// Links of a map that have rows of their own.
pub const LINKS_SHOWN: usize = 20;

/// Returns the maps of a sweep point, from the runs of each variant; none where nothing was dropped or paused.
pub(crate) fn maps(sweep: &[(String, String)], runs: &[(&str, Vec<&Outcome>)]) -> Vec<LinkMap> {
    [LinkQuantity::Drops, LinkQuantity::Paused]
        .into_iter()
        .filter_map(|quantity| map(quantity, sweep, runs))
        .collect()
}

fn map(
    quantity: LinkQuantity,
    sweep: &[(String, String)],
    runs: &[(&str, Vec<&Outcome>)],
) -> Option<LinkMap> {
    let mut by_link: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (column, (_, outcomes)) in runs.iter().enumerate() {
        for outcome in outcomes {
            let ends = outcome.links.iter().map(|link| (link.from.as_str(), link.to.as_str()));
            for (name, link) in link_names(ends).into_iter().zip(&outcome.links) {
                let value = value(quantity, link) / outcomes.len() as f64;
                if value > 0.0 {
                    by_link.entry(name).or_insert_with(|| vec![0.0; runs.len()])[column] += value;
                }
            }
        }
    }
    let mut rows: Vec<(String, Vec<f64>)> = by_link.into_iter().collect();
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    // The sort is stable, so that ties keep the order of their names.
    rows.sort_by(|a, b| most(&b.1).total_cmp(&most(&a.1)));
    let rest = rows.split_off(rows.len().min(LINKS_SHOWN));
    let sums = (0..runs.len()).map(|column| rest.iter().map(|(_, values)| values[column]).sum()).collect();
    (!rows.is_empty()).then(|| LinkMap {
        quantity,
        sweep: sweep.to_vec(),
        variants: runs.iter().map(|(variant, _)| (*variant).to_owned()).collect(),
        rows,
        rest: (rest.len(), sums),
    })
}

fn value(quantity: LinkQuantity, link: &LinkTotals) -> f64 {
    match quantity {
        LinkQuantity::Drops => link.drops as f64,
        LinkQuantity::Paused => paused_share(link),
    }
}

/// Share of the time in which at least one priority of a link was paused.
pub(crate) fn paused_share(link: &LinkTotals) -> f64 {
    if link.observed.is_zero() { 0.0 } else { link.paused.as_us_f64() / link.observed.as_us_f64() }
}

/// Names all links by their ends: `leaf0 -> spine1`; parallel links are numbered.
pub fn link_names<'a>(links: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    links
        .map(|(from, to)| {
            let count = seen.entry((from, to)).or_default();
            *count += 1;
            let plain = format!("{from} -> {to}");
            if *count > 1 { format!("{plain} ({count})") } else { plain }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_units::{Rate, Span};

    use super::*;

    fn outcome(drops: impl Iterator<Item = u64>) -> Outcome {
        let link = |(number, drops): (usize, u64)| LinkTotals {
            from: format!("s{}", number / 2),
            to: "t".to_owned(),
            tier: "switch -> switch".to_owned(),
            rate: Rate::from_gbps(1),
            observed: Span::from_ms(1),
            packets: 1,
            bytes: 1,
            drops,
            pauses: 0,
            paused: Span::ZERO,
        };
        Outcome { links: drops.enumerate().map(link).collect(), ..Outcome::default() }
    }

    #[test]
    fn the_largest_have_rows_and_the_others_a_sum() {
        let (a, b) = (outcome(1..=50), outcome((1..=50).map(|drops| 2 * drops)));
        let found = maps(&[], &[("A", vec![&a, &a]), ("B", vec![&b])]);
        let [map] = &found[..] else { panic!("{found:?}") };
        assert_eq!(map.rows.len(), LINKS_SHOWN);
        assert_eq!(map.rows[0], ("s24 -> t (2)".to_owned(), vec![50.0, 100.0]));
        assert_eq!(map.rows[1].0, "s24 -> t");
        assert_eq!(map.rest, (30, vec![465.0, 930.0]));
    }

    #[test]
    fn nothing_dropped_is_no_map() {
        assert!(maps(&[], &[("A", vec![&outcome([0, 0].into_iter())])]).is_empty());
    }
}
