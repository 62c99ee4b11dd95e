//! What `studies/reactor-kernel` computes beyond its figures: what the thesis says of them.

use crate::published::Kind;
use crate::row::Row;
use crate::study::Study;

/// The week of the control loop and the lead of its readings, in ms, as the study's scenarios have them.
const WEEK_AND_LEAD_MS: f64 = 15.0 + 4.0;

/// The most that a host sends by a circuit, in Mb/s: its link's rate less the packet switch's, as both meet at the
/// receiver's link.
const CIRCUIT_MBPS: f64 = 200.0 - 20.0;

/// How far shares of the circuits may be from those of the demand, as a factor.
const SHARES: f64 = 1.15;
/// How far a flow alone may be from a full circuit.
const FULL: f64 = 1.02;

/// Computes by how much the longest reaction exceeds a week and its lead, the shares of the circuits, and what a
/// promotion does to transfers. Only what the kernel did is held to the thesis.
pub(crate) fn claims(study: &Study, rows: &[Row]) -> Vec<Row> {
    let mut claims = Vec::new();
    for base in study.bases {
        let of_base: Vec<&Row> = rows.iter().filter(|row| row.base == base.name()).collect();
        claims.extend(beyond(&of_base));
        let schedule = find(&of_base, "schedule", "solstice", "8", "schedule_us_p50");
        claims.extend(schedule.map(|row| {
            let mut claim = like(row, "8 hosts", "schedule_us_p50", "us");
            claim.measured = row.measured;
            bounded(study, claim)
        }));
        claims.extend(shares(study, &of_base));
        claims.extend(promotion(study, &of_base));
    }
    claims
}

/// Computes by how much the longest reaction exceeds a week and its lead.
fn beyond(rows: &[&Row]) -> Option<Row> {
    let longest = find(rows, "reaction", "loop", "15", "reaction_ms_max")?;
    let mut claim = like(longest, "15", "over_week_and_lead_ms", "ms");
    claim.measured = longest.measured - WEEK_AND_LEAD_MS;
    Some(claim)
}

/// Computes how full the circuit of a flow alone is, and the share of the circuits that each receiver of several has.
fn shares(study: &Study, rows: &[&Row]) -> Vec<Row> {
    let rate = |name: &str| find(rows, "fig7.9", "solstice", "15", name);
    let alone = rate("mbps_h1_alone").map(|alone| {
        let mut claim = like(alone, "one flow", "of_circuit_percent", "%");
        claim.measured = 100.0 * alone.measured / CIRCUIT_MBPS;
        about(study, claim, FULL)
    });
    let mut claims: Vec<Row> = alone.into_iter().collect();
    for (x, end) in [("equal", "equal"), ("in proportion", "proportion")] {
        let hosts = ["h1", "h2", "h3"];
        let of_hosts: Vec<_> = hosts.iter().filter_map(|host| rate(&format!("mbps_{host}_{end}"))).collect();
        let all: f64 = of_hosts.iter().map(|row| row.measured).sum();
        let is_suspect = of_hosts.iter().any(|row| row.suspect);
        claims.extend(hosts.iter().zip(of_hosts).map(|(host, row)| {
            let mut claim = like(row, x, &format!("share_percent_{host}"), "%");
            claim.measured = 100.0 * row.measured / all;
            claim.suspect = is_suspect;
            about(study, claim, SHARES)
        }));
    }
    claims
}

/// Computes what a promotion costs transfers by CUBIC and by MPTCP, and the time of the second beside the first.
fn promotion(study: &Study, rows: &[&Row]) -> Vec<Row> {
    let mut claims = Vec::new();
    for time in rows.iter().filter(|row| row.figure == "fig7.6" && row.metric == "transfer_ms") {
        if !["cubic", "mptcp"].contains(&time.series.as_str()) {
            continue;
        }
        for (metric, unit) in [("retransmissions", "segments"), ("cuts", "")] {
            claims.extend(find(rows, "fig7.6", &time.series, &time.x, metric).map(|row| {
                let mut claim = like(row, &row.x, metric, unit);
                claim.measured = row.measured;
                bounded(study, claim)
            }));
        }
        let cubic = find(rows, "fig7.6", "cubic", &time.x, "transfer_ms");
        claims.extend(cubic.filter(|_| time.series == "mptcp").map(|cubic| {
            let mut claim = like(time, &time.x, "of_cubic_time", "x");
            claim.measured = time.measured / cubic.measured;
            claim.suspect |= cubic.suspect;
            bounded(study, claim)
        }));
    }
    claims
}

