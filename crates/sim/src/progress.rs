//! [`Progress`]: how far a run is.

use plimsoll_units::Time;

/// The progress of a run at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The simulated time that the run has reached.
    pub now: Time,
    /// When the run ends at the latest; [`Time::MAX`] if it ends when its work is done.
    pub horizon: Time,
    /// Packets that have completed a link so far.
    pub packet_hops: u64,
    /// Events handled so far.
    pub events: u64,
}
