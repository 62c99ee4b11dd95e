//! Which thread serves which partition: Chronos's load balancer (SoCC 2012; dissertation, section 6.1, Algorithm 1).
//!
//! ```text
//! load of each partition in the last epoch ──┐
//! owner of each partition ───────────────────┴──> Balance::balance ──> owner of each partition in the next epoch
//! ```
//!
//! Algorithm 1 keeps a partition where it is while its thread has been given no more than the ideal load, which is
//! the total over the threads; else it goes to the first other thread that has not. It looks at what a thread has
//! *before* the partition is added, so a thread may end above the ideal by one partition's load, and one partition
//! that is hotter than the ideal stays alone on its thread: one key's load cannot be shared out.

/// Chooses the owners of partitions for the next epoch.
pub trait Balance: Send {
    /// `load[p]` is what partition p cost in the last epoch (requests, bytes or nanoseconds, one unit for all);
    /// `owner[p]` is its thread, below `threads`, and becomes its thread for the next epoch.
    ///
    /// # Panics
    /// If `load` and `owner` differ in length, or `threads` is 0.
    fn balance(&mut self, load: &[u64], threads: u32, owner: &mut [u32]);
}

/// Algorithm 1. It holds nothing from one epoch to the next but its scratch.
#[derive(Clone, Debug, Default)]
pub struct GreedyBalance {
    assigned: Vec<u64>,
}

impl Balance for GreedyBalance {
    fn balance(&mut self, load: &[u64], threads: u32, owner: &mut [u32]) {
        assert_eq!(load.len(), owner.len(), "every partition has a load and an owner");
        assert!(threads > 0, "there is a thread");
        // `assigned <= total / threads` as the algorithm says it, without rounding.
        let total: u128 = load.iter().map(|&load| u128::from(load)).sum();
        let has_room = |assigned: u64| u128::from(assigned) * u128::from(threads) <= total;
        self.assigned.clear();
        self.assigned.resize(threads as usize, 0);
        for (&load, owner) in load.iter().zip(owner) {
            if !has_room(self.assigned[*owner as usize])
                && let Some(other) = self.assigned.iter().position(|&assigned| has_room(assigned))
            {
                *owner = other as u32;
            }
            self.assigned[*owner as usize] += load;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn balanced<const N: usize>(load: [u64; N], threads: u32, mut owner: [u32; N]) -> [u32; N] {
        GreedyBalance::default().balance(&load, threads, &mut owner);
        owner
    }

    #[test]
    fn partitions_stay_where_no_thread_has_too_much() {
        assert_eq!(balanced([5, 5, 5, 5], 2, [0, 1, 1, 0]), [0, 1, 1, 0]);
        assert_eq!(balanced([0, 0, 0], 2, [1, 1, 1]), [1, 1, 1]);
    }

    #[test]
    fn what_comes_after_the_ideal_load_goes_to_the_first_thread_with_room() {
        // Ideal 10: thread 0 takes 6, then 6 more (it had 6, which is not above 10); the third finds it at 12.
        assert_eq!(balanced([6, 6, 6, 2], 2, [0, 0, 0, 0]), [0, 0, 1, 1]);
        assert_eq!(balanced([9, 9, 9], 3, [2, 2, 2]), [2, 2, 0]);
    }

    #[test]
    fn one_hot_partition_is_left_alone_but_cannot_be_shared() {
        assert_eq!(balanced([100, 1, 1, 1], 2, [0, 0, 0, 0]), [0, 1, 1, 1]);
    }

    proptest! {
        /// No thread ends above the ideal by more than its last partition, and an owner is always a thread.
        #[test]
        fn loads_are_bounded(
            parts in prop::collection::vec((0_u64..1_000, 0_u32..8), 1..64), threads in 1_u32..8,
        ) {
            let load: Vec<u64> = parts.iter().map(|part| part.0).collect();
            let mut owner: Vec<u32> = parts.iter().map(|part| part.1 % threads).collect();
            GreedyBalance::default().balance(&load, threads, &mut owner);
            let total: u64 = load.iter().sum();
            for thread in 0..threads {
                let own = || load.iter().zip(&owner).filter(|part| *part.1 == thread).map(|part| *part.0);
                let most: u64 = own().max().unwrap_or(0);
                prop_assert!(own().sum::<u64>() <= total / u64::from(threads) + most);
            }
            prop_assert!(owner.iter().all(|&owner| owner < threads));
        }
    }
}
