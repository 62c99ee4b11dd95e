//! [`Slices`] attaches the programs for a part of the time, so that tracing costs that part.

use std::time::{Duration, Instant};

use crate::{Error, Request, Session};

/// The slices of a trace: tracing, and a pause after each.
#[derive(Debug)]
pub(crate) struct Slices {
    /// The length of a slice; `None` without pauses.
    slice: Option<Duration>,
    pause: Duration,
    traces: bool,
    since: Instant,
}

impl Slices {
    /// Attaches the programs for the first slice.
    pub(crate) fn begin(duty: f64, session: &mut Session) -> Result<Slices, Error> {
        session.attach()?;
        let slice = (duty < 1.0).then_some(SLICE);
        Ok(Slices { slice, pause: SLICE.mul_f64(1.0 / duty - 1.0), traces: true, since: Instant::now() })
    }

    /// Reads the requests since the last call, and ends the slice or the pause if it is time.
    pub(crate) fn poll(&mut self, session: &mut Session) -> Result<Vec<Request>, Error> {
        let elapsed = self.since.elapsed();
        if !self.traces {
            if elapsed >= self.pause {
                session.attach()?;
                (self.traces, self.since) = (true, Instant::now());
            }
            return Ok(Vec::new());
        }
        if self.slice.is_some_and(|slice| elapsed >= slice) {
            (self.traces, self.since) = (false, Instant::now());
            return session.finish();
        }
        session.poll()
    }
}

/// A request that takes longer than a slice is never whole in one.
pub(crate) const SLICE: Duration = Duration::from_millis(500);
