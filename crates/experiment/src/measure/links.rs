//! How the links between tiers are used.

use plimsoll_results::outcome::LinkTotals;

use super::asked::QuantityQuestion;

pub(super) fn most_used(of: &QuantityQuestion<'_>) -> Option<f64> {
    let bytes: Vec<u64> = of_tier(of).map(|link| link.bytes).collect();
    let (sum, most) = (bytes.iter().sum::<u64>(), bytes.iter().max());
    most.filter(|_| sum > 0).map(|most| *most as f64 * bytes.len() as f64 / sum as f64)
}

pub(super) fn pause_time(of: &QuantityQuestion<'_>) -> Option<f64> {
    of_tier(of).map(|link| link.paused).reduce(|sum, one| sum + one).map(|sum| of.time(sum))
}

fn of_tier<'a>(of: &QuantityQuestion<'a>) -> impl Iterator<Item = &'a LinkTotals> {
    let tier = of.subject;
    of.outcome.links.iter().filter(move |link| link.tier == tier)
}

#[cfg(test)]
mod tests {
    use plimsoll_results::outcome::Outcome;
    use plimsoll_units::{Rate, Span};

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
            paused: Span::from_us(3),
        };
        let links =
            vec![link("up", 100), link("up", 300), link("down", 900), link("up", 200), link("idle", 0)];
        let outcome = Outcome { links, ..Outcome::default() };
        let of = |text: &str| Measure::parse(text).unwrap().samples(&outcome, Span::ZERO);
        assert_eq!(of("most_used(up)"), [1.5]);
        assert_eq!((of("most_used(idle)"), of("most_used(sideways)")), (vec![], vec![]));
        assert_eq!((of("pause_time(up)"), of("pause_time(sideways)")), (vec![9.0], vec![]));
    }
}
