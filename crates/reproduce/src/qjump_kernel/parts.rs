//! Fig. 3a: what a ping's hosts take, which is as long at any rate, and what the network takes, which goes by the rate.
//!
//! ```text
//! round trip = host + network / rate               from 20 and 50 Mb/s; 100 and 200 Mb/s are predicted
//! one way    = round trip - host - network of a ping alone / (2 x rate)    the way back is through an idle port
//! ```

use super::ratios::Measured;
use crate::row::Row;

/// The two rates that the parts follow from, in Mb/s, and those at which they predict a round trip.
const FROM: [(&str, f64); 2] = [("20", 20.0), ("50", 50.0)];
const PREDICTED: [(&str, f64); 2] = [("100", 100.0), ("200", 200.0)];

/// A round trip in us: `host`, and `network` over the rate in Mb/s.
#[derive(Clone, Copy)]
struct Line {
    host: f64,
    network: f64,
}

impl Line {
    fn through([(x1, y1), (x2, y2)]: [(f64, f64); 2]) -> Line {
        let network = (y1 - y2) / (1.0 / x1 - 1.0 / x2);
        Line { host: y1 - network / x1, network }
    }

    fn at(self, rate: f64) -> f64 {
        self.host + self.network / rate
    }
}

/// The round trips that a line goes through: the scheme, the percentile, and the rates that are predicted.
const LINES: [(&str, &str, usize); 3] =
    [("alone", "p50", 2), ("+iperf,QJump", "p50", 1), ("+iperf,QJump", "p99", 1)];

pub(super) fn parts(of: &Measured<'_>) -> Vec<Row> {
    let ping = |series: &str, x: &str, metric: &str| of.find("fig3a", series, x, &format!("rtt_us_{metric}"));
    let row = |series: &str, x: &str, metric: String, unit: &str, measured: f64| Row {
        measured,
        ..Row::new("parts", of.base, series, x, &metric, unit)
    };
    let line = |series: &str, metric: &str| {
        let [slow, fast] = FROM.map(|(x, rate)| Some((rate, ping(series, x, metric)?.measured)));
        Some(Line::through([slow?, fast?]))
    };
    let mut rows = Vec::new();
    for (series, metric, predicted) in LINES {
        let Some(line) = line(series, metric) else { continue };
        let from = "20 and 50 Mb/s";
        rows.push(row(series, from, format!("host_us_{metric}"), "us", line.host));
        rows.push(row(series, from, format!("network_us_mbps_{metric}"), "us x Mb/s", line.network));
        for (x, rate) in &PREDICTED[..predicted] {
            rows.push(row(
                series,
                &format!("{x} Mb/s"),
                format!("predicted_us_{metric}"),
                "us",
                line.at(*rate),
            ));
        }
    }
    let Some(alone) = line("alone", "p50") else { return rows };
    for (series, metric, _) in &LINES[..2] {
        let Some(own) = line(series, metric) else { continue };
        for (x, rate) in FROM.into_iter().chain([PREDICTED[0]]) {
            let Some(found) = ping(series, x, metric) else { continue };
            let one_way = |us: f64| us - own.host - alone.network / (2.0 * rate);
            let name = format!("one_way_us_{metric}");
            let mut row = row(series, &format!("{x} Mb/s"), name, "us", one_way(found.measured));
            row.suspect = found.suspect;
            row.ci = found.ci.map(|(low, high)| (one_way(low), one_way(high)));
            rows.push(row);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rates_tell_the_hosts_from_the_network() {
        let line = Line::through([(20.0, 2250.0), (50.0, 1260.0)]);
        assert!((line.host - 600.0).abs() < 1e-9 && (line.network - 33_000.0).abs() < 1e-6);
        assert!((line.at(100.0) - 930.0).abs() < 1e-9);
    }
}
