//! A queue discipline of one's own: CoDel (RFC 8289) drops packets at the head when all have waited too long for too
//! long.

use std::collections::VecDeque;

use plimsoll_fabric::net::port::{QueueDiscipline, Queued};
use plimsoll_mechanisms::InvalidParam;
use plimsoll_mechanisms::pfc::PauseState;
use plimsoll_scenario::Parameters;
use plimsoll_units::{Span, Time};
use serde::{Deserialize, Serialize};

/// The table of CoDel in a scenario.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CoDelParams {
    /// The time that packets may wait.
    pub target: Span,
    /// The time for which all of them may wait longer.
    pub interval: Span,
}

impl Default for CoDelParams {
    fn default() -> CoDelParams {
        CoDelParams { target: Span::from_us(100), interval: Span::from_ms(2) }
    }
}

impl Parameters for CoDelParams {
    fn validate(&self) -> Result<(), InvalidParam> {
        InvalidParam::unless(!self.interval.is_zero(), "interval", self.interval, "more than 0s")
    }
}

/// The queue of one port.
#[derive(Debug)]
pub struct CoDel {
    params: CoDelParams,
    queue: VecDeque<Queued>,
    /// The time since which every packet has waited longer than the target.
    above_since: Option<Time>,
    /// The time at which the next packet is dropped, if packets still wait too long.
    drop_next: Time,
    drops: u32,
}

impl CoDel {
    /// Creates the state of an empty queue.
    pub fn new(params: &CoDelParams) -> CoDel {
        CoDel {
            params: params.clone(),
            queue: VecDeque::new(),
            above_since: None,
            drop_next: Time::ZERO,
            drops: 0,
        }
    }
}

impl QueueDiscipline for CoDel {
    fn push(&mut self, queued: Queued, _: &mut dyn FnMut(Queued)) {
        self.queue.push_back(queued);
    }

    fn pop(&mut self, now: Time, pause: PauseState, dropped: &mut dyn FnMut(Queued)) -> Option<Queued> {
        let CoDelParams { target, interval } = self.params;
        loop {
            let queued = self.queue.pop_front_if(|queued| pause.may(queued.packet.priority))?;
            if now - queued.since < target || self.queue.is_empty() {
                (self.above_since, self.drops) = (None, 0);
                return Some(queued);
            }
            let since = *self.above_since.get_or_insert(now);
            if now < since + interval || self.drops > 0 && now < self.drop_next {
                return Some(queued);
            }
            // Control law: drops come closer together, by the square root of their number.
            self.drops += 1;
            self.drop_next = now + Span::from_secs_f64(interval.as_secs_f64() / f64::from(self.drops).sqrt());
            dropped(queued);
        }
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
