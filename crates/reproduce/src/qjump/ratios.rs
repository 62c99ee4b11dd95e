//! What the testbed's rows say together: Fig. 7's ranking, ratios to the application alone, claims.

use crate::row::Row;
use crate::study::Study;

pub(super) fn rows(study: &Study, rows: &[Row]) -> Vec<Row> {
    let rows = Rows(rows);
    let mut summary = ranking(study, &rows);
    summary.extend(ranking_with_hosts(&rows));
    summary.extend(ranking_by_fetch(study, &rows));
    summary.extend(pings_with_hosts(&rows));
    summary.extend(ratios(&rows, "fig3b", "memcached"));
    summary.extend(ratios(&rows, "fig3b-hosts", "memcached with the hosts' time"));
    summary.extend(ratios(&rows, "fig3c", "barrier"));
    summary.extend(beside_idle(study, &rows, "fig6", &["TCP", "UDP", "QJump"]));
    summary.extend(beside_idle(study, &rows, "fig6-bursts", &["TCP", "UDP", "UDP,bytes", "QJump"]));
    summary.extend(claims(study, &rows));
    summary
}

/// The rows of the source base.
struct Rows<'a>(&'a [Row]);

impl Rows<'_> {
    fn find(&self, figure: &str, series: &str, x: &str, metric: &str) -> Option<&Row> {
        let is = |row: &&Row| {
            (row.base.as_str(), row.figure.as_str(), row.series.as_str()) == ("source", figure, series)
                && (row.x.as_str(), row.metric.as_str()) == (x, metric)
        };
        self.0.iter().find(is)
    }

    fn measured(&self, figure: &str, series: &str, x: &str, metric: &str) -> Option<f64> {
        self.find(figure, series, x, metric).map(|row| row.measured)
    }
}

/// Fig. 7's applications, and the metric of each.
const APPLICATIONS: &[(&str, &str)] =
    &[("hadoop", "hadoop_gbps"), ("ptpd", "ptp_us_rms"), ("memcached", "memcached_us_rms")];

/// Fig. 7's schemes, and the variant that runs each.
const SCHEMES: &[(&str, &str)] =
    &[("contended", "TCP"), ("EFC", "EFC"), ("ECN", "ECN"), ("DCTCP", "DCTCP"), ("QJump", "QJump")];

/// Divides a row by the application's alone in the figure `apps` at `x`; of a job's throughput the inverse counts, as
/// its runtime does.
fn over_ideal(rows: &Rows<'_>, (apps, x): (&str, &str), application: &str, row: &Row) -> Option<Row> {
    let metric = &row.metric;
    let alone = if application == "hadoop" { "hadoop" } else { "ideal" };
    let ideal = rows.measured(apps, alone, x, metric)?;
    let mut over = Row::new("fig7", "source", "", application, "rms_over_ideal", "x ideal");
    if application == "hadoop" {
        over.measured = ideal / row.measured;
    } else {
        over.measured = row.measured / ideal;
        over.ci = row.ci.map(|(low, high)| (low / ideal, high / ideal));
    }
    Some(over)
}

/// Computes Fig. 7: five ways to share the testbed, ECN with the best of its settings.
fn ranking(study: &Study, rows: &Rows<'_>) -> Vec<Row> {
    let of = |figure: &str, series: &str, x: &str, application: &(&str, &str)| {
        let row = rows.find(figure, series, x, application.1)?;
        over_ideal(rows, ("apps", "shared"), application.0, row)
    };
    // The smallest product of the three.
    let cost = |x: &str| -> Option<f64> {
        let all = APPLICATIONS.iter().map(|application| of("fig7-wred", "ECN", x, application));
        all.map(|row| Some(row?.measured.max(1.0))).product()
    };
    let settings = study.xs("fig7-wred").filter_map(|x| Some((x, cost(x)?)));
    let best = settings.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(x, _)| x);
    let schemes = [
        ("contended", Some(("apps", "TCP", "shared"))),
        ("EFC", Some(("apps", "EFC", "shared"))),
        ("ECN", best.map(|x| ("fig7-wred", "ECN", x))),
        ("DCTCP", Some(("apps", "DCTCP", "shared"))),
        ("QJump", Some(("apps", "QJump", "shared"))),
    ];
    let mut ranking = Vec::new();
    for application in APPLICATIONS {
        for (column, run) in schemes {
            let Some((figure, series, x)) = run else { continue };
            let Some(mut row) = of(figure, series, x, application) else { continue };
            column.clone_into(&mut row.series);
            ranking.push(study.published.beside(row, None));
        }
    }
    if let Some(best) = best {
        let mut row = Row::new("claims-testbed", "source", "ECN", "best of ten", "wred_min", "segments");
        row.measured = best.parse().unwrap_or(f64::NAN);
        ranking.push(study.published.beside(row, None));
    }
    ranking
}

/// Computes Fig. 7's clocks and requests where memcached has the hosts' own time and the job never pauses.
fn ranking_with_hosts(rows: &Rows<'_>) -> Vec<Row> {
    let (figure, x) = ("apps-hosts", "512 KB a port");
    let applications = [
        ("ptpd", "ptp_us_rms"),
        ("memcached", "memcached_us_rms"),
        ("memcached in time", "memcached_us_rms_in_time"),
    ];
    let mut ranking = Vec::new();
    for (application, metric) in applications {
        for &(series, run) in SCHEMES {
            let Some(row) = rows.find(figure, run, x, metric) else { continue };
            let Some(mut row) = over_ideal(rows, (figure, x), application, row) else { continue };
            (row.figure, row.series) = ("fig7-hosts".to_owned(), series.to_owned());
            ranking.push(row);
        }
    }
    ranking
}

