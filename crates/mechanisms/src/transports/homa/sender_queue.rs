//! [`SenderQueue`]: the ends of a host that may send data, by the bytes left of their messages.

use std::collections::{BTreeMap, BTreeSet};

/// The ends of a host with a packet that may leave, the one with the fewest bytes left first; of equal ones that of the
/// smallest key, which grows with the time of creation. `K` names an end.
#[derive(Debug)]
pub struct SenderQueue<K> {
    order: BTreeSet<(u64, K)>,
    left: BTreeMap<K, u64>,
}

impl<K: Copy + Ord> Default for SenderQueue<K> {
    fn default() -> SenderQueue<K> {
        SenderQueue { order: BTreeSet::new(), left: BTreeMap::new() }
    }
}

impl<K: Copy + Ord> SenderQueue<K> {
    /// The message of `end` has `left` bytes left, and a packet that may leave; `None` if none may.
    pub fn set(&mut self, end: K, left: Option<u64>) {
        let before = match left {
            Some(left) => self.left.insert(end, left),
            None => self.left.remove(&end),
        };
        if before == left {
            return;
        }
        if let Some(before) = before {
            self.order.remove(&(before, end));
        }
        if let Some(left) = left {
            self.order.insert((left, end));
        }
    }

    /// Returns the end that sends next, with the bytes left of its message.
    pub fn first(&self) -> Option<(K, u64)> {
        self.order.first().map(|(left, end)| (*end, *left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_with_the_fewest_bytes_left_sends_first() {
        let mut queue = SenderQueue::default();
        queue.set("b", Some(500));
        queue.set("a", Some(500));
        queue.set("c", Some(2_000));
        assert_eq!(queue.first(), Some(("a", 500)));
        queue.set("a", None);
        queue.set("a", None);
        assert_eq!(queue.first(), Some(("b", 500)));
        queue.set("c", Some(499));
        assert_eq!(queue.first(), Some(("c", 499)));
        queue.set("c", None);
        queue.set("b", None);
        assert_eq!(queue.first(), None);
    }
}
