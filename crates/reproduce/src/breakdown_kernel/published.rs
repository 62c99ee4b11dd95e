//! Table 5.1 of the dissertation, row by row beside what was measured here, and what of it is held to.
//!
//! Times depend on the machine and are held to nothing; the shares of the time are held to the published ones.

use crate::published::Kind;
use crate::row::Row;
use crate::study::{Base, Study};

/// A row of Table 5.1, with the metrics here that it is: the name that they have in the table, and their own.
type Component = (&'static str, &'static [(&'static str, &'static str)]);

/// The rows of Table 5.1 that exist on this machine.
const COMPONENTS: [Component; 5] = [
    ("net serialisation, given", &[(MEAN, "serialisation_us")]),
    (
        "kernel incl. lock contention",
        &[
            (MEAN, "kernel_us_mean"),
            (P50, "kernel_us_p50"),
            (P99, "kernel_us_p99"),
            (SHARE, "kernel_percent"),
            (SHARE_OF_SLOWEST, "kernel_percent_of_slowest"),
        ],
    ),
    (
        "application",
        &[
            (MEAN, "application_us_mean"),
            (P50, "application_us_p50"),
            (P99, "application_us_p99"),
            (SHARE, "application_percent"),
        ],
    ),
    ("remainder", &[(SHARE, "remainder_percent")]),
    ("total, at the client", &[(MEAN, "client_us_mean"), (P50, "client_us_p50"), (P99, "client_us_p99")]),
];
const MEAN: &str = "us_mean";
const P50: &str = "us_p50";
const P99: &str = "us_p99";
const SHARE: &str = "percent";
const SHARE_OF_SLOWEST: &str = "percent_of_slowest";

/// The numbers that are held to what is published: figure, scheme and metric.
const HELD: [(&str, &str, &str); 3] = [
    ("parts", "MC", "kernel_percent"),
    ("locks", "MC 4T", "contended_percent"),
    ("locks", "MC 4T", "waiting_percent"),
];

/// Computes the table and the claims, of what the figures have.
pub(crate) fn summary(study: &Study, rows: &[Row]) -> Vec<Row> {
    table(study, rows).into_iter().chain(claims(study, rows)).collect()
}

/// Sets the parts of a request at each load beside the rows of Table 5.1.
fn table(study: &Study, rows: &[Row]) -> Vec<Row> {
    let mut table = Vec::new();
    for x in study.xs("parts") {
        for series in ["MC", "CH"] {
            let find = |metric: &str| find(rows, "parts", series, x, metric);
            for (component, metrics) in COMPONENTS {
                table.extend(metrics.iter().filter_map(|(name, metric)| {
                    let label = format!("{series} at {x}");
                    let row = like(find(metric)?, "table5.1", &label, component, name);
                    Some(study.published.beside(row, None))
                }));
            }
        }
    }
    table
}

/// Holds shares to the least that is published, or to about what is.
fn claims(study: &Study, rows: &[Row]) -> Vec<Row> {
    let mut claims = Vec::new();
    for (figure, series, metric) in HELD {
        for x in study.xs(figure) {
            let Some(measured) = find(rows, figure, series, x, metric) else { continue };
            let claim = like(measured, "claims", series, &format!("{figure} at {x}"), metric);
            let value = |kind| study.published.of(kind, &claim);
            let (least, about) = (value(Kind::AtLeast), value(Kind::About));
            if least.or(about).is_none() {
                continue;
            }
            let mut claim = claim.compare(least.or(about), None, about.map(|_| ABOUT));
            if let Some(least) = least {
                claim.within = Some(claim.measured >= least);
            }
            claims.push(claim);
        }
    }
    claims
}

fn find<'a>(rows: &'a [Row], figure: &str, series: &str, x: &str, metric: &str) -> Option<&'a Row> {
    rows.iter().find(|row| {
        row.base == Base::Kernel.name()
            && (row.figure.as_str(), row.series.as_str(), row.x.as_str(), row.metric.as_str())
                == (figure, series, x, metric)
    })
}

/// Returns the number of a row at another place, as suspect and as short as there.
fn like(row: &Row, figure: &str, series: &str, x: &str, metric: &str) -> Row {
    let new = Row::new(figure, &row.base, series, x, metric, &row.unit);
    Row { measured: row.measured, ci: row.ci, suspect: row.suspect, quick: row.quick, ..new }
}

/// The factor, either way, within which a share is about the published one.
const ABOUT: f64 = 1.5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::study;

    fn row(figure: &str, series: &str, x: &str, metric: &str, measured: f64) -> Row {
        Row { measured, ..Row::new(figure, "kernel", series, x, metric, "%") }
    }

    #[test]
    fn table_5_1_has_the_published_numbers_of_memcached_and_none_of_chronos() {
        let of = |series| row("parts", series, "20000/s", "kernel_us_mean", 19.0);
        let table = table(study("breakdown-kernel"), &[of("MC"), of("CH")]);
        let told = |row: &Row| (row.series.clone(), row.metric.clone(), row.published, row.within);
        assert_eq!(
            table.iter().map(told).collect::<Vec<_>>(),
            [
                ("MC at 20000/s".to_owned(), MEAN.to_owned(), Some(76.0), None),
                ("CH at 20000/s".to_owned(), MEAN.to_owned(), None, None)
            ]
        );
        assert_eq!(table[0].ratio, Some(0.25));
    }

    #[test]
    fn a_share_is_held_to_the_least_that_is_published_or_to_about_it() {
        let rows = [
            row("parts", "MC", "30", "kernel_percent", 86.0),
            row("parts", "MC", "70", "kernel_percent", 85.9),
            row("parts", "CH", "30", "kernel_percent", 10.0),
            row("locks", "MC 4T", "20", "contended_percent", 2.0),
            row("locks", "MC 4T", "20", "waiting_percent", 23.0),
        ];
        let claims = claims(study("breakdown-kernel"), &rows);
        let told = |row: &Row| (row.x.clone(), row.published.map(f64::round), row.within);
        assert_eq!(
            claims.iter().map(told).collect::<Vec<_>>(),
            [
                ("parts at 30".to_owned(), Some(86.0), Some(true)),
                ("parts at 70".to_owned(), Some(86.0), Some(false)),
                ("locks at 20".to_owned(), Some(50.0), Some(false)),
                ("locks at 20".to_owned(), Some(33.0), Some(true)),
            ]
        );
    }
}
