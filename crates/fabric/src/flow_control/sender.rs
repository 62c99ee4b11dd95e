//! [`PausedSender`]: the end of a link that sends on it, and that the other end pauses.
//!
//! ```text
//!  signals ──> received pauses ──┬──> less the storms of the watchdog ──> port: the priorities that may not be sent
//!  expiry  ──> ended pauses ─────┘            └─────────────────────────> port: the priorities that are dropped
//! ```

use std::collections::VecDeque;

use plimsoll_mechanisms::lossless::{PauseExpiry, PauseWatchdog};
use plimsoll_mechanisms::pfc::{PauseState, Priorities, Signal};
use plimsoll_units::Time;

use super::timer::LazyCall;
use crate::engine::EventQueue;
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

/// A change of the priorities that a port may send.
#[derive(Clone, Copy, Debug)]
pub struct PauseChange {
    /// The priorities that are paused or resumed.
    pub signal: Signal,
    /// The priorities whose packets the port drops from now on.
    pub discarded: Priorities,
}

/// The pauses of the port that sends on a link.
#[derive(Debug, Default)]
pub(super) struct PausedSender {
    travelling: VecDeque<SentSignal>,
    /// How often the link has failed or come back.
    breaks: u32,
    /// When the last signal that was sent takes effect.
    last_sent: Option<Time>,
    /// The priorities that the far end has paused.
    state: PauseState,
    /// The end of each pause, where pauses end by themselves.
    pub(super) expiry: Option<PauseExpiry>,
    /// Stops to obey pauses that do not end.
    pub(super) watchdog: Option<Box<PauseWatchdog>>,
    /// The call for the next deadline of these two.
    call: LazyCall,
    /// The number of storms that the watchdog has found.
    pub(super) storms: u64,
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

    /// Returns the next change that takes effect by `now`. At the same time a signal comes before the end of a pause,
    /// and that before a storm.
    pub(super) fn take_due(&mut self, now: Time, window: MeasurementWindow) -> Option<PauseChange> {
        let arrived = self.travelling.pop_front_if(|sent| sent.at <= now).map(|sent| sent.signal);
        let expired = || {
            let ended = self.expiry.as_mut()?.take_expired(now);
            (!ended.is_empty()).then_some(Signal::Resume(ended))
        };
        let signal = match arrived.or_else(expired) {
            Some(signal) => {
                self.on_signal(now, window, signal);
                match signal {
                    Signal::Pause(priorities) => Signal::Pause(priorities.without(self.storm())),
                    resume => resume,
                }
            }
            None => {
                let watchdog = self.watchdog.as_mut()?;
                let before = watchdog.storm();
                if !watchdog.take_due(now) {
                    return None;
                }
                let begun = watchdog.storm().without(before);
                self.storms += u64::from(begun.count());
                Signal::Resume(begun)
            }
        };
        let discarded = self.watchdog.as_ref().map_or(Priorities::default(), |watchdog| watchdog.dropped());
        Some(PauseChange { signal, discarded })
    }

    /// Asks for a call of `port` at the next time at which a pause ends or a storm begins or ends.
    pub(super) fn call_when_due(&mut self, now: Time, port: PortId, events: &mut EventQueue) {
        let expiry = self.expiry.as_ref().and_then(PauseExpiry::next);
        let watchdog = self.watchdog.as_ref().and_then(|watchdog| watchdog.next());
        self.call.at(now, expiry.into_iter().chain(watchdog).min(), port, events);
    }

    fn storm(&self) -> Priorities {
        self.watchdog.as_ref().map_or(Priorities::default(), |watchdog| watchdog.storm())
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
        if let Signal::Pause(priorities) = signal
            && !self.state.paused().has_all(priorities)
        {
            self.last_pause = now;
        }
        self.state.on_signal(signal);
        if let Some(expiry) = &mut self.expiry {
            expiry.on_signal(now, signal);
        }
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.on_paused(now, self.state.paused());
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
    pub(super) fn stopped(&self) -> Priorities {
        self.state.paused().without(self.storm())
    }

    /// Returns whether a priority is paused.
    pub(super) fn is_paused(&self) -> bool {
        !self.state.paused().is_empty()
    }

    /// Returns the priorities that are paused, and for which no resume is under way.
    pub(super) fn paused_for_now(&self) -> Priorities {
        let resumed = |sent: &SentSignal| match sent.signal {
            Signal::Resume(priorities) => priorities,
            Signal::Pause(_) => Priorities::default(),
        };
        self.travelling.iter().fold(self.state.paused(), |paused, sent| paused.without(resumed(sent)))
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
