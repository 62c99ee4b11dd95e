//! What a point of a figure runs: a server's model, or a formula of the tail.

use std::sync::Arc;

use plimsoll_models::sequential::{self, calls};
use plimsoll_models::server::{self, Served, ServerModel, ServerOutcome};
use plimsoll_models::{Empirical, Law, fan_out};
use plimsoll_results::stats::{Estimate, Samples, Statistic};

use crate::study::{Measured, Point, Task};

/// A measurement of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gauge {
    Mean,
    /// A percentile, as a share, and its name.
    Percentile(f64, &'static str),
    Max,
    /// The number of answers per second.
    Rate,
    Lost,
    /// Of lock requests, those that found the lock taken.
    Contended,
    /// Of the threads' time, what they wait for locks.
    Waiting,
    /// Of latencies, those up to so many us.
    UpTo(f64, &'static str),
    /// Mean, median and 99th percentile of a part of the latency.
    Part(Part),
    /// Median, mean and 99th percentile of the last of so many answers, each from a server like this one.
    LastOf(u32),
    /// Requests at the 99th percentile that fit one after the other into so many us.
    Calls(f64),
    /// The mean wait in the queue.
    Wait,
    /// Partitions that change hands, a second.
    Moves,
    /// The mean time in the application, locks included.
    Inside,
}

/// A part of a request's latency.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Kernel,
    Queue,
    Lock,
    Application,
    Total,
}

impl Part {
    fn of(self, served: &Served) -> f64 {
        let part = match self {
            Part::Kernel => served.kernel(),
            Part::Queue => served.queue,
            Part::Lock => served.lock,
            Part::Application => served.application,
            Part::Total => served.latency(),
        };
        part.as_us_f64()
    }
}

pub(crate) const P50: Gauge = Gauge::Percentile(0.5, "latency_us_p50");
pub(crate) const P99: Gauge = Gauge::Percentile(0.99, "latency_us_p99");
pub(super) const P999: Gauge = Gauge::Percentile(0.999, "latency_us_p999");

/// A run of a server's model.
pub(super) struct ServerTask {
    model: ServerModel,
    seed: u64,
    /// Series and place on the axis: two may have the same server.
    point: String,
    gauges: Vec<Gauge>,
}

impl ServerTask {
    pub(super) fn new(model: ServerModel, point: &Point<'_>, gauges: &[Gauge]) -> ServerTask {
        let Point { x, series, seed, .. } = *point;
        ServerTask { model, seed, point: format!("{series} at {x}"), gauges: gauges.to_vec() }
    }

    pub(super) fn of(model: ServerModel, point: &Point<'_>, gauges: &[Gauge]) -> Option<Arc<dyn Task>> {
        Some(Arc::new(ServerTask::new(model, point, gauges)))
    }
}

impl Task for ServerTask {
    fn settings(&self) -> String {
        let ServerTask { model, seed, point, gauges } = self;
        format!("{point}: {gauges:?} of {model:?}, seed {seed}")
    }

    fn measure(&self, _: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        let outcome = server::run(&self.model, self.seed).map_err(|invalid| invalid.to_string())?;
        let latencies = Samples::new(vec![outcome.latencies_us()]);
        Ok(self.gauges.iter().flat_map(|gauge| gauge.read(&outcome, &latencies)).collect())
    }
}

/// Returns a number of the point's own series, if there is one.
pub(super) fn measured(metric: &str, unit: &str, estimate: Option<Estimate>) -> Option<Measured> {
    Some(Measured {
        series: None,
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        estimate: estimate?,
        suspect: false,
    })
}

