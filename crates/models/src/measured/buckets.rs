//! Histograms of Prometheus: cumulative counts by upper bound `le`, in the text that a server exposes or in the JSON
//! that a query returns.
//!
//! Series that differ in other labels, such as instances, are added up. Of a range of counters the increase is taken,
//! with resets; an instant query is taken as it is, so `increase(NAME_bucket[1h])` selects a time. Inside a bucket the
//! distribution is linear, and [`Empirical::bracket`] returns the bounds of the bucket.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Empirical, MeasuredError, MeasuredLatencies, Unit, part};

/// Cumulative counts by upper bound, in any order, of each histogram.
type Histograms = BTreeMap<String, Vec<(f64, f64)>>;

/// The end of the name of a histogram's series.
const SUFFIX: &str = "_bucket";

/// The name of a histogram whose series have none, as those of `increase()`.
const UNNAMED: &str = "histogram";

/// Returns whether a text exposes a histogram.
pub(super) fn is_exposition(text: &str) -> bool {
    text.lines().any(|line| !line.starts_with('#') && series(line).is_some())
}

/// Reads a histogram from an exposition of metrics.
pub(super) fn of_text(
    text: &str,
    unit: Option<Unit>,
    tag: Option<&str>,
    suspect: Vec<String>,
) -> Result<MeasuredLatencies, MeasuredError> {
    let mut histograms = Histograms::new();
    for (metric, bound, count) in text.lines().filter(|line| !line.starts_with('#')).filter_map(series) {
        add(&mut histograms, metric, bound, count.parse().ok())?;
    }
    chosen(&histograms, unit, tag, suspect)
}

/// Reads a histogram from the `result` of a query.
pub(super) fn of_query(
    result: &[Value],
    unit: Option<Unit>,
    tag: Option<&str>,
    suspect: Vec<String>,
) -> Result<MeasuredLatencies, MeasuredError> {
    let mut histograms = Histograms::new();
    for series in result {
        let Some(bound) = series["metric"]["le"].as_str() else { continue };
        let name = series["metric"]["__name__"].as_str().unwrap_or(UNNAMED);
        let number = |pair: &Value| pair[1].as_str()?.parse::<f64>().ok();
        let count = match series["values"].as_array() {
            Some(values) => {
                values.iter().map(number).collect::<Option<Vec<f64>>>().map(|values| increase(&values))
            }
            None => number(&series["value"]),
        };
        add(&mut histograms, name.strip_suffix(SUFFIX).unwrap_or(name), bound, count)?;
    }
    chosen(&histograms, unit, tag, suspect)
}

/// Returns the increase of a counter, which begins again at 0 where it falls.
fn increase(values: &[f64]) -> f64 {
    values.windows(2).map(|pair| if pair[1] >= pair[0] { pair[1] - pair[0] } else { pair[1] }).sum()
}

/// Splits a line of an exposition into the histogram's name, the bound and the count.
fn series(line: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = line.trim().split_once('{')?;
    let (labels, after) = rest.rsplit_once('}')?;
    let at = labels.find("le=\"").filter(|at| *at == 0 || labels[..*at].ends_with([',', ' ']))?;
    let bound = labels[at + 4..].split('"').next()?;
    Some((name.trim().strip_suffix(SUFFIX)?, bound, after.split_whitespace().next()?))
}

fn add(
    histograms: &mut Histograms,
    metric: &str,
    bound: &str,
    count: Option<f64>,
) -> Result<(), MeasuredError> {
    let wrong = |reason: String| MeasuredError::Buckets { metric: metric.to_owned(), reason };
    let upper: Option<f64> = bound.parse().ok().filter(|upper: &f64| *upper >= 0.0);
    let upper = upper.ok_or_else(|| wrong(format!("`le=\"{bound}\"`")))?;
    let count = count.filter(|count| count.is_finite() && *count >= 0.0);
    let count = count.ok_or_else(|| wrong(format!("the count at `le=\"{bound}\"` is not a number")))?;
    let buckets = histograms.entry(metric.to_owned()).or_default();
    match buckets.iter_mut().find(|bucket| bucket.0 == upper) {
        Some(bucket) => bucket.1 += count,
        None => buckets.push((upper, count)),
    }
    Ok(())
}

