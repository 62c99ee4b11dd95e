//! The report of a run, and whether the run is suspect.

use std::fmt::{self, Write as _};
use std::fs;
use std::path::Path;

use anyhow::Context;
use hdrhistogram::Histogram;
use plimsoll_units::Time;
use serde::{Deserialize, Serialize};

use crate::book::{Book, Counts};
use crate::setup::{LoadPhase, Pace};

/// The results of a run. Times are in microseconds, rates in operations a second.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The reasons why this run is suspect; empty if it is valid.
    pub suspect: Vec<String>,
    /// The requested rate; none in a closed loop.
    pub rate_asked: Option<f64>,
    /// The operations that ended within the measured time, per second.
    pub rate: f64,
    /// The measured time in seconds.
    pub seconds: f64,
    /// The time from when operations should have been sent to the end of their replies. In quantiles, lost operations
    /// count as the timeout or longer; the mean and the number cover the answered ones.
    pub latency: Distribution,
    /// The time from when requests should have been sent to when they were.
    pub lag: Distribution,
    /// The share of the time in which the generator's threads had work to do.
    pub generator_busy: f64,
    /// The share of the time in which they were runnable, but others had their processors.
    pub generator_waited: f64,
    /// The counts; requests, values and misses include the warm-up.
    pub counts: Counts,
    /// Descriptions of the first few errors.
    pub examples: Vec<String>,
}

/// A distribution of times, in microseconds.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Distribution {
    /// The number of samples.
    pub samples: u64,
    /// The mean of the samples.
    pub mean: f64,
    /// The median of the samples.
    pub p50: f64,
    /// The 90th percentile of the samples.
    pub p90: f64,
    /// The 99th percentile of the samples.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The 99.99th percentile.
    pub p9999: f64,
    /// The largest of all samples.
    pub max: f64,
}

/// The limits beyond which a run is suspect.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SuspectLimits {
    /// The generator's own lag, as a share of the latency, at the median and at the 99th percentile.
    pub lag_share: f64,
    /// The lag in microseconds that never makes a run suspect, since it does not affect the measured number.
    pub lag_us: f64,
    /// The share of the time for which the generator may wait for a processor.
    pub waited_share: f64,
    /// The share by which the rate of an open loop may fall short.
    pub short_share: f64,
}

impl Default for SuspectLimits {
    fn default() -> SuspectLimits {
        SuspectLimits { lag_share: 0.5, lag_us: 0.0, waited_share: 0.05, short_share: 0.02 }
    }
}

impl Distribution {
    /// Summarizes a histogram of nanoseconds.
    pub fn of(histogram: &Histogram<u64>) -> Distribution {
        let us = |ns: u64| ns as f64 / 1e3;
        let at = |quantile| us(histogram.value_at_quantile(quantile));
        if histogram.is_empty() {
            return Distribution::default();
        }
        Distribution {
            samples: histogram.len(),
            mean: histogram.mean() / 1e3,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: us(histogram.max()),
        }
    }
}

impl Distribution {
    /// Writes the head of the table of [`Distribution::row`].
    ///
    /// # Errors
    /// Returns the errors of `f`.
    pub fn head(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = ["mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"];
        write!(f, "{:12} ", "us")?;
        columns.iter().try_for_each(|column| write!(f, " {column:>9}"))?;
        writeln!(f)
    }

    /// Writes the distribution as a line of a table.
    ///
    /// # Errors
    /// Returns the errors of `f`.
    pub fn row(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Distribution { mean, p50, p90, p99, p999, p9999, max, .. } = self;
        write!(f, "{name:12} ")?;
        [mean, p50, p90, p99, p999, p9999, max].iter().try_for_each(|value| write!(f, " {value:9.1}"))?;
        writeln!(f)
    }
}