impl Gauge {
    /// Returns the measurement of a run, whose latencies in us are `latencies`.
    pub(crate) fn read(self, outcome: &ServerOutcome, latencies: &Samples) -> Vec<Measured> {
        let count = latencies.len() as u64;
        let bare =
            |metric: &str, unit: &str, value: f64| measured(metric, unit, Some(Estimate::bare(value, count)));
        let one = match self {
            Gauge::Mean => measured("latency_us_mean", "us", latencies.estimate(Statistic::Mean)),
            Gauge::Percentile(share, name) => {
                measured(name, "us", latencies.estimate(Statistic::Percentile(share)))
            }
            Gauge::Max => latencies.sorted().last().and_then(|&max| bare("latency_us_max", "us", max)),
            Gauge::Rate => bare("requests_per_s", "1/s", outcome.throughput()),
            Gauge::Lost => {
                let all = outcome.lost + count;
                bare("lost_percent", "%", 100.0 * outcome.lost as f64 / all.max(1) as f64)
            }
            Gauge::Contended => bare("contended_percent", "%", 100.0 * outcome.contended()),
            Gauge::Waiting => bare("waiting_percent", "%", 100.0 * outcome.waiting()),
            Gauge::UpTo(us, name) => {
                let within = latencies.sorted().partition_point(|&latency| latency <= us) as f64;
                bare(name, "%", 100.0 * within / count.max(1) as f64)
            }
            Gauge::Part(part) => return read_part(outcome, part),
            Gauge::LastOf(servers) => return last_of(latencies, servers),
            Gauge::Calls(budget_us) => latencies
                .estimate(Statistic::Percentile(0.99))
                .and_then(|p99| bare("calls", "requests", calls(p99.value, budget_us) as f64)),
            Gauge::Wait => {
                let waits = outcome.served.iter().map(|served| served.queue.as_us_f64()).collect();
                let waits = Samples::new(vec![waits]);
                measured("wait_us_simulated", "us", waits.estimate(Statistic::Mean))
            }
            Gauge::Inside => {
                let inside = |served: &Served| (served.application + served.lock).as_us_f64();
                let inside = Samples::new(vec![outcome.served.iter().map(inside).collect()]);
                measured("application_us_mean", "us", inside.estimate(Statistic::Mean))
            }
            Gauge::Moves => bare("moves_per_s", "1/s", outcome.moves as f64 / outcome.elapsed.as_secs_f64()),
        };
        one.into_iter().collect()
    }
}

fn read_part(outcome: &ServerOutcome, part: Part) -> Vec<Measured> {
    let samples = Samples::new(vec![outcome.served.iter().map(|served| part.of(served)).collect()]);
    let of = |name, statistic| measured(name, "us", samples.estimate(statistic));
    let all = [
        of("mean_us", Statistic::Mean),
        of("median_us", Statistic::Percentile(0.5)),
        of("p99_us", Statistic::Percentile(0.99)),
    ];
    all.into_iter().flatten().collect()
}

fn last_of(latencies: &Samples, servers: u32) -> Vec<Measured> {
    if latencies.is_empty() {
        return Vec::new();
    }
    let law = Law::Empirical(Empirical::of_samples(latencies.sorted().to_vec()));
    let of = |name, value| measured(name, "us", Some(Estimate::bare(value, latencies.len() as u64)));
    let all = [
        of("latency_us_mean", fan_out::expected(&law, servers)),
        of("latency_us_p50", fan_out::quantile(&law, servers, 0.5)),
        of("latency_us_p99", fan_out::quantile(&law, servers, 0.99)),
    ];
    all.into_iter().flatten().collect()
}

/// The largest of draws from N(90, 50): exactly, or by the dissertation's five repetitions.
#[derive(Debug)]
pub(super) struct FanOutTask {
    pub(super) servers: u32,
    /// Repetitions of the draws; none for the integral.
    pub(super) repetitions: Option<u32>,
    pub(super) seed: u64,
}

/// The law of section 4.1.
pub(super) const OBSERVED: Law = Law::Normal { mean: 90.0, sd: 50.0 };

impl Task for FanOutTask {
    fn settings(&self) -> String {
        format!("{self:?}")
    }

    fn measure(&self, _: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        let estimate = match self.repetitions {
            None => Some(Estimate::bare(fan_out::expected(&OBSERVED, self.servers), 0)),
            Some(repetitions) => {
                let draws = fan_out::draw(&OBSERVED, self.servers, repetitions, self.seed);
                // Each draw is a replicate of its own.
                let draws = draws.into_iter().map(|draw| vec![draw]).collect();
                Samples::new(draws).estimate(Statistic::Mean)
            }
        };
        Ok(measured("latency_us_mean", "us", estimate).into_iter().collect())
    }
}

/// Pollaczek and Khinchine's wait, and that of the model of a server with the same service times.
pub(super) struct SequentialTask {
    pub(super) server: sequential::Server,
    pub(super) load: f64,
    pub(super) budget_us: f64,
    pub(super) simulated: ServerTask,
}

impl Task for SequentialTask {
    fn settings(&self) -> String {
        let SequentialTask { server, load, budget_us, simulated } = self;
        format!("{server:?} {load} {budget_us} {}", simulated.settings())
    }

    fn measure(&self, goes_on: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        let SequentialTask { server, load, budget_us, simulated } = self;
        let of = |name, unit, value| measured(name, unit, Some(Estimate::bare(value, 0)));
        let all = [
            of("wait_us_exact", "us", server.wait_us(*load)),
            of("calls_exact", "requests", server.calls(*load, *budget_us) as f64),
        ];
        let mut measured = simulated.measure(goes_on)?;
        measured.extend(all.into_iter().flatten());
        Ok(measured)
    }
}