fn chosen(
    histograms: &Histograms,
    unit: Option<Unit>,
    tag: Option<&str>,
    mut suspect: Vec<String>,
) -> Result<MeasuredLatencies, MeasuredError> {
    let names: Vec<&str> = histograms.keys().map(String::as_str).collect();
    let metric = part("histograms", tag, &names)?;
    let wrong =
        |reason: &str| MeasuredError::Buckets { metric: metric.to_owned(), reason: reason.to_owned() };
    let mut buckets = histograms[metric].clone();
    buckets.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    if buckets.windows(2).any(|pair| pair[0].1 > pair[1].1) {
        return Err(wrong("the counts fall"));
    }
    let all =
        buckets.pop().filter(|last| last.0.is_infinite()).ok_or_else(|| wrong("no bucket `le=\"+Inf\"`"))?.1;
    if all <= 0.0 {
        return Err(wrong("no latency was counted"));
    }
    let (last, below) = *buckets.last().ok_or_else(|| wrong("no finite bound"))?;
    let us = unit.unwrap_or(Unit::Seconds).us();
    if below < all {
        suspect.push(format!(
            "{:.3} % of its latencies are above the last bound, {last}, and count as that",
            100.0 * (1.0 - below / all)
        ));
    }
    let mut points = vec![(0.0, 0.0)];
    points.extend(buckets.iter().map(|(upper, count)| (upper * us, count / all)));
    points.push((last * us, 1.0));
    Ok(MeasuredLatencies {
        distribution: Empirical::of_points(points),
        // Rates have no number of latencies.
        samples: (all.fract() == 0.0).then_some(all as u64),
        bounded: below / all,
        suspect,
    })
}

#[cfg(test)]
mod tests {
    use crate::measured::{Hints, read};

    const TEXT: &str = "# TYPE get_seconds histogram\n\
        get_seconds_bucket{instance=\"a\",le=\"0.001\"} 50\nget_seconds_bucket{instance=\"a\",le=\"0.002\"} 98\n\
        get_seconds_bucket{instance=\"a\",le=\"+Inf\"} 100\nget_seconds_sum{instance=\"a\"} 0.1\n\
        get_seconds_bucket{instance=\"b\",le=\"0.001\"} 50\nget_seconds_bucket{instance=\"b\",le=\"0.002\"} 100\n\
        get_seconds_bucket{instance=\"b\",le=\"+Inf\"} 100\n";

    #[test]
    fn buckets_of_instances_add_up_and_bound_a_quantile() {
        let found = read(TEXT.as_bytes(), Hints::default()).expect("a histogram");
        assert_eq!((found.samples, found.bounded, found.suspect.len()), (Some(200), 0.99, 1));
        assert_eq!(found.distribution.bracket(0.9), (1_000.0, 2_000.0));
        let two = format!("{TEXT}set_seconds_bucket{{le=\"1\"}} 3\nset_seconds_bucket{{le=\"+Inf\"}} 3\n");
        let said = read(two.as_bytes(), Hints::default()).expect_err("two").to_string();
        assert!(said.contains("histograms get_seconds, set_seconds; choose one with --tag"), "{said}");
        let hints = |tag| Hints { tag: Some(tag), ..Hints::default() };
        assert_eq!(read(two.as_bytes(), hints("set_seconds")).expect("named").samples, Some(3));
        let said = read(two.as_bytes(), hints("set_second")).expect_err("unknown").to_string();
        assert!(said.contains("did you mean"), "{said}");
        for (text, reason) in [
            ("x_bucket{le=\"1\"} 3\nx_bucket{le=\"+Inf\"} 2\n", "fall"),
            ("x_bucket{le=\"1\"} 3\n", "+Inf"),
            ("x_bucket{le=\"high\"} 3\n", "le=\"high\""),
            ("x_bucket{le=\"1\"} 0\nx_bucket{le=\"+Inf\"} 0\n", "no latency"),
        ] {
            let said = read(text.as_bytes(), Hints::default()).expect_err(text).to_string();
            assert!(said.contains(reason), "{said}");
        }
    }

    #[test]
    fn a_range_of_counters_gives_its_increase_across_a_reset() {
        let series = |le: &str, values: &str| {
            format!("{{\"metric\":{{\"__name__\":\"x_bucket\",\"le\":\"{le}\"}},\"values\":[{values}]}}")
        };
        let result = [
            series("0.001", "[1,\"10\"],[2,\"15\"],[3,\"4\"]"),
            series("0.01", "[1,\"10\"],[2,\"16\"],[3,\"4\"]"),
            series("+Inf", "[1,\"10\"],[2,\"16\"],[3,\"4\"]"),
        ];
        let json = format!(
            "{{\"status\":\"success\",\"data\":{{\"resultType\":\"matrix\",\"result\":[{}]}}}}",
            result.join(",")
        );
        let found = read(json.as_bytes(), Hints::default()).expect("a histogram");
        assert_eq!((found.samples, found.bounded), (Some(10), 1.0));
        assert_eq!(found.distribution.bracket(0.5), (0.0, 1_000.0));
        assert_eq!(found.distribution.bracket(0.95), (1_000.0, 10_000.0));
    }
}