impl Report {
    /// Creates the report of `phase` from the counts `book` of `threads` threads.
    pub fn new(book: &Book, phase: &LoadPhase, threads: u32, limits: SuspectLimits) -> Report {
        let seconds = phase.to.saturating_since(phase.from).as_secs_f64();
        let whole = phase.to.saturating_since(Time::ZERO).as_secs_f64();
        let rate_asked = match phase.pace {
            Pace::Open(_, rate) => Some(rate),
            Pace::Closed(_) | Pace::Load(_) => None,
        };
        let mut report = Report {
            suspect: Vec::new(),
            rate_asked,
            rate: book.counts.completed as f64 / seconds,
            seconds,
            latency: Distribution {
                mean: book.latency.mean() / 1e3,
                samples: book.latency.len(),
                ..Distribution::of(&book.waits())
            },
            lag: Distribution::of(&book.lag),
            generator_busy: book.busy.as_secs_f64() / whole / f64::from(threads),
            generator_waited: book.waited.as_secs_f64() / whole / f64::from(threads),
            counts: book.counts,
            examples: book.examples.clone(),
        };
        report.suspect = report.suspect_reasons(limits);
        report
    }

    fn suspect_reasons(&self, limits: SuspectLimits) -> Vec<String> {
        let Report { latency, counts, .. } = self;
        let mut found = self.generator_reasons(limits);
        if let Some(asked) = self.rate_asked
            && self.rate < (1.0 - limits.short_share) * asked
        {
            found.push(format!(
                "{:.0} operations a second were asked for and {:.0} ended: the load is above what server or generator \
                 carry, and latencies grow with the length of the run",
                asked, self.rate
            ));
        }
        found.extend(lost(counts));
        if counts.wrong > 0 {
            found.push(format!("{} values are wrong", counts.wrong));
        }
        if counts.refused > 0 {
            found.push(format!("the server rejected {} operations", counts.refused));
        }
        if counts.unsent > 0 {
            found.push(format!("{} operations were not sent (see --outstanding-max)", counts.unsent));
        }
        if counts.closed > 0 {
            found.push(format!("{} connections ended before the run did", counts.closed));
        }
        if latency.samples == 0 {
            found.push("no operation was measured".to_owned());
        }
        found
    }

    /// Returns the reasons why the generator, rather than the server, was too slow in this run.
    pub fn generator_reasons(&self, limits: SuspectLimits) -> Vec<String> {
        let Report { latency, lag, .. } = self;
        let mut found = Vec::new();
        for (name, lag, latency) in [("p50", lag.p50, latency.p50), ("p99", lag.p99, latency.p99)] {
            if self.latency.samples > 0 && lag > (limits.lag_share * latency).max(limits.lag_us) {
                found.push(format!(
                    "the generator's own lag is {lag:.1} us at {name}, more than {:.0} % of the latency's {latency:.1} \
                     us: this measures the generator; give it a processor of its own (--cpus), spin (--wait spin), or \
                     ask for less",
                    100.0 * limits.lag_share
                ));
            }
        }
        if self.generator_waited > limits.waited_share {
            found.push(format!(
                "the generator waited for a processor for {:.0} % of the time: other programs are running, or it and \
                 the server share a processor",
                100.0 * self.generator_waited
            ));
        }
        found
    }

