//! [`RequestTrace`]: what tracing found of the requests of one turn.

use plimsoll_breakdown::{Part, Report, Request, RequestRecorder, Unmatched};
use plimsoll_stats as stats;

/// The requests of a turn, while it lasts.
pub(crate) struct TracedRequests {
    recorder: RequestRecorder,
    /// The latency of each request, and its part that the study counts as the kernel's, in ns.
    times: Vec<(u64, u64)>,
}

/// What tracing found of the requests of a turn.
pub(crate) struct RequestTrace {
    pub(crate) report: Report,
    /// The time that the study counts as the kernel's with lock contention, of each request in us, in order.
    kernel_us: Vec<f64>,
    /// Its share of the slowest hundredth's time, 0 to 1.
    pub(crate) kernel_of_slowest: f64,
    /// The requests without a breakdown, except requests that the begin or the end of the trace cut off.
    pub(crate) unmatched: u64,
    /// Records that were lost.
    pub(crate) lost: u64,
    /// The sleeps at futexes, and their time in ns.
    pub(crate) asleep: (u64, u64),
    /// The server's processor time, in ns.
    pub(crate) ran_ns: u64,
}

impl TracedRequests {
    pub(crate) fn new() -> TracedRequests {
        TracedRequests { recorder: RequestRecorder::new(0), times: Vec::new() }
    }

    pub(crate) fn add(&mut self, request: Request) {
        self.times.push((request.latency, kernel_ns(&request)));
        self.recorder.add(request);
    }

    /// Makes the trace of the requests; what else is known of it is 0.
    pub(crate) fn trace(mut self) -> RequestTrace {
        self.times.sort_unstable();
        let slowest = &self.times[self.times.len() - self.times.len().div_ceil(100)..];
        let sum = |of: fn(&(u64, u64)) -> u64| slowest.iter().map(of).sum::<u64>() as f64;
        let kernel_of_slowest = sum(|time| time.1) / sum(|time| time.0).max(1.0);
        let mut kernel_us: Vec<f64> = self.times.iter().map(|(_, kernel)| *kernel as f64 / 1e3).collect();
        kernel_us.sort_by(f64::total_cmp);
        // The length of the trace is only in a rate, which is the clients' here.
        let report = self.recorder.report(&Unmatched::default(), 0.0);
        RequestTrace {
            report,
            kernel_us,
            kernel_of_slowest,
            unmatched: 0,
            lost: 0,
            asleep: (0, 0),
            ran_ns: 0,
        }
    }
}

impl RequestTrace {
    /// Returns the mean of the kernel's time in us.
    pub(crate) fn kernel_mean(&self) -> f64 {
        stats::mean(&self.kernel_us).unwrap_or(f64::NAN)
    }

    /// Returns a quantile of the kernel's time in us.
    pub(crate) fn kernel_at(&self, share: f64) -> f64 {
        stats::percentile(&self.kernel_us, share).unwrap_or(f64::NAN)
    }

    /// Returns a part's share of the time in the server, 0 to 1.
    pub(crate) fn share(&self, part: Part) -> f64 {
        self.report.parts[part as usize].share
    }

    /// Returns the kernel's share of the time in the server, 0 to 1.
    pub(crate) fn kernel_share(&self) -> f64 {
        1.0 - NOT_THE_KERNELS.iter().map(|part| self.share(*part)).sum::<f64>()
    }

    /// Returns the requests that were seen, with a breakdown or without.
    pub(crate) fn requests(&self) -> f64 {
        (self.report.requests + self.unmatched) as f64
    }
}

/// Returns what Table 5.1 counts as "kernel incl. lock contention": the stack and the system calls, and the waits for a
/// thread, for a processor and for locks.
fn kernel_ns(request: &Request) -> u64 {
    let others: u64 = NOT_THE_KERNELS.iter().map(|part| request.parts[*part as usize]).sum();
    request.latency - others
}

/// The parts that Table 5.1 does not count as the kernel's: the application's own, the network's, and what no event
/// explains.
const NOT_THE_KERNELS: [Part; 4] = [Part::Application, Part::Arrival, Part::Reply, Part::Remainder];

#[cfg(test)]
mod tests {
    use plimsoll_breakdown::{Flow, PARTS};

    use super::*;

    /// A request that runs, sleeps at a lock and is sent for these ns, with some ns that nothing explains.
    fn request(application: u64, blocked: u64, send: u64) -> Request {
        let mut parts = [0; PARTS];
        for (part, ns) in [
            (Part::Application, application),
            (Part::Blocked, blocked),
            (Part::Send, send),
            (Part::Remainder, UNEXPLAINED),
        ] {
            parts[part as usize] = ns;
        }
        Request {
            flow: Flow::from_bits(1),
            reader: 1,
            sender: 1,
            bytes_in: 10,
            bytes_out: 20,
            packets_in: 1,
            packets_out: 1,
            spans: Vec::new(),
            parts,
            received: 0,
            latency: parts.iter().sum(),
        }
    }

    const UNEXPLAINED: u64 = 100;

    #[test]
    fn the_kernels_part_has_waits_for_locks_and_neither_the_application_nor_what_is_unexplained() {
        let mut requests = TracedRequests::new();
        (0..99).for_each(|_| requests.add(request(1_000, 0, 8_900)));
        requests.add(request(1_000, 80_000, 18_900));
        let trace = requests.trace();
        assert_eq!((trace.kernel_at(0.5), trace.kernel_at(1.0)), (8.9, 98.9));
        assert!((trace.kernel_mean() - (99.0 * 8.9 + 98.9) / 100.0).abs() < 1e-9);
        assert!((trace.kernel_of_slowest - 0.989).abs() < 1e-9);
        let all = (99 * 10_000 + 100_000) as f64;
        assert!((trace.kernel_share() - (all - 100.0 * 1_100.0) / all).abs() < 1e-9);
        assert!((trace.share(Part::Application) - 100_000.0 / all).abs() < 1e-9);
    }
}
