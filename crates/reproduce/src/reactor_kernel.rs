//! What `studies/reactor-kernel` computes beyond its figures.

use crate::published::Kind;
use crate::row::Row;
use crate::study::Study;

/// The week of the control loop and the lead of its readings, in ms, as the study's scenarios have them.
const WEEK_AND_LEAD_MS: f64 = 15.0 + 4.0;

/// Computes by how much the longest reaction exceeds a week and its lead, and by how much the parts of a flow's
/// circuits differ from those of the demand.
pub(crate) fn claims(study: &Study, rows: &[Row]) -> Vec<Row> {
    let mut claims = Vec::new();
    for longest in rows.iter().filter(|row| row.figure == "reaction" && row.metric == "reaction_ms_max") {
        let mut claim =
            Row::new("claims", &longest.base, &longest.series, &longest.x, "over_week_and_lead_ms", "ms");
        claim.measured = longest.measured - WEEK_AND_LEAD_MS;
        claim.suspect = longest.suspect;
        claims.push(held(study, claim));
    }
    for (x, metrics, parts) in [
        ("equal", ["mbps_h1_equal", "mbps_h2_equal", "mbps_h3_equal"], [1.0, 1.0, 1.0]),
        (
            "in proportion",
            ["mbps_h1_proportion", "mbps_h2_proportion", "mbps_h3_proportion"],
            [1.0, 2.0, 4.0],
        ),
    ] {
        for first in rows.iter().filter(|row| row.figure == "fig7.9" && row.metric == metrics[0]) {
            let of = |metric: &str| {
                let same =
                    |row: &&Row| (&row.base, &row.series, &row.x) == (&first.base, &first.series, &first.x);
                rows.iter().filter(same).find(|row| row.metric == metric)
            };
            let found: Vec<&Row> = metrics.iter().filter_map(|metric| of(metric)).collect();
            let all: f64 = found.iter().map(|row| row.measured).sum();
            let whole: f64 = parts.iter().sum();
            let off =
                found.iter().zip(parts).map(|(row, part)| (row.measured / all / (part / whole) - 1.0).abs());
            let mut claim = Row::new("claims", &first.base, &first.series, x, "off_share_percent", "%");
            claim.measured = 100.0 * off.fold(0.0, f64::max);
            claim.suspect = found.iter().any(|row| row.suspect);
            claims.push(held(study, claim));
        }
    }
    claims
}

/// Returns the claim beside the thesis's, if it is the kernel's.
fn held(study: &Study, claim: Row) -> Row {
    let said = study.published.value(Kind::AtMost, "claims", &claim.series, &claim.x, &claim.metric);
    let published = said.filter(|_| claim.base == "kernel");
    let mut claim = claim.compare(published, None, None);
    claim.within = published.map(|published| claim.measured <= published);
    claim
}
