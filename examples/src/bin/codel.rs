//! A queue discipline of one's own: CoDel (RFC 8289) drops at the head what has waited too long for too long.

use std::collections::VecDeque;

use plimsoll_examples::{percentile_us, with_and_without};
use plimsoll_fabric::net::port::{QueueDiscipline, Queued};
use plimsoll_mechanisms::pfc::PauseState;
use plimsoll_sim::Extensions;
use plimsoll_stdio::outln;
use plimsoll_units::{Span, Time};

const TARGET: Span = Span::from_us(100);
const INTERVAL: Span = Span::from_ms(2);

#[derive(Debug, Default)]
struct CoDel {
    queue: VecDeque<Queued>,
    /// Since when every packet has waited longer than the target.
    above_since: Option<Time>,
    /// The next packet is dropped then, if it still does.
    drop_next: Time,
    drops: u32,
}

impl QueueDiscipline for CoDel {
    fn push(&mut self, queued: Queued, _: &mut dyn FnMut(Queued)) {
        self.queue.push_back(queued);
    }

    fn pop(&mut self, now: Time, pause: PauseState, dropped: &mut dyn FnMut(Queued)) -> Option<Queued> {
        loop {
            let queued = self.queue.pop_front_if(|queued| pause.may(queued.packet.priority))?;
            if now - queued.since < TARGET || self.queue.is_empty() {
                (self.above_since, self.drops) = (None, 0);
                return Some(queued);
            }
            let since = *self.above_since.get_or_insert(now);
            if now < since + INTERVAL || self.drops > 0 && now < self.drop_next {
                return Some(queued);
            }
            // Control law: drops come closer together, by the square root of their number.
            self.drops += 1;
            self.drop_next = now + Span::from_secs_f64(INTERVAL.as_secs_f64() / f64::from(self.drops).sqrt());
            dropped(queued);
        }
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}

fn main() {
    let discipline = |_: &_| Some(Box::new(CoDel::default()) as Box<dyn QueueDiscipline>);
    let extensions = Extensions { queue_discipline: Some(&discipline), ..Extensions::default() };
    let (fifo, codel) = with_and_without(include_str!("../../beside-bulk.toml"), extensions);
    let (before, after) = (percentile_us(&fifo, 1, 0.99), percentile_us(&codel, 1, 0.99));
    outln!(
        "p99 of requests beside bulk TCP: {before:.0} us first come first served, {after:.0} us with CoDel"
    );
    assert!(after < before / 2.0);
}
