//! What the dissertation leaves open, varied one thing at a time.

use std::sync::Arc;

use plimsoll_models::server::{Arrivals, Dispatch, Locking, ServerModel, Spacing};
use plimsoll_units::Span;

use super::evaluation;
use super::points::in_step;
use super::tasks::{Gauge, P99, P999, ServerTask};
use super::testbed::{self, Kind, THREADS};
use crate::study::{Point, Task};

/// Measures memcached at its maximum.
pub(super) fn of_memcached(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let mut model = testbed::server(Kind::Baseline, 1.0, point);
    vary_baseline(&mut model, point.x);
    let clients = if point.series == "MC, 20 clients" { 20 } else { 140 };
    let model = testbed::asked_by(model, testbed::memslap(clients, None));
    ServerTask::of(model, point, &[Gauge::Rate, Gauge::Waiting, Gauge::Contended, P99])
}

/// Measures Chronos at two rates.
pub(super) fn of_chronos(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let rate = if point.series == "CH, 500k/s" { 500_000.0 } else { 1_000_000.0 };
    let mut model = testbed::server(Kind::Chronos, rate, point);
    vary_chronos(&mut model, point.x);
    ServerTask::of(model, point, &[Gauge::Mean, P99, P999, Gauge::Moves])
}

/// Measures an OpenFlow controller that takes less of its thread for a request than memcached does, without and with
/// the tail of the switch before it.
pub(super) fn of_controller(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let kind = if point.series.starts_with("OpenFlow") { Kind::Baseline } else { Kind::Chronos };
    let mut model = evaluation::controller(kind, point);
    let has_tail = point.series.ends_with("switch's tail");
    let ways = if has_tail { testbed::SWITCH_WAYS_NS } else { 0 };
    let [delivery, on_thread, deviation] = match kind {
        Kind::Baseline => [KERNEL_NS - PACKET_IN_KERNEL_NS, PACKET_IN_KERNEL_NS, PACKET_IN_KERNEL_SD_NS],
        _ => [2_500, PACKET_IN_NS, PACKET_IN_NS / 6],
    };
    model.costs.delivery = match has_tail {
        true => testbed::lognormal(delivery + ways, SWITCH_SD_NS),
        false => testbed::constant(Span::from_ns(delivery)),
    };
    model.costs.network -= Span::from_ns(ways);
    model.costs.system = testbed::constant(Span::ZERO);
    model.costs.application = testbed::lognormal(on_thread, deviation);
    model.costs.line = [Span::from_ns(96); 2];
    ServerTask::of(model, point, &[Gauge::Mean, P99, Gauge::Rate])
}

/// The kernel's mean time, of which the controller takes a part of its thread.
const KERNEL_NS: u64 = testbed::KERNEL_NS;
/// What a packet-in takes of the thread behind the kernel's sockets: fitted to the mean of sixteen switches.
const PACKET_IN_KERNEL_NS: u64 = 7_300;
/// Its standard deviation: fitted to the 99th percentile of sixteen switches.
const PACKET_IN_KERNEL_SD_NS: u64 = 10_000;
/// What it takes with user-level networking: fitted to the mean of sixteen switches.
const PACKET_IN_NS: u64 = 600;
/// The standard deviation of what the switch takes and user-level networking: a 99th percentile of 50 us, where Table
/// 5.1 has 40 to 60 us for the switch.
const SWITCH_SD_NS: u64 = 14_100;

/// Measures memcached by the number of requests that its socket's buffer holds.
pub(super) fn of_socket(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let rate = if point.series == "MC, 120k/s" { 120_000.0 } else { 200_000.0 };
    let mut model = testbed::server(Kind::Baseline, rate, point);
    model.queue_limit = Some(testbed::number(point.x) as u32);
    ServerTask::of(model, point, &[Gauge::Mean, P99, Gauge::Lost])
}

/// Measures Chronos where each client sends at the ticks of a timer: at uniform load on four threads, and in bursts on
/// one.
pub(super) fn of_ticks(point: &Point<'_>) -> Option<Arc<dyn Task>> {
    let (rate, is_bursty) = match point.series {
        "CH, 200k/s" => (200_000.0, false),
        "CH, 500k/s" => (500_000.0, false),
        "CH, 1M/s" => (1_000_000.0, false),
        "CH 1T, bursts, 10k/s" => (10_000.0, true),
        _ => (40_000.0, true),
    };
    let mut model = testbed::server(Kind::Chronos, rate, point);
    if is_bursty {
        model.threads = 1;
        model.arrivals = evaluation::bursty(rate, Span::from_ms(1));
    }
    let every = Span::from_us(testbed::number(point.x) as u64);
    if every > Span::ZERO {
        model.arrivals = Arrivals::Ticks { every, due: Box::new(model.arrivals) };
    }
    ServerTask::of(model, point, &[Gauge::Mean, P99])
}

fn vary_baseline(model: &mut ServerModel, x: &str) {
    match x {
        "half of the application locked" => model.costs.locked = 0.5,
        "no time to wake the next in line" => model.locking = Locking::Global { wake: Span::ZERO },
        "8 us to wake the next in line" => model.locking = Locking::Global { wake: Span::from_us(8) },
        "16 us of the kernel on the thread" => {
            (model.costs.delivery, model.costs.system) = testbed::kernel(16_000);
        }
        "30 us of the kernel on the thread" => {
            (model.costs.delivery, model.costs.system) = testbed::kernel(30_000);
        }
        "the kernel's times constant" => {
            let on_thread = Span::from_ns(testbed::SYSTEM_NS);
            model.costs.system = testbed::constant(on_thread);
            model.costs.delivery = testbed::constant(Span::from_us(76) - on_thread);
        }
        "a thread a client" => model.dispatch = Dispatch::ByConnection,
        _ => {}
    }
}

fn vary_chronos(model: &mut ServerModel, x: &str) {
    let epoch = |model: &mut ServerModel, epoch| {
        if let Dispatch::Steered(steering) = &mut model.dispatch {
            steering.epoch = epoch;
        }
    };
    let rate = match model.arrivals {
        Arrivals::Open { rate, .. } => rate,
        _ => 0.0,
    };
    match x {
        "4 partitions" => model.keys.partitions = THREADS,
        "16 partitions" => model.keys.partitions = 16,
        "1024 partitions" => model.keys.partitions = 1024,
        "balanced every 10 us" => epoch(model, Span::from_us(10)),
        "balanced every 1 ms" => epoch(model, Span::from_ms(1)),
        "a mapping that stays" => model.dispatch = Dispatch::Static,
        "8 threads" => model.threads = 8,
        "4 us of application" => model.costs.application = testbed::lognormal(4_000, 740),
        "no price of a moved partition" => {
            if let Dispatch::Steered(steering) = &mut model.dispatch {
                steering.hand_over = Span::ZERO;
            }
        }
        "4 us to a thread" => model.costs.delivery = testbed::constant(Span::from_us(4)),
        "Poisson arrivals" => {
            model.arrivals = Arrivals::Open { rate, spacing: Spacing::Poisson, clients: 10 };
        }
        "bursts of 32" => model.arrivals = in_step(32, rate),
        "bursts of 128" => model.arrivals = in_step(128, rate),
        _ => {}
    }
}
