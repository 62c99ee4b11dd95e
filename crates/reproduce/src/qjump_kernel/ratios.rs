//! What the rows say together, for both bases: ratios to the application alone, Fig. 7, what the text says.

use super::parts::parts;
use crate::row::Row;
use crate::study::Study;

/// Computes everything that follows from the figures' rows.
pub(crate) fn summary(study: &Study, rows: &[Row]) -> Vec<Row> {
    let mut summary = Vec::new();
    for base in ["kernel", "simulated"] {
        let of = Measured { study, rows, base };
        summary.extend(claims(&of));
        for distribution in DISTRIBUTIONS {
            summary.extend(beside_alone(&of, distribution));
        }
        summary.extend(schemes(&of));
        summary.extend(by_fetch(&of));
        summary.extend(beside_idle(&of));
        summary.extend(parts(&of));
    }
    summary
}

/// The rows of one base.
pub(super) struct Measured<'a> {
    study: &'a Study,
    rows: &'a [Row],
    pub(super) base: &'a str,
}

impl Measured<'_> {
    pub(super) fn find(&self, figure: &str, series: &str, x: &str, metric: &str) -> Option<&Row> {
        let is = |row: &&Row| {
            (row.base.as_str(), row.figure.as_str(), row.series.as_str()) == (self.base, figure, series)
                && (row.x.as_str(), row.metric.as_str()) == (x, metric)
        };
        self.rows.iter().find(is)
    }

    /// Returns a row beside what is published; only what the kernel did is held to it.
    fn beside(&self, row: Row, tolerance: Option<f64>) -> Row {
        self.study.published.beside(row, tolerance.filter(|_| self.is_held()))
    }

    /// Returns whether the rows are held to what is published.
    fn is_held(&self) -> bool {
        self.base == "kernel"
    }

    /// Divides one row by another, under the name of `row`; the interval is that of the first.
    fn over(&self, mut row: Row, one: Option<&Row>, other: Option<&Row>) -> Option<Row> {
        let (one, other) = (one?, other?);
        row.measured = one.measured / other.measured;
        row.ci = one.ci.map(|(low, high)| (low / other.measured, high / other.measured));
        row.suspect = one.suspect || other.suspect;
        Some(row)
    }
}

/// Computes what the text says: "QJump ... over 300x better" at the 99th percentile, and a shared queue over an idle
/// network.
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
            let mut row = of.beside(row, None);
            row.within = of.is_held().then_some(row.measured > 300.0);
            row
        }));
        claims.extend(["+iperf", "+iperf,QJump"].iter().filter_map(|series| added(of, series, rate)));
    }
    for metric in ["rtt_us_p50", "rtt_us_p99"] {
        let at = |series: &str, x: &str| of.find("table1", series, x, metric);
        let name = format!("{}_over_idle", metric.trim_start_matches("rtt_us_"));
        let contended =
            of.over(row("TCP", "shared queue", &name), at("TCP", "shared queue"), at("TCP", "idle"));
        claims.extend(contended.map(|row| of.beside(row, Some(1.35))));
        // With QJump a ping does not notice.
        let jumped =
            of.over(row("QJump", "shared queue", &name), at("QJump", "shared queue"), at("QJump", "idle"));
        claims.extend(jumped.map(|row| of.beside(row, Some(1.2))));
    }
    claims
}

/// Computes what a ping takes longer than alone, in the median: the time in its hosts, which is in both, is not in
/// it.
fn added(of: &Measured<'_>, series: &str, rate: &str) -> Option<Row> {
    let ping = |series: &str| of.find("fig3a", series, rate, "rtt_us_p50");
    let (one, alone) = (ping(series)?, ping("alone")?);
    let mut row = Row::new("claims", of.base, series, &format!("ping at {rate} Mb/s"), "added_us_p50", "us");
    row.measured = one.measured - alone.measured;
    row.ci = one.ci.map(|(low, high)| (low - alone.measured, high - alone.measured));
    row.suspect = one.suspect || alone.suspect;
    Some(of.beside(row, (series == "+iperf").then_some(1.35)))
}

/// Figure, application, percentiles.
type Distribution = (&'static str, &'static str, &'static [&'static str]);

