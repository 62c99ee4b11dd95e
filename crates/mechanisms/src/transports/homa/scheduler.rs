//! [`GrantScheduler`]: the senders to which a host grants, and the priority of each.
//!
//! ```text
//! set(message, sender, bytes left to grant) ──> ranked: of each sender the message with the fewest
//!                                                 first `degree` of them ──> active(): message, slot
//! slots 0 (highest) .. levels - 1: the head has `head_slot`, those behind it the slots below, in their order
//! ```
//!
//! The first sender has the lowest slot. One that ranks first takes the free slot above the head, and the others keep
//! theirs, so that it overtakes what is in flight at once; one that ranks later moves the list up only where the slots
//! below do not suffice. When the head leaves, the others keep their slots; when another leaves, those behind it move
//! up (the rules of the authors' simulator).

use std::collections::{BTreeMap, BTreeSet};

/// The bytes left to grant, and the order in which messages came.
type Rank = (u64, u64);

/// The messages that a host may grant to. `K` names a message.
#[derive(Debug)]
pub struct GrantScheduler<K> {
    /// The messages of each sender, by number.
    senders: BTreeMap<u32, BTreeMap<Rank, K>>,
    /// The sender and the rank of each message.
    messages: BTreeMap<K, (u32, Rank)>,
    /// The first message of each sender.
    ranked: BTreeSet<(Rank, u32)>,
    head_slot: usize,
    came: u64,
}

impl<K: Copy + Ord> Default for GrantScheduler<K> {
    fn default() -> GrantScheduler<K> {
        GrantScheduler {
            senders: BTreeMap::new(),
            messages: BTreeMap::new(),
            ranked: BTreeSet::new(),
            head_slot: 0,
            came: 0,
        }
    }
}

impl<K: Copy + Ord> GrantScheduler<K> {
    /// A message of `sender` has `left` bytes to grant; 0 removes it. `degree` senders are granted at a time, in
    /// `levels` slots.
    pub fn set(&mut self, message: K, sender: u32, left: u64, degree: usize, levels: usize) {
        let before = self.messages.get(&message).map(|(_, rank)| *rank);
        if before.map_or(0, |(left, _)| left) == left {
            return;
        }
        let own = self.senders.entry(sender).or_default();
        let head_before = own.first_key_value().map(|(rank, _)| *rank);
        if let Some(rank) = before {
            own.remove(&rank);
        }
        if left > 0 {
            self.came += 1;
            let rank = (left, before.map_or(self.came, |(_, came)| came));
            own.insert(rank, message);
            self.messages.insert(message, (sender, rank));
        } else {
            self.messages.remove(&message);
        }
        let head = own.first_key_value().map(|(rank, _)| *rank);
        if own.is_empty() {
            self.senders.remove(&sender);
        }
        self.move_sender(sender, head_before, head, degree, levels);
    }

    /// The first message of a sender has another rank, or there was none, or there is none.
    fn move_sender(
        &mut self,
        sender: u32,
        from: Option<Rank>,
        to: Option<Rank>,
        degree: usize,
        levels: usize,
    ) {
        if from == to {
            return;
        }
        let lowest = |senders: usize| levels - senders.min(degree).clamp(1, levels);
        let was_head = from.is_some_and(|from| self.ranked.first() == Some(&(from, sender)));
        if let Some(from) = from {
            self.ranked.remove(&(from, sender));
        }
        let is_head = to.is_some_and(|to| self.ranked.first().is_none_or(|first| (to, sender) < *first));
        let keeps_place = from.is_some() && was_head && is_head;
        if was_head && !is_head {
            self.head_slot = (self.head_slot + 1).min(lowest(self.ranked.len()));
        }
        let Some(to) = to else { return };
        self.ranked.insert((to, sender));
        let senders = self.ranked.len();
        if senders == 1 && !keeps_place {
            self.head_slot = lowest(1);
        } else if is_head && !keeps_place {
            self.head_slot = self.head_slot.saturating_sub(1);
        }
        self.head_slot = self.head_slot.min(lowest(senders));
    }

