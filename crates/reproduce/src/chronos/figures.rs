//! The figures of chapters 4 and 5: fan-out, chains, latency against load and clients, locks.

use std::sync::Arc;

use plimsoll_measure::sequential;
use plimsoll_sim::server::{Arrivals, Locking, ServerModel, Spacing};
use plimsoll_units::Span;

use super::evaluation;
use super::tasks::{FanOutTask, Gauge, P50, P99, P999, Part, SequentialTask, ServerTask};
use super::testbed::{self, Kind};
use crate::published::Published;
use crate::study::{Base, Case, Figure, Point, Runs, Task};

/// Every figure, in the study's order.
pub(super) fn figures() -> Vec<Figure> {
    let mut figures = vec![
        fan_out(),
        fan_out_of_servers(),
        sequential(),
        sequential_of_servers(),
        sources(),
        locks(),
        load("fig5.1", "Latency at 30 % of the maximum, by the number of clients", |point| {
            paced(point, 40_000.0)
        }),
        load("fig5.2", "Latency at 70 % of the maximum, by the number of clients", |point| {
            paced(point, 90_000.0)
        }),
        search(),
    ];
    figures.extend(evaluation::figures());
    figures
}

/// The metrics of a figure that are worth a picture.
pub(super) fn drawn(figure: &str) -> &'static [&'static str] {
    match figure {
        "fig4.1" => &["latency_us_mean"],
        "fig4.2" => &["latency_us_p50", "latency_us_p99"],
        "fig4.3" => &["calls_exact"],
        "fig4.4" => &["calls"],
        "fig5.1" | "fig5.2" => &["latency_us_p50", "latency_us_p99", "latency_us_p999"],
        "fig5.3" | "fig6.4" => &["latency_us_mean", "latency_us_p99", "requests_per_s"],
        "fig6.3" => &["latency_us_mean", "latency_us_p99"],
        "fig6.2" | "fig6.5" | "fig6.6" => &["latency_us_p99"],
        "fig6.7" => &["latency_us_p99", "latency_us_p999", "latency_us_max"],
        "fig6.8" => &["latency_us_mean", "latency_us_p99"],
        "cores" | "cores-zipf" => &["requests_per_s", "latency_us_p99"],
        _ => &[],
    }
}

