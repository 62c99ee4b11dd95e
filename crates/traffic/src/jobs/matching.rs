//! [`Matching`]: receives that wait for messages, and messages that wait for receives.
//!
//! A receive takes the earliest message of its sender and tag; a message goes to the earliest receive that takes it.

use std::collections::{BTreeMap, VecDeque};

/// The properties that a message and its receive share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct MatchKey {
    /// The rank that receives it.
    pub(super) rank: u32,
    /// The sending rank; `None` in a receive that takes any.
    pub(super) from: Option<u32>,
    /// The tag; `None` in a receive that takes any.
    pub(super) tag: Option<u32>,
}

/// Things that wait under a key, with the turn in which they came.
type Waiting<T> = BTreeMap<MatchKey, VecDeque<(u64, T)>>;

/// Receives of type `R` and messages of type `M` that have not met.
#[derive(Debug)]
pub(super) struct Matching<R, M> {
    receives: Waiting<R>,
    messages: Waiting<M>,
    turns: u64,
}

impl<R, M> Default for Matching<R, M> {
    fn default() -> Matching<R, M> {
        Matching { receives: BTreeMap::new(), messages: BTreeMap::new(), turns: 0 }
    }
}

impl<R, M> Matching<R, M> {
    /// Returns the receives that wait, by key and then in the order in which they came.
    pub(super) fn receives(&self) -> impl Iterator<Item = &R> {
        self.receives.values().flatten().map(|(_, receive)| receive)
    }

    /// Returns the messages that wait, by key and then in the order in which they came.
    pub(super) fn messages(&self) -> impl Iterator<Item = &M> {
        self.messages.values().flatten().map(|(_, message)| message)
    }

    /// Returns the receives and the messages that wait, each in the order in which they came.
    pub(super) fn into_parts(self) -> (Vec<R>, Vec<M>) {
        (in_turn(self.receives), in_turn(self.messages))
    }

    /// A message has arrived, whose `key` has a sender and a tag. Returns the receive that takes it; without one it
    /// waits.
    pub(super) fn on_message(&mut self, key: MatchKey, message: M) -> Option<(R, M)> {
        let any = [(key.from, key.tag), (key.from, None), (None, key.tag), (None, None)];
        let keys = any.map(|(from, tag)| MatchKey { from, tag, ..key });
        let turn =
            |key: &MatchKey| self.receives.get(key).and_then(|queue| queue.front()).map(|(turn, _)| *turn);
        let earliest = keys.iter().filter_map(|key| Some((turn(key)?, *key))).min();
        match earliest.and_then(|(_, key)| pop(&mut self.receives, key)) {
            Some(receive) => Some((receive, message)),
            None => {
                self.turns += 1;
                self.messages.entry(key).or_default().push_back((self.turns, message));
                None
            }
        }
    }

    /// A rank waits for a message. Returns the one that it takes, if it is there.
    pub(super) fn on_receive(&mut self, key: MatchKey, receive: R) -> Option<(R, M)> {
        let found = match key {
            MatchKey { from: Some(_), tag: Some(_), .. } => Some(key),
            MatchKey { rank, from, tag } => {
                let least = MatchKey { rank, from: None, tag: None };
                let next = MatchKey { rank: rank + 1, ..least };
                let takes = |key: &MatchKey| {
                    from.is_none_or(|from| key.from == Some(from))
                        && tag.is_none_or(|tag| key.tag == Some(tag))
                };
                let waiting = self.messages.range(least..next).filter(|(key, _)| takes(key));
                let turns = waiting.filter_map(|(key, queue)| Some((queue.front()?.0, *key)));
                turns.min().map(|(_, key)| key)
            }
        };
        match found.and_then(|key| pop(&mut self.messages, key)) {
            Some(message) => Some((receive, message)),
            None => {
                self.turns += 1;
                self.receives.entry(key).or_default().push_back((self.turns, receive));
                None
            }
        }
    }
}

fn in_turn<T>(waiting: Waiting<T>) -> Vec<T> {
    let mut all: Vec<(u64, T)> = waiting.into_values().flatten().collect();
    all.sort_unstable_by_key(|(turn, _)| *turn);
    all.into_iter().map(|(_, one)| one).collect()
}

fn pop<T>(waiting: &mut Waiting<T>, key: MatchKey) -> Option<T> {
    let queue = waiting.get_mut(&key)?;
    let first = queue.pop_front();
    if queue.is_empty() {
        waiting.remove(&key);
    }
    first.map(|(_, first)| first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(from: impl Into<Option<u32>>, tag: impl Into<Option<u32>>) -> MatchKey {
        MatchKey { rank: 3, from: from.into(), tag: tag.into() }
    }

    #[test]
    fn messages_meet_the_earliest_receive_that_takes_them() {
        let mut matching: Matching<&str, &str> = Matching::default();
        assert_eq!(matching.on_receive(key(1, 7), "of 1, 7"), None);
        assert_eq!(matching.on_receive(key(None, 7), "of any, 7"), None);
        assert_eq!(matching.on_receive(key(1, 7), "of 1, 7 again"), None);
        assert_eq!(matching.on_message(key(2, 7), "a"), Some(("of any, 7", "a")));
        assert_eq!(matching.on_message(key(1, 7), "b"), Some(("of 1, 7", "b")));
        assert_eq!(matching.on_message(key(1, 8), "c"), None);
        assert_eq!(matching.on_message(key(1, 7), "d"), Some(("of 1, 7 again", "d")));
        assert_eq!(matching.on_message(MatchKey { rank: 4, ..key(1, 7) }, "of another rank"), None);
    }

    #[test]
    fn receives_take_the_earliest_message_that_waits() {
        let mut matching: Matching<&str, &str> = Matching::default();
        for (from, tag, message) in [(2, 5, "first"), (1, 5, "second"), (1, 6, "third"), (2, 5, "fourth")] {
            assert_eq!(matching.on_message(key(from, tag), message), None);
        }
        assert_eq!(matching.on_receive(key(None, None), "any"), Some(("any", "first")));
        assert_eq!(matching.on_receive(key(1, None), "of 1"), Some(("of 1", "second")));
        assert_eq!(matching.on_receive(key(None, 5), "with 5"), Some(("with 5", "fourth")));
        assert_eq!(matching.on_receive(key(1, 6), "of 1, 6"), Some(("of 1, 6", "third")));
        assert!(matching.messages.is_empty());
    }
}