fn find<'a>(rows: &[&'a Row], figure: &str, series: &str, x: &str, metric: &str) -> Option<&'a Row> {
    let is_it =
        |row: &&&Row| row.figure == figure && row.series == series && row.x == x && row.metric == metric;
    rows.iter().find(is_it).copied()
}

/// Returns a claim of the base and the scheme of a row, as suspect as the row.
fn like(row: &Row, x: &str, metric: &str, unit: &str) -> Row {
    let mut claim = Row::new("claims", &row.base, &row.series, x, metric, unit);
    claim.suspect = row.suspect;
    claim
}

/// Returns the claim beside the thesis's number, if it is the kernel's.
fn about(study: &Study, claim: Row, tolerance: f64) -> Row {
    let said = study.published.value(Kind::About, "claims", &claim.series, &claim.x, &claim.metric);
    let said = said.filter(|_| claim.base == "kernel");
    claim.compare(said, None, Some(tolerance))
}

/// Returns the claim beside what the thesis says that it is at least or at most, if it is the kernel's.
fn bounded(study: &Study, claim: Row) -> Row {
    let value = |kind| {
        let said = study.published.value(kind, "claims", &claim.series, &claim.x, &claim.metric);
        said.filter(|_| claim.base == "kernel")
    };
    let (least, most) = (value(Kind::AtLeast), value(Kind::AtMost));
    let mut claim = claim.compare(least.or(most), None, None);
    claim.within =
        least.map(|least| claim.measured >= least).or_else(|| most.map(|most| claim.measured <= most));
    claim
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::REACTOR_KERNEL;

    fn row(base: &str, figure: &str, series: &str, x: &str, metric: &str, measured: f64) -> Row {
        let mut row = Row::new(figure, base, series, x, metric, "");
        row.measured = measured;
        row
    }

    #[test]
    fn claims_are_held_to_the_thesis_where_they_are_the_kernels() {
        let mut rows = Vec::new();
        for base in ["kernel", "simulated"] {
            rows.push(row(base, "reaction", "loop", "15", "reaction_ms_max", 19.25));
            rows.push(row(base, "fig7.9", "solstice", "15", "mbps_h1_alone", 171.0));
            for (host, mbps) in [("h1", 20.0), ("h2", 50.0), ("h3", 90.0)] {
                rows.push(row(base, "fig7.9", "solstice", "15", &format!("mbps_{host}_proportion"), mbps));
            }
            for (series, ms, again, cuts) in [("cubic", 1_000.0, 20.0, 0.4), ("mptcp", 900.0, 3.0, 0.0)] {
                for (metric, value) in [("transfer_ms", ms), ("retransmissions", again), ("cuts", cuts)] {
                    rows.push(row(base, "fig7.6", series, "20", metric, value));
                }
            }
        }
        let claims = claims(&REACTOR_KERNEL, &rows);
        let told = |base: &str| {
            let of_base = claims.iter().filter(|claim| claim.base == base);
            let told = |claim: &Row| (claim.metric.clone(), (10.0 * claim.measured).round(), claim.within);
            of_base.map(told).collect::<Vec<_>>()
        };
        let expected = [
            ("over_week_and_lead_ms", 3.0, None),
            ("of_circuit_percent", 950.0, Some(false)),
            ("share_percent_h1", 125.0, Some(true)),
            ("share_percent_h2", 313.0, Some(true)),
            ("share_percent_h3", 563.0, Some(true)),
            ("retransmissions", 200.0, Some(true)),
            ("cuts", 4.0, Some(false)),
            ("retransmissions", 30.0, None),
            ("cuts", 0.0, Some(true)),
            ("of_cubic_time", 9.0, Some(true)),
        ];
        let expected = expected.map(|(metric, tenths, within)| (metric.to_owned(), tenths, within));
        assert_eq!(told("kernel"), expected);
        assert_eq!(told("simulated"), expected.map(|(metric, tenths, _)| (metric, tenths, None)));
    }
}