    /// Writes the latencies to `path`: as an HDR interval log if it ends in `.hlog`, else as the text of percentiles
    /// that HdrHistogram's plotter reads, in microseconds.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write_hdr(&self, latency: &Histogram<u64>, path: &Path) -> anyhow::Result<()> {
        let text = if path.extension().is_some_and(|extension| extension == "hlog") {
            interval_log(latency, self.seconds)?
        } else {
            percentiles(latency)
        };
        let marked: String = self.suspect.iter().map(|reason| format!("#[SUSPECT: {reason}]\n")).collect();
        fs::write(path, marked.into_bytes().into_iter().chain(text).collect::<Vec<u8>>())
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Returns which quantiles are timeouts instead of replies, since more operations were lost than lie above them.
fn lost(counts: &Counts) -> Option<String> {
    let share = counts.lost as f64 / counts.due.max(1) as f64;
    let (name, _) = QUANTILES.into_iter().find(|(_, quantile)| share > 1.0 - quantile)?;
    let Counts { lost, due, .. } = counts;
    Some(format!("{lost} of {due} operations were lost: from {name} on, latencies are the timeout or longer"))
}

/// The quantiles that are printed.
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

fn interval_log(latency: &Histogram<u64>, seconds: f64) -> anyhow::Result<Vec<u8>> {
    use hdrhistogram::serialization::V2DeflateSerializer;
    use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
    let mut out = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let length = std::time::Duration::from_secs_f64(seconds);
    IntervalLogWriterBuilder::new()
        .add_comment("latencies in nanoseconds")
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut out, &mut serializer)
        .and_then(|mut log| {
            log.write_histogram(latency, std::time::Duration::ZERO, length, None)
                .map_err(|error| std::io::Error::other(format!("{error:?}")))
        })
        .context("cannot write an interval log")?;
    Ok(out)
}

