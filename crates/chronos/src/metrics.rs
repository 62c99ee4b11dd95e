//! The runtime's counts as OpenMetrics, read from its counters without a lock, on threads of their own.

use std::io;

use plimsoll_http::metrics::{self, Exposition, MetricKind};
use plimsoll_http::{Listener, ListenerReach};

use crate::{Config, LoadMetric, PartitionStats, RunningServer, RuntimeStats, ThreadStats};

/// A socket at which a server's metrics are to be served.
#[derive(Debug)]
pub struct MetricsSocket(Listener);

impl MetricsSocket {
    /// Binds an address and port, or `unix:PATH`.
    ///
    /// # Errors
    /// If the text is not an address, or the address is in use.
    pub fn bind(text: &str) -> io::Result<MetricsSocket> {
        Listener::bind(text, ListenerReach::Everywhere).map(MetricsSocket)
    }

    /// The address, with the port that the system chose for port 0.
    pub fn address(&self) -> String {
        self.0.address()
    }

    /// Serves the metrics of a server on a thread that ends with the process: the metrics of its runtime, and those
    /// that `more` writes.
    ///
    /// # Errors
    /// If the system cannot create a thread.
    pub fn serve(
        self,
        server: &'static str,
        version: &'static str,
        (running, config): (&RunningServer, &Config),
        more: impl Fn(&mut Exposition) + Send + Sync + 'static,
    ) -> io::Result<()> {
        let (stats, metric) = (running.stats().clone(), config.load_metric());
        let text = move || {
            let mut out = Exposition::default();
            expose(server, version, &stats, metric, &mut out);
            more(&mut out);
            Ok(out.finish())
        };
        metrics::spawn(self.0, text)
    }
}

/// Writes the server's name and version, the counts of its runtime, and the metrics of the process.
fn expose(server: &str, version: &str, stats: &RuntimeStats, metric: LoadMetric, out: &mut Exposition) {
    out.family("chronos", MetricKind::Info, "The server and its version.")
        .sample(&[("server", server), ("version", version)], 1);
    let threads = stats.threads();
    out.gauge("chronos_threads", "Worker threads.", threads.len());
    for (name, kind, help, count) in FAMILIES {
        out.family(&format!("chronos_{name}"), *kind, help);
        for (thread, counts) in threads.iter().enumerate() {
            out.sample(&[("thread", &thread.to_string())], count(counts));
        }
    }
    requests(&threads, out);
    partitions(stats, threads.len(), metric, out);
    metrics::process(out);
}

/// A count of each thread: name without prefix, kind, help text, and the function that reads it.
type ThreadMetric = (&'static str, MetricKind, &'static str, fn(&ThreadStats) -> u64);

const FAMILIES: &[ThreadMetric] = &[
    ("connections", MetricKind::Gauge, "Connections open now.", |thread| thread.connections),
    ("connections_opened", MetricKind::Counter, "Connections that were opened.", |thread| {
        thread.connections_total
    }),
    (
        "connections_refused",
        MetricKind::Counter,
        "Connections refused since there were too many.",
        |thread| thread.refused,
    ),
    (
        "connections_idle_closed",
        MetricKind::Counter,
        "Connections closed since they were idle for too long.",
        |thread| thread.timed_out,
    ),
    (
        "connections_shed",
        MetricKind::Counter,
        "Connections closed since others waited for the memory that they held.",
        |thread| thread.shed,
    ),
    ("accept_errors", MetricKind::Counter, "Times that no connection could be accepted.", |thread| {
        thread.accept_errors
    }),
    ("received_bytes", MetricKind::Counter, "Bytes received from clients.", |thread| thread.received_bytes),
    ("sent_bytes", MetricKind::Counter, "Bytes sent to clients.", |thread| thread.sent_bytes),
    ("datagrams_received", MetricKind::Counter, "Datagrams that were received.", |thread| thread.datagrams),
    ("datagrams_dropped", MetricKind::Counter, "Datagrams that could not be sent.", |thread| thread.dropped),
    (
        "requests_forwarded",
        MetricKind::Counter,
        "Requests that came for a partition which had moved on.",
        |thread| thread.forwarded,
    ),
    (
        "partitions_adopted",
        MetricKind::Counter,
        "Partitions that the balancer moved to this thread.",
        |thread| thread.adopted,
    ),
    (
        "connection_yields",
        MetricKind::Counter,
        "Times that a connection gave way to others in a turn.",
        |thread| thread.yields,
    ),
    ("wakes", MetricKind::Counter, "Wake-ups sent to threads that slept.", |thread| thread.wakes),
    ("sleeps", MetricKind::Counter, "Times that the thread slept.", |thread| thread.sleeps),
    ("rings_full", MetricKind::Counter, "Times that a ring to another thread was full.", |thread| {
        thread.rings_full
    }),
];

