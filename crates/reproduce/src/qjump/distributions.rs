//! Distributions by percentile, Figs. 1a-c and 3a-c: figures made of the runs of others.

use plimsoll_results::outcome::{Message, Observation, Outcome, Query};
use plimsoll_results::stats::{Samples, Statistic};
use plimsoll_units::Span;

use super::testbed::figure;
use crate::published::Published;
use crate::row::Row;
use crate::study::{Base, Case, Figure, no_tolerance, nothing};

/// The figures, which have no runs of their own.
pub(super) fn figures() -> impl Iterator<Item = Figure> {
    DISTRIBUTIONS.iter().map(Distribution::figure)
}

/// A figure of a distribution, made of the runs of another.
struct Distribution {
    id: &'static str,
    title: &'static str,
    axis: &'static str,
    /// The figure that is run.
    of: &'static str,
    /// What is distributed.
    sample: fn(&Outcome) -> Vec<f64>,
    metric: &'static str,
    /// The runs' schemes, and their names on the figure.
    series: &'static [(&'static str, &'static str)],
    names: &'static [&'static str],
    published: fn(&str, &str, &str) -> Option<f64>,
    tolerance: fn(&str, &str, &str, f64) -> Option<f64>,
    log: bool,
}

const DISTRIBUTIONS: &[Distribution] = &[
    Distribution {
        id: "fig1a",
        title: "Figs. 1a and 5: PTP's offset between perfect clocks, by percentile",
        axis: "percentile",
        of: "apps",
        sample: |outcome| observed(outcome, "ptp"),
        metric: "offset_us",
        series: &[("ideal", "alone"), ("TCP", "+Hadoop"), ("QJump", "+Hadoop,QJump")],
        names: &["alone", "+Hadoop", "+Hadoop,QJump"],
        published: nothing,
        tolerance: no_tolerance,
        log: false,
    },
    Distribution {
        id: "fig3a",
        title: "A ping across one switch, by percentile",
        axis: "percentile",
        of: "switch",
        sample: |outcome| completed(outcome, "ping"),
        metric: "latency_us",
        series: &[
            ("alone", "alone"),
            ("+iperf", "+iperf"),
            ("+iperf,QJump", "+iperf,QJump"),
            ("+iperf,QJump,3KB", "+iperf,QJump,3KB"),
        ],
        names: &["alone", "+iperf", "+iperf,QJump", "+iperf,QJump,3KB"],
        published: |series, x, _| published("3a", series, x),
        // Alone is where the length of the path was taken from.
        tolerance: |series, _, _, _| (series != "alone").then_some(1.35),
        log: true,
    },
    Distribution {
        id: "fig3b",
        title: "Figs. 1b, 3b and 5: memcached's requests, by percentile",
        axis: "percentile",
        of: "apps",
        sample: |outcome| completed(outcome, "memcached"),
        metric: "latency_us",
        series: &[("ideal", "alone"), ("TCP", "+Hadoop"), ("QJump", "+Hadoop,QJump")],
        names: &["alone", "+Hadoop", "+Hadoop,QJump"],
        published: |series, x, _| published("3b", series, x),
        tolerance: no_tolerance,
        log: false,
    },
    Distribution {
        id: "fig3c",
        title: "Figs. 1c and 3c: barriers, by percentile",
        axis: "percentile",
        of: "barrier",
        sample: |outcome| rounds(outcome, "barrier"),
        metric: "latency_us",
        series: &[("ideal", "alone"), ("TCP", "+Hadoop"), ("QJump", "+Hadoop,QJump")],
        names: &["alone", "+Hadoop", "+Hadoop,QJump"],
        published: |series, x, _| published("3c", series, x),
        tolerance: no_tolerance,
        log: false,
    },
];

const PERCENTILES: &[&str] = &["1", "10", "25", "50", "75", "90", "95", "99"];

impl Distribution {
    fn figure(&self) -> Figure {
        Figure {
            axis: self.axis,
            log: self.log,
            series: self.names,
            published: self.published,
            tolerance: self.tolerance,
            ..figure(self.id, self.title, "")
        }
    }

    fn rows(&self, scheme: &str, base: Base, outcome: &Outcome) -> Vec<Row> {
        let Some((_, series)) = self.series.iter().find(|(run, _)| *run == scheme) else {
            return Vec::new();
        };
        let samples = Samples::new(vec![(self.sample)(outcome)]);
        let row = |x: &&str| {
            let percent: f64 = x.parse().ok()?;
            let mut row = Row::new(self.id, base.name(), series, x, self.metric, "us");
            row.set_measured(&samples.estimate(Statistic::Percentile(percent / 100.0))?);
            Some(row)
        };
        PERCENTILES.iter().filter_map(row).collect()
    }
}

/// The rows of the distributions that a run belongs to.
pub(super) fn rows(figure: &Figure, _: &Case, series: &str, base: Base, of: &Outcome) -> Vec<Row> {
    let made = DISTRIBUTIONS.iter().filter(|distribution| distribution.of == figure.id);
    made.flat_map(|distribution| distribution.rows(series, base, of)).collect()
}

fn published(panel: &'static str, series: &str, percentile: &str) -> Option<f64> {
    Published::parse(include_str!("../../published/qjump_fig3_latency_us.csv"))
        .value(&[("panel", panel), ("case", series)], &format!("p{percentile}"))
}

fn workload(outcome: &Outcome, name: &str) -> Option<u16> {
    outcome.workloads.iter().position(|info| info.name == name).map(|index| index as u16)
}

fn completed(outcome: &Outcome, name: &str) -> Vec<f64> {
    let of = workload(outcome, name);
    let messages = outcome.messages.iter().filter(|message| Some(message.workload) == of);
    messages.filter_map(Message::latency).map(Span::as_us_f64).collect()
}

fn observed(outcome: &Outcome, name: &str) -> Vec<f64> {
    let of = workload(outcome, name);
    let made = outcome.observations.iter().filter(|one| Some(one.workload) == of);
    made.map(|one: &Observation| one.value.as_us_f64()).collect()
}

fn rounds(outcome: &Outcome, name: &str) -> Vec<f64> {
    let of = workload(outcome, name);
    let queries = outcome.queries.iter().filter(|query| Some(query.workload) == of);
    queries.filter_map(|query: &Query| Some((query.completed? - query.created).as_us_f64())).collect()
}
