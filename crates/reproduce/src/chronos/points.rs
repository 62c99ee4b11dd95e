//! What the points of the figures run, of chapters 4 and 5: fan-out, chains, latency against load and clients, locks.

use std::sync::Arc;

use plimsoll_models::sequential;
use plimsoll_models::server::{Arrivals, Locking, ServerModel, Spacing};
use plimsoll_units::Span;

use super::tasks::{FanOutTask, Gauge, P50, P99, P999, Part, SequentialTask, ServerTask};
use super::testbed::{self, Kind, number};
use super::{assumed, copies, evaluation};
use crate::study::{MakeTask, Named, Point, Task};

/// The tasks of the study's figures, by the names in its file.
pub(crate) const TASKS: Named<MakeTask> = &[
    ("chronos.fan-out", fan_out),
    ("chronos.fan-out-of-servers", fan_out_of_servers),
    ("chronos.behind-a-clients-kernel", behind_a_clients_kernel),
    ("chronos.chain", chain),
    ("chronos.chain-of-servers", chain_of_servers),
    ("chronos.sources", sources),
    ("chronos.lock", lock),
    ("chronos.clients-at-40000", |point| paced(point, 40_000.0)),
    ("chronos.clients-at-90000", |point| paced(point, 90_000.0)),
    ("chronos.search", search),
    ("chronos.configurations", evaluation::configurations),
    ("chronos.uniform", evaluation::uniform),
    ("chronos.clients", evaluation::clients),
    ("chronos.bursts", evaluation::bursts),
    ("chronos.bursts-on-threads", evaluation::bursts_on_threads),
    ("chronos.hot-keys", evaluation::hot_keys),
    ("chronos.one-partition", evaluation::one_partition),
    ("chronos.memory", evaluation::memory),
    ("chronos.openflow", evaluation::openflow),
    ("chronos.controller", assumed::of_controller),
    ("chronos.socket", assumed::of_socket),
    ("chronos.designs", evaluation::designs),
    ("chronos.designs-by-zipf", evaluation::designs_by_zipf),
    ("chronos.replicas", copies::replicas),
    ("chronos.retries", copies::retries),
    ("chronos.assumed-of-memcached", assumed::of_memcached),
    ("chronos.assumed-of-chronos", assumed::of_chronos),
    ("chronos.ticks", assumed::of_ticks),
    ("chronos.search-behind-sockets", search_behind_sockets),
];

/// Asks for the last of S answers, each N(90 us, 50 us).
fn fan_out(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let repetitions = (point.series == "five draws").then_some(5);
    let servers = number(point.x) as u32;
    Some(Arc::new(FanOutTask { servers, repetitions, seed: point.seed }))
}

/// Asks for the last of S answers of lightly loaded servers.
fn fan_out_of_servers(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    // Memslap's low rate: nothing queues.
    let model = testbed::server(Kind::Baseline, 10_000.0, point);
    ServerTask::of(model, point, &[Gauge::LastOf(number(point.x) as u32)])
}

/// Asks a lightly loaded server from behind a client's kernel, which takes the time of the axis.
fn behind_a_clients_kernel(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let mut model = testbed::server(Kind::Baseline, 10_000.0, point);
    model.costs.network += Span::from_us(number(point.x) as u64);
    ServerTask::of(model, point, &[P50, P99])
}

/// Counts the requests of a chain within 100 service times, by Eq. 4.2.
fn chain(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let load = number(point.x);
    let times = if point.series == "sd 1" { 1.0 } else { 2.0 };
    let server = sequential::Server { mean_us: 10.0, sd_us: 10.0 * times };
    let mut model = testbed::server(Kind::UserLevel, load * 1e5, point);
    model.threads = 1;
    model.locking = Locking::None;
    model.queue_limit = None;
    model.costs.application = testbed::lognormal(10_000, (10_000.0 * times) as u64);
    model.arrivals = Arrivals::Open { rate: load * 1e5, spacing: Spacing::Poisson, clients: 1 };
    let simulated = ServerTask::new(model, point, &[Gauge::Wait]);
    Some(Arc::new(SequentialTask { server, load, budget_us: 1_000.0, simulated }))
}

