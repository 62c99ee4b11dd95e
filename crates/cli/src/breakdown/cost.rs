//! Measures what tracing costs, for a while early in the trace.

use std::time::Duration;

use plimsoll_breakdown::target::processor_ns;
use plimsoll_breakdown::{Recorder, Session, Target};
use serde::Serialize;

/// What tracing cost while it was measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Cost {
    /// The requests, matched or not, in that time.
    pub(super) requests: u64,
    /// Runs of the kernel's programs at packets and sockets, a request.
    pub(super) runs: f64,
    /// Their processor time a request, in ns. Some of it is the clients' where these are on the same machine.
    pub(super) kernel_ns: f64,
    /// The processors that the programs at the scheduler took, 1 for one. They also run for other processes.
    pub(super) scheduler_processors: f64,
    /// The server's processor time a request, in ns, which includes most of that.
    pub(super) server_ns: f64,
    /// The processors that this command used to join the records, 1 for one.
    pub(super) own_processors: f64,
}

impl Cost {
    /// Returns the programs' time as a share of the server's time without them.
    pub(super) fn share(&self) -> f64 {
        self.kernel_ns / (self.server_ns - self.kernel_ns).max(1.0)
    }
}

/// The state at the begin of the measurement.
#[derive(Clone, Copy, Debug)]
struct Begin {
    at: Duration,
    requests: u64,
    server_ns: u64,
    own_ns: u64,
}

/// Measures for most of the first slice, at most [`LONGEST`].
#[derive(Debug)]
pub(super) struct Meter {
    from: Duration,
    until: Duration,
    begin: Option<Begin>,
    /// Whether the kernel rejected the measurement, for which it wants CAP_SYS_ADMIN.
    denied: bool,
    cost: Option<Cost>,
}

impl Meter {
    pub(super) fn new(slice: Duration) -> Meter {
        let from = slice / 20;
        Meter { from, until: from + (slice * 4 / 5).min(LONGEST), begin: None, denied: false, cost: None }
    }

    /// Begins or ends the measurement if it is time.
    pub(super) fn poll(
        &mut self,
        now: Duration,
        session: &mut Session,
        recorder: &Recorder,
        target: &Target,
    ) -> anyhow::Result<()> {
        if self.denied || self.cost.is_some() || now < self.from || (self.begin.is_some() && now < self.until)
        {
            return Ok(());
        }
        let state = Begin {
            at: now,
            requests: recorder.requests() + session.matcher().unmatched().total(),
            server_ns: target.processor_ns(),
            own_ns: processor_ns(std::process::id()),
        };
        let Some(begin) = self.begin else {
            if session.begin_cost().is_err() {
                self.denied = true;
                return Ok(());
            }
            self.begin = Some(state);
            return Ok(());
        };
        let [(runs, kernel_ns), (_, scheduler_ns)] = session.end_cost()?;
        let processors = |ns: u64| ns as f64 / (state.at - begin.at).as_nanos().max(1) as f64;
        let requests = state.requests - begin.requests;
        let per_request = |sum: u64| sum as f64 / requests.max(1) as f64;
        self.cost = Some(Cost {
            requests,
            runs: per_request(runs),
            kernel_ns: per_request(kernel_ns),
            server_ns: per_request(state.server_ns.saturating_sub(begin.server_ns)),
            scheduler_processors: processors(scheduler_ns),
            own_processors: processors(state.own_ns.saturating_sub(begin.own_ns)),
        });
        Ok(())
    }

    /// Returns the cost; none where the trace ended before, or had no request meanwhile.
    pub(super) fn cost(&self) -> Option<Cost> {
        self.cost.filter(|cost| cost.requests > 0)
    }
}

/// The measurement costs time itself: about 20 ns a run.
const LONGEST: Duration = Duration::from_secs(2);
