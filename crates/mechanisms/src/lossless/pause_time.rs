//! Pauses that end by themselves: [`RefreshTimer`] at the switch that pauses, and [`PauseExpiry`] at the sender.
//!
//! ```text
//!  switch   pause ├─ T/2 ─┤ refresh ├─ T/2 ─┤ refresh      resume       T = quanta x 512 bit times of the link
//!              \               \               \              \
//!  sender    paused ────────────────────────────────────────── sends again
//!              └──── at most T ──── unless a refresh comes
//! ```

use plimsoll_units::{Bytes, Rate, Span, Time};

use crate::pfc::{PAUSE_FRAME, PausedLink, Priorities, Signal};

/// Returns the length of a pause of `quanta` on a link of `rate`.
pub fn pause_time(quanta: u16, rate: Rate) -> Span {
    Bytes::new(u64::from(quanta) * QUANTUM).time_at(rate)
}

/// Returns the fewest quanta with which a refresh reaches the sender before the pause ends: in half of the time a full
/// packet and the frame are sent on the way back.
pub fn quanta_min(link: &PausedLink) -> u64 {
    let bytes = u128::from((link.mtu + PAUSE_FRAME).get()) * u128::from(link.rate.as_bps());
    let bytes = bytes.div_ceil(u128::from(link.back_rate.as_bps().max(1)));
    u64::try_from((2 * bytes).div_ceil(u128::from(QUANTUM))).unwrap_or(u64::MAX)
}

/// The time at which the switch that pauses a link repeats the pause: when half of its time is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefreshTimer {
    half: Span,
    due: Option<Time>,
}

impl RefreshTimer {
    /// A timer for pauses of length `time`.
    pub fn new(time: Span) -> RefreshTimer {
        RefreshTimer { half: time / 2, due: None }
    }

    /// A frame that pauses priorities ends at `end`. Priorities that are paused later are refreshed with the first.
    pub fn on_frame(&mut self, end: Time) {
        self.due.get_or_insert(end + self.half);
    }

    /// Nothing is paused any more.
    pub fn stop(&mut self) {
        self.due = None;
    }

    /// Returns whether a refresh is due at `now`; its frame starts the timer again.
    pub fn take_due(&mut self, now: Time) -> bool {
        self.due.take_if(|due| *due <= now).is_some()
    }

    /// Returns when a refresh is due next.
    pub fn next(&self) -> Option<Time> {
        self.due
    }
}

/// The times at which the pauses of a sender end, by priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PauseExpiry {
    time: Span,
    until: [Option<Time>; 8],
}

impl PauseExpiry {
    /// Pauses have length `time`.
    pub fn new(time: Span) -> PauseExpiry {
        PauseExpiry { time, until: [None; 8] }
    }

    /// A signal takes effect at `now`.
    pub fn on_signal(&mut self, now: Time, signal: Signal) {
        let until = matches!(signal, Signal::Pause(_)).then(|| now + self.time);
        for priority in signal.priorities().iter() {
            self.until[usize::from(priority)] = until;
        }
    }

    /// Removes the priorities whose pauses have ended by `now`.
    pub fn take_expired(&mut self, now: Time) -> Priorities {
        let ended = |(priority, until): (u8, &mut Option<Time>)| {
            until.take_if(|until| *until <= now).map(|_| priority)
        };
        (0..).zip(&mut self.until).filter_map(ended).fold(Priorities::default(), Priorities::with)
    }

    /// Returns when the next pause ends.
    pub fn next(&self) -> Option<Time> {
        self.until.iter().flatten().min().copied()
    }
}

/// A quantum is 512 bit times: the bytes that a link sends meanwhile.
const QUANTUM: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn a_quantum_is_512_bit_times() {
        assert_eq!(pause_time(1, Rate::from_gbps(1)), Span::from_ns(512));
        // IEEE 802.1Qbb: 65535 quanta at 10 Gb/s.
        assert_eq!(pause_time(65_535, Rate::from_gbps(10)), Span::from_ps(3_355_392_000));
    }

    /// 2 (1500 B + 84 B) of 64 B; on a way back that is four times slower the link sends four times as much meanwhile.
    #[test]
    fn half_of_the_time_is_enough_for_a_refresh() {
        let rate = Rate::from_gbps(40);
        let link = PausedLink {
            rate,
            back_rate: rate,
            propagation: Span::ZERO,
            mtu: Bytes::new(1_500),
            buffer: Bytes::ZERO,
            priorities: 1,
        };
        assert_eq!(quanta_min(&link), 50);
        assert_eq!(quanta_min(&PausedLink { back_rate: Rate::from_gbps(10), ..link }), 198);
    }

    #[test]
    fn refreshes_repeat_until_nothing_is_paused() {
        let mut timer = RefreshTimer::new(Span::from_us(10));
        assert_eq!(timer.next(), None);
        timer.on_frame(at(100));
        timer.on_frame(at(103));
        assert_eq!(timer.next(), Some(at(105)), "the first pause of the link decides");
        assert!(!timer.take_due(at(104)) && timer.take_due(at(105)) && !timer.take_due(at(106)));
        timer.on_frame(at(106));
        assert_eq!(timer.next(), Some(at(111)));
        timer.stop();
        assert!(!timer.take_due(at(111)));
    }

    #[test]
    fn a_pause_ends_unless_it_is_refreshed() {
        let mut expiry = PauseExpiry::new(Span::from_us(10));
        let (three, both) = (Priorities::one(3), Priorities::one(3).with(5));
        expiry.on_signal(at(0), Signal::Pause(both));
        assert_eq!((expiry.take_expired(at(9)), expiry.next()), (Priorities::default(), Some(at(10))));
        expiry.on_signal(at(9), Signal::Pause(three));
        assert_eq!(expiry.take_expired(at(10)), Priorities::one(5), "only 3 was refreshed");
        assert_eq!(expiry.next(), Some(at(19)));
        expiry.on_signal(at(12), Signal::Resume(three));
        assert_eq!((expiry.next(), expiry.take_expired(at(19))), (None, Priorities::default()));
    }
}
