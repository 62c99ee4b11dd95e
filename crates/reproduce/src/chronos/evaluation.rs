//! The figures of chapter 6: configurations, uniform load, bursts, hot keys, memory; and designs by the number of cores.

use plimsoll_sim::server::{
    Arrivals, Dispatch, Keys, Locking, Numa, Placement, Popularity, ServerModel, Spacing, Steering,
};
use plimsoll_units::Span;

use super::assumed;
use super::figures::{ABOUT, MakeTask, figure, number, said};
use super::tasks::{Gauge, P50, P99, P999, ServerTask};
use super::testbed::{self, Kind};
use crate::published::Published;
use crate::study::{Base, Figure, Point};

const BOTH: &[Base] = &[Base::Source, Base::Standard];

pub(super) fn figures() -> Vec<Figure> {
    let mut figures = vec![
        configurations(),
        uniform(),
        clients(),
        bursts(),
        bursts_on_threads(),
        hot_keys(),
        one_partition(),
        memory(),
        openflow(),
    ];
    figures.extend(cores());
    figures.extend(assumed::figures());
    figures
}

fn configurations() -> Figure {
    let task: MakeTask = |point| {
        let mut model = testbed::server(Kind::Baseline, 1.0, point);
        (model.processes, model.threads) = match point.series {
            "1P 1T" => (1, 1),
            "1P 4T" => (1, 4),
            _ => (4, 1),
        };
        let model = testbed::asked_by(model, testbed::memslap(number(point.x) as u32, None));
        ServerTask::of(model, point, &[P50, P99, Gauge::Rate])
    };
    Figure {
        axis: "clients",
        series: &["1P 1T", "1P 4T", "4P 1T"],
        published: |series, x, metric| said("fig6.2", series, x, metric),
        ..figure(
            "fig6.2",
            "Processes (P) and threads (T) of memcached",
            task,
            &["4", "20", "40", "80", "140"],
        )
    }
}

fn kind(series: &str) -> Kind {
    match series {
        "UNet locks" => Kind::UserLevel,
        series if series.starts_with("MC") => Kind::Baseline,
        _ => Kind::Chronos,
    }
}

fn uniform() -> Figure {
    let task: MakeTask = |point| {
        let model = testbed::server(kind(point.series), number(point.x) * 1e3, point);
        ServerTask::of(model, point, &[Gauge::Mean, P50, P99, Gauge::Rate, Gauge::Lost])
    };
    Figure {
        bases: BOTH,
        axis: "requests per second (thousands)",
        log: true,
        series: &["MC", "UNet locks", "CH"],
        quick: &["10", "100", "120", "200", "500", "1000"],
        published: |series, x, metric| said("fig6.3", series, x, metric),
        ..figure(
            "fig6.3",
            "Uniform load from ten open-loop clients",
            task,
            &["10", "50", "100", "120", "200", "300", "500", "700", "900", "1000", "1100"],
        )
    }
}

fn clients() -> Figure {
    let task: MakeTask = |point| {
        let model = testbed::server(kind(point.series), 1.0, point);
        let model = testbed::asked_by(model, testbed::memslap(number(point.x) as u32, None));
        ServerTask::of(model, point, &[Gauge::Mean, P99, Gauge::Rate])
    };
    Figure {
        bases: BOTH,
        axis: "clients",
        series: &["MC", "CH"],
        published: |series, x, metric| said("fig6.4", series, x, metric),
        ..figure("fig6.4", "Closed-loop clients", task, &["8", "40", "80", "120", "200", "400"])
    }
}

/// Ten times the mean rate for a while, 10 % of all requests.
fn bursty(rate: f64, length: Span) -> Arrivals {
    Arrivals::Bursts { rate, ratio: 10.0, length, share: 0.1, clients: 10 }
}

