//! [`ClusterTask`]: a run of the model of servers with the same data, whose requests have copies.

use std::sync::Arc;

use plimsoll_models::cluster::{self, ClusterModel, ClusterOutcome, Sending};
use plimsoll_results::stats::{Estimate, Samples, Statistic};
use plimsoll_scenario::distribution::TimeDistribution;
use plimsoll_servers::Parameters;
use plimsoll_units::Span;
use serde::Deserialize;

use crate::study::{Measured, Point, Task};

/// The keys of a figure in `study.toml` whose points are runs of this model: servers, load, times and copies.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ClusterKeys {
    servers: u32,
    /// The load without copies, in per cent of what all servers carry.
    load: f64,
    /// A request's time on its server, and elsewhere.
    service: TimeDistribution,
    outside: TimeDistribution,
    copies: Copies,
    /// Requests of a run, and of a quick one, a tenth of which is the warm-up.
    requests: (u64, u64),
}

/// The times at which copies of a request are sent.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Copies {
    Fixed(Sending),
    /// One copy after this quantile of the latencies without copies, at the same load.
    HedgeAt(f64),
}

/// A run of the servers.
struct ClusterTask {
    model: ClusterModel,
    copies: Copies,
    seed: u64,
    /// Series and place on the axis, as in other tasks.
    point: String,
}

/// Makes the task that simulates a point, from the figure's keys at its x and series.
pub(super) fn task(all: &Parameters, point: &Point<'_>) -> Result<Arc<dyn Task>, String> {
    let Point { x, series, seed, .. } = *point;
    let ClusterKeys { servers, load, service, outside, copies, requests: (full, quick) } =
        all.read(x, series)?;
    let mean_ns = service.known_mean().unwrap_or(f64::NAN) / 1e3;
    let rate = load / 100.0 * f64::from(servers) * 1e9 / mean_ns;
    let requests = if point.quick { quick } else { full };
    let (sending, warmup) = (Sending::Once, requests / 10);
    let model = ClusterModel { servers, rate, service, outside, sending, requests, warmup };
    Ok(Arc::new(ClusterTask { model, copies, seed, point: format!("{series} at {x}") }))
}

impl ClusterTask {
    fn run(&self, sending: Sending) -> Result<ClusterOutcome, String> {
        let model = ClusterModel { sending, ..self.model.clone() };
        cluster::run(&model, self.seed).map_err(|invalid| invalid.to_string())
    }
}

impl Task for ClusterTask {
    fn settings(&self) -> String {
        let ClusterTask { model, copies, seed, point } = self;
        format!("{point}: {copies:?} of {model:?}, seed {seed}")
    }

    fn measure(&self, _: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        let sending = match self.copies {
            Copies::Fixed(sending) => sending,
            Copies::HedgeAt(share) => {
                let once = Samples::new(vec![self.run(Sending::Once)?.latencies_us]);
                let after_us = once.estimate(Statistic::Percentile(share)).map_or(0.0, |at| at.value);
                Sending::Hedge { after: Span::from_secs_f64(after_us * 1e-6), copies: 2 }
            }
        };
        let outcome = self.run(sending)?;
        let utilisation = outcome.utilisation(self.model.servers);
        let bare = |value| Some(Estimate::bare(value, outcome.answered));
        let mut all = vec![
            Measured::own("load", "requests", bare(outcome.load())),
            Measured::own("utilisation_percent", "%", bare(100.0 * utilisation)),
        ];
        if utilisation < OVERLOADED {
            let latencies = Samples::new(vec![outcome.latencies_us]);
            let of = |name, statistic| Measured::own(name, "us", latencies.estimate(statistic));
            all.extend([
                of("latency_us_mean", Statistic::Mean),
                of("latency_us_p50", Statistic::Percentile(0.5)),
                of("latency_us_p99", Statistic::Percentile(0.99)),
                of("latency_us_p999", Statistic::Percentile(0.999)),
            ]);
        }
        Ok(all.into_iter().flatten().collect())
    }
}

/// The share of the time from which on servers count as overloaded: their queues grow as long as the run lasts.
const OVERLOADED: f64 = 0.97;
