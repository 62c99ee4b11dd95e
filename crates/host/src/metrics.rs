//! Writes a [`PolicyStatus`] and [`HostCounters`] as OpenMetrics text, and serves it on a local socket.

use plimsoll_http::metrics::{self, Exposition, MetricKind};
use plimsoll_http::{Listener, ListenerReach};

use crate::status::{LevelStatus, PolicyStatus};
use crate::{Error, HostCounters};

/// Writes all of `statuses` and the counts of the host as one OpenMetrics exposition.
pub fn open_metrics(statuses: &[PolicyStatus], counters: &HostCounters) -> String {
    let mut text = Exposition::default();
    for (name, kind, help, samples) in FAMILIES {
        text.family(&format!("plimsoll_{name}"), *kind, help);
        for status in statuses {
            for (labels, value) in samples(status) {
                let policy = status.policy.to_string();
                let labels = labels.iter().map(|(label, value)| (*label, value.as_str()));
                let labels: Vec<(&str, &str)> =
                    std::iter::once(("policy", policy.as_str())).chain(labels).collect();
                text.sample(&labels, value);
            }
        }
    }
    host(counters, &mut text);
    text.finish()
}

/// Writes the counts of the host.
fn host(counters: &HostCounters, text: &mut Exposition) {
    let help = "Pause frames by the driver's counter, some of which count the same frames.";
    text.family("plimsoll_device_pauses", MetricKind::Counter, help);
    for one in &counters.pauses {
        let direction = if one.is_received { "received" } else { "sent" };
        text.sample(
            &[("device", one.device.as_str()), ("counter", one.counter.as_str()), ("direction", direction)],
            one.frames,
        );
    }
    text.family(
        "plimsoll_tcp_segments",
        MetricKind::Counter,
        "TCP segments that the host sent, by whether again.",
    );
    let segments = [("first", counters.segments), ("retransmitted", counters.retransmissions)];
    for (kind, count) in segments.into_iter().filter_map(|(kind, count)| Some((kind, count?))) {
        text.sample(&[("kind", kind)], count);
    }
    let help = "Retransmission timeouts of TCP: each delays a request by 200 ms or more.";
    text.family("plimsoll_tcp_timeouts", MetricKind::Counter, help);
    if let Some(count) = counters.timeouts {
        text.sample(&[], count);
    }
}

