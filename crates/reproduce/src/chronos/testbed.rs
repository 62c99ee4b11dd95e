//! The servers of the dissertation as models: every parameter once, for all figures.
//!
//! | parameter | value | from |
//! |---|---|---|
//! | network | 4.7 us | Table 5.1: a switch each way (1-4 us: 1), 2.6 us DMA, 0.1 us serialisation of a request |
//! | line | 0.9 us a get of 1 KB, 0.1 us a set | 10 Gb/s, 64 B keys and 1 KB values in UDP |
//! | application | 2 us, p99 3 us | Table 5.1 |
//! | kernel | 76 us | Table 5.1 |
//! | its deviation | 50 us | section 4.1: N(90, 50) *based on our observations* |
//! | of the 76 us, on the thread | 20.2 us | four threads, 120 000 requests/s, a third of it waiting (section 5.2) |
//! | waking the next in line for a mutex | 7 us | the same third: why four threads wait so long for 2 us |
//! | user-level networking | 2.5 us | section 6.1.1: 1-4 us |
//! | memslap's own kernel | 60 us | section 6.2: 50-70 us |
//!
//! Open in the dissertation, and varied on the page: shapes of distributions (log-normal here), how much of the
//! application holds the lock (all), partitions (64), the price of a moved partition (1 us), buffers of sockets (256
//! requests), remote memory (1.5 times), the grace period of RCU.

use plimsoll_models::server::{
    Arrivals, Costs, Dispatch, Keys, Locking, Numa, Popularity, ServerModel, Spacing, Steering,
};
use plimsoll_scenario::distribution::TimeDistribution;
use plimsoll_units::Span;

use crate::study::{Base, Point};

/// Reads a number on the axis.
pub(crate) fn number(x: &str) -> f64 {
    x.parse().expect("the points of these figures are numbers")
}

/// Threads of a server that has several.
pub(super) const THREADS: u32 = 4;
/// The kernel's time on the thread: 2/3 of what four threads have for each of 120 000 requests/s, less the application.
pub(super) const SYSTEM_NS: u64 = 20_222;
/// The kernel's mean time in all.
pub(super) const KERNEL_NS: u64 = 76_000;
/// Its standard deviation.
const KERNEL_SD_NS: u64 = 50_000;
/// The application's mean time.
const APPLICATION_NS: u64 = 2_000;
/// Its standard deviation, which gives a 99th percentile of 1.5 times the mean.
const APPLICATION_SD_NS: u64 = 370;
/// From the release of a mutex until the next in line runs.
pub(super) const WAKE: Span = Span::from_us(7);
/// How long one of RCU's writers waits for readers: what keeps four threads to 550 000 requests/s.
pub(super) const GRACE: Span = Span::from_us(9);
/// A change of the count of a read/write lock: a cache line from another core of the E5520.
const COUNT: Span = Span::from_ns(100);
/// The switch's part of the network, there and back.
pub(super) const SWITCH_WAYS_NS: u64 = 2_000;
/// Partitions: 16 for each thread.
pub(super) const PARTITIONS: u32 = 64;
/// How long the load balancer waits between two runs.
pub(super) const EPOCH: Span = Span::from_us(50);
/// Requests that a socket's buffer holds.
const SOCKET: u32 = 256;
/// Descriptors of a receive ring.
const RING: u32 = 4096;

/// The design of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// memcached over the kernel's sockets, with one lock.
    Baseline,
    /// The same over user-level networking.
    UserLevel,
    /// The server is Chronos: user-level networking and steering.
    Chronos,
}

/// Returns the server of a point, with `rate` requests a second from the dissertation's ten open-loop clients at
/// uniform gaps.
pub(super) fn server(kind: Kind, rate: f64, point: &Point<'_>) -> ServerModel {
    let (dispatch, locking, limit) = match kind {
        Kind::Baseline => (Dispatch::Shared, Locking::Global { wake: WAKE }, SOCKET),
        Kind::UserLevel => (Dispatch::ByConnection, Locking::Global { wake: WAKE }, RING),
        Kind::Chronos => {
            let (dispatch, locking) = chronos(point.base);
            (dispatch, locking, RING)
        }
    };
    let (full, quick) = REQUESTS;
    let requests = if point.quick { quick } else { full };
    ServerModel {
        processes: 1,
        threads: THREADS,
        dispatch,
        locking,
        costs: costs(kind),
        numa: Numa::NONE,
        keys: Keys { partitions: PARTITIONS, popularity: Popularity::Uniform },
        writes: 0.1,
        arrivals: Arrivals::Open { rate, spacing: Spacing::Uniform, clients: 10 },
        queue_limit: Some(limit),
        requests,
        warmup: requests / 10,
    }
}

