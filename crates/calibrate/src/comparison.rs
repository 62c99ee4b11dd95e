//! [`Comparison`]: quantiles of a measurement and of a run, and the layer to which the difference points.

use plimsoll_models::measured::MeasuredLatencies;
use plimsoll_report::table::{Listing, ListingColumn};
use plimsoll_stats::{Estimate, Statistic};
use serde::Serialize;

use crate::layer::{self, LatencyLayer, ObservedDifference, Verdict};
use crate::modelled::ModelledLatencies;
use crate::quantiles::{SHARES, difference, measured};

/// One measurement beside one point of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The name of the workload.
    pub workload: String,
    /// The run and its point.
    pub run: String,
    /// The number of completed messages of the run.
    pub messages: u64,
    /// The number of measured latencies, if the file states it.
    pub measured: Option<u64>,
    /// The compared quantiles.
    pub quantiles: Vec<Quantile>,
    /// The result of the comparison.
    pub verdict: Verdict,
    /// The verdict as a sentence.
    pub sentence: String,
}

/// One quantile of both sides in us. The intervals of all quantiles of a comparison hold together with 95 %.
#[derive(Clone, Debug, Serialize)]
pub struct Quantile {
    /// The name of the quantile: `p99`.
    pub name: String,
    /// The measured latency; absent above the last bound of a histogram.
    pub measured_us: Option<Estimate>,
    /// The latency of the run.
    pub modelled_us: Estimate,
    /// Measured minus modelled.
    pub difference_us: Option<Estimate>,
    /// The mean queueing delay of the run's messages around this quantile.
    pub queue_us: f64,
    /// The mean time at the server of the run's messages around this quantile.
    pub service_us: f64,
}

impl Comparison {
    /// Compares a measurement with the messages of a run. `server` has the times that were measured inside the server,
    /// if they were. `timeout_us` is the shortest retransmission timeout.
    pub fn of(
        workload: &str,
        run: &str,
        latencies: &MeasuredLatencies,
        server: Option<&MeasuredLatencies>,
        modelled: &ModelledLatencies,
        timeout_us: f64,
    ) -> Comparison {
        let quantile = |share: f64| {
            let measured_us = measured(latencies, share);
            let modelled_us = modelled.quantile(share);
            let [queue_us, service_us] = modelled.parts_near(share);
            Quantile {
                name: Statistic::Percentile(share).name(),
                difference_us: measured_us.map(|measured_us| difference(&measured_us, &modelled_us)),
                measured_us,
                modelled_us,
                queue_us,
                service_us,
            }
        };
        let quantiles: Vec<Quantile> = SHARES.map(quantile).into();
        let observed: Vec<ObservedDifference> = quantiles
            .iter()
            .filter_map(|quantile| {
                let (queue_us, service_us) = (quantile.queue_us, quantile.service_us);
                Some(ObservedDifference { difference: quantile.difference_us?, queue_us, service_us })
            })
            .collect();
        let verdict =
            layer::judge(&observed, server.and_then(|server| server_differs(server, modelled)), timeout_us);
        Comparison {
            workload: workload.to_owned(),
            run: run.to_owned(),
            messages: modelled.messages(),
            measured: latencies.samples,
            sentence: sentence(&verdict, latencies, &quantiles),
            quantiles,
            verdict,
        }
    }
}

/// Returns whether times inside the server differ between measurement and run at any quantile; `None` without
/// intervals.
fn server_differs(server: &MeasuredLatencies, modelled: &ModelledLatencies) -> Option<bool> {
    let apart = |share: &f64| {
        let interval = difference(&measured(server, *share)?, &modelled.service_quantile(*share)).interval?;
        Some(!interval.contains(0.0))
    };
    SHARES.iter().filter_map(apart).reduce(|one, other| one || other)
}