const DISTRIBUTIONS: &[Distribution] =
    &[("apps", "memcached", &["p50", "p90", "p95", "p99"]), ("barrier", "barrier", &["p50", "p90", "p95"])];

/// Computes a distribution over the same application's alone. With QJump it is the application's alone; how much it
/// suffers without depends on how hard, and where, the job pushes.
fn beside_alone(of: &Measured<'_>, (figure, application, percentiles): &Distribution) -> Vec<Row> {
    let mut ratios = Vec::new();
    for (scheme, case) in [("TCP", "+Hadoop"), ("QJump", "+Hadoop,QJump")] {
        for percentile in *percentiles {
            let metric = format!("{application}_us_{percentile}");
            let find = |scheme: &str| of.find(figure, scheme, "shared", &metric);
            let x = format!("{application} {percentile}");
            let row = Row::new("ratios", of.base, case, &x, "over_alone", "x");
            let Some(row) = of.over(row, find(scheme), find("ideal")) else { continue };
            ratios.push(of.beside(row, (scheme == "QJump").then_some(1.2)));
        }
    }
    ratios
}

/// The applications that share the testbed in Fig. 7, and the metric of each.
const APPLICATIONS: [(&str, &str); 3] =
    [("hadoop", "hadoop_gbps"), ("ptpd", "ptp_us_rms"), ("memcached", "memcached_us_rms")];

/// Computes Fig. 7: five ways to share the testbed, ECN with the best of its settings.
fn schemes(of: &Measured<'_>) -> Vec<Row> {
    let mut schemes = Vec::new();
    let best = best_setting(of);
    // Without the sweep it is the setting of the file, the published best.
    let ecn = best.map_or(("apps", "shared"), |x| ("fig7-wred", x));
    for application in APPLICATIONS {
        for (scheme, column) in
            [("TCP", "contended"), ("EFC", "EFC"), ("ECN", "ECN"), ("DCTCP", "DCTCP"), ("QJump", "QJump")]
        {
            let (figure, x) = if scheme == "ECN" { ecn } else { ("apps", "shared") };
            let Some(mut row) = over_ideal(of, figure, scheme, x, application) else { continue };
            column.clone_into(&mut row.series);
            schemes.push(of.beside(row, None));
        }
    }
    if let Some(best) = best {
        let mut row = Row::new("claims", of.base, "ECN", "best of ten", "wred_min", "segments");
        row.measured = best.parse().unwrap_or(f64::NAN);
        schemes.push(of.beside(row, None));
    }
    schemes
}

/// Computes Fig. 7's Hadoop beside ECN where it never pauses, by the size of what a reducer fetches at a time.
fn by_fetch(of: &Measured<'_>) -> Vec<Row> {
    let figure = "apps-fetches";
    let over = |x| {
        let at = |scheme| of.find(figure, scheme, x, "hadoop_gbps");
        let row = Row::new("fig7-fetches", of.base, "ECN", x, "rms_over_ideal", "x ideal");
        of.over(row, at("hadoop"), at("ECN"))
    };
    of.study.xs(figure).filter_map(over).collect()
}

/// Divides an application by itself alone; of a job's throughput the inverse counts, as its runtime does.
fn over_ideal(
    of: &Measured<'_>,
    figure: &str,
    scheme: &str,
    x: &str,
    (application, metric): (&str, &str),
) -> Option<Row> {
    let row = Row::new("fig7", of.base, scheme, application, "rms_over_ideal", "x ideal");
    let alone = |scheme: &str| of.find("apps", scheme, "shared", metric);
    let shared = of.find(figure, scheme, x, metric);
    match application {
        "hadoop" => of.over(row, alone("hadoop"), shared),
        _ => of.over(row, shared, alone("ideal")),
    }
}

/// Returns the setting of WRED with the smallest product of the three applications, each at least 1; none unless
/// every one was measured.
fn best_setting<'a>(of: &Measured<'a>) -> Option<&'a str> {
    let cost = |x: &str| -> Option<f64> {
        let all = APPLICATIONS.iter().map(|application| over_ideal(of, "fig7-wred", "ECN", x, *application));
        all.map(|row| Some(row?.measured.max(1.0))).product()
    };
    let settings: Option<Vec<(&str, f64)>> = of.study.xs("fig7-wred").map(|x| Some((x, cost(x)?))).collect();
    let best = settings?.into_iter().min_by(|(_, a), (_, b)| a.total_cmp(b));
    best.map(|(x, _)| x)
}

