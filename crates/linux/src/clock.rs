//! [`Clock`]: the wall's clock.

use std::time::Instant;

use plimsoll_units::{Span, Time};

/// The wall's clock, as the fabric counts time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that shows zero now.
    pub fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    /// Returns the time since the clock started.
    pub fn now(&self) -> Time {
        Time::ZERO + Span::from_ns(self.start.elapsed().as_nanos() as u64)
    }
}
