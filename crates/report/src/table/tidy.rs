//! The data of the table for other programs: JSON, and CSV with one number a row.

use plimsoll_results::outcome::{Approximation, Counter, Counters, PriorityCounters, When};
use plimsoll_results::stats::Estimate;
use plimsoll_results::summary::{Cell, Distribution, too_few};
use plimsoll_results::{Interval, Summary};
use plimsoll_text::{csv_cell, printable_json};
use serde::Serialize;

use crate::verdict;

#[derive(Serialize)]
struct WithVerdicts<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    verdicts: Vec<String>,
    warnings_text: Vec<String>,
}

/// Writes the summary, its verdicts and the texts of its warnings.
pub(super) fn json(summary: &Summary) -> String {
    let whole = WithVerdicts {
        summary,
        verdicts: verdict::sentences(summary),
        warnings_text: summary.warnings.iter().map(ToString::to_string).collect(),
    };
    let text = serde_json::to_string_pretty(&whole).expect("a summary has text keys only");
    format!("{}\n", printable_json(&text))
}

/// Writes one number a row: `variant,<sweep keys>,subject,metric,value,low,high,samples,warnings`. The last field has a
/// word for each warning that concerns the number, separated by spaces: `too-few-samples`, `unfinished`,
/// `nothing-completed`, `unfair`, `approximate` (links were sampled, and there is a bias), `suspect` (an emulated run
/// that the machine has disturbed) and `run` (any other warning of a run).
pub(super) fn csv(summary: &Summary) -> String {
    let mut head = vec!["variant".to_owned()];
    head.extend(summary.sweep_keys.iter().cloned());
    head.extend(["subject", "metric", "value", "low", "high", "samples", "warnings"].map(str::to_owned));
    let mut out = line(&head);
    for cell in &summary.cells {
        for (subject, metric, estimate) in numbers(cell) {
            let warnings = words(summary, cell, &subject, &metric, &estimate);
            out.push_str(&row(&cell.variant, &cell.sweep, subject, metric, &estimate, &warnings));
        }
    }
    out
}

/// The words of the warnings that concern a number of `subject` in `cell`, each once.
fn words(summary: &Summary, cell: &Cell, subject: &str, metric: &str, estimate: &Estimate) -> String {
    let workload = Some(subject).filter(|name| cell.workload(name).is_some());
    let percentile = metric.split_once('.').map_or("", |(_, statistic)| statistic);
    let mut words = Vec::new();
    if workload.is_some() && too_few(percentile, estimate.samples) {
        words.push("too-few-samples");
    }
    if cell.approximation.is_some() {
        words.push("approximate");
    }
    for word in summary.warnings.iter().filter_map(|warning| warning.word(cell, workload)) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" ")
}

/// Writes every paired difference from the base, and the ratio to it, as further rows of [`csv`].
pub(super) fn differences(summary: &Summary) -> String {
    let mut out = String::new();
    for comparison in &summary.comparisons {
        for workload in &comparison.workloads {
            for (statistic, change) in workload.statistics() {
                let numbers = [("difference_us", Some(change.difference)), ("ratio", change.ratio)];
                for (name, estimate) in numbers.into_iter().filter_map(|(name, e)| Some((name, e?))) {
                    let metric = format!("{name}.{statistic}");
                    let subject = workload.name.clone();
                    let cell = summary
                        .cells
                        .iter()
                        .find(|cell| cell.variant == comparison.variant && cell.sweep == comparison.sweep);
                    let warnings = cell.map(|cell| words(summary, cell, &subject, &metric, &estimate));
                    let warnings = warnings.unwrap_or_default();
                    out.push_str(&row(
                        &comparison.variant,
                        &comparison.sweep,
                        subject,
                        metric,
                        &estimate,
                        &warnings,
                    ));
                }
            }
        }
    }
    out
}

fn row(
    variant: &str,
    sweep: &[(String, String)],
    subject: String,
    metric: String,
    estimate: &Estimate,
    warnings: &str,
) -> String {
    let mut fields = vec![variant.to_owned()];
    fields.extend(sweep.iter().map(|(_, value)| value.clone()));
    let (low, high) = match estimate.interval {
        Some(interval) => (float(interval.low), float(interval.high)),
        None => (String::new(), String::new()),
    };
    fields.extend([
        subject,
        metric,
        float(estimate.value),
        low,
        high,
        estimate.samples.to_string(),
        warnings.to_owned(),
    ]);
    line(&fields)
}

