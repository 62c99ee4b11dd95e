//! What the rows say together, for both bases: ratios to the application alone, Fig. 7, what the text says.

use super::figures::{published, times};
use crate::published::Published;
use crate::row::Row;

/// Everything that is computed from the figures' rows.
pub(super) fn rows(rows: &[Row]) -> Vec<Row> {
    let mut summary = Vec::new();
    for base in ["kernel", "simulated"] {
        let of = Measured { rows, base };
        summary.extend(claims(&of));
        for distribution in DISTRIBUTIONS {
            summary.extend(beside_alone(&of, distribution));
        }
        summary.extend(schemes(&of));
    }
    summary
}

/// The rows of one base.
struct Measured<'a> {
    rows: &'a [Row],
    base: &'a str,
}

impl Measured<'_> {
    fn find(&self, figure: &str, series: &str, x: &str, metric: &str) -> Option<&Row> {
        let is = |row: &&Row| {
            (row.base.as_str(), row.figure.as_str(), row.series.as_str()) == (self.base, figure, series)
                && (row.x.as_str(), row.metric.as_str()) == (x, metric)
        };
        self.rows.iter().find(is)
    }

    /// Only what the kernel did is held to what is published.
    fn is_held(&self) -> bool {
        self.base == "kernel"
    }

    /// One row over another, named by `row`; the interval is that of the first.
    fn over(&self, mut row: Row, one: Option<&Row>, other: Option<&Row>) -> Option<Row> {
        let (one, other) = (one?, other?);
        row.measured = one.measured / other.measured;
        row.ci = one.ci.map(|(low, high)| (low / other.measured, high / other.measured));
        row.suspect = one.suspect || other.suspect;
        Some(row)
    }
}

/// The text: "QJump ... over 300x better" at the 99th percentile, and a shared queue beside an idle network.
fn claims(of: &Measured<'_>) -> Vec<Row> {
    let row = |series: &str, x: &str, metric: &str| Row::new("claims", of.base, series, x, metric, "x");
    let mut claims = Vec::new();
    for rate in ["20", "50", "100"] {
        let ping = |series: &str, metric: &str| of.find("fig3a", series, rate, metric);
        let x = format!("ping at {rate} Mb/s");
        let jump = of.over(
            row("QJump", &x, "times_shorter_p99"),
            ping("+iperf", "rtt_us_p99"),
            ping("+iperf,QJump", "rtt_us_p99"),
        );
        claims.extend(jump.map(|row| {
            let mut row = row.compare(Some(1246.0 / 3.9), None, None);
            row.within = of.is_held().then_some(row.measured > 300.0);
            row
        }));
        claims.extend(["+iperf", "+iperf,QJump"].iter().filter_map(|series| added(of, series, rate)));
    }
    for (metric, published) in [("rtt_us_p50", 1920.0 / 85.0), ("rtt_us_p99", 2100.0 / 126.0)] {
        let at = |series: &str, x: &str| of.find("table1", series, x, metric);
        let name = format!("{}_over_idle", metric.trim_start_matches("rtt_us_"));
        let contended =
            of.over(row("TCP", "shared queue", &name), at("TCP", "shared queue"), at("TCP", "idle"));
        let tolerance = of.is_held().then_some(1.35);
        claims.extend(contended.map(|row| row.compare(Some(published), None, tolerance)));
        // With QJump a ping does not notice.
        let jumped =
            of.over(row("QJump", "shared queue", &name), at("QJump", "shared queue"), at("QJump", "idle"));
        let tolerance = of.is_held().then_some(1.2);
        claims.extend(jumped.map(|row| row.compare(Some(1.0), None, tolerance)));
    }
    claims
}

/// What a ping takes longer than alone, in the median: the time in its hosts, which is in both, is not in it.
fn added(of: &Measured<'_>, series: &str, rate: &str) -> Option<Row> {
    let ping = |series: &str| of.find("fig3a", series, rate, "rtt_us_p50");
    let (one, alone) = (ping(series)?, ping("alone")?);
    let mut row = Row::new("claims", of.base, series, &format!("ping at {rate} Mb/s"), "added_us_p50", "us");
    row.measured = one.measured - alone.measured;
    row.ci = one.ci.map(|(low, high)| (low - alone.measured, high - alone.measured));
    row.suspect = one.suspect || alone.suspect;
    let value = |series: &str| Some(times(rate)? * published("3a", series, "p50")?);
    let beside = value(series).zip(value("alone")).map(|(one, alone)| one - alone);
    let tolerance = (series == "+iperf" && of.is_held()).then_some(1.35);
    Some(row.compare(beside, None, tolerance))
}

/// Panel, figure, application, percentiles.
type Distribution = (&'static str, &'static str, &'static str, &'static [&'static str]);

const DISTRIBUTIONS: &[Distribution] = &[
    ("3b", "apps", "memcached", &["p50", "p90", "p95", "p99"]),
    ("3c", "barrier", "barrier", &["p50", "p90", "p95"]),
];

/// A distribution beside the same application's alone. With QJump it is the application's alone; how much it
/// suffers without depends on how hard, and where, the job pushes.
fn beside_alone(of: &Measured<'_>, (panel, figure, application, percentiles): &Distribution) -> Vec<Row> {
    let mut ratios = Vec::new();
    for (scheme, case) in [("TCP", "+Hadoop"), ("QJump", "+Hadoop,QJump")] {
        for percentile in *percentiles {
            let metric = format!("{application}_us_{percentile}");
            let find = |scheme: &str| of.find(figure, scheme, "shared", &metric);
            let x = format!("{application} {percentile}");
            let row = Row::new("ratios", of.base, case, &x, "over_alone", "x");
            let Some(row) = of.over(row, find(scheme), find("ideal")) else { continue };
            let value = |case: &str| published(panel, case, percentile);
            let beside = value(case).zip(value("alone")).map(|(other, alone)| other / alone);
            let tolerance = (scheme == "QJump" && of.is_held()).then_some(1.2);
            ratios.push(row.compare(beside, None, tolerance));
        }
    }
    ratios
}

/// Fig. 7: five ways to share the testbed. The runtime of a job goes as one over its throughput.
fn schemes(of: &Measured<'_>) -> Vec<Row> {
    let mut schemes = Vec::new();
    for (application, metric) in
        [("hadoop", "hadoop_gbps"), ("ptpd", "ptp_us_rms"), ("memcached", "memcached_us_rms")]
    {
        for (scheme, column) in
            [("TCP", "contended"), ("EFC", "EFC"), ("ECN", "ECN"), ("DCTCP", "DCTCP"), ("QJump", "QJump")]
        {
            let find = |scheme: &str| of.find("apps", scheme, "shared", metric);
            let row = Row::new("fig7", of.base, column, application, "rms_over_ideal", "x ideal");
            let row = match application {
                "hadoop" => of.over(row, find("hadoop"), find(scheme)),
                _ => of.over(row, find(scheme), find("ideal")),
            };
            let published = Published::parse(include_str!("../../published/qjump_fig7_rms.csv"))
                .value(&[("application", application)], column);
            schemes.extend(row.map(|row| row.compare(published, None, None)));
        }
    }
    schemes
}
