//! What is published as a ratio, and the same ratio here: who is better (`orders`), and by what factor (`claims`).
//!
//! Here a ratio is the median of the rounds' ratios (`..._of_first` and its like), and the interval of that median
//! decides the order. The quotient of two medians is the model's alone, which has no rounds.

use super::plan::CONTROLLERS;
use super::points::beside;
use crate::published::Kind;
use crate::row::Row;
use crate::study::{Base, Study};

/// One number over another: figure, point, metric, and the two schemes.
type Claim = (&'static str, &'static str, &'static str, [&'static str; 2]);

const CLAIMS: &[Claim] = &[
    ("fig5.3", "160", MEAN, ["reader/writer lock", "steering"]),
    ("search", "160", "requests_per_s", ["search Chronos", "search RCU"]),
    ("fig6.3", "110", MEAN, ["MC", "CH"]),
    ("fig6.4", "400", "requests_per_s", ["CH", "MC"]),
    ("fig6.5", "10", P99, ["MC", "CH"]),
    ("fig6.7", "1", P99, ["static", "100 us"]),
    ("fig6.7", "10", P99, ["static", "100 us"]),
    ("fig6.7", "1", P99, ["100 us", "10 us"]),
    ("fig6.7", "10", P99, ["100 us", "10 us"]),
    // Figs 6.3 and 6.4 are of user-level networking, which "udp" has here.
    ("udp", "70", MEAN, ["MC UDP", "CH AF_XDP"]),
    ("udp", "saturation", "requests_per_s", ["CH AF_XDP", "MC UDP"]),
    // Table 6.1 has the controller over the kernel's TCP, and that over the card's.
    ("table6.1", "1", MEAN, SLEEPING),
    ("table6.1", "1", P99, SLEEPING),
    ("table6.1", "16", MEAN, SLEEPING),
    ("table6.1", "16", P99, SLEEPING),
];
/// The controllers that sleep where nothing is to be done.
const SLEEPING: [&str; 2] = [CONTROLLERS[0], CONTROLLERS[1]];
const MEAN: &str = "latency_us_mean";
const P99: &str = "latency_us_p99";

/// Computes the claims of both bases; only this machine's are held to what is published.
pub(super) fn rows(study: &Study, rows: &[Row]) -> Vec<Row> {
    let of_base = |base: Base| {
        let ratios: Vec<Row> = CLAIMS.iter().filter_map(|claim| ratio(rows, claim, base)).collect();
        let orders = ratios.iter().filter_map(|ratio| order(study, ratio));
        let factors = ratios.iter().cloned().chain(beside_a_job(rows, base));
        orders.chain(factors.filter_map(|ratio| factor(study, ratio))).collect::<Vec<Row>>()
    };
    [of_base(Base::Kernel), of_base(Base::Simulated)].concat()
}

fn ratio(rows: &[Row], claim: &Claim, base: Base) -> Option<Row> {
    let &(figure, x, metric, [one, other]) = claim;
    let find = |series: &str, metric: &str| {
        rows.iter().find(|row| {
            (row.base.as_str(), row.series.as_str()) == (base.name(), series)
                && (row.figure.as_str(), row.x.as_str(), row.metric.as_str()) == (figure, x, metric)
        })
    };
    let at = format!("{figure} at {x}");
    let mut row = Row::new("claims", base.name(), one, &at, &format!("{metric} over {other}"), "x");
    if base == Base::Kernel {
        // The rounds' own ratios: what the machine does to both servers of a round is not in their interval.
        let paired = |one, other| find(one, &beside(figure, one, other)?.metric(metric));
        let (found, is_inverse) = paired(one, other)
            .map(|found| (found, false))
            .or_else(|| paired(other, one).map(|found| (found, true)))?;
        let turn = |value: f64| if is_inverse { 1.0 / value } else { value };
        row.measured = turn(found.measured);
        row.ci = found.ci.map(|(low, high)| if is_inverse { (turn(high), turn(low)) } else { (low, high) });
        row.suspect =
            found.suspect || [one, other].iter().filter_map(|of| find(of, metric)).any(|of| of.suspect);
    } else {
        row.measured = find(one, metric)?.measured / find(other, metric)?.measured;
    }
    Some(row)
}

/// Computes what a job that receives bulk streams does to the tail (section 6.3).
fn beside_a_job(rows: &[Row], base: Base) -> impl Iterator<Item = Row> {
    let ratios = rows.iter().filter(move |row| {
        (row.figure.as_str(), row.metric.as_str()) == ("neighbour", "p99_of_alone") && row.base == base.name()
    });
    ratios.map(|ratio| {
        let x = format!("{} at {}", ratio.figure, ratio.x);
        let mut row = Row::new("claims", &ratio.base, &ratio.series, &x, &ratio.metric, &ratio.unit);
        (row.measured, row.ci, row.suspect) = (ratio.measured, ratio.ci, ratio.suspect);
        row
    })
}