fn sentence(verdict: &Verdict, latencies: &MeasuredLatencies, quantiles: &[Quantile]) -> String {
    match verdict {
        Verdict::NoIntervals if latencies.samples.is_none() => {
            "cannot tell: the file does not state how many latencies it has, so its error is unknown"
                .to_owned()
        }
        Verdict::NoIntervals => {
            "cannot tell: too few latencies or messages for an interval; measure longer, or run \
                                 with a longer `--duration`"
                .to_owned()
        }
        Verdict::NotSignificant => {
            let excluded = quantiles.iter().rev().find_map(|quantile| {
                let interval = quantile.difference_us?.interval?;
                let width = interval.high.abs().max(interval.low.abs());
                Some(format!("; at {} a difference of more than {width:.3} us is excluded", quantile.name))
            });
            let finest = excluded.unwrap_or_default();
            format!("no significant difference{finest}")
        }
        Verdict::Layer(layer) => format!("{}: {}", name(*layer), reason(*layer)),
        Verdict::ModelTooSlow(layers) => {
            let below = quantiles.iter().find_map(|quantile| {
                let (measured, model) = (quantile.measured_us?, quantile.modelled_us.value);
                let idle = model - quantile.queue_us;
                (measured.value < idle).then(|| {
                    let (name, measured) = (&quantile.name, measured.value);
                    format!("at {name} {measured:.3} us were measured, and the run has {idle:.3} us without queueing")
                })
            });
            let named: Vec<&str> = layers.iter().map(|layer| name(*layer)).collect();
            let shape = match named.as_slice() {
                [] => "in more than one layer".to_owned(),
                names => format!("in the layer {}", names.join(" or ")),
            };
            format!("the model is too slow, {shape}: {}", below.unwrap_or_default())
        }
        Verdict::CannotTell(layers) => {
            let names: Vec<&str> = layers.iter().map(|layer| name(*layer)).collect();
            format!(
                "cannot tell between {}: each alone explains the differences; `--server` \
                 excludes one",
                names.join(" and ")
            )
        }
        Verdict::Several => {
            "cannot tell: no single layer explains the differences; calibrate at an idle load first"
                .to_owned()
        }
    }
}

fn name(layer: LatencyLayer) -> &'static str {
    match layer {
        LatencyLayer::Host => "host",
        LatencyLayer::Queue => "queue",
        LatencyLayer::Loss => "loss",
        LatencyLayer::Service => "service",
    }
}

fn reason(layer: LatencyLayer) -> &'static str {
    match layer {
        LatencyLayer::Host => {
            "the difference is the same at all quantiles, as a delay of the hosts' stacks is"
        }
        LatencyLayer::Queue => {
            "the difference grows with the quantile as queueing delay does: load, buffers, other traffic"
        }
        LatencyLayer::Loss => {
            "the difference jumps by at least half of a retransmission timeout: lost packets on one side only"
        }
        LatencyLayer::Service => "the difference has the shape of the time at the server",
    }
}

/// Lists comparisons, a row for each quantile. Unknown numbers are empty.
pub fn listing(comparisons: &[Comparison]) -> Listing {
    let text = ["workload", "run", "quantile"];
    let numbers = [
        "measured us",
        "measured interval",
        "model us",
        "model interval",
        "difference us",
        "difference interval",
    ];
    let column = |name: &&str, is_text| ListingColumn { name: (*name).to_owned(), width: 0, is_text };
    let padded = |name: &&str| ListingColumn { width: name.len() + 2, ..column(name, true) };
    let columns = text.iter().map(padded).chain(numbers.iter().map(|name| column(name, false))).collect();
    let cells = |estimate: Option<&Estimate>| {
        let interval = estimate.and_then(|estimate| estimate.interval);
        [
            estimate.map_or_else(String::new, |estimate| format!("{:.3}", estimate.value)),
            interval.map_or_else(String::new, |i| format!("{:.3} .. {:.3}", i.low, i.high)),
        ]
    };
    let row = |comparison: &Comparison, quantile: &Quantile| {
        let names = [comparison.workload.clone(), comparison.run.clone(), quantile.name.clone()];
        let sides =
            [quantile.measured_us.as_ref(), Some(&quantile.modelled_us), quantile.difference_us.as_ref()];
        names.into_iter().chain(sides.into_iter().flat_map(cells)).collect()
    };
    let rows = comparisons
        .iter()
        .flat_map(|comparison| comparison.quantiles.iter().map(move |quantile| row(comparison, quantile)));
    Listing { columns, rows: rows.collect() }
}
