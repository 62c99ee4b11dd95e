//! Names of figures and metrics in words, for the titles of figures: rows and files have short names.

use std::sync::LazyLock;

use plimsoll_text::csv;

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
    let (_, quantity) = QUANTITIES.iter().find(|(known, _)| known == quantity)?;
    Some(capitalised(&format!("{statistic}{quantity}")))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The ends of metrics, and how a title begins.
const STATISTICS: [(&str, &str); 9] = [
    ("_mean", "mean "),
    ("_p10", "10th percentile of the "),
    ("_p50", "median "),
    ("_p90", "90th percentile of the "),
    ("_p95", "95th percentile of the "),
    ("_p99", "99th percentile of the "),
    ("_p999", "99.9th percentile of the "),
    ("_max", "longest "),
    ("_rms", "root mean square of the "),
];

/// The quantities that figures draw: the begin of a metric's name, and its words in a title.
static QUANTITIES: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let pair = |row: csv::CsvRecord<'_>| match row.cells()[..] {
        [quantity, title] => (quantity.to_owned(), title.to_owned()),
        _ => panic!("quantities.csv, line {}: it has two columns", row.line),
    };
    csv::rows(include_str!("quantities.csv"), None).skip(1).map(pair).collect()
});

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
                        "{}: {} draws `{name}`: name it in quantities.csv",
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