/// Returns the claim that the first scheme is the better one, if it is published: it holds where the interval of the
/// ratio is above 1, and does not where it is below or shows that there is no order. A suspect row decides nothing.
fn order(study: &Study, ratio: &Row) -> Option<Row> {
    let is_kernel = ratio.base == Base::Kernel.name();
    let row = Row { figure: "orders".to_owned(), order_only: is_kernel, ..ratio.clone() };
    let least = study.published.of(Kind::AtLeast, &row)?;
    let mut row = row.compare(Some(least), None, None);
    let decided = |(low, high): (f64, f64)| {
        let is_none = low >= 1.0 / NEGLIGIBLE && high <= NEGLIGIBLE;
        (low > 1.0).then_some(true).or((high < 1.0 || is_none).then_some(false))
    };
    row.within = row.ci.filter(|_| is_kernel && !row.suspect).and_then(decided);
    Some(row)
}

/// The factor within which the whole interval of a ratio has to lie for there to be no order here.
const NEGLIGIBLE: f64 = 1.1;

/// Returns the ratio beside the published number or the least of it, if there is one.
fn factor(study: &Study, ratio: Row) -> Option<Row> {
    let [about, least] = [Kind::About, Kind::AtLeast].map(|kind| study.published.of(kind, &ratio));
    let mut row = ratio.compare(Some(about.or(least)?), None, None);
    row.within = least.filter(|_| !row.suspect).map(|least| row.measured >= least);
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::study;

    fn row(series: &str, metric: &str, measured: f64, half: f64) -> Row {
        let ci = Some((measured - half, measured + half));
        Row { measured, ci, ..Row::new("fig5.3", "kernel", series, "160", metric, "x") }
    }

    /// The order and the factor of the reader/writer lock's mean over that of steering, where the rounds' ratios are
    /// this.
    fn claimed(ratio: f64, half: f64, is_suspect: bool) -> [Row; 2] {
        let means = ["reader/writer lock", "steering"].map(|series| {
            // Intervals of the machine, which are wide apart from what the rounds have in common.
            let mean = row(series, "latency_us_mean", 200.0, 150.0);
            Row { suspect: is_suspect && series == "steering", ..mean }
        });
        let rows = rows(
            study("chronos-kernel"),
            &[&means[..], &[row("steering", "mean_of_lock", ratio, half)]].concat(),
        );
        rows.try_into().expect("the claim has two rows")
    }

    #[test]
    fn an_order_is_held_where_the_rounds_ratios_leave_one() {
        let [order, factor] = claimed(0.5, 0.1, false);
        assert_eq!((order.measured, order.published, order.within), (2.0, Some(1.0), Some(true)));
        assert_eq!((factor.measured, factor.published, factor.within), (2.0, Some(2.5), None));
        let (low, high) = order.ci.unwrap();
        assert!((low - 1.0 / 0.6).abs() < 1e-9 && (high - 1.0 / 0.4).abs() < 1e-9);
        let within = |ratio, half, is_suspect| claimed(ratio, half, is_suspect)[0].within;
        assert_eq!(within(2.0, 0.5, false), Some(false));
        assert_eq!(within(0.9, 0.2, false), None);
        assert_eq!(within(1.0, 0.05, false), Some(false), "no order, and that for sure");
        assert_eq!(within(0.5, 0.1, true), None, "a suspect row decides nothing");
    }

    #[test]
    fn without_ratios_of_rounds_there_is_no_claim() {
        let means =
            ["reader/writer lock", "steering"].map(|series| row(series, "latency_us_mean", 200.0, 1.0));
        assert!(rows(study("chronos-kernel"), &means).is_empty());
    }

    #[test]
    fn every_claim_has_servers_that_are_set_beside_each_other() {
        for (figure, x, _, [one, other]) in CLAIMS {
            let is_beside = beside(figure, one, other).or_else(|| beside(figure, other, one)).is_some();
            assert!(is_beside, "{figure} at {x}: {one} and {other}");
        }
    }

    #[test]
    fn every_claim_is_published_as_an_order_or_a_factor_above_1() {
        for (figure, x, metric, [series, over]) in CLAIMS {
            let (at, metric) = (format!("{figure} at {x}"), format!("{metric} over {over}"));
            let said =
                |kind, table| study("chronos-kernel").published.value(kind, table, series, &at, &metric);
            let (order, factor) = (said(Kind::AtLeast, "orders"), said(Kind::About, "claims"));
            assert!(order.or(factor).is_some(), "{figure} at {x}");
            assert!(order.is_none_or(|order| order == 1.0), "{figure} at {x}: {order:?}");
            assert!(factor.is_none_or(|factor| factor > 1.0), "{figure} at {x}: {factor:?}");
        }
    }

    #[test]
    fn a_job_beside_is_said_to_hurt_memcached_and_not_chronos() {
        let beside = |series: &str, measured| {
            let ci = Some((measured - 0.1, measured + 0.1));
            Row { measured, ci, ..Row::new("neighbour", "kernel", series, "50", "p99_of_alone", "x") }
        };
        let held: Vec<_> =
            rows(study("chronos-kernel"), &[beside("MC beside a job", 1.7), beside("CH beside a job", 1.5)])
                .into_iter()
                .map(|row| (row.published, row.within))
                .collect();
        assert_eq!(held, [(Some(1.6), Some(true)), (Some(1.0), None)]);
    }
}
