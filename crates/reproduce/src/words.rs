//! Names of figures and metrics in words, for the titles of figures: rows and files have short names.

/// Writes the name of a figure or a table of a paper: `Fig. 2b` for `fig2b`; `None` for a figure that no paper has.
pub fn figure(id: &str) -> Option<String> {
    let of = |prefix: &str, word: &str| {
        let number = id.strip_prefix(prefix)?.split('-').next()?;
        number.starts_with(|c: char| c.is_ascii_digit()).then(|| format!("{word} {number}"))
    };
    of("fig", "Fig.").or_else(|| of("table", "Table"))
}

/// Writes the name of a metric as a title: `99th percentile of the latency` for `latency_us_p99`; `None` for a metric
/// that has no name in words yet.
pub fn metric(name: &str) -> Option<String> {
    let statistic = STATISTICS.iter().find_map(|(end, words)| Some((name.strip_suffix(end)?, *words)));
    let (quantity, statistic) = statistic.unwrap_or((name, ""));
    let (_, quantity) = QUANTITIES.iter().find(|(known, _)| *known == quantity)?;
    Some(capitalised(&format!("{statistic}{quantity}")))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The ends of metrics, and how a title begins.
const STATISTICS: [(&str, &str); 8] = [
    ("_mean", "mean "),
    ("_p10", "10th percentile of the "),
    ("_p50", "median "),
    ("_p90", "90th percentile of the "),
    ("_p99", "99th percentile of the "),
    ("_p999", "99.9th percentile of the "),
    ("_max", "longest "),
    ("_rms", "root mean square of the "),
];

/// The quantities that figures draw.
const QUANTITIES: [(&str, &str); 53] = [
    ("ack_kb", "bytes that one ACK acknowledges"),
    ("application_us", "time in the application"),
    ("background_ms", "completion time of background flows"),
    ("bkg_fct_ms", "completion time of background flows"),
    ("burst_us", "duration of a burst"),
    ("calls", "requests in a chain within the budget"),
    ("calls_exact", "requests in a chain within the budget, exactly"),
    ("circuit_util_pct", "utilisation of the circuits"),
    ("commits_per_s", "commits per second"),
    ("completion_us", "completion time"),
    ("configurations", "configurations of the circuit switch"),
    ("data_burst", "length of bursts of data packets"),
    ("data_burst_packets", "lengths of bursts of data packets"),
    ("filled", "share of a circuit's day that is filled"),
    ("flow_ms", "completion time of a flow"),
    ("goodput", "goodput"),
    ("goodput_mbps", "goodput"),
    ("hadoop_gbps", "throughput of Hadoop"),
    ("hits", "hits of the path cache"),
    ("job_ms", "completion time of a job"),
    ("kernel_percent_of_slowest", "kernel's share of the slowest requests"),
    ("kernel_us", "time in the kernel"),
    ("large", "slowdown of large flows"),
    ("latency", "latency"),
    ("latency_us", "latency"),
    ("load", "requests sent"),
    ("lossy_bursts", "bursts that recovered a loss"),
    ("memcached_us", "latency of memcached"),
    ("offset_us", "clock offset"),
    ("one_way_us", "one-way latency"),
    ("packet_util_pct", "utilisation of the packet switch"),
    ("page_ms", "completion time of a page"),
    ("path_changes", "changes of path per megabyte"),
    ("processor", "processor use"),
    ("ptp_us", "clock offset of PTP"),
    ("query_ms", "completion time of a query"),
    ("queue_packets", "queue length"),
    ("queue_us", "queueing delay"),
    ("reaction_ms", "reaction time"),
    ("requests_per_s", "requests per second"),
    ("resp_ms", "completion time of a response"),
    ("retransmissions", "retransmissions"),
    ("rtt_us", "round-trip time"),
    ("schedule_time_ms", "time to serve the demand"),
    ("segment", "length of a segment"),
    ("server_us_per_request", "server time per request"),
    ("small", "slowdown of small flows"),
    ("small_fct_us", "completion time of small flows"),
    ("throughput", "throughput"),
    ("train", "length of a train"),
    ("transfer_ms", "completion time of a transfer"),
    ("uninterrupted", "length of a train that no other packet interrupts"),
    ("victim_us", "completion time of the victim"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::every;

    #[test]
    fn every_drawn_metric_has_a_title() {
        for study in every() {
            for figure in &study.figures {
                for name in &figure.drawn {
                    assert!(
                        metric(name).is_some(),
                        "{}: {} draws `{name}`: name it here",
                        study.id,
                        figure.id
                    );
                }
            }
        }
    }

    #[test]
    fn titles_are_words() {
        for (name, words) in [
            ("latency_us_p99", "99th percentile of the latency"),
            ("latency_us_p999", "99.9th percentile of the latency"),
            ("queue_us_mean", "Mean queueing delay"),
            ("goodput_mbps", "Goodput"),
        ] {
            assert_eq!(metric(name).as_deref(), Some(words));
        }
        assert_eq!(metric("nothing_us_p99"), None);
        for (id, words) in [("fig2b", "Fig. 2b"), ("fig3.2-cdf", "Fig. 3.2"), ("table2", "Table 2")] {
            assert_eq!(figure(id).as_deref(), Some(words));
        }
        assert_eq!(figure("figures"), None);
        assert_eq!(figure("buffer"), None);
    }
}
