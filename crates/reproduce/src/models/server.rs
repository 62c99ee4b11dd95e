//! [`ServerTask`]: a run of the model of a server, whose parameters a study's file has.

use std::sync::Arc;

use plimsoll_models::sequential::{self, calls};
use plimsoll_models::server::{self, Served, ServerArrivals, ServerModel, ServerOutcome};
use plimsoll_models::{Empirical, Law, fan_out};
use plimsoll_results::stats::{Estimate, Samples, Statistic};
use plimsoll_servers::parameters::{self, Parameters, put_all};
use plimsoll_units::Span;
use serde::Deserialize;
use toml::{Table, Value};

use crate::study::{Base, Measured, Point, Task};

/// The keys of a figure for its task; every other key is a path in the model, such as `costs.locked`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ServerKeys {
    /// A server of the study. Its table `standard` has the paths that differ by the standard base.
    server: String,
    gauges: Vec<ModelGauge>,
    /// Requests of a run, and of a quick one, a tenth of which is the warm-up.
    #[serde(default = "requests")]
    requests: (u64, u64),
    /// The fewest requests of a run, where that is more.
    #[serde(default)]
    least_requests: f64,
    /// The number of clients that send at the same instant, at the rate of the arrivals.
    in_step: Option<u32>,
    /// The period of a timer at whose ticks clients send all requests that are due; 0 sends each when it is due.
    ticks: Option<Span>,
    /// A chain of requests, by a formula beside the model.
    chain: Option<RequestChain>,
}

const KEYS: [&str; 7] = ["server", "gauges", "requests", "least-requests", "in-step", "ticks", "chain"];

fn requests() -> (u64, u64) {
    (400_000, 40_000)
}

/// Requests one after the other, by Pollaczek and Khinchine's wait.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RequestChain {
    mean_us: f64,
    sd_us: f64,
    load: f64,
    budget_us: f64,
}

/// A measurement of a server.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum ModelGauge {
    Mean,
    /// A percentile, as a share, and its name.
    Percentile(f64, String),
    Max,
    /// The number of answers per second.
    Rate,
    Lost,
    /// The share of lock requests that found the lock taken.
    Contended,
    /// Of the threads' time, the part in which they wait for locks.
    Waiting,
    /// The share of latencies up to a limit in us, and its name.
    UpTo(f64, String),
    /// Mean, median and 99th percentile of a part of the latency.
    Part(LatencyPart),
    /// Median, mean and 99th percentile of the last of several answers, each from a server like this one.
    LastOf(u32),
    /// Requests at the 99th percentile that fit one after the other into a budget in us.
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
pub(crate) enum LatencyPart {
    Kernel,
    Queue,
    Lock,
    Application,
    Total,
}

impl LatencyPart {
    fn of(self, served: &Served) -> f64 {
        let part = match self {
            LatencyPart::Kernel => served.kernel(),
            LatencyPart::Queue => served.queue,
            LatencyPart::Lock => served.lock,
            LatencyPart::Application => served.application,
            LatencyPart::Total => served.latency(),
        };
        part.as_us_f64()
    }
}

/// A run of a server's model.
struct ServerTask {
    model: ServerModel,
    seed: u64,
    /// Series and place on the axis: two may have the same server.
    point: String,
    gauges: Vec<ModelGauge>,
    chain: Option<RequestChain>,
}

