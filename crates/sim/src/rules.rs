//! [`Rules`]: what the scenario says about a run as a whole.

use plimsoll_mechanisms::nic_burst::SegmentationOffload;
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
    /// Something but the window keeps ends from sending: backpressure, segmentation offload, or limits.
    pub(crate) holds_back: bool,
    /// Something holds packets between the receiving NIC and the transport: coalescing, or a reorder buffer.
    pub(crate) holds_received: bool,
    /// The transport waits for room in the NIC queue.
    pub(crate) backpressure: bool,
    /// Connections are closed when they fall idle.
    pub(crate) close_when_idle: bool,
    /// A message is complete when its delivery has been acknowledged to its sender.
    pub(crate) completes_acknowledged: bool,
    /// Packets of a flow may take several paths at a time.
    pub(crate) spreads: bool,
    /// Senders wait for a piece worth handing to the NIC.
    pub(crate) segmentation: Option<SegmentationOffload>,
}

impl Rules {
    /// Sets the end of a run whose workloads have all `finished`.
    pub(crate) fn end_after(&mut self, finished: Time) {
        self.horizon = self.horizon.min(finished + self.grace);
    }
}
