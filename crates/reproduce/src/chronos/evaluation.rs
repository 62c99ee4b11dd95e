//! What the points of chapter 6's figures run: configurations, uniform load, bursts, hot keys, memory; and designs by
//! the number of cores.

use std::sync::Arc;

use plimsoll_models::server::{
    Arrivals, Dispatch, Keys, Locking, Numa, Placement, Popularity, ServerModel, Spacing, Steering,
};
use plimsoll_units::Span;

use super::tasks::{Gauge, P50, P99, P999, ServerTask};
use super::testbed::{self, Kind, number};
use crate::study::{Point, Task};

/// Measures processes and threads of memcached.
pub(super) fn configurations(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let mut model = testbed::server(Kind::Baseline, 1.0, point);
    (model.processes, model.threads) = match point.series {
        "1P 1T" => (1, 1),
        "1P 4T" => (1, 4),
        _ => (4, 1),
    };
    let model = testbed::asked_by(model, testbed::memslap(number(point.x) as u32, None));
    ServerTask::of(model, point, &[P50, P99, Gauge::Rate])
}

fn kind(series: &str) -> Kind {
    match series {
        "UNet locks" => Kind::UserLevel,
        series if series.starts_with("MC") => Kind::Baseline,
        _ => Kind::Chronos,
    }
}

/// Measures uniform load from ten open-loop clients.
pub(super) fn uniform(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let model = testbed::server(kind(point.series), number(point.x) * 1e3, point);
    ServerTask::of(model, point, &[Gauge::Mean, P50, P99, Gauge::Rate, Gauge::Lost])
}

/// Measures closed-loop clients.
pub(super) fn clients(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let model = testbed::server(kind(point.series), 1.0, point);
    let model = testbed::asked_by(model, testbed::memslap(number(point.x) as u32, None));
    ServerTask::of(model, point, &[Gauge::Mean, P99, Gauge::Rate])
}

/// Returns arrivals at ten times the mean rate for a while, with 10 % of all requests.
pub(super) fn bursty(rate: f64, length: Span) -> Arrivals {
    Arrivals::Bursts { rate, ratio: 10.0, length, share: 0.1, clients: 10 }
}

/// Measures bursts of ten times the rate on one thread.
pub(super) fn bursts(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    // The text compares with *the single-thread case*.
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
}

/// Measures bursts of 1 ms on two and four threads.
pub(super) fn bursts_on_threads(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let rate = number(point.x) * 1e3;
    let mut model = testbed::server(Kind::Chronos, rate, point);
    model.threads = if point.series == "CH 2T" { 2 } else { 4 };
    model.arrivals = bursty(rate, Span::from_ms(1));
    model.requests = model.requests.max(rate as u64);
    model.queue_limit = None;
    ServerTask::of(model, point, &[Gauge::Mean, P99])
}

/// Sets the epoch of a steered server, or a mapping that stays.
fn steer(model: &mut ServerModel, epoch: Option<Span>) {
    match (&mut model.dispatch, epoch) {
        (Dispatch::Steered(Steering { epoch: old, .. }), Some(epoch)) => *old = epoch,
        _ => model.dispatch = Dispatch::Static,
    }
}

/// Measures a million requests/s of which three keys have 99 %, by the balancer's epoch.
pub(super) fn hot_keys(point: &Point<'_>) -> Option<Arc<dyn Task>> {
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
}

/// Measures all requests for one partition, which no mapping helps.
pub(super) fn one_partition(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let mut model = testbed::server(Kind::Chronos, 1.0, point);
    model.keys.popularity = Popularity::Hot { keys: 1, share: 1.0, epoch: None };
    let model = testbed::asked_by(model, testbed::memslap(400, None));
    ServerTask::of(model, point, &[Gauge::Rate, P99])
}

/// How many times as long the application takes with another node's memory: the E5520's ratio of latencies.
const REMOTE: f64 = 1.5;

/// Measures memory of the same and of the other node.
pub(super) fn memory(point: &Point<'_>) -> Option<Arc<dyn Task>> {
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
}

/// Measures an OpenFlow controller.
pub(super) fn openflow(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    // What the controller costs is not published: memcached's.
    let kind = if point.series == "OpenFlow" { Kind::Baseline } else { Kind::Chronos };
    ServerTask::of(controller(kind, point), point, &[Gauge::Mean, P99, Gauge::Rate])
}

/// Returns a server of one thread, and as many of Cbench's switches as x says, which wait for an answer each.
pub(super) fn controller(kind: Kind, point: &Point<'_>) -> ServerModel {
    let mut model = testbed::server(kind, 1.0, point);
    (model.threads, model.dispatch, model.locking) = (1, Dispatch::Shared, Locking::None);
    let think = testbed::constant(Span::ZERO);
    let arrivals = Arrivals::Closed { clients: number(point.x) as u32, think, rate: None };
    testbed::asked_by(model, arrivals)
}

/// Measures a design by the number of threads, keys alike.
pub(super) fn designs(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    ServerTask::of(design(point), point, OF_DESIGNS)
}

/// Measures the same with keys by Zipf 0.99.
pub(super) fn designs_by_zipf(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let model = design(point);
    let partitions = model.keys.partitions;
    let popularity = Popularity::Zipf { keys: 100_000, exponent: 0.99 };
    let model = ServerModel { keys: Keys { partitions, popularity }, ..model };
    ServerTask::of(model, point, OF_DESIGNS)
}

fn design(point: &Point<'_>) -> ServerModel {
    let threads = number(point.x) as u32;
    let model = testbed::design(point.series, threads, point);
    let think = testbed::constant(Span::from_us(5));
    // Enough of them to keep every thread busy.
    testbed::asked_by(model, Arrivals::Closed { clients: 16 * threads, think, rate: None })
}

const OF_DESIGNS: &[Gauge] = &[Gauge::Rate, P50, P99, Gauge::Contended];
