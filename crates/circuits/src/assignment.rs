//! [`Assignment`]: the matching of greatest weight (Kuhn 1955 and Munkres 1957, by shortest augmenting paths as Jonker
//! and Volgenant 1987 find them).

use crate::bits::refill;

/// Finds perfect matchings of greatest weight in O(n^3), and keeps its memory between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assignment {
    /// The prices of senders and of receivers, such that no edge weighs more than its two prices together.
    from: Vec<i64>,
    to: Vec<i64>,
    /// The sender of each receiver.
    senders: Vec<usize>,
    /// State of the search from one sender: the least slack by which a receiver is reached, from which receiver, and
    /// whether it is done.
    slack: Vec<i64>,
    previous: Vec<usize>,
    done: Vec<bool>,
}

impl Assignment {
    /// Returns the receiver of each sender in a perfect matching whose weights have the greatest sum.
    ///
    /// `weights` has a row for each sender; a weight is at most [`HEAVIEST`].
    pub(crate) fn heaviest(&mut self, ports: usize, weights: &[i64]) -> Vec<u32> {
        // Receiver `ports` is the start of a search: its sender is the one that needs a receiver.
        let none = ports;
        refill(&mut self.from, ports + 1, 0);
        refill(&mut self.to, ports + 1, 0);
        refill(&mut self.senders, ports + 1, none);
        refill(&mut self.previous, ports + 1, none);
        for sender in 0..ports {
            self.senders[none] = sender;
            refill(&mut self.slack, ports + 1, i64::MAX);
            refill(&mut self.done, ports + 1, false);
            let mut receiver = none;
            while self.senders[receiver] != none {
                receiver = self.extend(receiver, ports, weights);
            }
            while receiver != none {
                let previous = self.previous[receiver];
                self.senders[receiver] = self.senders[previous];
                receiver = previous;
            }
        }
        let mut receivers = vec![0; ports];
        for (receiver, sender) in self.senders[..ports].iter().enumerate() {
            receivers[*sender] = receiver as u32;
        }
        receivers
    }

    /// Continues from a receiver by its sender to the nearest receiver, and returns that.
    fn extend(&mut self, receiver: usize, ports: usize, weights: &[i64]) -> usize {
        self.done[receiver] = true;
        let sender = self.senders[receiver];
        let row = &weights[sender * ports..][..ports];
        let (mut least, mut nearest) = (i64::MAX, receiver);
        for (other, weight) in row.iter().enumerate().filter(|(other, _)| !self.done[*other]) {
            let slack = -weight - self.from[sender] - self.to[other];
            if slack < self.slack[other] {
                (self.slack[other], self.previous[other]) = (slack, receiver);
            }
            if self.slack[other] < least {
                (least, nearest) = (self.slack[other], other);
            }
        }
        for other in 0..=ports {
            if self.done[other] {
                self.from[self.senders[other]] += least;
                self.to[other] -= least;
            } else if self.slack[other] != i64::MAX {
                self.slack[other] -= least;
            }
        }
        nearest
    }
}

/// The greatest weight: prices add up to a few of them.
pub(crate) const HEAVIEST: i64 = 1 << 48;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn best(ports: usize, weights: &[i64], sender: usize, taken: u32) -> i64 {
        if sender == ports {
            return 0;
        }
        let free = (0..ports).filter(|receiver| taken & (1 << receiver) == 0);
        let with =
            |to: usize| weights[sender * ports + to] + best(ports, weights, sender + 1, taken | 1 << to);
        free.map(with).max().expect("a receiver is left")
    }

    proptest! {
        #[test]
        fn no_matching_is_heavier(
            (ports, weights) in (1usize..7).prop_flat_map(|n| {
                let weight = prop_oneof![Just(0i64), 0i64..20, 0i64..=HEAVIEST];
                (Just(n), prop::collection::vec(weight, n * n))
            }),
        ) {
            let receivers = Assignment::default().heaviest(ports, &weights);
            let mut sorted = receivers.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..ports as u32).collect::<Vec<_>>());
            let sum: i64 = receivers.iter().enumerate().map(|(from, to)| weights[from * ports + *to as usize]).sum();
            prop_assert_eq!(sum, best(ports, &weights, 0, 0));
        }
    }
}
