//! [`PauseWatchdog`]: an output port of a switch that stays paused is in a storm, and obeys its pauses no longer.
//!
//! ```text
//!            paused without a break             not paused
//!           ├───── detection ─────┤            ├─ restoration ─┤
//!  obeys    │     obeys           │ storm: drops or sends      │ obeys
//! ```
//!
//! As in SONiC, a storm is a state of one priority of one port. Departures: SONiC reads counters at intervals, and this
//! one has exact times; a port is not paused once the pause has ended or expired, whether or not more frames come.

use plimsoll_units::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;
use crate::pfc::Priorities;

/// The watchdog of the ports of a switch: a priority that stays paused stops to obey its pauses, so that a circle of
/// pauses is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WatchdogParams {
    /// A priority that is paused without a break for so long is in a storm: at least 1 us. Default 200 ms, as SONiC's.
    pub detection: Span,
    /// A storm ends once the priority was not paused for so long: at least 1 us. Default 200 ms.
    pub restoration: Span,
    /// What becomes of the packets of the priority in a storm. Default `drop`.
    pub action: StormAction,
}

/// What becomes of packets in a storm.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StormAction {
    /// Packets that wait and packets that arrive are dropped.
    #[default]
    Drop,
    /// Packets are sent although they are paused.
    Forward,
}

impl Default for WatchdogParams {
    fn default() -> WatchdogParams {
        let interval = Span::from_ms(200);
        WatchdogParams { detection: interval, restoration: interval, action: StormAction::Drop }
    }
}

impl WatchdogParams {
    pub(super) fn validate(&self) -> Result<(), InvalidParam> {
        let allowed = "at least 1us";
        for (key, interval) in
            [("watchdog.detection", self.detection), ("watchdog.restoration", self.restoration)]
        {
            InvalidParam::unless(interval >= Span::from_us(1), key, interval, allowed)?;
        }
        Ok(())
    }
}

/// The storms of an output port, by priority.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PauseWatchdog {
    params: WatchdogParams,
    paused: Priorities,
    storm: Priorities,
    /// The time since which each priority has been paused, or has not been paused.
    since: [Time; 8],
}

impl PauseWatchdog {
    /// The watchdog of a port that is not paused.
    pub fn new(params: WatchdogParams) -> PauseWatchdog {
        PauseWatchdog {
            params,
            paused: Priorities::default(),
            storm: Priorities::default(),
            since: [Time::ZERO; 8],
        }
    }

    /// Exactly the priorities in `paused` are paused from `now` on.
    pub fn on_paused(&mut self, now: Time, paused: Priorities) {
        for (priority, since) in (0..).zip(&mut self.since) {
            if paused.has(priority) != self.paused.has(priority) {
                *since = now;
            }
        }
        self.paused = paused;
    }

    /// Begins and ends the storms that are due at `now`. Returns whether there was one.
    pub fn take_due(&mut self, now: Time) -> bool {
        let due = |priority: &u8| self.change_of(*priority).is_some_and(|due| due <= now);
        let before = self.storm;
        for priority in (0..8).filter(due).collect::<Vec<u8>>() {
            self.storm = match self.storm.has(priority) {
                true => self.storm.without(Priorities::one(priority)),
                false => self.storm.with(priority),
            };
        }
        self.storm != before
    }

    /// Returns when the next storm begins or ends, if no other signal comes before.
    pub fn next(&self) -> Option<Time> {
        (0..8).filter_map(|priority| self.change_of(priority)).min()
    }

    /// Returns when the storm of `priority` begins or ends.
    fn change_of(&self, priority: u8) -> Option<Time> {
        let since = self.since[usize::from(priority)];
        match (self.paused.has(priority), self.storm.has(priority)) {
            (true, false) => Some(since + self.params.detection),
            (false, true) => Some(since + self.params.restoration),
            _ => None,
        }
    }

    /// Returns the priorities that are in a storm.
    pub fn storm(&self) -> Priorities {
        self.storm
    }

    /// Returns the priorities whose packets are dropped now.
    pub fn dropped(&self) -> Priorities {
        match self.params.action {
            StormAction::Drop => self.storm,
            StormAction::Forward => Priorities::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn watchdog(action: StormAction) -> PauseWatchdog {
        PauseWatchdog::new(WatchdogParams {
            detection: Span::from_ms(200),
            restoration: Span::from_ms(100),
            action,
        })
    }

    #[test]
    fn a_storm_begins_after_detection_and_ends_after_restoration() {
        let mut dog = watchdog(StormAction::Drop);
        let (three, none) = (Priorities::one(3), Priorities::default());
        assert_eq!(dog.next(), None);
        dog.on_paused(at(10), three.with(4));
        dog.on_paused(at(50), three);
        assert_eq!(dog.next(), Some(at(210)));
        assert!(!dog.take_due(at(209)) && dog.take_due(at(210)));
        assert_eq!(
            (dog.storm(), dog.dropped(), dog.next()),
            (three, three, None),
            "4 was not paused for so long"
        );
        dog.on_paused(at(300), none);
        dog.on_paused(at(350), three);
        dog.on_paused(at(360), none);
        assert_eq!(dog.next(), Some(at(460)), "a pause in between starts restoration again");
        assert!(dog.take_due(at(460)));
        assert_eq!((dog.storm(), dog.next()), (none, None));
    }

    #[test]
    fn a_break_starts_detection_again() {
        let mut dog = watchdog(StormAction::Forward);
        for start in [0, 150, 300] {
            dog.on_paused(at(start), Priorities::ALL);
            assert!(!dog.take_due(at(start + 149)));
            dog.on_paused(at(start + 149), Priorities::default());
        }
        dog.on_paused(at(450), Priorities::one(0));
        assert!(dog.take_due(at(650)));
        assert_eq!((dog.storm(), dog.dropped()), (Priorities::one(0), Priorities::default()), "it forwards");
    }
}