fn bursts() -> Figure {
    // The text compares with *the single-thread case*.
    let task: MakeTask = |point| {
        let rate = number(point.x) * 1e3;
        let long = point.series.ends_with("10 ms");
        let mut model = testbed::server(kind(point.series), rate, point);
        model.threads = 1;
        model.arrivals = bursty(rate, Span::from_ms(if long { 10 } else { 1 }));
        if point.series.ends_with("ring of 512") {
            model.queue_limit = Some(512);
        }
        // Ten periods at least.
        let period = if long { 1.0 } else { 0.1 };
        model.requests = model.requests.max((rate * period * 10.0) as u64);
        ServerTask::of(model, point, &[Gauge::Mean, P99, Gauge::Lost])
    };
    Figure {
        axis: "requests per second (thousands)",
        log: true,
        series: &["MC 1 ms", "MC 10 ms", "CH 1 ms", "CH 10 ms", "CH 1 ms, ring of 512"],
        quick: &["10", "40", "150"],
        published: |series, x, metric| said("fig6.5", series, x, metric),
        ..figure(
            "fig6.5",
            "Bursts of ten times the rate on one thread",
            task,
            &["4", "10", "20", "40", "60", "100", "150", "200"],
        )
    }
}

fn bursts_on_threads() -> Figure {
    let task: MakeTask = |point| {
        let rate = number(point.x) * 1e3;
        let mut model = testbed::server(Kind::Chronos, rate, point);
        model.threads = if point.series == "CH 2T" { 2 } else { 4 };
        model.arrivals = bursty(rate, Span::from_ms(1));
        model.requests = model.requests.max(rate as u64);
        model.queue_limit = None;
        ServerTask::of(model, point, &[Gauge::Mean, P99])
    };
    Figure {
        bases: BOTH,
        axis: "requests per second (thousands)",
        log: true,
        series: &["CH 2T", "CH 4T"],
        ..figure(
            "fig6.6",
            "Bursts of 1 ms on two and four threads",
            task,
            &["20", "50", "100", "150", "200", "300", "400"],
        )
    }
}

/// A steered server, or one whose mapping stays.
fn steer(model: &mut ServerModel, epoch: Option<Span>) {
    match (&mut model.dispatch, epoch) {
        (Dispatch::Steered(Steering { epoch: old, .. }), Some(epoch)) => *old = epoch,
        _ => model.dispatch = Dispatch::Static,
    }
}

fn hot_keys() -> Figure {
    let task: MakeTask = |point| {
        let mut model = testbed::server(Kind::Chronos, 1e6, point);
        model.arrivals = Arrivals::Open { rate: 1e6, spacing: Spacing::Uniform, clients: 1 };
        let stay = Span::from_secs_f64(number(point.x) * 1e-3);
        model.keys.popularity = Popularity::Hot { keys: 3, share: 0.99, epoch: Some(stay) };
        model.queue_limit = None;
        // Ten changes of the keys at least.
        model.requests = model.requests.max((stay.as_secs_f64() * 1e6) as u64 * 10);
        steer(
            &mut model,
            match point.series {
                "10 us" => Some(Span::from_us(10)),
                "50 us" => Some(Span::from_us(50)),
                "100 us" => Some(Span::from_us(100)),
                _ => None,
            },
        );
        ServerTask::of(model, point, &[Gauge::Mean, P50, P99, P999, Gauge::Max, Gauge::Moves])
    };
    Figure {
        bases: BOTH,
        axis: "how long three keys stay hot (ms)",
        log: true,
        series: &["10 us", "50 us", "100 us", "static"],
        quick: &["1", "10"],
        ..figure(
            "fig6.7",
            "Three keys have 99 % of 1 M requests/s, by the balancer's epoch",
            task,
            &["0.2", "0.5", "1", "2", "5", "10", "50"],
        )
    }
}

/// What no mapping helps: one partition has it all.
fn one_partition() -> Figure {
    let task: MakeTask = |point| {
        let mut model = testbed::server(Kind::Chronos, 1.0, point);
        model.keys.popularity = Popularity::Hot { keys: 1, share: 1.0, epoch: None };
        let model = testbed::asked_by(model, testbed::memslap(400, None));
        ServerTask::of(model, point, &[Gauge::Rate, P99])
    };
    Figure {
        series: &["one partition"],
        published: |series, x, metric| said("claims", series, x, metric),
        tolerance: |_, _, _, _| Some(1.1),
        ..figure("limit", "All requests for one partition, as fast as it can", task, &["all"])
    }
}