/// Writes a number with a decimal point even where it is whole, so that its column is read as floating point.
fn float(value: f64) -> String {
    format!("{value:?}")
}

/// Writes a line of CSV, each field quoted where it must be.
pub fn line(fields: &[String]) -> String {
    let cells: Vec<_> = fields.iter().map(|field| csv_cell(field)).collect();
    format!("{}\n", cells.join(","))
}

fn numbers(cell: &Cell) -> Vec<(String, String, Estimate)> {
    let mut out = Vec::new();
    for workload in &cell.workloads {
        let mut push = |metric: &str, estimate: Option<Estimate>| {
            out.extend(estimate.map(|estimate| (workload.name.clone(), metric.to_owned(), estimate)));
        };
        push("messages", Some(Estimate::bare(workload.messages as f64, 1)));
        push("unfinished", Some(Estimate::bare(workload.unfinished as f64, 1)));
        percentiles("completion_us", workload.completion_us.as_ref(), &mut push);
        push("slowdown.mean", workload.slowdown.map(|s| s.mean));
        push("slowdown.p99", workload.slowdown.map(|s| s.p99));
        push("goodput_mbps", workload.goodput_mbps);
        push("sent_mbps", workload.sent_mbps);
        push("fairness", workload.fairness.map(|value| Estimate::bare(value, 1)));
        push("retransmissions", Some(Estimate::bare(workload.connections.retransmissions as f64, 1)));
        push("timeouts", Some(Estimate::bare(workload.connections.timeouts as f64, 1)));
        if let Some(queries) = &workload.queries {
            push("queries", Some(Estimate::bare(queries.queries as f64, 1)));
            percentiles("query_us", queries.completion_us.as_ref(), &mut push);
            percentiles("response_us", queries.response_us.as_ref(), &mut push);
            percentiles("fastest_us", queries.fastest_us.as_ref(), &mut push);
            push("in_deadline", queries.in_deadline);
            push("in_deadline_worst", queries.in_deadline_worst.map(|value| Estimate::bare(value, 1)));
        }
        if let Some(observed) = &workload.observed {
            percentiles(&format!("{}_us", observed.what.replace(' ', "_")), Some(&observed.us), &mut push);
        }
        if let Some(extra) = &workload.extra {
            push("retries", Some(Estimate::bare(extra.retries as f64, 1)));
            push("replicas", Some(Estimate::bare(extra.replicas as f64, 1)));
            push("extra_bytes", Some(Estimate::bare(extra.bytes as f64, 1)));
        }
        if let Some(time) = &workload.time {
            for (part, (mean, slowest)) in time.parts.iter().zip(time.mean_us.iter().zip(&time.slowest_us)) {
                let count = workload.messages - workload.unfinished;
                push(&format!("time_us.{part}"), Some(Estimate::bare(*mean, count)));
                push(&format!("time_slowest_us.{part}"), Some(Estimate::bare(*slowest, time.slowest_count)));
            }
        }
    }
    for queue in &cell.queues {
        let mut push = |metric: &str, estimate: Option<Estimate>| {
            let subject = format!("queue {} ({})", queue.name, queue.port);
            out.extend(estimate.map(|estimate| (subject, metric.to_owned(), estimate)));
        };
        push("delay_us.mean", queue.mean_us);
        push("delay_us.p99", queue.p99_us);
        push("delay_us.max", Some(Estimate::bare(queue.max_us, 1)));
        push("utilisation", queue.utilisation.map(|value| Estimate::bare(value, 1)));
        push("drops", Some(Estimate::bare(queue.drops as f64, 1)));
        push("marks", Some(Estimate::bare(queue.marks as f64, 1)));
    }
    out.extend(priorities(cell));
    out.extend(circuits(cell));
    out.extend(processors(cell));
    if let Some(approximation) = &cell.approximation {
        // Of the network's counters nothing is known.
        out.extend(approximate(approximation));
        return out;
    }
    out.extend(
        network(cell).map(|(metric, value)| {
            ("network".to_owned(), metric.to_owned(), Estimate::bare(value as f64, 1))
        }),
    );
    out
}

/// Returns the counters of the network; what every run has comes first.
fn network(cell: &Cell) -> impl Iterator<Item = (&'static str, u64)> {
    let (always, others): (Vec<&Counter>, _) =
        Counters::ALL.iter().partition(|counter| counter.csv == When::Always);
    let others = others.into_iter().filter(|counter| match counter.csv {
        When::WithFaults => !cell.faults.is_empty(),
        When::WithCircuits => cell.circuits.is_some(),
        When::IfAny => (counter.get)(&cell.counters) > 0,
        When::Always | When::Never => false,
    });
    let counted =
        always.into_iter().chain(others).map(|counter| (counter.name, (counter.get)(&cell.counters)));
    std::iter::once(("drops", cell.counters.drops())).chain(counted)
}

