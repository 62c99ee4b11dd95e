//! [`OpenRuns`]: joins frames whose gaps are below a threshold.

use plimsoll_units::{Span, Time};

/// Frames without a gap of the threshold or more between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// When the first frame starts on the wire.
    pub start: Time,
    /// When the last frame ends on the wire.
    pub end: Time,
    /// The number of frames.
    pub packets: u64,
    /// The sum of their bytes.
    pub bytes: u64,
}

impl Run {
    /// Returns the time from the start to the end.
    pub fn duration(&self) -> Span {
        self.end.saturating_since(self.start)
    }
}

/// The run that is open on one wire, or from one source to one destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenRuns {
    open: Option<Run>,
}

impl OpenRuns {
    /// Adds a frame that occupies the wire from `start` to `end`, and returns the run that it ends: the one before,
    /// unless the gap to its end is below `gap`. A frame that starts earlier than that end has no gap.
    #[inline]
    pub fn on_frame(&mut self, start: Time, end: Time, bytes: u64, gap: Span) -> Option<Run> {
        match &mut self.open {
            Some(run) if start.saturating_since(run.end) < gap => {
                run.end = run.end.max(end);
                run.packets += 1;
                run.bytes += bytes;
                None
            }
            open => open.replace(Run { start, end, packets: 1, bytes }),
        }
    }

    /// Returns the run that is open, if there is one.
    pub fn open(&self) -> Option<&Run> {
        self.open.as_ref()
    }

    /// Closes the open run and returns it.
    pub fn close(&mut self) -> Option<Run> {
        self.open.take()
    }
}
