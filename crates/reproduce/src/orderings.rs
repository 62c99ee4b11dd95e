//! Which of two schemes is better: as published, and as measured.

use serde::{Deserialize, Serialize};

use crate::row::StudyRow;

/// Two schemes at one point of a figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ordering {
    /// The name of the figure whose rows are compared.
    pub figure: String,
    /// The value on the figure's x axis at which they are compared.
    pub x: String,
    /// The name of the compared quantity.
    pub metric: String,
    /// The scheme with the smaller published value.
    pub smaller: String,
    /// The scheme with the larger published value.
    pub larger: String,
    /// Whether the measured values have the published order. `None` if their intervals overlap, so
    /// that the order is not decided.
    pub holds: Option<bool>,
}

/// Compares every pair of schemes that has published values and as many flows, of the rows of `base`, but for the
/// figures `without`.
pub fn orderings(rows: &[StudyRow], base: &str, without: &[String]) -> Vec<Ordering> {
    let counts = |row: &&StudyRow| row.base == base && !without.contains(&row.figure);
    let of_base: Vec<&StudyRow> = rows.iter().filter(counts).collect();
    let mut orderings = Vec::new();
    for (index, a) in of_base.iter().enumerate() {
        for b in &of_base[index + 1..] {
            let same = (&a.figure, &a.x, &a.metric, a.flows) == (&b.figure, &b.x, &b.metric, b.flows);
            if !same || a.series == b.series {
                continue;
            }
            let (Some(published_a), Some(published_b)) = (a.published, b.published) else { continue };
            if published_a == published_b {
                continue;
            }
            let (smaller, larger) = if published_a < published_b { (a, b) } else { (b, a) };
            orderings.push(Ordering {
                figure: a.figure.clone(),
                x: a.x.clone(),
                metric: a.metric.clone(),
                smaller: smaller.series.clone(),
                larger: larger.series.clone(),
                holds: decided(smaller, larger),
            });
        }
    }
    orderings
}

/// Returns whether the order is the published one, if the intervals are apart; a number without an interval counts as
/// exact.
fn decided(smaller: &StudyRow, larger: &StudyRow) -> Option<bool> {
    let interval = |row: &StudyRow| row.ci.unwrap_or((row.measured, row.measured));
    let ((low_a, high_a), (low_b, high_b)) = (interval(smaller), interval(larger));
    if high_a < low_b {
        Some(true)
    } else if high_b < low_a {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(series: &str, measured: f64, half: f64, published: f64) -> StudyRow {
        let mut row = StudyRow::new("table2", "source", series, "20", "queue_us_mean", "us");
        row.measured = measured;
        row.ci = Some((measured - half, measured + half));
        row.compare(Some(published), None, None)
    }

    #[test]
    fn an_order_is_judged_only_where_the_intervals_are_apart() {
        let holds = |a, b| orderings(&[a, b], "source", &[]).first().and_then(|ordering| ordering.holds);
        assert_eq!(holds(row("A", 1.0, 0.1, 10.0), row("B", 2.0, 0.1, 20.0)), Some(true));
        assert_eq!(holds(row("A", 3.0, 0.1, 10.0), row("B", 2.0, 0.1, 20.0)), Some(false));
        let few = StudyRow { flows: Some(500), ..row("B", 2.0, 0.1, 20.0) };
        assert_eq!(holds(row("A", 1.0, 0.1, 10.0), few), None);
        assert_eq!(holds(row("A", 2.1, 0.2, 10.0), row("B", 2.0, 0.1, 20.0)), None);
    }
}