/// How many times as long the application takes with another node's memory: the E5520's ratio of latencies.
const REMOTE: f64 = 1.5;

fn memory() -> Figure {
    let task: MakeTask = |point| {
        let mut model = testbed::server(Kind::Chronos, number(point.x) * 1e3, point);
        let (remote, placement) = match point.series {
            "local" => (REMOTE, Placement::Local),
            "first owner" => (REMOTE, Placement::FirstOwner),
            "remote" => (REMOTE, Placement::Remote),
            "remote, 1.25" => (1.25, Placement::Remote),
            _ => (1.75, Placement::Remote),
        };
        model.numa = Numa { nodes: 2, remote, placement };
        ServerTask::of(model, point, &[Gauge::Mean, P99])
    };
    Figure {
        axis: "requests per second (thousands)",
        series: &["local", "remote", "first owner", "remote, 1.25", "remote, 1.75"],
        quick: &["500", "1000", "1150"],
        ..figure(
            "fig6.8",
            "Memory of the same and of the other node",
            task,
            &["100", "250", "500", "750", "1000", "1100", "1150"],
        )
    }
}

fn openflow() -> Figure {
    // One thread; Cbench's switches wait for an answer each. What the controller costs is not published: memcached's.
    let task: MakeTask = |point| {
        let kind = if point.series == "OpenFlow" { Kind::Baseline } else { Kind::Chronos };
        let mut model = testbed::server(kind, 1.0, point);
        (model.threads, model.dispatch, model.locking) = (1, Dispatch::Shared, Locking::None);
        let think = testbed::constant(Span::ZERO);
        let arrivals = Arrivals::Closed { clients: number(point.x) as u32, think, rate: None };
        ServerTask::of(testbed::asked_by(model, arrivals), point, &[Gauge::Mean, P99, Gauge::Rate])
    };
    Figure {
        series: &["OpenFlow", "Chronos-OF"],
        published: |series, x, metric| {
            let table = Published::parse(include_str!("../../published/chronos_table6_1.csv"));
            let system = if series == "OpenFlow" { "baseline" } else { series };
            let column = match metric {
                "latency_us_mean" => "mean_us",
                "latency_us_p99" => "p99_us",
                _ => return None,
            };
            table.value(&[("system", system), ("switches", x)], column)
        },
        tolerance: |_, _, metric, _| (metric == "latency_us_mean").then_some(ABOUT),
        ..figure("table6.1", "An OpenFlow controller, by the number of switches", task, &["1", "16"])
    }
}

fn cores() -> Vec<Figure> {
    fn model(point: &Point<'_>) -> ServerModel {
        let threads = number(point.x) as u32;
        let model = testbed::design(point.series, threads, point);
        let think = testbed::constant(Span::from_us(5));
        // Enough of them to keep every thread busy.
        testbed::asked_by(model, Arrivals::Closed { clients: 16 * threads, think, rate: None })
    }
    const GAUGES: &[Gauge] = &[Gauge::Rate, P50, P99, Gauge::Contended];
    let uniform: MakeTask = |point| ServerTask::of(model(point), point, GAUGES);
    let zipf: MakeTask = |point| {
        let model = model(point);
        let partitions = model.keys.partitions;
        let popularity = Popularity::Zipf { keys: 100_000, exponent: 0.99 };
        let model = ServerModel { keys: Keys { partitions, popularity }, ..model };
        ServerTask::of(model, point, GAUGES)
    };
    let threads = ["1", "2", "4", "8", "16", "32", "64"];
    let all = |figure: Figure| Figure {
        bases: BOTH,
        axis: "threads",
        quick: &["1", "4", "64"],
        log: true,
        series: testbed::DESIGNS,
        ..figure
    };
    vec![
        all(figure("cores", "Designs by the number of threads, keys alike", uniform, &threads)),
        all(figure("cores-zipf", "Designs by the number of threads, keys by Zipf 0.99", zipf, &threads)),
    ]
}
