//! Measures what tracing costs, for a while early in the trace.

use std::time::Duration;

use crate::target::processor_ns;
use crate::traced::Cost;
use crate::{Error, RequestRecorder, Session, Target};

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
pub(crate) struct Meter {
    from: Duration,
    until: Duration,
    begin: Option<Begin>,
    /// Whether the kernel rejected the measurement, for which it wants CAP_SYS_ADMIN.
    denied: bool,
    cost: Option<Cost>,
}

impl Meter {
    pub(crate) fn new(slice: Duration) -> Meter {
        let from = slice / 20;
        Meter { from, until: from + (slice * 4 / 5).min(LONGEST), begin: None, denied: false, cost: None }
    }

    /// Begins or ends the measurement if it is time.
    pub(crate) fn poll(
        &mut self,
        now: Duration,
        session: &mut Session,
        recorder: &RequestRecorder,
        target: &Target,
    ) -> Result<(), Error> {
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
    pub(crate) fn cost(&self) -> Option<Cost> {
        self.cost.filter(|cost| cost.requests > 0)
    }
}

/// The measurement costs time itself: about 20 ns a run.
const LONGEST: Duration = Duration::from_secs(2);
