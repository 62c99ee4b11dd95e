//! [`RoundTrip`]: whether a packet that is acknowledged was sent after the last decision, so that a controller decides
//! once a round trip.

use plimsoll_units::Time;

use crate::transports::roce::rate_control::RoceAck;

/// The last decision of a controller.
///
/// Released codes compare stream offsets: the next decision is by an acknowledgement of what was not yet sent at the
/// last one. Without losses that is the same. Go-back-N sends old offsets again for a long time, in which a controller
/// would not decide.
#[derive(Debug, Default)]
pub(super) struct RoundTrip {
    began: Time,
}

impl RoundTrip {
    /// Returns whether the packet that caused `ack` was sent since the last decision; false if it is not known.
    pub(super) fn has_passed(&self, ack: &RoceAck) -> bool {
        ack.rtt.is_some_and(|rtt| self.began + rtt <= ack.now)
    }

    /// A decision is made at `now`.
    pub(super) fn begin(&mut self, now: Time) {
        self.began = now;
    }
}
