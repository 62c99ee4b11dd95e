//! What the thesis says of the control loop and of transfers that change switches, as ratios and differences of rows.
//!
//! ```text
//! share                       = circuits to a host / circuits to all hosts (Fig. 7.9)
//! over_cubic                  = time of the transfer / that of CUBIC's (Figs 7.4 to 7.8)
//! added_ms                    = time of a reply - that by the packet switch (7.5)
//! over_packet_switch          = time of a reply, or of the job, / that by the packet switch (7.5, Fig. 7.10)
//! over_alone                  = time of a datagram / that without the demoted flows (7.3.4)
//! known_over_*, sent_over_*   = what an estimator knows, and how much of it is sent in its week, / another's
//!                               (Fig. 7.2)
//! ```

use crate::row::Row;

/// A claim of the page that is computed of rows: its series, x, metric, unit and number.
pub(super) struct Claim {
    pub(super) series: String,
    pub(super) x: String,
    pub(super) metric: &'static str,
    pub(super) unit: &'static str,
    pub(super) measured: f64,
}

/// How a number is made of a row and another of its figure.
#[derive(Clone, Copy)]
enum Of {
    /// The row's own number.
    Own,
    /// The row's number over the other's.
    Over,
    /// The row's number less the other's.
    Less,
}

/// A rule: the figure, series and metric of the row, what it is compared with, and the claim's metric and unit.
struct Rule {
    figure: &'static str,
    series: &'static str,
    metric: &'static str,
    of: Of,
    with: &'static str,
    claim: &'static str,
    unit: &'static str,
}

const fn rule(
    [figure, series, metric]: [&'static str; 3],
    of: Of,
    with: &'static str,
    [claim, unit]: [&'static str; 2],
) -> Rule {
    Rule { figure, series, metric, of, with, claim, unit }
}

/// The rules; several may be of one row.
const RULES: &[Rule] = &[
    rule(["promotion", "cubic", "retransmissions"], Of::Own, "", ["retransmissions", "segments"]),
    rule(["promotion", "cubic", "window_cuts"], Of::Own, "", ["window_cuts", "cuts"]),
    rule(["promotion", "mptcp", "window_cuts"], Of::Own, "", ["window_cuts", "cuts"]),
    rule(["promotion", "mptcp", "transfer_ms"], Of::Over, "cubic", ["over_cubic", "x"]),
    rule(["promotion", "threshold-300", "transfer_ms"], Of::Over, "cubic", ["over_cubic", "x"]),
    rule(["promotion", "no-fast-retransmit", "transfer_ms"], Of::Over, "cubic", ["over_cubic", "x"]),
    rule(["promotion", "reorder-buffer", "transfer_ms"], Of::Over, "cubic", ["over_cubic", "x"]),
    rule(["demotion", "free", "victim_us"], Of::Over, "alone", ["over_alone", "x"]),
    rule(["demotion", "scheduled", "victim_us"], Of::Over, "alone", ["over_alone", "x"]),
    rule(["demotion", "free-windows-kept", "victim_us"], Of::Over, "alone", ["over_alone", "x"]),
    rule(["demotion", "scheduled-windows-kept", "victim_us"], Of::Over, "alone", ["over_alone", "x"]),
    rule(["requests", "circuit", "reply_ms"], Of::Less, "packet-switch", ["added_ms", "ms"]),
    rule(
        ["requests-beside-files", "circuit-beside-files", "reply_ms"],
        Of::Less,
        "packet-switch-beside-files",
        ["added_ms", "ms"],
    ),
    rule(["requests", "either", "reply_ms"], Of::Over, "packet-switch", ["over_packet_switch", "x"]),
    rule(["fig7.10", "mptcp", "job_ms"], Of::Over, "packet-switch-10G", ["over_packet_switch", "x"]),
    rule(["fig7.10", "cubic", "job_ms"], Of::Over, "packet-switch-10G", ["over_packet_switch", "x"]),
    rule(["fig7.10", "without-nights", "job_ms"], Of::Over, "packet-switch-10G", ["over_packet_switch", "x"]),
    rule(["fig7.10", "half-share", "job_ms"], Of::Over, "packet-switch-10G", ["over_packet_switch", "x"]),
    rule(
        ["fig7.10", "half-share-without-nights", "job_ms"],
        Of::Over,
        "packet-switch-10G",
        ["over_packet_switch", "x"],
    ),
    rule(["fig7.10", "mptcp", "circuits_filled"], Of::Own, "", ["circuits_filled", "%"]),
    rule(
        ["estimators", "socket-buffers", "known_kb"],
        Of::Over,
        "nic-queues",
        ["known_over_nic_queues", "x"],
    ),
    rule(
        ["estimators", "send-calls", "known_kb"],
        Of::Over,
        "socket-buffers",
        ["known_over_socket_buffers", "x"],
    ),
    rule(
        ["estimators", "nic-queues", "known_sent"],
        Of::Over,
        "socket-buffers",
        ["sent_over_socket_buffers", "x"],
    ),
    rule(
        ["estimators", "socket-buffers", "known_sent"],
        Of::Over,
        "send-calls",
        ["sent_over_send_calls", "x"],
    ),
    rule(["hints", "cubic-hints", "known_kb"], Of::Over, "cubic", ["known_over_socket_buffers", "x"]),
    rule(["hints", "cubic", "known_sent"], Of::Over, "cubic-hints", ["sent_over_hints", "x"]),
];

/// Computes the claims of `row`, which is one of `rows`.
pub(super) fn claims(rows: &[Row], row: &Row) -> Vec<Claim> {
    let is_of = |rule: &&Rule| {
        (row.figure.as_str(), row.series.as_str(), row.metric.as_str())
            == (rule.figure, rule.series, rule.metric)
    };
    let by_rule = RULES.iter().filter(is_of).filter_map(|rule| {
        let other = || rows.iter().find(|other| is_beside(row, other, rule.with)).map(|row| row.measured);
        let measured = match rule.of {
            Of::Own => row.measured,
            Of::Over => row.measured / other()?,
            Of::Less => row.measured - other()?,
        };
        let (series, x) = (row.series.clone(), row.x.clone());
        Some(Claim { series, x, metric: rule.claim, unit: rule.unit, measured })
    });
    by_rule.chain(share(rows, row)).collect()
}

/// Returns whether `other` is `row`'s number at the same point of the figure, of another series.
fn is_beside(row: &Row, other: &Row, series: &str) -> bool {
    (&other.figure, &other.base, &other.metric, &other.x) == (&row.figure, &row.base, &row.metric, &row.x)
        && other.series == series
}

/// Computes a host's share of the circuits of Fig. 7.9.
fn share(rows: &[Row], row: &Row) -> Option<Claim> {
    let host = row.metric.strip_prefix("circuit_percent_").filter(|_| row.figure == "fig7.9")?;
    let to_all = rows.iter().filter(|other| {
        (&other.figure, &other.base, &other.series, &other.x) == (&row.figure, &row.base, &row.series, &row.x)
    });
    let measured = row.measured / to_all.map(|other| other.measured).sum::<f64>();
    let (series, x) = (row.series.clone(), host.to_owned());
    (measured > 0.0).then_some(Claim { series, x, metric: "share", unit: "x", measured })
}
