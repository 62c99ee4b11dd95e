//! A tournament over the owners: leaf `n` is the time of owner `n`, every inner node the least of
//! its two children. A change plays log2(owners) matches along one path and moves nothing else.

use plimsoll_units::Time;

use super::EventQueue;

/// Node `i` is over `2 i` and `2 i + 1`; the leaves are the second half.
pub struct WinnerTree {
    nodes: Vec<u128>,
}

const EMPTY: u128 = u128::MAX;

impl WinnerTree {
    #[inline]
    fn set(&mut self, owner: u32, key: u128) {
        let mut node = self.nodes.len() / 2 + owner as usize;
        let mut winner = key;
        self.nodes[node] = key;
        while node > 1 {
            winner = winner.min(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == winner {
                break;
            }
            self.nodes[node] = winner;
        }
    }
}

impl EventQueue for WinnerTree {
    fn new(owners: u32) -> Self {
        WinnerTree { nodes: vec![EMPTY; 2 * owners.next_power_of_two().max(2) as usize] }
    }
    #[inline]
    fn push(&mut self, at: Time, owner: u32) {
        self.set(owner, super::key(at, owner));
    }
    #[inline]
    fn pop(&mut self) -> Option<(Time, u32)> {
        self.pop_and_push_next(|_, _| None)
    }
    #[inline]
    fn pop_and_push_next(&mut self, next: impl FnOnce(Time, u32) -> Option<Time>) -> Option<(Time, u32)> {
        let first = self.nodes[1];
        if first == EMPTY {
            return None;
        }
        let (at, owner) = super::entry(first);
        self.set(owner, next(at, owner).map_or(EMPTY, |next| super::key(next, owner)));
        Some((at, owner))
    }
}
