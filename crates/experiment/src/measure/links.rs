//! How the links between tiers are used.

use plimsoll_results::outcome::LinkTotals;
use plimsoll_units::Span;

use super::asked::QuantityQuestion;

pub(super) fn most_used(of: &QuantityQuestion<'_>) -> Option<f64> {
    let bytes: Vec<u64> = of_tier(of).map(|link| link.bytes).collect();
    let (sum, most) = (bytes.iter().sum::<u64>(), bytes.iter().max());
    most.filter(|_| sum > 0).map(|most| *most as f64 * bytes.len() as f64 / sum as f64)
}

/// Returns how many percent of the observed time the links of a tier were paused, all of them together.
pub(super) fn pause_time(of: &QuantityQuestion<'_>) -> Option<f64> {
    let seconds =
        |time: fn(&LinkTotals) -> Span| of_tier(of).map(|link| time(link).as_secs_f64()).sum::<f64>();
    let (paused, observed) = (seconds(|link| link.paused), seconds(|link| link.observed));
    (observed > 0.0).then(|| 100.0 * paused / observed)
}

/// Returns the links that connect two tiers, or that lead to or from one.
fn of_tier<'a>(of: &QuantityQuestion<'a>) -> impl Iterator<Item = &'a LinkTotals> {
    let (tier, is_all) = (of.subject, of.is_all());
    let is_end = move |link: &str| link.split(ARROW).any(|end| end == tier);
    of.outcome.links.iter().filter(move |link| is_all || link.tier == tier || is_end(&link.tier))
}

/// The text between the two tiers of a link.
pub(super) const ARROW: &str = " -> ";

#[cfg(test)]
mod tests {
    use plimsoll_results::outcome::Outcome;
    use plimsoll_units::Rate;

    use super::*;
    use crate::Measure;

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
        let of = |text: &str| Measure::parse(text).unwrap().samples(&outcome, Span::ZERO);
        assert_eq!(of("most_used(up)"), [1.5]);
        assert_eq!((of("most_used(idle)"), of("most_used(sideways)")), (vec![], vec![]));
    }

    /// Links of 1 ms, paused for 3, 0, 30 and 7 us.
    #[test]
    fn the_pause_time_of_a_tier_is_the_share_of_the_time_of_its_links() {
        let link = |tier: &str, paused| LinkTotals {
            from: String::new(),
            to: String::new(),
            tier: tier.to_owned(),
            rate: Rate::from_gbps(10),
            observed: Span::from_ms(1),
            packets: 1,
            bytes: 1,
            drops: 0,
            pauses: 0,
            paused: Span::from_us(paused),
        };
        let links = vec![
            link("host -> leaf", 3),
            link("host -> leaf", 0),
            link("spine -> leaf", 30),
            link("spine -> core", 7),
        ];
        let outcome = Outcome { links, ..Outcome::default() };
        for (text, percent) in [
            ("pause_time(host -> leaf)", Some(0.15)),
            ("pause_time(leaf)", Some(1.1)),
            ("pause_time(host)", Some(0.15)),
            ("pause_time(*)", Some(1.0)),
            ("pause_time(lea)", None),
        ] {
            let found = Measure::parse(text).unwrap().samples(&outcome, Span::ZERO);
            assert_eq!(found.first().map(|found| (found * 1e6).round() / 1e6), percent, "{text}");
        }
    }
}