type Labels = Vec<(&'static str, String)>;
type MetricSamples = fn(&PolicyStatus) -> Vec<(Labels, f64)>;

/// The metric families: name without prefix, kind, help text, and samples.
const FAMILIES: &[(&str, MetricKind, &str, MetricSamples)] = &[
    ("applied", MetricKind::Gauge, "1 where the whole policy is applied and confirmed.", |status| {
        vec![(Vec::new(), f64::from(status.complete && status.confirmed))]
    }),
    (
        "attached",
        MetricKind::Gauge,
        "1 where the part of the policy is in place, 0 where it is gone.",
        attached,
    ),
    ("qjump_epoch_seconds", MetricKind::Gauge, "The network epoch.", |status| {
        status.epoch_ns.map(|epoch| (device(status), epoch as f64 / 1e9)).into_iter().collect()
    }),
    ("qjump_budget_bytes", MetricKind::Gauge, "What a level may send in an epoch.", |status| {
        let limited = status.levels.iter().filter_map(|level| Some((level, level.budget_bytes?)));
        limited.map(|(level, budget)| (of_level(status, level, None), budget as f64)).collect()
    }),
    (
        "qjump_packets",
        MetricKind::Counter,
        "Packets that passed, or that were refused beyond the budget.",
        |status| {
            let both = |level: &LevelStatus| {
                [("passed", level.passed_packets), ("refused", level.refused_packets)]
                    .map(|(verdict, count)| (of_level(status, level, Some(verdict)), count as f64))
            };
            status.levels.iter().flat_map(both).collect()
        },
    ),
    ("qjump_bytes", MetricKind::Counter, "Bytes that passed.", |status| {
        let one = |level: &LevelStatus| (of_level(status, level, None), level.passed_bytes as f64);
        status.levels.iter().map(one).collect()
    }),
    ("phantom_queue_length_bytes", MetricKind::Gauge, "The length of the phantom queue.", |status| {
        status.phantom_queues.iter().map(|queue| (of_port(queue, None), queue.length_bytes as f64)).collect()
    }),
    (
        "phantom_queue_packets",
        MetricKind::Counter,
        "Packets over the threshold: marked, or not capable of a mark.",
        |status| {
            let both = |queue: &crate::PhantomQueueStatus| {
                [("marked", queue.marked_packets), ("not-capable", queue.not_capable_packets)]
                    .map(|(result, count)| (of_port(queue, Some(result)), count as f64))
            };
            status.phantom_queues.iter().flat_map(both).collect()
        },
    ),
    ("pacer_packets", MetricKind::Counter, "Packets that got a departure time, or bypassed.", |status| {
        let both = |pacer: &crate::PacerStatus| {
            [("paced", pacer.paced_packets), ("bypassed", pacer.bypassed_packets)].map(|(result, count)| {
                (vec![("device", pacer.device.to_string()), ("result", result.to_owned())], count as f64)
            })
        };
        status.pacer.iter().flat_map(both).collect()
    }),
    (
        "dctcp_events",
        MetricKind::Counter,
        "DCTCP over all its connections; any `guarded` is suspect.",
        |status| {
            let all = |dctcp: &crate::DctcpStatus| {
                [
                    ("connections", dctcp.connections),
                    ("updates", dctcp.updates),
                    ("cuts", dctcp.cuts),
                    ("losses", dctcp.losses),
                    ("guarded", dctcp.guarded),
                ]
                .map(|(event, count)| (vec![("event", event.to_owned())], count as f64))
            };
            status.dctcp.iter().flat_map(all).collect()
        },
    ),
    ("dctcp_alpha", MetricKind::Gauge, "The alpha of the last update.", |status| {
        status.dctcp.iter().map(|dctcp| (Vec::new(), dctcp.last_alpha)).collect()
    }),
];

fn attached(status: &PolicyStatus) -> Vec<(Labels, f64)> {
    let limiter = status.limiting.map(|there| ("limiter".to_owned(), there));
    let assignments = status.assignments.iter().map(|one| (one.who.clone(), one.attached));
    let queues = status
        .phantom_queues
        .iter()
        .map(|queue| (format!("phantom-queue {} {}", queue.device, queue.side.name()), queue.attached));
    let pacer = status.pacer.iter().map(|pacer| (format!("pacer {}", pacer.device), pacer.attached));
    let queues = queues.chain(pacer);
    let all = limiter.into_iter().chain(assignments).chain(queues);
    all.map(|(part, there)| (vec![("part", part)], f64::from(there))).collect()
}

fn device(status: &PolicyStatus) -> Labels {
    status.device.iter().map(|device| ("device", device.to_string())).collect()
}

fn of_level(status: &PolicyStatus, level: &LevelStatus, verdict: Option<&str>) -> Labels {
    let mut labels = device(status);
    labels.extend(level.guest.iter().map(|guest| ("guest", guest.to_string())));
    labels.push(("level", level.level.to_string()));
    labels.extend(verdict.map(|verdict| ("verdict", verdict.to_owned())));
    labels
}

fn of_port(queue: &crate::PhantomQueueStatus, result: Option<&str>) -> Labels {
    let mut labels = vec![("device", queue.device.to_string()), ("side", queue.side.name().to_owned())];
    labels.extend(result.map(|result| ("result", result.to_owned())));
    labels
}

/// Binds `unix:/PATH` or `127.0.0.1:PORT` or `[::1]:PORT`, where metrics are to be served.
///
/// # Errors
/// Returns an error if the text has another form, the address is not local, or it is in use.
pub fn bind(text: &str) -> Result<Listener, Error> {
    Listener::bind(text, ListenerReach::Loopback).map_err(Error::doing(format!("--listen {text}")))
}

/// Answers requests for `/metrics` with the result of `text`, until the listener fails.
///
/// # Errors
/// Returns the error of the listener.
pub fn serve(listener: &Listener, text: &(dyn Fn() -> Result<String, Error> + Sync)) -> Result<(), Error> {
    let text = || text().map_err(|error| error.to_string());
    metrics::serve(listener, &text).map_err(Error::doing("waiting for a request"))
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
