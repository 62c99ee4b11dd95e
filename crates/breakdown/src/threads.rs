//! [`Threads`] remembers when the server's threads were off their processors, and divides a stretch of time by it.

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::event::ThreadId;
use crate::part::{Part, Spans};

/// A stretch in which a thread was off its processor, in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Off {
    /// When it stopped; 0 if that was not seen.
    pub(crate) stopped: u64,
    /// When it was woken; 0 if that was not seen.
    pub(crate) woken: u64,
    /// When it had a processor again.
    pub(crate) resumed: u64,
    /// True if it could have continued.
    pub(crate) preempted: bool,
}

/// The parts that the states of a thread represent in one stretch of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meaning {
    pub(crate) running: Part,
    pub(crate) asleep: Part,
    pub(crate) runnable: Part,
}

#[derive(Debug, Default)]
struct History {
    /// The latest stretches off the processor, in order.
    off: VecDeque<Off>,
    /// The end of the last stretch that was forgotten.
    forgotten: u64,
    /// The time of the last event of the thread.
    active: u64,
}

/// The recent past of the server's threads.
#[derive(Debug, Default)]
pub(crate) struct Threads(HashMap<ThreadId, History>);

impl Threads {
    /// Notes that the thread continued.
    pub(crate) fn on_resumed(&mut self, thread: ThreadId, off: Off) {
        if self.0.len() >= THREADS_MAX && !self.0.contains_key(&thread) {
            // Threads that no longer exist: the histories that are of use are short and come back by themselves.
            self.0.clear();
        }
        let history = self.0.entry(thread).or_default();
        if history.off.len() == OFF_MAX
            && let Some(oldest) = history.off.pop_front()
        {
            history.forgotten = oldest.resumed;
        }
        history.off.push_back(off);
    }

    /// Notes that the thread did something for a request, and returns when it last did.
    pub(crate) fn on_active(&mut self, thread: ThreadId, at: u64) -> u64 {
        let history = self.0.entry(thread).or_default();
        std::mem::replace(&mut history.active, at)
    }

    /// Divides the stretch between two times by the states of the thread, and appends the parts to `spans`.
    pub(crate) fn divide(&self, thread: ThreadId, from: u64, to: u64, meaning: Meaning, spans: &mut Spans) {
        let Some(history) = self.0.get(&thread) else {
            spans.push(meaning.running, from, to);
            return;
        };
        let mut at = from;
        if history.forgotten > at {
            let known = history.forgotten.min(to);
            spans.push(Part::Remainder, at, known);
            at = known;
        }
        let first = history.off.partition_point(|off| off.resumed <= at);
        for off in history.off.range(first..) {
            let stopped = off.stopped.clamp(at, to);
            spans.push(meaning.running, at, stopped);
            let resumed = off.resumed.clamp(stopped, to);
            if off.preempted {
                spans.push(meaning.runnable, stopped, resumed);
            } else if off.woken == 0 {
                spans.push(Part::Remainder, stopped, resumed);
            } else {
                let woken = off.woken.clamp(stopped, resumed);
                spans.push(meaning.asleep, stopped, woken);
                spans.push(meaning.runnable, woken, resumed);
            }
            at = resumed;
            if at == to {
                break;
            }
        }
        spans.push(meaning.running, at, to);
    }
}

/// The stretches that are kept of each thread: a request that its thread interrupts more often has a remainder.
const OFF_MAX: usize = 1_024;
/// The threads of which a history is kept.
const THREADS_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    const MEANING: Meaning =
        Meaning { running: Part::Application, asleep: Part::Blocked, runnable: Part::Preempted };

    fn divided(off: &[Off], from: u64, to: u64) -> Vec<(Part, u64)> {
        let mut threads = Threads::default();
        off.iter().for_each(|off| threads.on_resumed(7, *off));
        let mut spans = Spans::default();
        threads.divide(7, from, to, MEANING, &mut spans);
        spans.as_slice().iter().map(|span| (span.part, span.to - span.from)).collect()
    }

    #[test]
    fn a_stretch_is_divided_by_what_the_thread_did() {
        let slept = Off { stopped: 120, woken: 150, resumed: 160, preempted: false };
        let preempted = Off { stopped: 170, woken: 0, resumed: 175, preempted: true };
        use Part::{Application, Blocked, Preempted, Remainder};
        assert_eq!(divided(&[], 100, 200), [(Application, 100)]);
        assert_eq!(
            divided(&[slept, preempted], 100, 200),
            [
                (Application, 20),
                (Blocked, 30),
                (Preempted, 10),
                (Application, 10),
                (Preempted, 5),
                (Application, 25)
            ]
        );
        // It slept already, or had been woken already, when the stretch begins.
        assert_eq!(divided(&[slept], 140, 200), [(Blocked, 10), (Preempted, 10), (Application, 40)]);
        assert_eq!(divided(&[slept], 155, 158), [(Preempted, 3)]);
        assert_eq!(divided(&[slept], 160, 165), [(Application, 5)]);
        // The wake-up was not seen; the stop was not seen.
        assert_eq!(divided(&[Off { woken: 0, ..slept }], 120, 165), [(Remainder, 40), (Application, 5)]);
        assert_eq!(
            divided(&[Off { stopped: 0, ..slept }], 100, 165),
            [(Blocked, 50), (Preempted, 10), (Application, 5)]
        );
    }

    #[test]
    fn what_is_forgotten_is_a_remainder() {
        let off = |at| Off { stopped: at, woken: at + 1, resumed: at + 2, preempted: false };
        let all: Vec<Off> = (0..OFF_MAX as u64 + 1).map(|number| off(100 + 10 * number)).collect();
        assert_eq!(divided(&all, 100, 110), [(Part::Remainder, 2), (Part::Application, 8)]);
    }
}
