//! What the points of the figures about copies of requests run: replicated reads, hedges, and timeouts with retries, on
//! ten memcached servers with the same data.
//!
//! A server is one thread, which the kernel's and the application's time of a request keep busy
//! ([`testbed`](super::testbed)); what the kernel does before keeps no thread. One thread needs no lock, so its time is
//! the same in every queue. The dissertation does not measure copies; nothing here is held to a published number.

use std::sync::Arc;

use plimsoll_models::cluster::{self, ClusterModel, ClusterOutcome, Sending};
use plimsoll_results::stats::{Estimate, Samples, Statistic};
use plimsoll_units::Span;

use super::tasks::measured;
use super::testbed::{self, number};
use crate::study::{Measured, Point, Task};

/// Servers with the same data.
const SERVERS: u32 = 10;
/// Requests of a run, and of a quick one.
const REQUESTS: (u64, u64) = (1_000_000, 40_000);
/// The most copies of a request that is given up, after the first.
const RETRIES: u32 = 3;
/// The share of the time from which on servers count as overloaded: their queues grow as long as the run lasts.
const OVERLOADED: f64 = 0.97;

/// Sends requests to several servers, at once or when a reply takes long.
pub(super) fn replicas(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let sending = match point.series {
        "once" => Copies::Fixed(Sending::Once),
        "2 replicas" => Copies::Fixed(Sending::Replicas(2)),
        "3 replicas" => Copies::Fixed(Sending::Replicas(3)),
        _ => Copies::HedgeAt(0.95),
    };
    Some(CopiesTask::of(sending, point))
}

/// Gives requests up after a timeout, which is the series, and sends them again.
pub(super) fn retries(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let sending = match point.series {
        "once" => Sending::Once,
        timeout => Sending::Retry {
            timeout: Span::from_us(number(timeout.trim_end_matches(" us")) as u64),
            retries: RETRIES,
        },
    };
    Some(CopiesTask::of(Copies::Fixed(sending), point))
}

/// When copies are sent.
#[derive(Clone, Copy, Debug)]
enum Copies {
    Fixed(Sending),
    /// One copy after so much of the latencies without copies, at the same load.
    HedgeAt(f64),
}

/// A run of ten servers.
struct CopiesTask {
    model: ClusterModel,
    copies: Copies,
    seed: u64,
    /// Series and place on the axis, as in other tasks.
    point: String,
}

impl CopiesTask {
    fn of(copies: Copies, point: &Point<'_>) -> Arc<dyn Task> {
        let (outside, _) = testbed::kernel(testbed::SYSTEM_NS);
        let (mean_ns, sd_ns) = testbed::on_thread_ns();
        let (full, quick) = REQUESTS;
        let requests = if point.quick { quick } else { full };
        let model = ClusterModel {
            servers: SERVERS,
            rate: number(point.x) / 100.0 * f64::from(SERVERS) * 1e9 / mean_ns as f64,
            service: testbed::lognormal(mean_ns, sd_ns),
            outside,
            sending: Sending::Once,
            requests,
            warmup: requests / 10,
        };
        let Point { x, series, seed, .. } = *point;
        Arc::new(CopiesTask { model, copies, seed, point: format!("{series} at {x}") })
    }

    fn run(&self, sending: Sending) -> Result<ClusterOutcome, String> {
        let model = ClusterModel { sending, ..self.model.clone() };
        cluster::run(&model, self.seed).map_err(|invalid| invalid.to_string())
    }
}

impl Task for CopiesTask {
    fn settings(&self) -> String {
        let CopiesTask { model, copies, seed, point } = self;
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
        let utilisation = outcome.utilisation(SERVERS);
        let bare = |value| Some(Estimate::bare(value, outcome.answered));
        let mut all = vec![
            measured("load", "requests", bare(outcome.load())),
            measured("utilisation_percent", "%", bare(100.0 * utilisation)),
        ];
        if utilisation < OVERLOADED {
            let latencies = Samples::new(vec![outcome.latencies_us]);
            let of = |name, statistic| measured(name, "us", latencies.estimate(statistic));
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
