//! What is published as a ratio, and the same ratio here. Times are another machine's; who is better need not be.
//!
//! Here a ratio is the median of the rounds' ratios (`..._of_first` and its like), and the interval of that median
//! decides the claim. The quotient of two medians is the model's alone, which has no rounds.

use super::plan::CONTROLLERS;
use super::points::beside;
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

/// Computes the claims of both bases; only this machine's are held to the published order.
pub(super) fn rows(study: &Study, rows: &[Row]) -> Vec<Row> {
    let of_base = |base: Base| {
        let ratios = CLAIMS.iter().filter_map(move |claim| ratio(study, rows, claim, base));
        ratios.chain(beside_a_job(study, rows, base))
    };
    of_base(Base::Kernel).chain(of_base(Base::Simulated)).collect()
}

fn ratio(study: &Study, rows: &[Row], claim: &Claim, base: Base) -> Option<Row> {
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
    Some(held(study, row))
}

/// Computes what a job that receives bulk streams does to the tail (section 6.3).
fn beside_a_job(study: &Study, rows: &[Row], base: Base) -> impl Iterator<Item = Row> {
    let ratios = rows.iter().filter(move |row| {
        (row.figure.as_str(), row.metric.as_str()) == ("neighbour", "p99_of_alone") && row.base == base.name()
    });
    ratios.map(|ratio| {
        let x = format!("{} at {}", ratio.figure, ratio.x);
        let mut row = Row::new("claims", &ratio.base, &ratio.series, &x, &ratio.metric, &ratio.unit);
        (row.measured, row.ci, row.suspect) = (ratio.measured, ratio.ci, ratio.suspect);
        held(study, row)
    })
}

/// Returns the claim beside what is published. It is held to the order, where the interval leaves one or shows that
/// there is none; or to there being no change, where that is published and the interval decides it. A suspect row is
/// held to nothing.
fn held(study: &Study, row: Row) -> Row {
    let is_kernel = row.base == Base::Kernel.name() && !row.suspect;
    let mut row = study.published.beside(row, None);
    let is_unchanged = row.published == Some(1.0);
    row.order_only = row.base == Base::Kernel.name();
    let order = |(low, high): (f64, f64)| {
        let is_none = low >= 1.0 / NEGLIGIBLE && high <= NEGLIGIBLE;
        (low > 1.0).then_some(true).or((high < 1.0 || is_none).then_some(false))
    };
    let same = |(low, high): (f64, f64)| {
        let (least, most) = (1.0 / UNCHANGED, UNCHANGED);
        if low >= least && high <= most { Some(true) } else { (low > most || high < least).then_some(false) }
    };
    let interval = row.ci.filter(|_| is_kernel && row.published.is_some());
    row.within = interval.and_then(|interval| if is_unchanged { same(interval) } else { order(interval) });
    row
}

/// The factor within which a tail counts as unchanged.
const UNCHANGED: f64 = 1.35;
/// The factor within which the whole interval of a published order has to lie for there to be no order here.
const NEGLIGIBLE: f64 = 1.1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::Kind;
    use crate::studies::CHRONOS_KERNEL;

    fn row(series: &str, metric: &str, measured: f64, half: f64) -> Row {
        let ci = Some((measured - half, measured + half));
        Row { measured, ci, ..Row::new("fig5.3", "kernel", series, "160", metric, "x") }
    }

    /// The claim of the reader/writer lock's mean over that of steering, where the rounds' ratios are this.
    fn claimed(ratio: f64, half: f64, is_suspect: bool) -> Row {
        let means = ["reader/writer lock", "steering"].map(|series| {
            // Intervals of the machine, which are wide apart from what the rounds have in common.
            let mean = row(series, "latency_us_mean", 200.0, 150.0);
            Row { suspect: is_suspect && series == "steering", ..mean }
        });
        let rows =
            rows(&CHRONOS_KERNEL, &[&means[..], &[row("steering", "mean_of_lock", ratio, half)]].concat());
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows[0].clone()
    }

    #[test]
    fn an_order_is_held_where_the_rounds_ratios_leave_one() {
        let clear = claimed(0.5, 0.1, false);
        assert_eq!((clear.measured, clear.published, clear.within), (2.0, Some(2.5), Some(true)));
        let (low, high) = clear.ci.unwrap();
        assert!((low - 1.0 / 0.6).abs() < 1e-9 && (high - 1.0 / 0.4).abs() < 1e-9);
        assert_eq!(claimed(2.0, 0.5, false).within, Some(false));
        assert_eq!(claimed(0.9, 0.2, false).within, None);
        assert_eq!(claimed(1.0, 0.05, false).within, Some(false), "no order, and that for sure");
        assert_eq!(claimed(0.5, 0.1, true).within, None, "a suspect row decides nothing");
    }

    #[test]
    fn without_ratios_of_rounds_there_is_no_claim() {
        let means =
            ["reader/writer lock", "steering"].map(|series| row(series, "latency_us_mean", 200.0, 1.0));
        assert!(rows(&CHRONOS_KERNEL, &means).is_empty());
    }

    #[test]
    fn every_claim_has_servers_that_are_set_beside_each_other() {
        for (figure, x, _, [one, other]) in CLAIMS {
            let is_beside = beside(figure, one, other).or_else(|| beside(figure, other, one)).is_some();
            assert!(is_beside, "{figure} at {x}: {one} and {other}");
        }
    }

    #[test]
    fn every_claim_is_published_as_one_above_or_at_1() {
        for (figure, x, metric, [series, over]) in CLAIMS {
            let (at, metric) = (format!("{figure} at {x}"), format!("{metric} over {over}"));
            let published = CHRONOS_KERNEL.published.value(Kind::About, "claims", series, &at, &metric);
            let published = published.unwrap_or_else(|| panic!("{figure} at {x}"));
            assert!(published >= 1.0, "{figure} at {x}: {published}");
        }
    }

    #[test]
    fn a_job_beside_is_said_to_hurt_memcached_and_not_chronos() {
        let beside = |series: &str, measured| {
            let ci = Some((measured - 0.1, measured + 0.1));
            Row { measured, ci, ..Row::new("neighbour", "kernel", series, "50", "p99_of_alone", "x") }
        };
        let held: Vec<_> =
            rows(&CHRONOS_KERNEL, &[beside("MC beside a job", 1.7), beside("CH beside a job", 1.5)])
                .into_iter()
                .map(|row| (row.published, row.within))
                .collect();
        assert_eq!(held, [(Some(1.6), Some(true)), (Some(1.0), Some(false))]);
    }
}
