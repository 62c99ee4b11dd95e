//! Assignment of partitions to threads: Chronos's load balancer (SoCC 2012; dissertation, section 6.1, Algorithm 1).
//!
//! ```text
//! load of each partition in the last epoch ──┐
//! owner of each partition ───────────────────┴──> Balance::balance ──> owner of each partition in the next epoch
//! ```
//!
//! Algorithm 1 keeps a partition on its thread while that thread has been given at most the ideal load, which is the
//! total over the threads; else it moves the partition to the first other thread within the ideal. It compares a
//! thread's load *before* the partition is added, so a thread may end above the ideal by one partition's load, and one
//! partition that is hotter than the ideal stays alone on its thread: one key's load cannot be divided.
//!
//! As printed it also moves partitions by chance: of equal threads, half are above the ideal in any epoch, if only by a
//! few requests. [`GreedyBalance::beyond_noise`] departs from it: a thread is overloaded only if it has more than
//! chance explains. Counts of independent requests vary by their square root, so of R requests a thread of T is given R
//! / T, give or take sqrt(R / T), and it is overloaded if it is above the ideal by `deviations` of these.
//!
//! [`SplitBalance`] does the same with groups of partitions that move as one until they are hot, and [`NodeBalance`]
//! keeps partitions within the NUMA node of their thread.

mod nodes;
mod share;
mod split;

pub use nodes::NodeBalance;
use share::{Share, place};
pub use split::SplitBalance;

/// Chooses the owners of partitions for the next epoch.
pub trait Balance: Send {
    /// `load[p]` is the cost of partition p in the last epoch (requests, bytes or nanoseconds, one unit for all), by
    /// `requests` in all; `owner[p]` is its thread, below `threads`, and becomes its thread for the next epoch.
    ///
    /// # Panics
    /// If `load` and `owner` differ in length, or `threads` is 0.
    fn balance(&mut self, load: &[u64], requests: u64, threads: u32, owner: &mut [u32]);

    /// Epochs that may count as one while no partition moves: more requests, and less noise.
    fn epochs_max(&self) -> u32 {
        1
    }

    /// Neighbouring partitions that begin with one owner, 1 or more.
    fn ways(&self) -> u32 {
        1
    }

    /// Returns the owners at the start: [`Balance::ways`] neighbours at a time, assigned in turn to `threads`, 1 or
    /// more.
    fn first_owners(&self, partitions: u32, threads: u32) -> Vec<u32> {
        (0..partitions).map(|partition| partition / self.ways() % threads).collect()
    }

    /// Returns counts of the policy's actions other than moving partitions.
    fn counts(&self) -> BalanceCounts {
        BalanceCounts::default()
    }
}

/// Counts of a policy's actions since it was made, other than moving partitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BalanceCounts {
    /// The number of groups of partitions that were split.
    pub splits: u64,
    /// The number of groups that were joined again.
    pub joins: u64,
    /// Partitions that went from one NUMA node to another.
    pub crossings: u64,
}

/// The owner of a partition that belongs to a thread outside the policy: each of the policies that [`NodeBalance`] has
/// for its nodes sees the partitions of other nodes so. [`GreedyBalance`] and [`SplitBalance`] leave them unchanged,
/// and ignore their load.
pub const AWAY: u32 = u32::MAX;

/// Algorithm 1, as printed unless it has a noise limit. It holds nothing from one epoch to the next but its scratch.
#[derive(Clone, Debug, Default)]
pub struct GreedyBalance {
    deviations: u32,
    assigned: Vec<u64>,
}

/// Epochs that count as one while their counts may be noise. Sixteen show a quarter of the overload that one shows; a
/// change at their end is seen a few epochs later because of the earlier ones.
const EPOCHS_MAX: u32 = 16;

/// Returns the epochs that may count as one where a thread is overloaded above this number of deviations.
fn epochs_max(deviations: u32) -> u32 {
    if deviations == 0 { 1 } else { EPOCHS_MAX }
}

impl GreedyBalance {
    /// Makes a policy that moves partitions only where a thread's load is above the ideal by more than `deviations`
    /// standard deviations of its number of requests; 0 is Algorithm 1 as printed. The more the costs of requests
    /// differ, the more deviations chance explains.
    pub fn beyond_noise(deviations: u32) -> GreedyBalance {
        GreedyBalance { deviations, assigned: Vec::new() }
    }
}

impl Balance for GreedyBalance {
    fn balance(&mut self, load: &[u64], requests: u64, threads: u32, owner: &mut [u32]) {
        assert_eq!(load.len(), owner.len(), "every partition has a load and an owner");
        assert!(threads > 0, "there is a thread");
        let total = load.iter().zip(owner.iter()).filter(|(_, owner)| **owner != AWAY);
        let total = total.map(|(&load, _)| u128::from(load)).sum();
        let share = Share::of(total, requests, 1, threads, self.deviations);
        let here = load.iter().zip(owner).filter(|(_, owner)| **owner != AWAY);
        self.assigned.clear();
        self.assigned.resize(threads as usize, 0);
        place(here.map(|(&load, owner)| (load, owner)), &mut self.assigned, |_| &share);
    }

