//! Day and night at the hosts' NICs: a timer that pauses and resumes them, as a scheduler host does that sends
//! 802.1Qbb pause frames to a multicast address (REACToR's study of TCP on circuits, 7.3.1 of the thesis).
//!
//! ```text
//! time     0 ........ day | day ... day + night | day + night ........ 2 day + night | ...
//! NIC      sends all      | holds `priorities`  | sends all
//! ```
//!
//! A packet that a NIC has begun is sent to its end. All NICs have the same clock. A set of priorities is paused, as in
//! the frame: a scenario that gives acknowledgements a priority of their own pauses data alone, or acknowledgements
//! alone.
//!
//! Everything follows from the time, so [`Nights`] has no state, and each logical process of a parallel run has the
//! same nights.

use plimsoll_units::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;
use crate::mechanism::{EngineNeed, Mechanism, Section, Table};
use crate::pfc::Priorities;

/// Days and nights of the hosts' NICs: at night they hold the paused priorities. The first day begins with the run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TdmaParams {
    /// How long NICs send: more than 0, at most 1000 s. Default 500 us (REACToR's study).
    pub day: Span,
    /// How long they then hold the paused priorities: at most 1000 s; with `"0s"` nights have no length. A NIC ends the
    /// packet that it is sending. Default 100 us (an assumption).
    pub night: Span,
    /// The 802.1p priorities that are paused, each 0 to 7. Default all eight. With `ack_priority = 1` and
    /// `port.host.order = "priorities"`, `[0]` pauses data and lets acknowledgements pass, and `[1]` does the opposite;
    /// in a NIC without priorities a paused packet delays all packets behind it.
    pub priorities: Vec<u8>,
}

impl Default for TdmaParams {
    fn default() -> TdmaParams {
        TdmaParams { day: Span::from_us(500), night: Span::from_us(100), priorities: (0..8).collect() }
    }
}

impl Mechanism for TdmaParams {
    const TABLE: Table =
        Table::replaced_whole(Section::Host, "tdma", "NICs send at any time").needs(EngineNeed::GeneralHere);

    fn validate(&self) -> Result<(), InvalidParam> {
        let longest = Span::from_secs(1_000);
        let day_ok = self.day > Span::ZERO && self.day <= longest;
        InvalidParam::unless(day_ok, "day", self.day, "more than 0s, at most 1000s")?;
        InvalidParam::unless(self.night <= longest, "night", self.night, "at most 1000s")?;
        for priority in &self.priorities {
            InvalidParam::unless(*priority <= 7, "priorities", priority, "0 to 7, the highest")?;
        }
        InvalidParam::unless(!self.priorities.is_empty(), "priorities", "[]", "at least one, 0 to 7")
    }
}

/// The nights of all NICs, as a function of the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nights {
    day: Span,
    night: Span,
    priorities: Priorities,
}

impl Nights {
    /// Returns the nights of valid `params`; `None` without nights.
    pub fn new(params: &TdmaParams) -> Option<Nights> {
        let priorities =
            params.priorities.iter().fold(Priorities::default(), |set, priority| set.with(*priority));
        let nights = Nights { day: params.day, night: params.night, priorities };
        (!params.night.is_zero()).then_some(nights)
    }

    /// Returns the priorities that NICs hold at `now`: none by day.
    pub fn paused_at(&self, now: Time) -> Priorities {
        if self.is_night(now) { self.priorities } else { Priorities::default() }
    }

    /// Returns whether it is night at `now`. A night begins at the instant at which its day ends.
    pub fn is_night(&self, now: Time) -> bool {
        self.since_dawn(now) >= self.day
    }

    /// Returns when next after `now` a night or a day begins; [`Time::MAX`] where time ends before that.
    pub fn next_change(&self, now: Time) -> Time {
        let since = self.since_dawn(now);
        let next = if since < self.day { self.day } else { self.day + self.night };
        now.saturating_add(next - since)
    }

    /// Returns how long ago the last day began.
    fn since_dawn(&self, now: Time) -> Span {
        Span::from_ps(now.as_ps() % (self.day + self.night).as_ps())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn days_and_nights_follow_each_other() {
        let nights = Nights::new(&TdmaParams::default()).unwrap();
        for (now, night, next) in [
            (0, false, 500),
            (499, false, 500),
            (500, true, 600),
            (599, true, 600),
            (600, false, 1_100),
            (1_100, true, 1_200),
            (60_000_100, false, 60_000_500),
        ] {
            assert_eq!(nights.is_night(at_us(now)), night, "{now} us");
            assert_eq!(nights.next_change(at_us(now)), at_us(next), "{now} us");
        }
        assert_eq!(nights.next_change(Time::MAX), Time::MAX);
    }

    #[test]
    fn a_night_pauses_the_priorities_of_its_frame() {
        let params = TdmaParams { priorities: vec![0, 5], ..TdmaParams::default() };
        let nights = Nights::new(&params).unwrap();
        assert_eq!(nights.paused_at(at_us(550)), Priorities::one(0).with(5));
        assert!(nights.paused_at(at_us(450)).is_empty());
        let all = Nights::new(&TdmaParams::default()).unwrap();
        assert_eq!(all.paused_at(at_us(550)), Priorities::ALL);
    }

    #[test]
    fn without_a_night_there_is_always_day() {
        assert_eq!(Nights::new(&TdmaParams { night: Span::ZERO, ..TdmaParams::default() }), None);
    }

    #[test]
    fn ranges() {
        let default = TdmaParams::default;
        default().validate().unwrap();
        TdmaParams { night: Span::ZERO, ..default() }.validate().unwrap();
        for (key, params) in [
            ("day", TdmaParams { day: Span::ZERO, ..default() }),
            ("day", TdmaParams { day: Span::from_secs(1_001), ..default() }),
            ("night", TdmaParams { night: Span::from_secs(1_001), ..default() }),
            ("priorities", TdmaParams { priorities: vec![], ..default() }),
            ("priorities", TdmaParams { priorities: vec![0, 8], ..default() }),
        ] {
            assert_eq!(params.validate().unwrap_err().key, key);
        }
    }
}
