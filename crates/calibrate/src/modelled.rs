//! [`ModelledLatencies`]: the completion times of a workload in runs of one point, with the parts of the latency.

use plimsoll_results::outcome::{MessageRecord, Outcome};
use plimsoll_scenario::model::Model;
use plimsoll_stats::{Estimate, Samples, Statistic, samples_needed};

use crate::quantiles::widened;

/// The completion times of a workload in the replicates of a point.
#[derive(Clone, Debug)]
pub struct ModelledLatencies {
    samples: Samples,
    /// Times at the server in us, by replicate.
    service: Samples,
    /// Latency, queueing delay and time at the server of each message in us, the fastest first.
    parts: Vec<[f64; 3]>,
    /// The number of messages that were unfinished when their run ended.
    pub unfinished: u64,
}

impl ModelledLatencies {
    /// Takes the messages of a workload that were created after the warm-up; `None` where none of them completed.
    pub fn of(outcomes: &[&Outcome], workload: &str) -> Option<ModelledLatencies> {
        let (mut replicates, mut services, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        let mut unfinished = 0;
        for outcome in outcomes {
            let number = outcome.workloads.iter().position(|known| known.name == workload)?;
            let (mut latencies, mut service) = (Vec::new(), Vec::new());
            let counted = outcome.messages.iter().filter(|message| {
                usize::from(message.workload) == number && message.created.as_ps() >= outcome.warmup.as_ps()
            });
            for message in counted {
                match message.latency() {
                    Some(latency) => {
                        latencies.push(latency.as_us_f64());
                        service.push(message.split.service.as_us_f64());
                        parts.push(parts_of(message, latency.as_us_f64()));
                    }
                    None => unfinished += 1,
                }
            }
            replicates.push(latencies);
            services.push(service);
        }
        parts.sort_by(|one: &[f64; 3], other| one[0].total_cmp(&other[0]));
        let (samples, service) = (Samples::new(replicates), Samples::new(services));
        (!parts.is_empty()).then_some(ModelledLatencies { samples, service, parts, unfinished })
    }

    /// Returns the number of completed messages.
    pub fn messages(&self) -> u64 {
        self.parts.len() as u64
    }

    /// Returns a quantile in us, with an interval where there are enough messages for it.
    pub fn quantile(&self, share: f64) -> Estimate {
        estimate(&self.samples, share)
    }

    /// Returns a quantile of the times at the server in us, waiting included.
    pub fn service_quantile(&self, share: f64) -> Estimate {
        estimate(&self.service, share)
    }

    /// Returns the mean queueing delay and the mean time at the server, in us, of the messages around a quantile: those
    /// within half of the distance to the nearer end of the distribution.
    pub fn parts_near(&self, share: f64) -> [f64; 2] {
        let count = self.parts.len() as f64;
        let reach = 0.5 * share.min(1.0 - share);
        let first = (((share - reach) * count) as usize).min(self.parts.len() - 1);
        let last = (((share + reach) * count).ceil() as usize).clamp(first + 1, self.parts.len());
        let near = &self.parts[first..last];
        [1, 2].map(|part| near.iter().map(|parts| parts[part]).sum::<f64>() / near.len() as f64)
    }
}

fn estimate(samples: &Samples, share: f64) -> Estimate {
    let estimate =
        widened(samples.estimate(Statistic::Percentile(share)).expect("at least one message has completed"));
    // Few messages beyond a quantile have no error that could be relied on, even where an interval exists.
    let is_enough = estimate.samples >= samples_needed(share.max(1.0 - share));
    Estimate { interval: estimate.interval.filter(|_| is_enough), ..estimate }
}

fn parts_of(message: &MessageRecord, latency: f64) -> [f64; 3] {
    let split = &message.split;
    let queues = split.nic + split.pacer + split.tier.iter().copied().sum();
    [latency, queues.as_us_f64(), split.service.as_us_f64()]
}

/// Returns the shortest retransmission timeout of a scenario's transports in us.
pub fn shortest_timeout(model: &Model) -> f64 {
    let transports = std::iter::once(&model.transport).chain(model.transports.values());
    transports.map(|transport| transport.min_rto.as_us_f64()).fold(f64::INFINITY, f64::min)
}