/// Makes the task of a point; none where a series does not have it.
pub(crate) type MakeTask = fn(&Point<'_>) -> Option<Arc<dyn Task>>;

/// A figure whose points are tasks.
pub(crate) fn figure(id: &'static str, title: &'static str, task: MakeTask, xs: &[&str]) -> Figure {
    Figure {
        id,
        title,
        runs: Runs::Task(task),
        bases: &[Base::Source],
        axis: "",
        log: false,
        cases: xs.iter().map(|x| Case { x: (*x).to_owned(), ..Case::default() }).collect(),
        quick: &[],
        standard_is_quick: false,
        series: &["MC"],
        metrics: Vec::new(),
        published: |_, _, _| None,
        original: |_, _, _| None,
        // Where there is a published value.
        tolerance: |_, _, _, _| Some(ABOUT),
    }
}

fn text() -> Published {
    Published::parse(include_str!("../../published/chronos_text.csv"))
}

/// What the text says of a number, as a point: bounds are held as claims.
pub(super) fn said(figure: &str, series: &str, x: &str, metric: &str) -> Option<f64> {
    of_kind("about", figure, series, x, metric)
}

/// A number of the text that a parameter is taken from.
fn given(figure: &str, series: &str, x: &str, metric: &str) -> Option<f64> {
    of_kind("given", figure, series, x, metric)
}

/// A number of the text: `about` so much, `at least`, `at most`, or `given` to the model.
pub(crate) fn of_kind(kind: &str, figure: &str, series: &str, x: &str, metric: &str) -> Option<f64> {
    let keys = [("figure", figure), ("series", series), ("x", x), ("metric", metric), ("kind", kind)];
    text().value(&keys, "value")
}

/// How close a number of the text, *about* so much, must be.
pub(super) const ABOUT: f64 = 1.35;

/// A number on the axis.
pub(crate) fn number(x: &str) -> f64 {
    x.parse().expect("the points of these figures are numbers")
}

fn fan_out() -> Figure {
    let task: MakeTask = |point| {
        let repetitions = (point.series == "five draws").then_some(5);
        let servers = number(point.x) as u32;
        Some(Arc::new(FanOutTask { servers, repetitions, seed: point.seed }))
    };
    let xs = ["1", "2", "5", "10", "24", "50", "75", "100"];
    Figure {
        axis: "servers asked at once",
        series: &["expected", "five draws"],
        ..figure("fig4.1", "The last of S answers, each N(90 us, 50 us)", task, &xs)
    }
}

fn fan_out_of_servers() -> Figure {
    // Memslap's low rate: nothing queues.
    let task: MakeTask = |point| {
        let model = testbed::server(Kind::Baseline, 10_000.0, point);
        ServerTask::of(model, point, &[Gauge::LastOf(number(point.x) as u32)])
    };
    Figure {
        axis: "servers asked at once",
        published: |series, x, metric| said("fig4.2", series, x, metric),
        ..figure(
            "fig4.2",
            "The last of S answers of lightly loaded servers",
            task,
            &["1", "2", "4", "8", "12", "16", "20", "24"],
        )
    }
}

fn sequential() -> Figure {
    let task: MakeTask = |point| {
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
    };
    Figure {
        axis: "load of the server",
        series: &["sd 1", "sd 2"],
        ..figure(
            "fig4.3",
            "Requests in a chain within 100 service times, by Eq. 4.2",
            task,
            &["0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"],
        )
    }
}

fn sequential_of_servers() -> Figure {
    let task: MakeTask = |point| {
        let rate = number(point.x) * 1e3;
        let kind = if point.series == "MC" { Kind::Baseline } else { Kind::Chronos };
        // What loses more than 1 % of its requests was stopped.
        let beyond = kind == Kind::Baseline && rate > 120_000.0;
        let model = testbed::server(kind, rate, point);
        if beyond { None } else { ServerTask::of(model, point, &[Gauge::Calls(10_000.0)]) }
    };
    Figure {
        axis: "requests per second (thousands)",
        log: true,
        series: &["MC", "CH"],
        ..figure(
            "fig4.4",
            "Requests in a chain within 10 ms, each at its 99th percentile",
            task,
            &["10", "40", "80", "100", "120", "200", "500", "1000"],
        )
    }
}

/// Table 5.1.
fn sources() -> Figure {
    let task: MakeTask = |point| {
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
    };
    Figure {
        quick: &["kernel", "application", "total"],
        series: &["MC 20k/s", "MC 90k/s", "MC 161 clients"],
        published: |series, x, metric| said("table5.1", series, x, metric),
        ..figure(
            "table5.1",
            "Where the latency is",
            task,
            &["kernel", "queue", "lock", "application", "total"],
        )
    }
}

/// What mutrace saw with 20 clients: the two parameters that come from it, and the one that does not.
fn locks() -> Figure {
    let task: MakeTask = |point| {
        let clients = number(point.x) as u32;
        let model = testbed::server(Kind::Baseline, 1.0, point);
        let model = testbed::asked_by(model, testbed::memslap(clients, None));
        ServerTask::of(model, point, &[Gauge::Rate, Gauge::Waiting, Gauge::Contended])
    };
    Figure {
        axis: "clients",
        published: |series, x, metric| said("lock", series, x, metric),
        ..figure("lock", "memcached's lock, as fast as its clients can", task, &["2", "5", "10", "20", "40"])
    }
}

/// Memslap clients that hold themselves to a rate of all together, or do not.
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

/// All clients at the same instant, as a timer's tick sends them: a burst of nearly no length that has all requests.
pub(super) fn in_step(clients: u32, rate: f64) -> Arrivals {
    let period = f64::from(clients) / rate;
    let length = Span::from_us(10);
    let share = 0.999;
    Arrivals::Bursts { rate, ratio: share * period / length.as_secs_f64(), length, share, clients: 1 }
}

fn load(id: &'static str, title: &'static str, task: MakeTask) -> Figure {
    Figure {
        axis: "clients",
        series: &["MC", "MC, in step", "MC, unpaced"],
        published: if id == "fig5.1" {
            |series, x, metric| {
                // Said of any number of clients; held where there are the most.
                (x == "161").then(|| said("fig5.1", series, "all", metric)).flatten()
            }
        } else {
            |series, x, metric| said("fig5.2", series, x, metric)
        },
        ..figure(id, title, task, &["7", "23", "46", "92", "161"])
    }
}

fn search() -> Figure {
    let task: MakeTask = |point| {
        let model = testbed::search(point.series, point);
        let model = testbed::asked_by(model, testbed::memslap(number(point.x) as u32, None));
        ServerTask::of(model, point, &[Gauge::Mean, P99, Gauge::Rate, Gauge::Inside])
    };
    Figure {
        axis: "clients",
        series: &["read/write lock", "RCU", "CH"],
        // What RCU's grace period is taken from stands beside it, and is not held.
        published: |series, x, metric| {
            said("fig5.3", series, x, metric).or_else(|| given("fig5.3", series, x, metric))
        },
        tolerance: |series, _, _, _| (series != "RCU").then_some(ABOUT),
        ..figure(
            "fig5.3",
            "An index server behind a read/write lock, RCU and Chronos",
            task,
            &["1", "5", "10", "20", "40", "80", "160"],
        )
    }
}
