//! The nights of the hosts' NICs: a clock of the fabric pauses and resumes all of them.
//!
//! ```text
//! Clock event ──> every NIC: Port::set_night(priorities)     evening: hold these; dawn: hold nothing
//!             └─> the next event
//! ```
//!
//! All of it is a function of the time, so each logical process of a parallel run computes it for its own NICs.

mod follow;

use plimsoll_mechanisms::tdma::Nights;
use plimsoll_units::Time;

use crate::engine::{Owner, OwnerKind};

/// The nights of a run, and how many events began or ended them.
#[derive(Debug)]
pub(crate) struct NightClock {
    nights: Nights,
    /// Events so far; every logical process of a parallel run has them all.
    pub(crate) events: u64,
}

/// The number, among the owners of kind [`OwnerKind::Clock`], of the clock that begins and ends nights.
pub(crate) const NIGHTS_CLOCK: u32 = 3;

impl NightClock {
    pub(crate) fn new(nights: Nights) -> Box<NightClock> {
        Box::new(NightClock { nights, events: 0 })
    }

    /// Returns the next event after `now`.
    pub(crate) fn next_event(&self, now: Time) -> (Time, Owner) {
        (self.nights.next_change(now), Owner::new(OwnerKind::Clock, NIGHTS_CLOCK))
    }
}
