//! [`SplitBalance`]: partitions that move in groups, and one by one where a group is hot.
//!
//! ```text
//! partitions  0 1 2 3   4 5 6 7   8 9 ...      a request finds its partition as ever: the grid does not change
//! units       ───A───   ───B───   ───C──      `ways` neighbours count and move as one
//! B is hot    ───A───   4 5 6 7   ───C──      split: Algorithm 1 moves each part by itself
//! B was cool  ───A───   ───B───   ───C──      joined: its parts go back together, to one thread
//! ```
//!
//! Splitting is not in the paper, whose partitions stay as they are. In each epoch:
//!
//! 1. *Join.* A split group that had at most an eighth of a thread's fair share for 64 epochs is joined on the
//!    thread that has most of its load, among the threads that stay within the ideal with all of it. At most one group
//!    an epoch is moved for that, so joining moves at most `ways` - 1 partitions; without such a thread it stays split.
//! 2. *Split.* Algorithm 1 is tried on the current units. If a thread would still be overloaded beyond chance,
//!    Algorithm 1 cannot relieve it: the last group that it is given overloads it, and is split if it has a quarter of
//!    a fair share or more.
//! 3. *Move.* Algorithm 1 runs over the new units.
//!
//! Between a quarter and an eighth a group stays as it is: that, and the 64 epochs, keep chance from splitting and
//! joining in turn. With less than a quarter a group can put its thread above the ideal by no more than that. A single
//! hot key is split down to its part, and stays whole: a part is one partition, which cannot be divided.

use super::{AWAY, Balance, BalanceCounts, Share, epochs_max, place};

/// Algorithm 1 over groups of neighbouring partitions, which are split while they are hot.
#[derive(Clone, Debug)]
pub struct SplitBalance {
    ways: u32,
    deviations: u32,
    groups: Vec<Group>,
    counts: BalanceCounts,
    units: Vec<Unit>,
    assigned: Vec<u64>,
}

/// A group of `ways` neighbouring partitions, fewer at the end.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    is_split: bool,
    /// Epochs that it has been cool for, one after the other.
    cool: u32,
}

/// A unit of placement: a group, or a part of a split one.
#[derive(Clone, Copy, Debug)]
struct Unit {
    first: usize,
    parts: usize,
    load: u64,
    owner: u32,
}

/// A group with less than this part of a fair share is not worth splitting.
const HOT: u32 = 4;
/// A split group with more than this part of a fair share is not joined.
const COOL: u32 = 8;
/// Epochs for which a group must have been cool: with epochs that count as one (sixteen at most), the last of them do
/// not include the time when it was hot.
const COOL_EPOCHS: u32 = 64;

impl SplitBalance {
    /// A group has at most this many partitions.
    pub const WAYS_MAX: u32 = 64;

    /// Makes the policy for groups of `ways` neighbours (1 to [`SplitBalance::WAYS_MAX`]; with 1 it is Algorithm 1 over
    /// partitions), which moves beyond `deviations` as in [`super::GreedyBalance::beyond_noise`].
    ///
    /// # Panics
    /// If `ways` is outside this range.
    pub fn new(ways: u32, deviations: u32) -> SplitBalance {
        assert!((1..=SplitBalance::WAYS_MAX).contains(&ways), "{ways} ways are not allowed; 1 to 64 are");
        SplitBalance {
            ways,
            deviations,
            groups: Vec::new(),
            counts: BalanceCounts::default(),
            units: Vec::new(),
            assigned: Vec::new(),
        }
    }

    /// Marks a group whose parts have different owners as split, and resets the state of groups that are away.
    fn look(&mut self, owner: &[u32]) {
        let ways = self.ways as usize;
        self.groups.resize(owner.len().div_ceil(ways), Group::default());
        for (group, owner) in self.groups.iter_mut().zip(owner.chunks(ways)) {
            debug_assert!(
                owner.iter().all(|&other| (other == AWAY) == (owner[0] == AWAY)),
                "a group is here or away"
            );
            if owner[0] == AWAY {
                *group = Group::default();
            } else if owner.iter().any(|&other| other != owner[0]) {
                group.is_split = true;
            }
        }
    }