/// Makes the task that simulates a point, from the server, the figure's keys and its x and series.
pub(super) fn task(all: &Parameters, point: &Point<'_>) -> Result<Arc<dyn Task>, String> {
    let mut paths = all.table(point.x, point.series);
    let own: Table = KEYS.iter().filter_map(|key| Some(((*key).to_owned(), paths.remove(*key)?))).collect();
    let keys: ServerKeys = parameters::read(own)?;
    let mut server = all.server(&keys.server)?;
    if let Some(Value::Table(standard)) = server.remove("standard")
        && point.base == Base::Standard
    {
        put_all(&mut server, standard)?;
    }
    put_all(&mut server, paths)?;
    let mut model: ServerModel = parameters::read(server)?;
    let (full, quick) = keys.requests;
    let requests = if point.quick { quick } else { full };
    (model.requests, model.warmup) = (requests.max(keys.least_requests as u64), requests / 10);
    if let ServerArrivals::Closed { .. } = model.arrivals {
        model.queue_limit = None;
    }
    if let Some(clients) = keys.in_step {
        model.arrivals = in_step(clients, &model.arrivals);
    }
    if let Some(every) = keys.ticks.filter(|every| *every > Span::ZERO) {
        model.arrivals = ServerArrivals::Ticks { every, due: Box::new(model.arrivals) };
    }
    let Point { x, series, seed, .. } = *point;
    let ServerKeys { gauges, chain, .. } = keys;
    Ok(Arc::new(ServerTask { model, seed, point: format!("{series} at {x}"), gauges, chain }))
}

/// Returns the arrivals of clients that send at the same instant, as at a timer's tick: a burst of nearly no length
/// that has all requests.
fn in_step(clients: u32, like: &ServerArrivals) -> ServerArrivals {
    let rate = match like {
        ServerArrivals::Open { rate, .. } | ServerArrivals::Bursts { rate, .. } => *rate,
        ServerArrivals::Closed { rate, .. } => rate.unwrap_or(0.0),
        ServerArrivals::Ticks { .. } => 0.0,
    };
    let (length, share) = (Span::from_us(10), 0.999);
    let period = f64::from(clients) / rate;
    ServerArrivals::Bursts { rate, ratio: share * period / length.as_secs_f64(), length, share, clients: 1 }
}

impl Task for ServerTask {
    fn settings(&self) -> String {
        let ServerTask { model, seed, point, gauges, chain } = self;
        let chain = chain.map_or_else(String::new, |RequestChain { mean_us, sd_us, load, budget_us }| {
            format!("{:?} {load} {budget_us} ", sequential::Server { mean_us, sd_us })
        });
        // With the names of the structs: a page is old where one gets another name.
        format!("{chain}{point}: {gauges:?} of {model:?}, seed {seed}")
    }

    fn measure(&self, _: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        let outcome = server::run(&self.model, self.seed).map_err(|invalid| invalid.to_string())?;
        let latencies = Samples::new(vec![outcome.latencies_us()]);
        let mut all: Vec<Measured> =
            self.gauges.iter().flat_map(|gauge| gauge.read(&outcome, &latencies)).collect();
        if let Some(RequestChain { mean_us, sd_us, load, budget_us }) = self.chain {
            let server = sequential::Server { mean_us, sd_us };
            let of = |name, unit, value| Measured::own(name, unit, Some(Estimate::bare(value, 0)));
            all.extend(of("wait_us_exact", "us", server.wait_us(load)));
            all.extend(of("calls_exact", "requests", server.calls(load, budget_us) as f64));
        }
        Ok(all)
    }
}

impl TryFrom<String> for ModelGauge {
    type Error = String;

    /// Reads `p99` or `last-of(24)`.
    fn try_from(text: String) -> Result<ModelGauge, String> {
        let call = text.strip_suffix(')').and_then(|text| text.split_once('('));
        let (name, argument) = call.unwrap_or((&text, ""));
        let number = || argument.parse().map_err(|_| format!("`{text}` needs a number in brackets"));
        let percentile = |share| ModelGauge::Percentile(share, format!("latency_us_{name}"));
        Ok(match name {
            "mean" => ModelGauge::Mean,
            "p50" => percentile(0.5),
            "p99" => percentile(0.99),
            "p999" => percentile(0.999),
            "max" => ModelGauge::Max,
            "rate" => ModelGauge::Rate,
            "lost" => ModelGauge::Lost,
            "contended" => ModelGauge::Contended,
            "waiting" => ModelGauge::Waiting,
            "up-to" => ModelGauge::UpTo(number()?, format!("within_{argument}_us_percent")),
            "kernel" => ModelGauge::Part(LatencyPart::Kernel),
            "queue" => ModelGauge::Part(LatencyPart::Queue),
            "lock" => ModelGauge::Part(LatencyPart::Lock),
            "application" => ModelGauge::Part(LatencyPart::Application),
            "total" => ModelGauge::Part(LatencyPart::Total),
            "last-of" => ModelGauge::LastOf(number()? as u32),
            "calls" => ModelGauge::Calls(number()?),
            "wait" => ModelGauge::Wait,
            "moves" => ModelGauge::Moves,
            "inside" => ModelGauge::Inside,
            _ => return Err(format!("there is no gauge `{text}`; allowed: {GAUGES}")),
        })
    }
}