/// Computes Fig. 7's Hadoop where it never pauses, by the size of what a reducer fetches at a time.
fn ranking_by_fetch(study: &Study, rows: &Rows<'_>) -> Vec<Row> {
    let figure = "apps-fetches";
    let mut ranking = Vec::new();
    for x in study.xs(figure) {
        for &(series, run) in SCHEMES {
            let Some(row) = rows.find(figure, run, x, "hadoop_gbps") else { continue };
            let Some(mut row) = over_ideal(rows, (figure, x), "hadoop", row) else { continue };
            (row.figure, row.series) = ("fig7-fetches".to_owned(), series.to_owned());
            x.clone_into(&mut row.x);
            ranking.push(row);
        }
    }
    ranking
}

/// Computes Table 1's 99th percentiles as the published one of the idle path and what ours has above its own.
fn pings_with_hosts(rows: &Rows<'_>) -> Vec<Row> {
    let at = |x: &str| rows.find("table1", "TCP", x, "rtt_us_p99");
    let Some((idle, published)) = at("idle").and_then(|row| Some((row.measured, row.published?))) else {
        return Vec::new();
    };
    let above = |x: &str| {
        let mut row = Row::new("table1-hosts", "source", "TCP", x, "rtt_us_p99", "us");
        row.measured = published + at(x)?.measured - idle;
        Some(row)
    };
    ["shared switch", "shared source", "shared destination", "shared both"]
        .into_iter()
        .filter_map(above)
        .collect()
}

/// Computes a distribution over the same application's alone. With QJump it is the application's alone; how much it
/// suffers without depends on how hard, and where, the job pushes.
fn ratios(rows: &Rows<'_>, figure: &str, id: &str) -> Vec<Row> {
    let mut ratios = Vec::new();
    for series in ["+Hadoop", "+Hadoop,QJump"] {
        for x in ["50", "90", "95", "99"] {
            let find = |series| rows.find(figure, series, x, "latency_us");
            let (Some(alone), Some(other)) = (find("alone"), find(series)) else { continue };
            let mut row = Row::new("ratios", "source", series, &format!("{id} p{x}"), "over_alone", "x");
            row.measured = other.measured / alone.measured;
            row.ci = other.ci.map(|(low, high)| (low / alone.measured, high / alone.measured));
            let published = other.published.zip(alone.published).map(|(other, alone)| other / alone);
            let tolerance = (series == "+Hadoop,QJump").then_some(1.2);
            ratios.push(row.compare(published, None, tolerance));
        }
    }
    ratios
}

/// Computes a figure of commits over itself without bursts.
fn beside_idle(study: &Study, rows: &Rows<'_>, figure: &str, series: &[&str]) -> Vec<Row> {
    let mut shares = Vec::new();
    for &series in series {
        let at = |x: &str| rows.measured(figure, series, x, "commits_per_s");
        let Some(idle) = at("0.01") else { continue };
        for x in ["0.3", "0.6", "0.9", "1", "1.1", "1.5", "2"] {
            let Some(measured) = at(x) else { continue };
            let share = format!("{figure}-share");
            let mut row = Row::new(&share, "source", series, x, "commits_over_idle", "x idle");
            row.measured = measured / idle;
            // The claim is that bursts do not matter to QJump.
            shares.push(study.published.beside(row, (series == "QJump").then_some(1.06)));
        }
    }
    shares
}

fn claims(study: &Study, rows: &Rows<'_>) -> Vec<Row> {
    let claim = |series: &str, x: &str, metric: &str, unit: &str, measured: Option<f64>| {
        let mut row = Row::new("claims-testbed", "source", series, x, metric, unit);
        row.measured = measured?;
        Some(study.published.beside(row, None))
    };
    let ratio = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
    let ping = |series: &str| rows.measured("fig3a", series, "99", "latency_us");
    let mut jump =
        claim("QJump", "ping", "times_shorter_p99", "x", ratio(ping("+iperf"), ping("+iperf,QJump")));
    if let Some(row) = &mut jump {
        row.within = Some(row.measured > 300.0);
    }
    let rtt = |x: &str| rows.measured("table1", "TCP", x, "rtt_us_p50");
    let queue = ratio(rtt("shared queue"), rtt("idle"));
    let longest = |figure: &str, x: &str| {
        let of = |series: &str| rows.measured(figure, series, x, "memcached_us_max");
        ratio(of("TCP"), of("ideal"))
    };
    let longest_with_hosts = longest("apps-longest-hosts", "512 KB a port");
    let longest = longest("apps-longest", "waves of transfers");
    let offset = rows.measured("apps", "TCP", "shared", "ptp_us_max");
    let rate = |x: &str| rows.measured("fig10", "QJump", x, "requests_per_s");
    let highest = ["3.75", "4.5", "5", "7.5", "10"].iter().filter_map(|x| rate(x)).reduce(f64::max);
    [
        jump,
        claim("TCP", "ping", "shared_queue_over_idle", "x", queue),
        claim("TCP", "ptp", "largest_offset", "us", offset),
        claim("TCP", "memcached", "longest_over_alone", "x", longest),
        claim("TCP", "memcached with the hosts' time", "longest_over_alone", "x", longest_with_hosts),
        claim("QJump", "memcached", "throughput_at_5_over_best", "x", ratio(rate("5"), highest)),
    ]
    .into_iter()
    .flatten()
    .collect()
}
