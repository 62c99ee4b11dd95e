//! Fig. 3a: what a ping's hosts take, which is as long at any rate, and what the network takes, which goes by the rate.
//!
//! ```text
//! round trip alone = host + network / rate         from 20 and 50 Mb/s; 100 and 200 Mb/s are predicted
//! one way          = round trip - host - network / (2 x rate)              the way back is through an idle port
//! ```

use super::ratios::Measured;
use crate::row::Row;

/// The two rates that the parts follow from, in Mb/s, and those at which they predict a round trip.
const FROM: [(&str, f64); 2] = [("20", 20.0), ("50", 50.0)];
const PREDICTED: [(&str, f64); 2] = [("100", 100.0), ("200", 200.0)];

/// A round trip alone in us: `host`, and `network` over the rate in Mb/s.
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

pub(super) fn parts(of: &Measured<'_>) -> Vec<Row> {
    let alone = |rate: &str, metric: &str| of.find("fig3a", "alone", rate, metric);
    let [slow, fast] = FROM.map(|(x, rate)| Some((rate, alone(x, "rtt_us_p50")?.measured)));
    let (Some(slow), Some(fast)) = (slow, fast) else { return Vec::new() };
    let line = Line::through([slow, fast]);
    let row = |series: &str, x: &str, metric: &str, unit: &str, measured: f64| Row {
        measured,
        ..Row::new("parts", of.base, series, x, metric, unit)
    };
    let mut rows = vec![
        row("alone", "20 and 50 Mb/s", "host_us", "us", line.host),
        row("alone", "20 and 50 Mb/s", "network_us_mbps", "us x Mb/s", line.network),
    ];
    for (x, rate) in PREDICTED {
        rows.push(row("alone", &format!("{x} Mb/s"), "predicted_us_p50", "us", line.at(rate)));
    }
    for (x, rate) in FROM.into_iter().chain([PREDICTED[0]]) {
        let back = line.network / (2.0 * rate);
        // What the hosts take of the slowest hundredth is that of a ping alone.
        let tail = alone(x, "rtt_us_p99").map(|row| row.measured - line.network / rate);
        for (figure, series, name) in [
            ("fig3a", "alone", "alone"),
            ("fig3a", "+iperf,QJump", "+iperf,QJump"),
            ("fig3a-two-frames", "+iperf,QJump", "+iperf,QJump; two frames"),
        ] {
            let mut one_way = |metric: &str, host: Option<f64>| {
                let (Some(found), Some(host)) =
                    (of.find(figure, series, x, &format!("rtt_us_{metric}")), host)
                else {
                    return;
                };
                let less = |us: f64| us - host - back;
                let mut row = row(name, &format!("{x} Mb/s"), &format!("one_way_us_{metric}"), "us", 0.0);
                (row.measured, row.suspect) = (less(found.measured), found.suspect);
                row.ci = found.ci.map(|(low, high)| (less(low), less(high)));
                rows.push(row);
            };
            one_way("p50", Some(line.host));
            one_way("p99", tail.filter(|_| series != "alone"));
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