    /// Returns the messages that are granted at present, best first, each with its slot.
    pub fn active(&self, degree: usize, levels: usize) -> impl Iterator<Item = (K, usize)> {
        let first = self.ranked.iter().take(degree).enumerate();
        first.map(move |(place, (rank, sender))| {
            (self.senders[sender][rank], (self.head_slot + place).min(levels - 1))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scheduler of four slots that grants to three senders.
    #[derive(Default)]
    struct Four(GrantScheduler<&'static str>);

    impl Four {
        fn set(&mut self, message: &'static str, sender: u32, left: u64) -> Vec<(&'static str, usize)> {
            self.0.set(message, sender, left, 3, 4);
            self.0.active(3, 4).collect()
        }
    }

    #[test]
    fn a_sender_that_ranks_first_takes_the_slot_above_and_the_others_keep_theirs() {
        let mut four = Four::default();
        assert_eq!(four.set("a", 1, 900), [("a", 3)]);
        assert_eq!(four.set("b", 2, 500), [("b", 2), ("a", 3)]);
        assert_eq!(four.set("c", 3, 400), [("c", 1), ("b", 2), ("a", 3)]);
        assert_eq!(four.set("d", 4, 300), [("d", 0), ("c", 1), ("b", 2)]);
        // No slot is left above: the others move down.
        assert_eq!(four.set("e", 5, 200), [("e", 0), ("d", 1), ("c", 2)]);
        // The head leaves, and the others keep their slots, of which there are as many as senders.
        assert_eq!(four.set("e", 5, 0), [("d", 1), ("c", 2), ("b", 3)]);
        assert_eq!(four.set("d", 4, 0), [("c", 1), ("b", 2), ("a", 3)]);
        assert_eq!(four.set("c", 3, 0), [("b", 2), ("a", 3)]);
    }

    #[test]
    fn one_that_ranks_later_moves_the_list_up_only_where_slots_do_not_suffice() {
        let mut four = Four::default();
        four.set("a", 1, 100);
        assert_eq!(four.set("b", 2, 500), [("a", 2), ("b", 3)]);
        assert_eq!(four.set("c", 3, 300), [("a", 1), ("c", 2), ("b", 3)]);
        assert_eq!(four.set("d", 4, 900), [("a", 1), ("c", 2), ("b", 3)]);
        // Another than the head leaves: those behind it move up.
        assert_eq!(four.set("c", 3, 0), [("a", 1), ("b", 2), ("d", 3)]);
        assert_eq!(four.set("b", 2, 0), [("a", 1), ("d", 2)]);
        // What is granted to the head leaves its slot as it is.
        assert_eq!(four.set("a", 1, 50), [("a", 1), ("d", 2)]);
    }

    #[test]
    fn of_each_sender_one_message_counts() {
        let mut four = Four::default();
        four.set("a", 1, 900);
        assert_eq!(four.set("b", 1, 800), [("b", 3)]);
        assert_eq!(four.set("c", 2, 850), [("b", 2), ("c", 3)]);
        // The sender's other message ranks behind the others.
        assert_eq!(four.set("b", 1, 0), [("c", 2), ("a", 3)]);
        assert_eq!(four.set("c", 2, 0), [("a", 3)]);
        assert_eq!(four.set("a", 1, 0), []);
        assert_eq!(four.set("d", 7, 10), [("d", 3)]);
    }

    #[test]
    fn one_slot_serves_all() {
        let mut scheduler = GrantScheduler::default();
        scheduler.set("a", 1, 900, 7, 1);
        scheduler.set("b", 2, 500, 7, 1);
        assert_eq!(scheduler.active(7, 1).collect::<Vec<_>>(), [("b", 0), ("a", 0)]);
    }
}