/// The requests of each thread's connections, by the thread that owns their partition.
fn requests(threads: &[ThreadStats], out: &mut Exposition) {
    let help =
        "Requests of the thread's connections, by whether it owns their partition (own) or another does.";
    out.family("chronos_requests", MetricKind::Counter, help);
    for (thread, counts) in threads.iter().enumerate() {
        let thread = thread.to_string();
        out.sample(&[("thread", &thread), ("partition", "own")], counts.own);
        out.sample(&[("thread", &thread), ("partition", "foreign")], counts.foreign);
    }
}

fn partitions(stats: &RuntimeStats, threads: usize, metric: LoadMetric, out: &mut Exposition) {
    let partitions = stats.partitions();
    let mut owned = vec![0_u64; threads];
    for PartitionStats { owner, .. } in &partitions {
        if let Some(count) = owned.get_mut(*owner as usize) {
            *count += 1;
        }
    }
    out.family("chronos_partitions", MetricKind::Gauge, "Partitions that the thread owns.");
    for (thread, count) in owned.iter().enumerate() {
        out.sample(&[("thread", &thread.to_string())], count);
    }
    let balance = stats.balance();
    out.counter("chronos_partition_groups_split", "Groups of partitions that were split.", balance.splits);
    out.counter("chronos_partition_groups_joined", "Groups of partitions that were joined.", balance.joins);
    out.counter(
        "chronos_partitions_across_nodes",
        "Partitions that the balancer moved to another NUMA node.",
        balance.crossings,
    );
    if metric == LoadMetric::Nanoseconds {
        let nanoseconds: u64 = partitions.iter().map(|partition| partition.load).sum();
        out.counter(
            "chronos_execution_seconds",
            "Time spent on requests by their owners, in seconds.",
            nanoseconds as f64 / 1e9,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_count_is_written_with_their_number() {
        let stats = RuntimeStats::new(2, &[0, 1, 1], Vec::new());
        stats.thread(1).own.add(5);
        stats.thread(1).opened.add(3);
        stats.thread(1).closed.add(1);
        stats.partition(2).load.add(2_500_000_000);
        let text = |metric| {
            let mut out = Exposition::default();
            expose("chronos-test", "1.2", &stats, metric, &mut out);
            out.finish()
        };
        let requests = text(LoadMetric::Requests);
        for line in [
            "chronos_info{server=\"chronos-test\",version=\"1.2\"} 1",
            "chronos_threads 2",
            "chronos_requests_total{thread=\"1\",partition=\"own\"} 5",
            "chronos_connections{thread=\"1\"} 2",
            "chronos_partitions{thread=\"0\"} 1",
            "chronos_partitions{thread=\"1\"} 2",
        ] {
            assert!(requests.lines().any(|found| found == line), "{line} is not in {requests}");
        }
        assert!(!requests.contains("chronos_execution_seconds"), "{requests}");
        assert!(text(LoadMetric::Nanoseconds).contains("chronos_execution_seconds_total 2.5\n"));
    }
}
