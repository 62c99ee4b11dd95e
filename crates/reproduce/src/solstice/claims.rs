//! What the abstract says, from the rows.

use crate::published::Kind;
use crate::row::Row;
use crate::study::Study;

use super::tasks::SWITCHING;

/// Computes how much better Solstice uses the circuits than the traditional schedulers, and how far it is from the best
/// schedule at most.
pub(crate) fn claims(study: &Study, rows: &[Row]) -> Vec<Row> {
    let find = |base: &str, series: &str, x: &str, metric: &str| {
        let is = |row: &&Row| {
            row.figure == "fig4"
                && (row.base.as_str(), row.series.as_str()) == (base, series)
                && (row.x.as_str(), row.metric.as_str()) == (x, metric)
        };
        rows.iter().find(is).map(|row| row.measured)
    };
    let mut claims = Vec::new();
    for base in ["source", "standard"] {
        for series in ["BvN", "iSLIP"] {
            let of = |series| find(base, series, "64", "circuit_util_pct");
            if let (Some(solstice), Some(other)) = (of("Solstice"), of(series)) {
                let metric = format!("circuit_util_of_{series}");
                let mut row = Row::new("claims", base, "Solstice", "64", &metric, "x");
                row.measured = solstice / other;
                claims.push(held(study, row));
            }
        }
        for x in study.xs("fig4") {
            if base == "source" {
                claims.extend(shape(study, x, &find));
            }
            if let Some(times) = find(base, "Solstice", x, "times_lb_f") {
                let mut row = Row::new("claims", base, "Solstice", x, "over_optimum_at_most_pct", "%");
                row.measured = 100.0 * (times - 1.0);
                claims.push(held(study, row));
            }
        }
    }
    claims
}

/// Computes what the numbers of Fig. 4 imply, ours and the published ones: how long circuits are lit, which is the time
/// less a night a configuration, and how much of a port's demand they carry, in ms of its circuit.
fn shape<'a>(
    study: &'a Study,
    x: &'a str,
    measured: &'a dyn Fn(&str, &str, &str, &str) -> Option<f64>,
) -> impl Iterator<Item = Row> + 'a {
    let of = move |prefix: &str, series: &str, value: &dyn Fn(&str) -> Option<f64>| {
        let all = ["schedule_time_ms", "configurations", "circuit_util_pct"].map(value);
        let [Some(time), Some(configurations), Some(use_pct)] = all else { return Vec::new() };
        let night = SWITCHING.night.as_ms_f64();
        let implied = [
            ("days_ms", time - configurations * night),
            ("by_circuits_ms", use_pct / 100.0 * time.max(SWITCHING.window.as_ms_f64())),
        ];
        let row = |(metric, value)| {
            let mut row = Row::new("shape", "source", series, x, &format!("{prefix}{metric}"), "ms");
            row.measured = value;
            row
        };
        implied.into_iter().map(row).collect()
    };
    ["Solstice", "BvN", "iSLIP"]
        .into_iter()
        .flat_map(move |series| {
            let published = |metric: &str| study.published.value(Kind::About, "fig4", series, x, metric);
            // Ours only where there is something beside it.
            published("configurations")?;
            let mut rows = of("", series, &|metric| measured("source", series, x, metric));
            rows.extend(of("published_", series, &published));
            Some(rows)
        })
        .flatten()
}

/// Returns a row beside the number or the bound that the text has for it; the standard base is held to nothing.
fn held(study: &Study, row: Row) -> Row {
    let [about, most] = [Kind::About, Kind::AtMost].map(|kind| study.published.of(kind, &row));
    let is_held = row.base == "source";
    let mut row = row.compare(about.or(most), None, about.filter(|_| is_held).map(|_| ABOUT));
    if let Some(most) = most.filter(|_| is_held) {
        row.within = Some(row.measured <= most);
    }
    row
}

/// How close a ratio of the abstract must be: two utilisations that are each held to 10 %.
const ABOUT: f64 = 1.2;
