//! [`PausedSender`]: the end of a link that sends on it, and that the other end pauses.

use std::collections::VecDeque;

use plimsoll_mechanisms::pfc::{PauseState, Priorities, Signal};
use plimsoll_units::Time;

use crate::net::PortId;
use crate::observed::{MeasurementWindow, PauseTotals};

/// A signal on its way to the port that it pauses or resumes.
#[derive(Clone, Copy, Debug)]
pub struct SentSignal {
    /// The port that is paused or resumed.
    pub(crate) port: PortId,
    /// When the signal takes effect.
    pub(crate) at: Time,
    signal: Signal,
    /// How often the link had failed or come back when the signal was sent.
    breaks: u32,
    /// The signal is the first that takes effect at its time, so that it is an event.
    pub(crate) is_event: bool,
}

/// The pauses of the port that sends on a link.
#[derive(Debug, Default)]
pub(super) struct PausedSender {
    travelling: VecDeque<SentSignal>,
    /// How often the link has failed or come back.
    breaks: u32,
    /// When the last signal that was sent takes effect.
    last_sent: Option<Time>,
    /// The priorities that the port may not send now.
    state: PauseState,
    /// The time since which at least one priority is paused.
    paused_since: Time,
    /// The time at which a pause last took effect.
    last_pause: Time,
    totals: PauseTotals,
}

impl PausedSender {
    /// Returns `signal`, which is sent now to take effect at `port` at `at`. It is called at the end of the link that
    /// pauses.
    pub(super) fn sent(&mut self, port: PortId, at: Time, signal: Signal) -> SentSignal {
        let is_event = self.last_sent.replace(at) != Some(at);
        SentSignal { port, at, signal, breaks: self.breaks, is_event }
    }

    /// Has `sent` take effect when it is due, unless the link has failed or come back since it was sent.
    pub(super) fn expect(&mut self, sent: SentSignal) {
        if sent.breaks >= self.breaks {
            self.travelling.push_back(sent);
        }
    }

    /// Removes the next signal that takes effect by `now`.
    pub(super) fn take_due(&mut self, now: Time, window: MeasurementWindow) -> Option<Signal> {
        let SentSignal { signal, .. } = self.travelling.pop_front_if(|sent| sent.at <= now)?;
        self.on_signal(now, window, signal);
        Some(signal)
    }

    /// The link has failed or come back at `now`: nothing is paused any more. Another logical process may have sent
    /// signals after that time already, which remain.
    pub(super) fn forget(&mut self, now: Time, window: MeasurementWindow) {
        self.breaks += 1;
        self.last_sent = None;
        self.travelling.retain(|sent| sent.breaks >= self.breaks);
        self.on_signal(now, window, Signal::Resume(Priorities::ALL));
    }

    fn on_signal(&mut self, now: Time, window: MeasurementWindow, signal: Signal) {
        let was_paused = self.is_paused();
        self.state.on_signal(signal);
        if matches!(signal, Signal::Pause(_)) {
            self.last_pause = now;
        }
        match (was_paused, self.is_paused()) {
            (false, true) => {
                self.paused_since = now;
                self.totals.pauses += u64::from(window.has(now));
            }
            (true, false) => self.totals.paused += window.part_of(self.paused_since, now),
            _ => {}
        }
    }

    /// Returns the priorities that the port may not send now.
    pub(super) fn paused(&self) -> Priorities {
        self.state.paused()
    }

    /// Returns whether a priority is paused.
    pub(super) fn is_paused(&self) -> bool {
        !self.state.paused().is_empty()
    }

    /// Returns the priorities that are paused, and for which no signal is under way.
    pub(super) fn paused_for_now(&self) -> Priorities {
        let paused = self.state.paused();
        self.travelling.iter().fold(paused, |paused, sent| paused.without(sent.signal.priorities()))
    }

    /// Returns the time at which a pause last took effect.
    pub(super) fn last_pause(&self) -> Time {
        self.last_pause
    }

    /// Returns how often and how long the port was paused until `end`.
    pub(super) fn totals(&self, end: Time, window: MeasurementWindow) -> PauseTotals {
        let mut totals = self.totals;
        if self.is_paused() {
            totals.paused += window.part_of(self.paused_since, end);
        }
        totals
    }
}