/// Requests of a run, and of a quick one.
const REQUESTS: (u64, u64) = (400_000, 40_000);

/// Returns the dispatch and the locks of Chronos: the paper's mutex for each partition, or by the standard base this
/// project's runtime, where a moved partition waits for its old owner.
pub(super) fn chronos(base: Base) -> (Dispatch, Locking) {
    let drains = base == Base::Standard;
    let steering = Steering { epoch: EPOCH, hand_over: Span::from_us(1), drains, split: None };
    let locking = if drains { Locking::None } else { Locking::PerPartition { wake: WAKE } };
    (Dispatch::Steered(steering), locking)
}

fn costs(kind: Kind) -> Costs {
    let ns = Span::from_ns;
    let (delivery, system) = match kind {
        Kind::Baseline => kernel(SYSTEM_NS),
        Kind::UserLevel | Kind::Chronos => (constant(ns(2_500)), constant(Span::ZERO)),
    };
    Costs {
        network: ns(4_700),
        delivery,
        system,
        application: lognormal(APPLICATION_NS, APPLICATION_SD_NS),
        locked: 1.0,
        line: [ns(904), ns(96)],
    }
}

/// Returns the kernel's time before the thread and on it, which deviate in proportion and independently.
pub(super) fn kernel(system_ns: u64) -> (TimeDistribution, TimeDistribution) {
    let system_sd = system_ns * KERNEL_SD_NS / KERNEL_NS;
    let delivery_sd = libm::sqrt((KERNEL_SD_NS * KERNEL_SD_NS - system_sd * system_sd) as f64) as u64;
    (lognormal(KERNEL_NS - system_ns, delivery_sd), lognormal(system_ns, system_sd))
}

/// Returns the mean and the standard deviation of a request's time on memcached's thread, in the kernel and in the
/// application together, in ns.
pub(super) fn on_thread_ns() -> (u64, u64) {
    let system_sd = SYSTEM_NS * KERNEL_SD_NS / KERNEL_NS;
    let sd = libm::sqrt((system_sd * system_sd + APPLICATION_SD_NS * APPLICATION_SD_NS) as f64);
    (SYSTEM_NS + APPLICATION_NS, sd as u64)
}

pub(crate) fn constant(span: Span) -> TimeDistribution {
    TimeDistribution::Constant(span)
}

pub(crate) fn lognormal(mean_ns: u64, sd_ns: u64) -> TimeDistribution {
    TimeDistribution::Lognormal { mean: Span::from_ns(mean_ns), sd: Some(Span::from_ns(sd_ns)), sigma: None }
}

/// Returns memslap's closed loop, whose clients' own kernel takes 60 us between an answer and the next request.
pub(super) fn memslap(clients: u32, rate: Option<f64>) -> Arrivals {
    Arrivals::Closed { clients, think: constant(Span::from_us(60)), rate }
}

/// Returns the server with clients that wait for answers, so that nothing is lost.
pub(super) fn asked_by(model: ServerModel, arrivals: Arrivals) -> ServerModel {
    ServerModel { arrivals, queue_limit: None, ..model }
}

/// Returns the web search's index in place of memcached: postings of 1400 B, and a lock of its kind.
pub(super) fn search(series: &str, point: &Point<'_>) -> ServerModel {
    let kind = if series == "CH" { Kind::Chronos } else { Kind::UserLevel };
    let mut model = server(kind, 1.0, point);
    model.keys.partitions = 12;
    model.costs.line = [Span::from_ns(1_200), Span::from_ns(96)];
    model.locking = match series {
        "read/write lock" => Locking::ReadWrite { wake: WAKE, count: COUNT },
        "RCU" => Locking::Rcu { wake: WAKE, grace: GRACE },
        _ => model.locking,
    };
    model
}

/// Returns one of the designs that `cores` compares: over user-level networking, with 16 partitions a thread and a line
/// that is not in the way.
pub(super) fn design(series: &str, threads: u32, point: &Point<'_>) -> ServerModel {
    let mut model = server(Kind::UserLevel, 1.0, point);
    model.threads = threads;
    model.keys.partitions = 16 * threads;
    model.costs.line = [Span::ZERO; 2];
    model.dispatch = Dispatch::Shared;
    model.locking = match series {
        "global lock" => Locking::Global { wake: WAKE },
        "read/write lock" => Locking::ReadWrite { wake: WAKE, count: COUNT },
        "RCU" => Locking::Rcu { wake: WAKE, grace: GRACE },
        "partition locks" => Locking::PerPartition { wake: WAKE },
        _ => Locking::None,
    };
    match series {
        "static" => model.dispatch = Dispatch::Static,
        "steered" => (model.dispatch, model.locking) = chronos(point.base),
        _ => {}
    }
    model
}
