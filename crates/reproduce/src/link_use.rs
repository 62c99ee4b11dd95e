//! How evenly the links between switches are used.

use plimsoll_results::outcome::{LinkTotals, Outcome};

/// Returns the bytes of the most used link of a tier, over the mean of the tier's links; `None` where none carried any.
pub(crate) fn most_used(outcome: &Outcome, tier: &str) -> Option<f64> {
    let of_tier = |link: &&LinkTotals| link.tier == tier;
    let bytes: Vec<u64> = outcome.links.iter().filter(of_tier).map(|link| link.bytes).collect();
    let (sum, most) = (bytes.iter().sum::<u64>(), bytes.iter().max()?);
    (sum > 0).then(|| *most as f64 * bytes.len() as f64 / sum as f64)
}

#[cfg(test)]
mod tests {
    use plimsoll_units::{Rate, Span};

    use super::*;

    #[test]
    fn the_most_used_link_is_compared_with_the_mean_of_its_tier() {
        let link = |tier: &str, bytes| LinkTotals {
            from: String::new(),
            to: String::new(),
            tier: tier.to_owned(),
            rate: Rate::from_gbps(10),
            observed: Span::from_ms(1),
            packets: 1,
            bytes,
            drops: 0,
            pauses: 0,
            paused: Span::ZERO,
        };
        let links =
            vec![link("up", 100), link("up", 300), link("down", 900), link("up", 200), link("idle", 0)];
        let outcome = Outcome { links, ..Outcome::default() };
        assert_eq!(most_used(&outcome, "up"), Some(1.5));
        assert_eq!((most_used(&outcome, "idle"), most_used(&outcome, "sideways")), (None, None));
    }
}