const GAUGES: &str = "mean, p50, p99, p999, max, rate, lost, contended, waiting, up-to(US), kernel, queue, lock, \
                      application, total, last-of(SERVERS), calls(US), wait, moves, inside";

impl ModelGauge {
    /// Returns the measurement of a run, whose latencies in us are `latencies`.
    pub(crate) fn read(&self, outcome: &ServerOutcome, latencies: &Samples) -> Vec<Measured> {
        let count = latencies.len() as u64;
        let latency = |metric: &str, statistic| Measured::own(metric, "us", latencies.estimate(statistic));
        let bare = |metric: &str, unit: &str, value: f64| {
            Measured::own(metric, unit, Some(Estimate::bare(value, count)))
        };
        let mean = |metric: &str, of: fn(&Served) -> Span| {
            let samples = Samples::new(vec![outcome.served.iter().map(|one| of(one).as_us_f64()).collect()]);
            Measured::own(metric, "us", samples.estimate(Statistic::Mean))
        };
        let one = match self {
            ModelGauge::Mean => latency("latency_us_mean", Statistic::Mean),
            ModelGauge::Percentile(share, name) => latency(name, Statistic::Percentile(*share)),
            ModelGauge::Max => latencies.sorted().last().and_then(|&max| bare("latency_us_max", "us", max)),
            ModelGauge::Rate => bare("requests_per_s", "1/s", outcome.throughput()),
            ModelGauge::Lost => {
                let all = outcome.lost + count;
                bare("lost_percent", "%", 100.0 * outcome.lost as f64 / all.max(1) as f64)
            }
            ModelGauge::Contended => bare("contended_percent", "%", 100.0 * outcome.contended()),
            ModelGauge::Waiting => bare("waiting_percent", "%", 100.0 * outcome.waiting()),
            ModelGauge::UpTo(us, name) => {
                let within = latencies.sorted().partition_point(|latency| latency <= us) as f64;
                bare(name, "%", 100.0 * within / count.max(1) as f64)
            }
            ModelGauge::Part(part) => return read_part(outcome, *part),
            ModelGauge::LastOf(servers) => return last_of(latencies, *servers),
            ModelGauge::Calls(budget_us) => latencies
                .estimate(Statistic::Percentile(0.99))
                .and_then(|p99| bare("calls", "requests", calls(p99.value, *budget_us) as f64)),
            ModelGauge::Wait => mean("wait_us_simulated", |served| served.queue),
            ModelGauge::Inside => mean("application_us_mean", |served| served.application + served.lock),
            ModelGauge::Moves => {
                bare("moves_per_s", "1/s", outcome.moves as f64 / outcome.elapsed.as_secs_f64())
            }
        };
        one.into_iter().collect()
    }
}

fn read_part(outcome: &ServerOutcome, part: LatencyPart) -> Vec<Measured> {
    let samples = Samples::new(vec![outcome.served.iter().map(|served| part.of(served)).collect()]);
    let of = |name, statistic| Measured::own(name, "us", samples.estimate(statistic));
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
    let of = |name, value| Measured::own(name, "us", Some(Estimate::bare(value, latencies.len() as u64)));
    let all = [
        of("latency_us_mean", fan_out::expected(&law, servers)),
        of("latency_us_p50", fan_out::quantile(&law, servers, 0.5)),
        of("latency_us_p99", fan_out::quantile(&law, servers, 0.99)),
    ];
    all.into_iter().flatten().collect()
}