fn percentiles(latency: &Histogram<u64>) -> Vec<u8> {
    let mut out = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    let mut count = 0;
    for step in latency.iter_quantiles(5) {
        count += step.count_since_last_iteration();
        let (value, quantile) = (step.value_iterated_to() as f64 / 1e3, step.quantile_iterated_to());
        let _ = write!(out, "{value:12.3} {quantile:2.12} {count:10}");
        let _ =
            if quantile < 1.0 { writeln!(out, " {:14.2}", 1.0 / (1.0 - quantile)) } else { writeln!(out) };
    }
    let (mean, deviation) = (latency.mean() / 1e3, latency.stdev() / 1e3);
    let _ = writeln!(out, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]");
    let _ = writeln!(
        out,
        "#[Max     = {:12.3}, Total count    = {:12}]",
        latency.max() as f64 / 1e3,
        latency.len()
    );
    out.into_bytes()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for reason in &self.suspect {
            writeln!(f, "SUSPECT: {reason}")?;
        }
        match self.rate_asked {
            Some(asked) => {
                writeln!(f, "operations/s  {:.0} (asked for {asked:.0}), {} s", self.rate, self.seconds)?
            }
            None => writeln!(f, "operations/s  {:.0}, {} s", self.rate, self.seconds)?,
        }
        Distribution::head(f)?;
        self.latency.row("latency", f)?;
        self.lag.row("own lag", f)?;
        let Counts { due, completed, lost, refused, gets, sets, hits, misses, wrong, late, unsent, closed } =
            &self.counts;
        writeln!(
            f,
            "operations    {due} due, {completed} completed, {lost} lost, {refused} refused, {unsent} unsent"
        )?;
        writeln!(
            f,
            "requests      {gets} gets, {sets} sets; {hits} values, {misses} misses, {wrong} wrong, {late} late"
        )?;
        writeln!(
            f,
            "generator     {:.0} % busy, {:.0} % waiting for a processor; {closed} connections lost",
            100.0 * self.generator_busy,
            100.0 * self.generator_waited
        )?;
        for example in &self.examples {
            writeln!(f, "  {example}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_units::Span;

    use crate::arrivals::LoadArrivals;

    fn book(latency_us: u64, lag_us: u64) -> Book {
        let mut book = Book::default();
        for _ in 0..1_000 {
            Book::record(&mut book.latency, Span::from_us(latency_us));
            Book::record(&mut book.lag, Span::from_us(lag_us));
        }
        book.counts = Counts { due: 1_000, completed: 1_000, gets: 1_000, hits: 1_000, ..Counts::default() };
        book
    }

    fn report(book: &Book, rate: f64) -> Report {
        let phase = LoadPhase {
            index: 1,
            pace: Pace::Open(LoadArrivals::Poisson, rate),
            from: Time::ZERO,
            to: Time::ZERO + Span::from_secs(1),
        };
        Report::new(book, &phase, 1, SuspectLimits::default())
    }

    #[test]
    fn a_lag_of_half_the_latency_is_suspect_in_every_output() {
        assert_eq!(report(&book(100, 49), 1_000.0).suspect, Vec::<String>::new());
        let suspect = report(&book(100, 51), 1_000.0);
        assert_eq!(suspect.suspect.len(), 2);
        assert!(
            suspect.to_string().starts_with("SUSPECT: the generator's own lag is 51.0 us at p50"),
            "{suspect}"
        );
        let json = serde_json::to_string(&suspect).unwrap();
        assert!(json.starts_with(r#"{"suspect":["the generator's own lag"#), "{json}");
        let file = tempfile::tempdir().unwrap();
        for name in ["run.hgrm", "run.hlog"] {
            let path = file.path().join(name);
            suspect.write_hdr(&book(100, 51).latency, &path).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.starts_with("#[SUSPECT: the generator"), "{text}");
        }
    }

    #[test]
    fn waiting_for_a_processor_is_suspect_unless_it_is_meant() {
        let mut waited = book(100, 1);
        waited.waited = Span::from_ms(100);
        assert!(report(&waited, 1_000.0).suspect[0].contains("waited for a processor for 10 % of the time"));
        let phase = LoadPhase {
            index: 1,
            pace: Pace::Closed(1),
            from: Time::ZERO,
            to: Time::ZERO + Span::from_secs(1),
        };
        let shared = crate::options::ValidityOptions { lag_share: 0.5, shared_cpus: true };
        assert_eq!(Report::new(&waited, &phase, 1, shared.limits()).suspect, Vec::<String>::new());
    }

    #[test]
    fn a_rate_that_was_not_reached_and_values_that_are_wrong_are_suspect() {
        let mut wrong = book(100, 1);
        (wrong.counts.wrong, wrong.counts.closed) = (2, 1);
        let found = report(&wrong, 1_100.0).suspect.join("\n");
        for part in
            ["1100 operations a second were asked for and 1000 ended", "2 values are wrong", "1 connections"]
        {
            assert!(found.contains(part), "{found}");
        }
    }

    #[test]
    fn operations_that_were_lost_make_the_quantiles_above_them_suspect() {
        for (lost, expected) in [
            (0, None),
            (9, None),
            (11, Some("11 of 100000 operations were lost: from p99.99 on")),
            (1_001, Some("1001 of 100000 operations were lost: from p99 on")),
            (60_000, Some("60000 of 100000 operations were lost: from p50 on")),
        ] {
            let counts = Counts { due: 100_000, lost, ..Counts::default() };
            let found = super::lost(&counts);
            assert_eq!(found.is_some(), expected.is_some(), "{lost}: {found:?}");
            assert!(found.unwrap_or_default().starts_with(expected.unwrap_or_default()), "{lost}");
        }
        let mut some = book(100, 1);
        some.counts.lost = 20;
        (0..20).for_each(|_| Book::record(&mut some.given_up, Span::from_ms(500)));
        let latency = report(&some, 1_000.0).latency;
        assert!(latency.p90 < 101.0 && latency.p99 > 499_000.0, "{latency:?}");
        assert!(latency.samples == 1_000 && latency.mean < 101.0, "{latency:?}");
        assert!(report(&some, 1_000.0).suspect[0].contains("20 of 1000 operations were lost: from p99 on"));
    }

    #[test]
    fn the_percentiles_are_those_of_the_histogram() {
        let mut histogram = book(100, 1).latency;
        histogram.record(5_000_000).unwrap();
        let text = String::from_utf8(percentiles(&histogram)).unwrap();
        assert!(text.contains("     100.031 0.5"), "{text}");
        assert!(text.contains("Total count    =         1001]"), "{text}");
    }
}