    fn join(&mut self, load: &[u64], share: &Share, owner: &mut [u32]) {
        let ways = self.ways as usize;
        let mut has_moved = false;
        let groups = self.groups.iter_mut().zip(load.chunks(ways)).zip(owner.chunks_mut(ways));
        for ((group, load), owner) in groups.filter(|((group, _), _)| group.is_split) {
            let all: u64 = load.iter().sum();
            group.cool = if share.is_more(all, COOL) { 0 } else { group.cool.saturating_add(1) };
            if group.cool < COOL_EPOCHS {
                continue;
            }
            let is_together = owner.iter().all(|&other| other == owner[0]);
            if !is_together {
                let home = (!has_moved).then(|| home(load, owner, &self.assigned, share)).flatten();
                let Some(home) = home else { continue };
                for (&load, owner) in load.iter().zip(owner) {
                    self.assigned[*owner as usize] -= load;
                    self.assigned[home as usize] += load;
                    *owner = home;
                }
                has_moved = true;
            }
            *group = Group::default();
            self.counts.joins += 1;
        }
    }

    /// The units as they are, in the order of their partitions.
    fn gather(&mut self, load: &[u64], owner: &[u32]) {
        self.units.clear();
        let ways = self.ways as usize;
        for (at, group) in self.groups.iter().enumerate() {
            let partitions = at * ways..((at + 1) * ways).min(load.len());
            if owner[partitions.start] == AWAY {
                continue;
            }
            if group.is_split {
                self.units.extend(partitions.map(|first| Unit {
                    first,
                    parts: 1,
                    load: load[first],
                    owner: owner[first],
                }));
                continue;
            }
            let load = load[partitions.clone()].iter().sum();
            let first = partitions.start;
            self.units.push(Unit { first, parts: partitions.len(), load, owner: owner[first] });
        }
    }

    fn place(&mut self, share: &Share) {
        self.assigned.fill(0);
        place(self.units.iter_mut().map(|unit| (unit.load, &mut unit.owner)), &mut self.assigned, |_| share);
    }

    /// Splits the group that carries a thread above the ideal, on every thread that Algorithm 1 does not relieve: the
    /// last that it was given, since before that it had not too much. Whether there was one.
    fn split(&mut self, share: &Share) -> bool {
        let before = self.counts.splits;
        for (thread, _) in (0..).zip(&self.assigned).filter(|(_, assigned)| share.has_too_much(**assigned)) {
            let last = self.units.iter().rfind(|unit| unit.owner == thread && unit.load > 0);
            if let Some(unit) = last.filter(|unit| unit.parts > 1 && share.is_part(unit.load, HOT)) {
                self.groups[unit.first / self.ways as usize].is_split = true;
                self.counts.splits += 1;
            }
        }
        self.counts.splits > before
    }
}

/// Returns the thread where a group may be joined: among the threads with parts of it that have room for the rest, the
/// one with most of its load, then with most parts, then the first.
fn home(load: &[u64], owner: &[u32], assigned: &[u64], share: &Share) -> Option<u32> {
    let all: u64 = load.iter().sum();
    let has = |thread: u32| {
        let own = || load.iter().zip(owner).filter(move |part| *part.1 == thread);
        (own().map(|part| part.0).sum::<u64>(), own().count(), std::cmp::Reverse(thread))
    };
    let fits = |thread: u32, own: u64| share.has_room(assigned[thread as usize] + (all - own));
    let threads = owner.iter().map(|&thread| has(thread)).filter(|has| fits(has.2.0, has.0));
    threads.max().map(|has| has.2.0)
}

impl Balance for SplitBalance {
    fn balance(&mut self, load: &[u64], requests: u64, threads: u32, owner: &mut [u32]) {
        assert_eq!(load.len(), owner.len(), "every partition has a load and an owner");
        assert!(threads > 0, "there is a thread");
        self.look(owner);
        self.assigned.clear();
        self.assigned.resize(threads as usize, 0);
        let mut total = 0;
        for (&load, &owner) in load.iter().zip(owner.iter()).filter(|(_, owner)| **owner != AWAY) {
            total += u128::from(load);
            self.assigned[owner as usize] += load;
        }
        let share = Share::of(total, requests, 1, threads, self.deviations);
        self.join(load, &share, owner);
        self.gather(load, owner);
        self.place(&share);
        if self.split(&share) {
            self.gather(load, owner);
            self.place(&share);
        }
        for unit in &self.units {
            owner[unit.first..unit.first + unit.parts].fill(unit.owner);
        }
    }

    fn epochs_max(&self) -> u32 {
        epochs_max(self.deviations)
    }

    fn ways(&self) -> u32 {
        self.ways
    }

    fn counts(&self) -> BalanceCounts {
        self.counts
    }
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
