//! [`PullPacer`]: the order and the times in which a host grants credit to its senders.
//!
//! ```text
//! packet with a pull target ──> enlist(sender) ──> active: round robin ─┐
//!                               no backlog left ──> idle: round robin ──┴─> take() at due() ──> grant ──> PULL
//!                                                                              └── pay(quanta): the next is due then
//! ```
//!
//! The pacer knows no connection: its senders are keys, and the caller has each grant as many quanta as it wants. All
//! senders of a host share one pacer, so that their packets together do not exceed the last link (NDP, Handley et al.,
//! SIGCOMM 2017; EQDS, Olteanu et al., NSDI 2022; RCCC of Ultra Ethernet 1.0).

use std::collections::VecDeque;

use plimsoll_units::{Span, Time};

/// Who gets credit next at a host, and when. `K` names a sender.
#[derive(Debug)]
pub struct PullPacer<K> {
    /// Senders with data for which they have no credit.
    active: VecDeque<K>,
    /// Senders without such data, which get credit in advance when no other wants it.
    idle: VecDeque<K>,
    /// When the next grant may leave.
    next: Time,
}

impl<K> Default for PullPacer<K> {
    fn default() -> PullPacer<K> {
        PullPacer { active: VecDeque::new(), idle: VecDeque::new(), next: Time::ZERO }
    }
}

impl<K> PullPacer<K> {
    /// Puts a sender behind the others that want credit, or behind the ones that get it in advance.
    pub fn enlist(&mut self, sender: K, want: CreditWant) {
        match want {
            CreditWant::Backlog => self.active.push_back(sender),
            CreditWant::Advance => self.idle.push_back(sender),
        }
    }

    /// Removes a sender that wants no credit any more.
    pub fn withdraw(&mut self, sender: &K)
    where
        K: PartialEq,
    {
        self.active.retain(|other| other != sender);
        self.idle.retain(|other| other != sender);
    }

    /// Returns whether a grant may leave at `now` without waiting: no sender is enlisted, and the last one has had its
    /// time.
    pub fn is_free(&self, now: Time) -> bool {
        self.active.is_empty() && self.idle.is_empty() && self.next <= now
    }

    /// Returns when [`take`](PullPacer::take) may be called next; [`Time::MAX`] if no sender is enlisted.
    pub fn due(&self) -> Time {
        if self.active.is_empty() && self.idle.is_empty() { Time::MAX } else { self.next }
    }

    /// Removes the sender whose turn it is, with the list that it was in.
    pub fn take(&mut self) -> Option<(K, CreditWant)> {
        let active = self.active.pop_front().map(|sender| (sender, CreditWant::Backlog));
        active.or_else(|| self.idle.pop_front().map(|sender| (sender, CreditWant::Advance)))
    }

    /// A grant leaves at `now`, which the last link needs `cost` for: the next one waits so long.
    pub fn pay(&mut self, now: Time, cost: Span) {
        self.next = now.max(self.next) + cost;
    }
}

/// The list of a host's pacer in which a sender waits for credit, and so the reason for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CreditWant {
    /// It has data for which it has none.
    Backlog,
    /// It may have some in advance, for data to come.
    Advance,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_with_data_take_turns_before_those_without_and_grants_keep_their_distance() {
        let mut pacer = PullPacer::default();
        assert_eq!(pacer.due(), Time::MAX);
        pacer.enlist("idle", CreditWant::Advance);
        pacer.enlist("a", CreditWant::Backlog);
        pacer.enlist("b", CreditWant::Backlog);
        let mut now = Time::ZERO + Span::from_us(5);
        assert!(pacer.due() <= now);
        let mut order = Vec::new();
        for _ in 0..4 {
            let (sender, want) = pacer.take().unwrap();
            order.push((now.as_ps() / 1_000_000, sender));
            pacer.pay(now, Span::from_us(2));
            if sender == "a" {
                pacer.enlist("a", want);
            }
            now = now.max(pacer.due());
        }
        assert_eq!(order, [(5, "a"), (7, "b"), (9, "a"), (11, "a")]);
        pacer.enlist("b", CreditWant::Backlog);
        pacer.withdraw(&"a");
        assert!(!pacer.is_free(now));
        // The sender without data has not had a turn; it gets the next once none with data is left.
        assert_eq!(pacer.take(), Some(("b", CreditWant::Backlog)));
        assert_eq!(pacer.take(), Some(("idle", CreditWant::Advance)));
        assert_eq!(pacer.due(), Time::MAX);
        assert!(pacer.is_free(now) && !pacer.is_free(now - Span::from_ns(1)));
    }
}
