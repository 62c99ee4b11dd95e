//! [`Probes`]: packets without data by which a sender that hears nothing asks what has arrived.
//!
//! ```text
//! answer ── R + T, or 3 R with data to send ──> probe ── 5 R ──> probe ... five of them without an answer
//!                                                 └── its answer, less than T late: what was sent before it is lost
//! ```
//!
//! R is the network's base round trip, and T the queueing delay that is aimed at. The published simulator of the
//! transport's working group (2025) has probes together with losses that are found by overtaking packets.

use plimsoll_units::{Span, Time};

/// The probes of one sender.
#[derive(Debug)]
pub(super) struct Probes {
    round_trip: Span,
    target: Span,
    /// When the next one is due; [`Time::MAX`] if never.
    due: Time,
    is_owed: bool,
    /// The number of the last one, and when it left.
    number: u16,
    left: Time,
    /// Those that left since the last answer.
    unanswered: u32,
}

impl Probes {
    /// Makes the probes of a sender in a network of base round trip `round_trip`, with the target `target`.
    pub(super) fn new(round_trip: Span, target: Span) -> Probes {
        Probes {
            round_trip,
            target,
            due: Time::MAX,
            is_owed: false,
            number: 0,
            left: Time::ZERO,
            unanswered: 0,
        }
    }

    /// An answer arrived, whose sender has packets in flight or not, and others to send or not.
    pub(super) fn on_answer(&mut self, now: Time, has_in_flight: bool, has_data: bool) {
        let silence =
            if has_data { self.round_trip.saturating_mul(3) } else { self.round_trip + self.target };
        self.due = if has_in_flight { now + silence } else { Time::MAX };
        self.is_owed = false;
        self.unanswered = 0;
    }

    /// Returns when [`on_due`](Probes::on_due) must be called; [`Time::MAX`] if never.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// A probe is owed if its time has come.
    pub(super) fn on_due(&mut self, now: Time) {
        if self.due <= now {
            (self.is_owed, self.due) = (true, Time::MAX);
        }
    }

    pub(super) fn is_owed(&self) -> bool {
        self.is_owed
    }

    /// The probe that is owed leaves. Returns its number.
    pub(super) fn take(&mut self, now: Time) -> Option<u16> {
        if !std::mem::take(&mut self.is_owed) {
            return None;
        }
        self.number = self.number.wrapping_add(1);
        self.left = now;
        self.unanswered += 1;
        let again = now + self.round_trip.saturating_mul(5);
        self.due = if self.unanswered < UNANSWERED_MAX { again } else { Time::MAX };
        Some(self.number)
    }

    /// The answer to probe `number` arrived. Returns when that probe left, if the answer says that packets sent before
    /// are lost: it came without a long queue, and no later probe has left.
    pub(super) fn finds_losses(&self, now: Time, number: u16) -> Option<Time> {
        let is_prompt = now - self.left < self.round_trip + self.target;
        (number == self.number && is_prompt).then_some(self.left)
    }
}

/// The probes without an answer after which only the timeout is left.
const UNANSWERED_MAX: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn probes_leave_after_a_silence_five_times_at_most() {
        let mut probes = Probes::new(Span::from_us(10), Span::from_us(8));
        assert_eq!(probes.due(), Time::MAX);
        probes.on_answer(at(100), true, true);
        assert_eq!(probes.due(), at(130));
        probes.on_answer(at(110), true, false);
        assert_eq!(probes.due(), at(128));
        let mut left = Vec::new();
        while probes.due() < Time::MAX {
            let now = probes.due();
            probes.on_due(now);
            left.push((probes.take(now).unwrap(), now));
            assert_eq!(probes.take(now), None);
        }
        assert_eq!(left, [(1, at(128)), (2, at(178)), (3, at(228)), (4, at(278)), (5, at(328))]);
        probes.on_answer(at(340), false, true);
        assert_eq!(probes.due(), Time::MAX, "nothing is in flight");
    }

    #[test]
    fn an_answer_to_the_last_probe_finds_losses_unless_it_has_met_a_queue() {
        let mut probes = Probes::new(Span::from_us(10), Span::from_us(8));
        for now in [20, 70] {
            probes.on_answer(at(now - 18), true, false);
            probes.on_due(at(now));
            assert!(probes.is_owed());
            probes.take(at(now));
        }
        assert_eq!(probes.finds_losses(at(80), 1), None, "another has left since");
        assert_eq!(probes.finds_losses(at(87), 2), Some(at(70)));
        assert_eq!(probes.finds_losses(at(88), 2), None);
    }
}
