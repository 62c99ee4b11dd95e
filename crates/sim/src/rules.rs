//! [`Rules`]: the settings of the scenario that apply to a run as a whole.

use plimsoll_units::{Span, Time};

/// The settings of the scenario that apply to the run as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// The run ends here at the latest.
    pub(crate) horizon: Time,
    /// The run ends when every workload has finished.
    pub(crate) stop_when_finished: bool,
    /// The time that the run continues then: the shortest propagation of a link. No switch hears sooner that it is
    /// over, so the logical processes of a parallel run end as a run on one thread does.
    pub(crate) grace: Span,
}

impl Rules {
    /// Sets the end of a run whose workloads have all `finished`.
    pub(crate) fn end_after(&mut self, finished: Time) {
        self.horizon = self.horizon.min(finished + self.grace);
    }
}
