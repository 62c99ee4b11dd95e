//! [`Window`]: the part of a run that counts.

use plimsoll_scenario::model::Model;
use plimsoll_units::{Span, Time};

/// When links count: from the warm-up to the end of the sending. What is drained later would only dilute it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// From here on.
    pub from: Time,
    /// Up to and with this.
    pub until: Time,
}

impl Window {
    /// That of `model`: from the warm-up to the end of the sending.
    pub fn of(model: &Model) -> Window {
        let until = model.run.duration.map_or(Time::MAX, |duration| Time::ZERO + duration);
        Window { from: Time::ZERO + model.run.warmup, until }
    }

    /// Whether `time` lies in it.
    pub fn has(self, time: Time) -> bool {
        (self.from..=self.until).contains(&time)
    }

    /// How much of the time between `start` and `end` lies in it.
    pub fn part_of(self, start: Time, end: Time) -> Span {
        end.min(self.until).saturating_since(start.max(self.from))
    }
}
