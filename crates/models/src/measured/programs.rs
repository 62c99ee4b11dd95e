//! JSON of load generators and of Prometheus.
//!
//! * `memtier_benchmark --json-out-file`: a histogram in base64 for each verb below `ALL STATS`, in us; by default that
//!   of `Totals`.
//! * `fio --output-format=json` and `json+`: percentiles or bins of `lat_ns`, or else of `clat_ns`, for each direction
//!   of each job.
//! * a query for the buckets of a histogram: see [`super::buckets`].

use plimsoll_traffic::hdr;
use serde_json::{Map, Value};

use super::{Empirical, MeasuredError, MeasuredLatencies, Unit, buckets, of_histogram, part};

/// Reads the latencies of one part of a JSON text.
pub(super) fn read(
    text: &str,
    unit: Option<Unit>,
    tag: Option<&str>,
    suspect: Vec<String>,
) -> Result<MeasuredLatencies, MeasuredError> {
    let json: Value = serde_json::from_str(text).map_err(|_| MeasuredError::Json)?;
    if let Some(verbs) = json["ALL STATS"].as_object() {
        return of_memtier(verbs, unit, tag, suspect);
    }
    if let Some(jobs) = json["jobs"].as_array() {
        return of_fio(jobs, unit, tag, suspect);
    }
    match json["data"]["result"].as_array() {
        Some(result) => buckets::of_query(result, unit, tag, suspect),
        None => Err(MeasuredError::Json),
    }
}

fn of_memtier(
    verbs: &Map<String, Value>,
    unit: Option<Unit>,
    tag: Option<&str>,
    suspect: Vec<String>,
) -> Result<MeasuredLatencies, MeasuredError> {
    let encoded = |verb: &str| {
        let latencies = verbs.get(verb)?.get("Percentile Latencies")?;
        latencies["Histogram log format"]["Compressed Histogram"].as_str()
    };
    let names: Vec<&str> = verbs.keys().map(String::as_str).filter(|verb| encoded(verb).is_some()).collect();
    let by_default = names.contains(&TOTALS).then_some(TOTALS);
    let verb = part("verbs", tag.or(by_default), &names)?;
    let histogram = hdr::of_base64(encoded(verb).ok_or(MeasuredError::Json)?)?;
    of_histogram(&histogram, Some(unit.unwrap_or(Unit::Microseconds)), suspect)
}

/// The verb of memtier_benchmark that has all others.
const TOTALS: &str = "Totals";

fn of_fio(
    jobs: &[Value],
    unit: Option<Unit>,
    tag: Option<&str>,
    suspect: Vec<String>,
) -> Result<MeasuredLatencies, MeasuredError> {
    let mut found: Vec<(String, &Value, u64)> = Vec::new();
    for job in jobs {
        for direction in ["read", "write", "trim"] {
            let of = |key: &str| {
                let latencies = job.get(direction)?.get(key)?;
                (latencies["percentile"].is_object() || latencies["bins"].is_object()).then_some(latencies)
            };
            let count = |latencies: &Value| latencies["N"].as_u64().or(job[direction]["total_ios"].as_u64());
            if let Some(latencies) = of("lat_ns").or_else(|| of("clat_ns"))
                && let Some(count @ 1..) = count(latencies)
            {
                let name = match jobs {
                    [_] => direction.to_owned(),
                    _ => format!("{}/{direction}", job["jobname"].as_str().unwrap_or_default()),
                };
                found.push((name, latencies, count));
            }
        }
    }
    let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
    let name = part("directions", tag, &names)?;
    let (_, latencies, count) = found.iter().find(|(known, ..)| known == name).ok_or(MeasuredError::Json)?;
    let us = unit.unwrap_or(Unit::Nanoseconds).us();
    let distribution = match latencies["bins"].as_object() {
        Some(bins) => {
            let bins: Option<Vec<(f64, u64)>> = bins
                .iter()
                .map(|(bin, count)| Some((bin.parse::<f64>().ok()? * us, count.as_u64()?)))
                .collect();
            let bins = bins.filter(|bins| bins.iter().any(|bin| bin.1 > 0 && bin.0.is_finite()));
            let bins = bins.filter(|bins| bins.iter().all(|bin| bin.0 >= 0.0));
            Empirical::of_counts(bins.ok_or(MeasuredError::Json)?)
        }
        None => percentiles(latencies, us).ok_or(MeasuredError::Json)?,
    };
    Ok(MeasuredLatencies { distribution, samples: Some(*count), bounded: 1.0, suspect })
}

