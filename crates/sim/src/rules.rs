//! [`Rules`]: what the scenario says about a run as a whole.

use plimsoll_units::{Span, Time};

/// What the scenario says about the run as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// The run ends here at the latest.
    pub(crate) horizon: Time,
    /// The run ends when every workload has finished.
    pub(crate) stop_when_finished: bool,
    /// How long the run goes on then: the shortest propagation of a link. No switch hears sooner that it is over,
    /// so the logical processes of a parallel run end as a run on one thread does.
    pub(crate) grace: Span,
}

impl Rules {
    /// Sets the end of a run whose workloads have all `finished`.
    pub(crate) fn end_after(&mut self, finished: Time) {
        self.horizon = self.horizon.min(finished + self.grace);
    }
}
