//! [`Wakefulness`]: for how long a thread that blocks looks for events before it sleeps.
//!
//! ```text
//! event, work, idle ............ event     idle for up to AWAKE: the next time, the thread stays awake for AWAKE
//! event, work, idle .........................sleep.... event     longer: the next time, it sleeps after a few turns
//! ```
//!
//! A thread that sleeps hears of an event later, by a wake-up across processors: a client that waits for each answer
//! has that in every round trip, though the server is idle for a shorter time than the wake-up takes. The last idle
//! time decides, so a thread stays awake for nothing once, after which it sleeps until its events follow each other
//! again.

use std::time::Duration;

/// Decides when an idle thread sleeps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wakefulness {
    /// Turns without anything to do.
    turns: u32,
    /// The time at the first of these turns.
    since: Duration,
    /// Whether the last idle time was short.
    was_short: bool,
}

/// Turns without anything to do, each of which lets other threads run, that a thread takes in any case before it
/// sleeps: a wake-up costs more than the events of these turns, and events that arrive together are handled together.
const TURNS: u32 = 4;
/// The longest idle time for which a thread stays awake: some of the longer wake-ups across processors that were
/// measured.
const AWAKE: Duration = Duration::from_micros(30);

impl Wakefulness {
    /// Registers a turn without anything to do, and returns the number of such turns.
    pub(crate) fn on_idle_turn(&mut self, now: Duration) -> u32 {
        if self.turns == 0 {
            self.since = now;
        }
        self.turns = self.turns.saturating_add(1);
        self.turns
    }

    /// Registers a turn that had something to do.
    pub(crate) fn on_event(&mut self, now: Duration) {
        if self.turns > 0 {
            self.was_short = now.saturating_sub(self.since) <= AWAKE;
        }
        self.turns = 0;
    }

    /// Returns whether the thread looks again without sleeping.
    pub(crate) fn stays_awake(&self, now: Duration) -> bool {
        self.turns < TURNS || (self.was_short && now.saturating_sub(self.since) < AWAKE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_whose_events_follow_each_other_stays_awake_for_them() {
        let us = Duration::from_micros;
        let mut wakefulness = Wakefulness::default();
        let mut idle = |from: u64, to: u64| {
            // A turn without anything to do takes a microsecond.
            let mut slept_at = None;
            for now in from..to {
                if !wakefulness.stays_awake(us(now)) {
                    slept_at = Some(now - from);
                    break;
                }
                wakefulness.on_idle_turn(us(now));
            }
            wakefulness.on_event(us(to));
            slept_at
        };
        // Idle for 20 us: it sleeps after its turns, and stays awake from then on.
        assert_eq!(idle(0, 20), Some(4));
        assert_eq!(idle(100, 120), None);
        assert_eq!(idle(200, 230), None);
        // An event that takes longer finds it asleep, and the next one too, unless that comes soon.
        assert_eq!(idle(300, 340), Some(30));
        assert_eq!(idle(400, 440), Some(4));
        assert_eq!(idle(500, 530), Some(4));
        assert_eq!(idle(600, 620), None);
        // Work without an idle turn says nothing.
        assert_eq!(idle(700, 700), None);
        assert_eq!(idle(700, 725), None);
    }
}
