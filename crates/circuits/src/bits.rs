//! [`Bipartite`]: a graph of senders and receivers as rows of bits, and a matching that grows in it.
//!
//! A matching is made perfect by augmenting paths (Berge), one for each free sender. It is kept when edges are added
//! and removed, so that a scheduler which changes a few entries between two configurations pays for these alone: as
//! long as one sender has no path, the graph has no perfect matching.

/// A graph of `ports` senders and receivers with a matching in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bipartite {
    ports: usize,
    /// The number of words of a row.
    words: usize,
    /// One bit for each receiver, row after row.
    edges: Vec<u64>,
    /// The receiver of each sender, or [`FREE`].
    receivers: Vec<u32>,
    /// The sender of each receiver, or [`FREE`].
    senders: Vec<u32>,
    /// Receivers without a sender.
    free: Vec<u64>,
    /// Senders without a receiver, which may contain a sender that has found one.
    unmatched: Vec<u32>,
    /// Receivers that the search for a path has not yet seen.
    unseen: Vec<u64>,
    /// The senders along the path, each with the receiver by which the next one was reached.
    path: Vec<(u32, u32)>,
}

/// The mark of a port without a circuit.
const FREE: u32 = u32::MAX;

impl Bipartite {
    /// Begins a graph without edges.
    pub(crate) fn reset(&mut self, ports: usize) {
        self.ports = ports;
        self.words = ports.div_ceil(64);
        refill(&mut self.edges, ports * self.words, 0);
        refill(&mut self.free, self.words, 0);
        refill(&mut self.unseen, self.words, 0);
        for receiver in 0..ports {
            set(&mut self.free, receiver);
        }
        refill(&mut self.receivers, ports, FREE);
        refill(&mut self.senders, ports, FREE);
        self.unmatched.clear();
        // The last is searched first, so that low senders come first.
        self.unmatched.extend((0..ports as u32).rev());
        self.path.clear();
    }

    /// Adds the edge between two ports.
    #[inline]
    pub(crate) fn join(&mut self, sender: usize, receiver: usize) {
        let row = sender * self.words;
        set(&mut self.edges[row..row + self.words], receiver);
    }

    /// Sets the edges of a sender: the receivers for which its row has at least `least`.
    #[inline]
    pub(crate) fn join_at_least(&mut self, sender: usize, row: &[u64], least: u64) {
        let words = &mut self.edges[sender * self.words..][..self.words];
        for (word, values) in words.iter_mut().zip(row.chunks(64)) {
            let bits = values.iter().enumerate().map(|(bit, value)| u64::from(*value >= least) << bit);
            *word = bits.fold(0, |word, bit| word | bit);
        }
    }

    /// Removes an edge, and the circuit along it if there is one.
    #[inline]
    pub(crate) fn part(&mut self, sender: usize, receiver: usize) {
        let row = sender * self.words;
        self.edges[row + receiver / 64] &= !(1 << (receiver % 64));
        if self.receivers[sender] == receiver as u32 {
            self.receivers[sender] = FREE;
            self.senders[receiver] = FREE;
            set(&mut self.free, receiver);
            self.unmatched.push(sender as u32);
        }
    }

    /// Gives every sender a receiver; returns `false` if the graph does not allow that.
    pub(crate) fn make_perfect(&mut self) -> bool {
        while let Some(&sender) = self.unmatched.last() {
            if self.receivers[sender as usize] == FREE && !self.augment(sender) {
                return false;
            }
            self.unmatched.pop();
        }
        true
    }