/// Counts the requests of a chain within 10 ms, each at its 99th percentile.
fn chain_of_servers(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let rate = number(point.x) * 1e3;
    let kind = if point.series == "MC" { Kind::Baseline } else { Kind::Chronos };
    // What loses more than 1 % of its requests was stopped.
    let beyond = kind == Kind::Baseline && rate > 120_000.0;
    let model = testbed::server(kind, rate, point);
    if beyond { None } else { ServerTask::of(model, point, &[Gauge::Calls(10_000.0)]) }
}

/// Measures a part of the latency, for Table 5.1.
fn sources(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let model = match point.series {
        "MC 20k/s" => testbed::server(Kind::Baseline, 20_000.0, point),
        "MC 90k/s" => paced_server(161, Some(90_000.0), point),
        _ => paced_server(161, None, point),
    };
    let part = match point.x {
        "kernel" => Part::Kernel,
        "queue" => Part::Queue,
        "lock" => Part::Lock,
        "application" => Part::Application,
        _ => Part::Total,
    };
    ServerTask::of(model, point, &[Gauge::Part(part)])
}

/// Measures what mutrace saw: the two parameters that come from it, and the one that does not.
fn lock(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let clients = number(point.x) as u32;
    let model = testbed::server(Kind::Baseline, 1.0, point);
    let model = testbed::asked_by(model, testbed::memslap(clients, None));
    ServerTask::of(model, point, &[Gauge::Rate, Gauge::Waiting, Gauge::Contended])
}

/// Returns a server with memslap's clients, which keep to a rate of all together, or to none.
fn paced_server(clients: u32, rate: Option<f64>, point: &Point<'_>) -> ServerModel {
    let model = testbed::server(Kind::Baseline, 1.0, point);
    testbed::asked_by(model, testbed::memslap(clients, rate))
}

fn paced(point: &Point<'_>, rate: f64) -> Option<Arc<dyn Task>> {
    let clients = number(point.x) as u32;
    let mut model = paced_server(clients, Some(rate).filter(|_| point.series != "MC, unpaced"), point);
    if point.series == "MC, in step" {
        model.arrivals = in_step(clients, rate);
    }
    let gauges = [Gauge::Mean, P50, P99, P999, Gauge::UpTo(150.0, "within_150_us_percent")];
    ServerTask::of(model, point, &gauges)
}

/// Returns the arrivals of clients that send at the same instant, as at a timer's tick: a burst of nearly no length
/// that has all requests.
pub(super) fn in_step(clients: u32, rate: f64) -> Arrivals {
    let period = f64::from(clients) / rate;
    let length = Span::from_us(10);
    let share = 0.999;
    Arrivals::Bursts { rate, ratio: share * period / length.as_secs_f64(), length, share, clients: 1 }
}

/// Measures an index server behind a read/write lock, RCU and Chronos.
fn search(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let model = testbed::search(point.series, point);
    let model = testbed::asked_by(model, testbed::memslap(number(point.x) as u32, None));
    ServerTask::of(model, point, &[Gauge::Mean, P99, Gauge::Rate, Gauge::Inside])
}

/// Measures the index server with 160 clients, by the number of threads, past the kernel's sockets and behind them.
fn search_behind_sockets(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let mut model = testbed::search(point.series, point);
    model.threads = if point.x.starts_with("2 threads") { 2 } else { testbed::THREADS };
    let system_ns = match point.x.rsplit_once(", ") {
        Some((_, "behind sockets")) => Some(testbed::SYSTEM_NS),
        // A request takes 4.7 us of a thread there, and 2 of these in the model's application.
        Some((_, "behind sockets of 2.7 us")) => Some(2_700),
        _ => None,
    };
    if let Some(system_ns) = system_ns {
        (model.costs.delivery, model.costs.system) = testbed::kernel(system_ns);
    }
    let model = testbed::asked_by(model, testbed::memslap(160, None));
    ServerTask::of(model, point, &[Gauge::Mean, P99, Gauge::Rate])
}