    fn epochs_max(&self) -> u32 {
        epochs_max(self.deviations)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn balanced<const N: usize>(load: [u64; N], threads: u32, mut owner: [u32; N]) -> [u32; N] {
        GreedyBalance::default().balance(&load, load.iter().sum(), threads, &mut owner);
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

    /// The requests of an epoch, each for one of as many partitions at random, `hot` times as often for one of the
    /// first thread's.
    fn draw(requests: u64, threads: u32, hot: f64, state: &mut u64) -> Vec<u64> {
        let mut load = vec![0; PARTITIONS];
        let mut uniform = || {
            // Marsaglia's xorshift.
            *state ^= *state << 13;
            *state ^= *state >> 7;
            *state ^= *state << 17;
            (*state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for _ in 0..requests {
            let thread = uniform() * (f64::from(threads) - 1.0 + hot);
            let thread = (thread - hot + 1.0).max(0.0) as usize;
            let place = (uniform() * (PARTITIONS / threads as usize) as f64) as usize;
            load[place * threads as usize + thread] += 1;
        }
        load
    }

    const PARTITIONS: usize = 64;

    /// Moves in each of `epochs`, and after how many the first thread was relieved, if it was.
    fn moves(mut policy: GreedyBalance, epochs: u64, requests: u64, hot: f64) -> (f64, Option<u64>) {
        const THREADS: u32 = 4;
        let begin: Vec<u32> = (0..PARTITIONS as u32).map(|partition| partition % THREADS).collect();
        let (mut owner, mut load, mut counted) = (begin.clone(), vec![0; PARTITIONS], 0);
        let (mut moved, mut relieved, mut state) = (0, None, 0x9e37_79b9_7f4a_7c15);
        for epoch in 1..=epochs {
            let drawn = draw(requests, THREADS, hot, &mut state);
            load.iter_mut().zip(&drawn).for_each(|(load, drawn)| *load += drawn);
            counted += 1;
            let before = owner.clone();
            policy.balance(&load, load.iter().sum(), THREADS, &mut owner);
            let changed = before.iter().zip(&owner).filter(|(before, after)| before != after).count();
            moved += changed;
            if changed > 0 || counted == policy.epochs_max() {
                load.fill(0);
                counted = 0;
            }
            if relieved.is_none() && begin.iter().zip(&owner).any(|(begin, owner)| *begin == 0 && *owner != 0)
            {
                relieved = Some(epoch);
            }
        }
        (moved as f64 / epochs as f64, relieved)
    }

    /// `cargo test -p plimsoll-mechanisms partition_balancer -- --nocapture` prints what `docs/internals/chronos.md`
    /// has.
    #[test]
    fn noise_moves_partitions_only_as_printed() {
        for requests in [50, 500, 5000] {
            let (printed, _) = moves(GreedyBalance::default(), 10_000, requests, 1.0);
            let (beyond, _) = moves(GreedyBalance::beyond_noise(4), 10_000, requests, 1.0);
            println!("{requests} requests an epoch: {printed:.2} moves as printed, {beyond:.4} beyond noise");
            // The more requests, the less the noise; threads may differ by one partition's load in any case.
            assert!(
                printed > if requests > 1000 { 0.0 } else { 1.0 },
                "{printed} moves of {requests} requests"
            );
            assert!(beyond < 0.01, "{beyond} moves an epoch of {requests} requests");
        }
    }

    #[test]
    fn overload_beyond_noise_is_seen_the_sooner_the_more_requests_there_are() {
        let seen = |requests, hot| moves(GreedyBalance::beyond_noise(4), 1000, requests, hot).1;
        println!("twice the load, 200 requests an epoch: seen after {:?} epochs", seen(200, 2.0));
        println!("1.2 times, 200: {:?}; 5000: {:?}", seen(200, 1.2), seen(5000, 1.2));
        assert!(seen(200, 2.0).is_some_and(|epoch| epoch <= 4));
        assert!(seen(5000, 1.2).is_some_and(|epoch| epoch <= 2));
        // An overload that all epochs together do not distinguish from noise stays.
        assert_eq!(seen(20, 1.05), None);
    }

    #[test]
    fn the_threshold_is_so_many_deviations_of_the_number_of_requests() {
        // Of 200 requests a thread has 100 give or take 10. The last partition is placed on a thread with 100 + excess.
        let relieved = |excess: u64, deviations, unit: u64| {
            let load = [(100 + excess) * unit, 0, (100 - excess) * unit];
            let mut owner = [0, 0, 1];
            GreedyBalance::beyond_noise(deviations).balance(&load, 200, 2, &mut owner);
            owner[1] == 1
        };
        // In requests, or in nanoseconds with the same number for each request.
        for unit in [1, 1234] {
            assert!(!relieved(30, 3, unit) && relieved(31, 3, unit));
            assert!(!relieved(31, 4, unit) && relieved(41, 4, unit));
            assert!(!relieved(0, 0, unit) && relieved(1, 0, unit));
        }
    }

    proptest! {
        /// No thread ends above the ideal by more than its last partition, and an owner is always a thread.
        #[test]
        fn loads_are_bounded(
            parts in prop::collection::vec((0_u64..1_000, 0_u32..8), 1..64), threads in 1_u32..8,
        ) {
            let load: Vec<u64> = parts.iter().map(|part| part.0).collect();
            let mut owner: Vec<u32> = parts.iter().map(|part| part.1 % threads).collect();
            GreedyBalance::default().balance(&load, load.iter().sum(), threads, &mut owner);
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