/// The counts of the priorities that ports with classes or trimming have marked, trimmed, bounced or dropped.
fn priorities(cell: &Cell) -> impl Iterator<Item = (String, String, Estimate)> {
    let counted = cell.counters.by_priority.iter().enumerate();
    let counted = counted.filter(|(_, counters)| **counters != PriorityCounters::default());
    counted.flat_map(|(priority, counters)| {
        let metrics = [
            ("marks", counters.marked),
            ("trimmed", counters.trimmed),
            ("trimmed_bytes", counters.trimmed_bytes),
            ("bounced", counters.bounced),
            ("drops", counters.dropped),
            ("dropped_bytes", counters.dropped_bytes),
        ];
        metrics.map(|(metric, value)| {
            (format!("priority {priority}"), metric.to_owned(), Estimate::bare(value as f64, 1))
        })
    })
}

/// The numbers of the circuits of a hybrid network.
fn circuits(cell: &Cell) -> Vec<(String, String, Estimate)> {
    let Some(circuits) = &cell.circuits else { return Vec::new() };
    let metrics = [
        ("filled", circuits.filled),
        ("wasted", circuits.wasted),
        ("dark", circuits.dark),
        ("configurations_per_week", circuits.configurations_per_week),
        ("weeks", circuits.weeks as f64),
        ("bytes", circuits.circuit_bytes as f64),
        ("packet_switch_bytes", circuits.packet_bytes as f64),
        ("lost_dark", circuits.lost_dark as f64),
        ("lost_unmatched", circuits.lost_unmatched as f64),
    ];
    let row =
        |(metric, value): (&str, f64)| ("circuits".to_owned(), metric.to_owned(), Estimate::bare(value, 1));
    metrics.map(row).into()
}

/// The numbers of the hosts' processors.
fn processors(cell: &Cell) -> Vec<(String, String, Estimate)> {
    let Some(processors) = &cell.processors else { return Vec::new() };
    let metrics = [
        ("interrupts_busy", processors.interrupts),
        ("application_busy", processors.application),
        ("busiest_core_busy", processors.busiest),
        ("frames_received", processors.frames_received as f64),
        ("frames_sent", processors.frames_sent as f64),
        ("ring_drops", processors.ring_drops as f64),
    ];
    let row =
        |(metric, value): (&str, f64)| ("processors".to_owned(), metric.to_owned(), Estimate::bare(value, 1));
    metrics.map(row).into()
}

/// The size of the sample of an approximate run, the slowdowns by size, and the bias as a share.
fn approximate(of: &Approximation) -> Vec<(String, String, Estimate)> {
    let names = ["p50", "p90", "p99"];
    let whole = |metric: String, value: f64| ("approximation".to_owned(), metric, Estimate::bare(value, 1));
    let counts = [
        ("links", of.links),
        ("of_links", of.of_links),
        ("flows", of.flows),
        ("packet_hops", of.packet_hops),
    ];
    let mut out: Vec<_> = counts.map(|(metric, value)| whole(metric.to_owned(), value as f64)).into();
    out.push(whole("busiest_link".to_owned(), of.busiest));
    for (name, Interval { low, high }) in
        names.iter().zip(of.slowdowns.first().iter().flat_map(|row| &row.bias))
    {
        out.push(whole(format!("bias_low.{name}"), *low));
        out.push(whole(format!("bias_high.{name}"), *high));
    }
    for row in &of.slowdowns {
        let sizes = row.up_to.map_or("larger".to_owned(), |bytes| format!("up_to_{bytes}"));
        let percentiles = names.iter().zip(row.slowdown);
        out.extend(percentiles.filter_map(|(name, estimate)| {
            Some((row.workload.clone(), format!("slowdown_{sizes}.{name}"), estimate?))
        }));
    }
    out
}

fn percentiles(
    prefix: &str,
    distribution: Option<&Distribution>,
    push: &mut impl FnMut(&str, Option<Estimate>),
) {
    let Some(d) = distribution else { return };
    for (name, estimate) in
        [("mean", d.mean), ("p50", d.p50), ("p90", d.p90), ("p99", d.p99), ("p99.9", d.p999)]
    {
        push(&format!("{prefix}.{name}"), Some(estimate));
    }
}