    /// Returns the receiver of each sender; of a perfect matching, each sender has one.
    pub(crate) fn receivers(&self) -> impl Iterator<Item = Option<u32>> + '_ {
        self.receivers.iter().map(|receiver| (*receiver != FREE).then_some(*receiver))
    }

    /// Returns the receiver of a sender in a perfect matching.
    #[inline]
    pub(crate) fn receiver(&self, sender: usize) -> usize {
        self.receivers[sender] as usize
    }

    /// Finds a path from a free sender to a free receiver, and flips it.
    fn augment(&mut self, from: u32) -> bool {
        let words = self.words;
        // Ports that cannot be reached have no bit in any row, so bits past the last port are never seen.
        self.unseen.fill(u64::MAX);
        self.path.clear();
        let mut sender = from;
        loop {
            let row = &self.edges[sender as usize * words..][..words];
            if let Some(receiver) = first_common(row, &self.free) {
                self.free[receiver / 64] &= !(1 << (receiver % 64));
                self.flip(sender, receiver as u32);
                return true;
            }
            if let Some(receiver) = first_common(row, &self.unseen) {
                self.unseen[receiver / 64] &= !(1 << (receiver % 64));
                self.path.push((sender, receiver as u32));
                sender = self.senders[receiver];
            } else if let Some((previous, _)) = self.path.pop() {
                sender = previous;
            } else {
                return false;
            }
        }
    }

    /// Gives `sender` the free `receiver`, and every sender before it on the path the receiver by which it was left.
    fn flip(&mut self, sender: u32, receiver: u32) {
        self.receivers[sender as usize] = receiver;
        self.senders[receiver as usize] = sender;
        for &(sender, receiver) in self.path.iter().rev() {
            self.receivers[sender as usize] = receiver;
            self.senders[receiver as usize] = sender;
        }
    }
}

#[inline]
fn set(bits: &mut [u64], at: usize) {
    bits[at / 64] |= 1 << (at % 64);
}

/// Returns the first bit that both have.
#[inline]
fn first_common(a: &[u64], b: &[u64]) -> Option<usize> {
    let mut words = a.iter().zip(b).enumerate();
    words.find_map(|(word, (a, b))| (a & b != 0).then(|| word * 64 + (a & b).trailing_zeros() as usize))
}

pub(crate) fn refill<T: Clone>(values: &mut Vec<T>, length: usize, value: T) {
    values.clear();
    values.resize(length, value);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the size of the largest matching, by trying every receiver for every sender.
    fn largest(rows: &[Vec<bool>], taken: u32) -> usize {
        let Some((row, below)) = rows.split_first() else { return 0 };
        let skipped = largest(below, taken);
        let free = (0..row.len()).filter(|receiver| row[*receiver] && taken & (1 << receiver) == 0);
        free.map(|receiver| 1 + largest(below, taken | 1 << receiver)).max().unwrap_or(0).max(skipped)
    }

    fn graph(rows: &[Vec<bool>]) -> Bipartite {
        let mut graph = Bipartite::default();
        graph.reset(rows.len());
        for (sender, row) in rows.iter().enumerate() {
            (0..row.len())
                .filter(|receiver| row[*receiver])
                .for_each(|receiver| graph.join(sender, receiver));
        }
        graph
    }

    proptest! {
        #[test]
        fn a_perfect_matching_is_found_if_there_is_one(
            rows in (1usize..7).prop_flat_map(|n| {
                prop::collection::vec(prop::collection::vec(prop::bool::weighted(0.4), n), n)
            }),
        ) {
            let size = largest(&rows, 0);
            let mut perfect = graph(&rows);
            prop_assert_eq!(perfect.make_perfect(), size == rows.len());
            for (sender, receiver) in perfect.receivers().enumerate() {
                prop_assert!(receiver.is_none_or(|receiver| rows[sender][receiver as usize]));
            }
        }

        #[test]
        fn a_matching_is_repaired_when_edges_go(seed in any::<u64>(), ports in 60usize..140) {
            // A graph that contains two rotations and the random edges of the seed; one rotation is removed.
            let mut graph = Bipartite::default();
            graph.reset(ports);
            for sender in 0..ports {
                graph.join(sender, (sender + 3) % ports);
                graph.join(sender, (sender + (seed as usize % ports)) % ports);
            }
            prop_assert!(graph.make_perfect());
            let other = seed as usize % ports;
            if other != 3 {
                for sender in 0..ports {
                    graph.part(sender, (sender + other) % ports);
                }
                prop_assert!(graph.make_perfect());
                for sender in 0..ports {
                    prop_assert_eq!(graph.receiver(sender), (sender + 3) % ports);
                }
                graph.part(0, 3);
                prop_assert!(!graph.make_perfect());
            }
        }
    }
}