/// Returns the distribution between the least latency, the percentiles and the longest latency; `None` where they do
/// not rise.
fn percentiles(latencies: &Value, us: f64) -> Option<Empirical> {
    let least = latencies["min"].as_f64()? * us;
    let longest = latencies["max"].as_f64()? * us;
    let mut points = vec![(least, 0.0)];
    for (percent, latency) in latencies["percentile"].as_object()? {
        points.push((latency.as_f64()? * us, percent.parse::<f64>().ok()? / 100.0));
    }
    points.sort_by(|one, other| one.1.total_cmp(&other.1));
    // A bin is named by its middle, which may be outside the exact ends.
    points.iter_mut().for_each(|point| point.0 = point.0.max(least).min(longest.max(least)));
    points.retain(|point| point.1 < 1.0);
    points.push((longest, 1.0));
    let rises = least >= 0.0
        && points.windows(2).all(|pair| pair[0].0 <= pair[1].0)
        && points.iter().all(|point| point.0.is_finite());
    rises.then(|| Empirical::of_points(points))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};

    use crate::measured::{Hints, read};

    fn hints(tag: &str) -> Hints<'_> {
        Hints { tag: Some(tag), ..Hints::default() }
    }

    #[test]
    fn memtier_has_a_histogram_a_verb_in_us() {
        let mut histogram = Histogram::<u64>::new(3).expect("3 digits are allowed");
        (1..=1_000).for_each(|us| histogram.record(us).expect("it fits"));
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&histogram, &mut bytes).expect("it is written");
        let encoded = base64::engine::general_purpose::STANDARD.encode(&bytes);
        let verb = format!(
            "{{\"Percentile Latencies\":{{\"Histogram log format\":{{\"Compressed Histogram\":\"{encoded}\"}}}}}}"
        );
        let json =
            format!("{{\"ALL STATS\":{{\"Gets\":{verb},\"Sets\":{{\"Count\":0}},\"Totals\":{verb}}}}}");
        for hints in [Hints::default(), hints("Gets")] {
            let found = read(json.as_bytes(), hints).expect("a histogram");
            assert_eq!(found.samples, Some(1_000));
            assert!((found.distribution.bracket(0.5).1 - 500.0).abs() < 1.0);
        }
        let said = read(json.as_bytes(), hints("Sets")).expect_err("no histogram").to_string();
        assert!(said.contains("verbs Gets, Totals"), "{said}");
    }

    #[test]
    fn fio_has_percentiles_or_bins_in_ns() {
        let part = |latencies: &str| {
            format!(
                "{{\"jobs\":[{{\"jobname\":\"a\",\"read\":{{\"total_ios\":0,\"clat_ns\":{{\"N\":0}}}},\
             \"write\":{{\"total_ios\":200,\"clat_ns\":{latencies}}}}}]}}"
            )
        };
        let plain =
            part("{\"min\":1000,\"max\":90000,\"percentile\":{\"50.000000\":20000,\"99.000000\":80000}}");
        let found = read(plain.as_bytes(), Hints::default()).expect("percentiles");
        assert_eq!((found.samples, found.distribution.bracket(0.99)), (Some(200), (20.0, 80.0)));
        let bins = part("{\"N\":4,\"bins\":{\"1000\":3,\"9000\":1}}");
        let found = read(bins.as_bytes(), hints("write")).expect("bins");
        assert_eq!((found.samples, found.distribution.bracket(0.99)), (Some(4), (9.0, 9.0)));
        let negative = part("{\"N\":4,\"bins\":{\"-1000\":3,\"9000\":1}}");
        assert!(read(negative.as_bytes(), hints("write")).is_err());
        assert!(read(b"{\"jobs\":[]}", Hints::default()).is_err());
        assert!(
            read(b"{\"latency\":3}", Hints::default())
                .expect_err("no latencies")
                .to_string()
                .contains("JSON")
        );
    }
}
