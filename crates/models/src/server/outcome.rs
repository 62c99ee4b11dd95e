//! Results of serving: latencies, their components, and the counts of the locks.

use std::collections::BTreeMap;

use plimsoll_units::Span;

/// Everything that one run observed of the requests that count.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ServerOutcome {
    /// The requests served, in the order in which they were.
    pub served: Vec<Served>,
    /// Requests that found their queue full.
    pub lost: u64,
    /// Requests for locks, and the time spent waiting for them.
    pub locks: LockCounts,
    /// Time that threads spent on requests, waiting for locks included, of all threads together.
    pub busy: Span,
    /// Time from the first of these requests to the last answer.
    pub elapsed: Span,
    /// Partitions that changed their owner.
    pub moves: u64,
    /// Groups of partitions that were split since they were hot.
    pub splits: u64,
    /// Groups that were joined again.
    pub joins: u64,
}

/// Components of a request's latency; all of them sum to [`Served::latency`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Served {
    /// Time on the network, in both directions.
    pub network: Span,
    /// Time from the NIC to the queue.
    pub delivery: Span,
    /// Time in the queue, and held back while a partition changes its owner.
    pub queue: Span,
    /// In the system, on the thread, including the cost of a changed owner.
    pub system: Span,
    /// Time for the lock, its count, and a writer's grace period.
    pub lock: Span,
    /// Time in which a neighbour had the thread's core.
    pub preempted: Span,
    /// The service time in the application.
    pub application: Span,
    /// Time for the NIC's line and on it.
    pub line: Span,
}

/// Requests for locks, and the time spent waiting for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockCounts {
    /// Number of requests for a lock.
    pub requests: u64,
    /// Number of requests for a lock that another thread had.
    pub contended: u64,
    /// Time spent waiting for it and for grace periods, of all threads together.
    pub waited: Span,
}

impl Served {
    /// Returns the time from the client's sending until the answer arrived.
    pub fn latency(&self) -> Span {
        self.network + self.kernel() + self.application + self.line
    }

    /// Returns the kernel's part as in Table 5.1 of the dissertation, lock contention included: the delivery, the
    /// queue, the system, the lock and the wait for a core.
    pub fn kernel(&self) -> Span {
        self.delivery + self.queue + self.system + self.lock + self.preempted
    }
}

impl ServerOutcome {
    /// Returns the requests served per second; 0 for a run without duration.
    pub fn throughput(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.served.len() as f64 / seconds } else { 0.0 }
    }

    /// Latencies in us, in the order in which requests were served.
    pub fn latencies_us(&self) -> Vec<f64> {
        self.served.iter().map(|served| served.latency().as_us_f64()).collect()
    }

    /// Returns the number of latencies up to each bound and above the one before; the bounds are a 32nd of their power
    /// of two apart, 3 % of the latency at most.
    pub fn histogram(&self) -> Vec<(Span, u64)> {
        let mut bins = BTreeMap::new();
        for served in &self.served {
            *bins.entry(bound(served.latency().as_ps())).or_insert(0) += 1;
        }
        bins.into_iter().map(|(bound, count)| (Span::from_ps(bound), count)).collect()
    }

    /// The share of lock requests that found the lock taken.
    pub fn contended(&self) -> f64 {
        self.locks.contended as f64 / self.locks.requests.max(1) as f64
    }

    /// The share of the threads' busy time that was spent waiting for locks.
    pub fn waiting(&self) -> f64 {
        self.locks.waited.as_secs_f64() / self.busy.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// Buckets in a power of two, as bits.
const BUCKET_BITS: u32 = 5;

/// The upper end of the bucket of `ps`.
fn bound(ps: u64) -> u64 {
    let shift = (u64::BITS - ps.leading_zeros()).saturating_sub(BUCKET_BITS + 1);
    (((ps >> shift) + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_a_32nd_of_its_power_of_two() {
        assert_eq!(bound(0), 0);
        assert_eq!(bound(63), 63);
        assert_eq!(bound(64), 65);
        assert_eq!(bound(65), 65);
        assert_eq!(bound(1 << 20), (1 << 20) + (1 << 15) - 1);
    }
}