/// Computes Fig. 6 over itself without bursts.
fn beside_idle(of: &Measured<'_>) -> Vec<Row> {
    let mut shares = Vec::new();
    for series in ["TCP", "UDP", "QJump"] {
        let at = |x: &str| of.find("fig6", series, x, "commits_per_s");
        // The first load is none.
        let mut loads = of.study.xs("fig6");
        let idle = loads.next().and_then(at);
        for x in loads {
            let row = Row::new("fig6-share", of.base, series, x, "commits_over_idle", "x idle");
            let Some(row) = of.over(row, at(x), idle) else { continue };
            // The claim is that bursts do not matter to QJump.
            shares.push(of.beside(row, (series == "QJump").then_some(1.2)));
        }
        for x in of.study.xs("fig6-bursts") {
            let long = of.find("fig6-bursts", series, x, "commits_per_s");
            let x = format!("{x}, bursts of 12.5 s");
            let row = Row::new("fig6-share", of.base, series, &x, "commits_over_idle", "x idle");
            shares.extend(of.over(row, long, idle));
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::study;

    fn row(figure: &str, series: &str, x: &str, metric: &str, measured: f64) -> Row {
        Row { measured, ..Row::new(figure, "kernel", series, x, metric, "") }
    }

    /// Returns the applications under a scheme: the job at `share` of its rate, the others `times` as long as alone.
    fn applications(figure: &str, scheme: &str, x: &str, share: f64, times: f64) -> [Row; 3] {
        [
            row(figure, scheme, x, "hadoop_gbps", share),
            row(figure, scheme, x, "ptp_us_rms", 10.0 * times),
            row(figure, scheme, x, "memcached_us_rms", 50.0 * times),
        ]
    }

    fn ecn(rows: &[Row]) -> Vec<f64> {
        let schemes = schemes(&Measured { study: study("qjump-kernel"), rows, base: "kernel" });
        let of_ecn = schemes.iter().filter(|row| row.figure == "fig7" && row.series == "ECN");
        of_ecn.map(|row| row.measured).collect()
    }

    #[test]
    fn ecn_has_its_best_setting_once_all_are_measured() {
        let mut rows = Vec::from(applications("apps", "ideal", "shared", 1.0, 1.0));
        rows.extend(applications("apps", "hadoop", "shared", 1.0, 1.0));
        rows.extend(applications("apps", "ECN", "shared", 0.5, 3.0));
        assert_eq!(ecn(&rows), [2.0, 3.0, 3.0]);
        for (number, x) in study("qjump-kernel").xs("fig7-wred").enumerate() {
            assert_eq!(ecn(&rows), [2.0, 3.0, 3.0], "{x} is missing");
            // The fourth is the best: less is better than none, and more than needed is no gain.
            let times = if number == 3 { 1.5 } else { 2.0 + number as f64 };
            rows.extend(applications("fig7-wred", "ECN", x, 0.8, times));
        }
        assert_eq!(ecn(&rows), [1.25, 1.5, 1.5]);
        let schemes = schemes(&Measured { study: study("qjump-kernel"), rows: &rows, base: "kernel" });
        let best = schemes.iter().find(|row| row.metric == "wred_min").unwrap();
        assert_eq!(best.measured, 40.0);
    }

    #[test]
    fn commits_are_compared_with_those_beside_no_bursts() {
        let rows = [
            row("fig6", "QJump", "0", "commits_per_s", 50.0),
            row("fig6", "QJump", "1.5", "commits_per_s", 49.0),
            row("fig6", "TCP", "1.5", "commits_per_s", 9.0),
        ];
        let shares = beside_idle(&Measured { study: study("qjump-kernel"), rows: &rows, base: "kernel" });
        assert_eq!(shares.len(), 1, "TCP lacks its run without bursts");
        assert_eq!(
            (shares[0].measured, shares[0].published, shares[0].within),
            (0.98, Some(1.0), Some(true))
        );
    }
}
