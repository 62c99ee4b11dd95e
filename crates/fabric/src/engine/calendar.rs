//! The event queue: a wheel of buckets whose width follows the traffic.
//!
//! An entry is `(time, owner)`. The queue holds the head of every link that has packets in flight
//! and the deadline of every armed timer, so it is as long as there are busy links, and a pop is
//! nearly always followed by a push a microsecond or so ahead.
//!
//! ```text
//!   front           wheel                                               far
//!   the bucket      [ ][..][.][ ][...]  unsorted, 2^shift ps a bucket,  4-ary heap of what lies
//!   being served,   a bit says 'has entries'                            beyond the wheel:
//!   sorted; a heap                                                      timers, mostly
//!   for a crowd
//! ```
//!
//! A push appends to a bucket; a pop takes the last of `front`; an empty `front` takes the entries of the next bucket
//! that has some (`wheel.rs`), and sorts them while they are in the cache. The order of the pops does not depend on the
//! width of the buckets, only their cost does: with all entries in one bucket, or all of them beyond the wheel, the
//! queue is a 4-ary heap.
//!
//! **Keys.** The entries of a bucket are sorted by the time since the bucket began, which makes one 64-bit integer with
//! the owner: half the memory of a full time and an owner, and compared without branches (`bucket_sort.rs` sorts them).
//!
//! **Ties.** Only where two entries have one time are their ranks looked at ([`rank`]).
//!
//! **Width.** [`Calendar::retune`] fits it to the mean gap between pops. By Little's law an entry
//! waits, on average, the length of the queue times that gap. A wheel that spans [`REACH`] mean waits
//! leaves at most one push in [`REACH`] to `far` (Markov's inequality), and next to none where the
//! waits are link delays. The gap is in simulated time, so every machine takes the same steps.
//!
//! The alternatives and their times are in `docs/internals/event-queue.md`.

use std::cmp::Reverse;

use plimsoll_units::Time;

use super::bucket_sort::BucketSort;
use super::key::Key;
use super::ties::{rank, ranks};
use super::wheel::Wheel;

/// Pending events, popped in the order of `(time, rank)`.
///
/// The owner is any number. Two live entries differ in time or in owner, and one owner may have several. A push is
/// never earlier than the last pop. An equal time is allowed, even with a smaller rank: that entry is popped next.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    /// The bucket being served, the first entry last.
    front: Vec<Key>,
    /// Entries pushed into the bucket of `front` while `front` was too long to insert into, by time and rank, with the
    /// owner. Mostly empty.
    late: Heap<(Time, u32, u32)>,
    /// The bucket being served, counted from time zero.
    cursor: u64,
    /// The time at which that bucket begins.
    begins: Time,
    /// A bucket is `1 << shift` picoseconds wide.
    shift: u32,
    wheel: Wheel,
    /// Entries at least a whole wheel ahead when they were pushed. They go straight to `front` when their bucket comes,
    /// never through the wheel.
    far: Heap<(Time, u32)>,
    sort: BucketSort,
    pace: Pace,
    /// True if a bucket was taken up since the last call of [`Calendar::take_turn`].
    turned: bool,
    /// The last bucket that [`Calendar::look_further`] has shown, if that is behind the cursor.
    looked: u64,
}

/// Counts that [`Calendar::retune`] reads, since its last call.
#[derive(Clone, Debug)]
struct Pace {
    /// The number of pops until the next look.
    pops_left: u64,
    pops: u64,
    /// The number of buckets by which the cursor moved. A pause counts for one turn of the wheel at most: an idle
    /// second must not widen the buckets for the busy microseconds around it.
    buckets: u64,
}

impl Calendar {
    /// Returns an empty queue at time zero.
    pub(super) fn new() -> Calendar {
        Calendar {
            front: Vec::new(),
            late: Heap::default(),
            cursor: 0,
            begins: Time::ZERO,
            shift: SHIFT_INITIAL,
            wheel: Wheel::new(BUCKETS_MIN),
            far: Heap::default(),
            sort: BucketSort::new(),
            pace: Pace::over(LOOK_POPS_MIN),
            turned: false,
            looked: 0,
        }
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.front.len() + self.late.len() + self.wheel.len() + self.far.len()
    }

    /// Returns whether the queue is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an entry; `at` is not before the time last popped.
    #[inline]
    pub(super) fn push(&mut self, at: Time, owner: u32) {
        let bucket = at.as_ps() >> self.shift;
        debug_assert!(bucket >= self.cursor, "a push is not before the last pop");
        if bucket == self.cursor && self.front.len() < FRONT_INSERT_MAX.min(self.front.capacity()) {
            self.insert_in_front(Key::new(at, owner, self.shift));
        } else {
            self.push_ahead(at, owner, bucket);
        }
    }

    /// Adds an entry to the wheel.
    #[inline(never)]
    fn push_ahead(&mut self, at: Time, owner: u32, bucket: u64) {
        if bucket.wrapping_sub(self.cursor + 1) < self.wheel.buckets() - 1 {
            self.wheel.insert(bucket, Key::new(at, owner, self.shift));
        } else {
            self.push_apart(at, owner, bucket);
        }
    }

    /// Adds an entry beyond the wheel, or to a bucket being served that has no place for it.
    #[cold]
    #[inline(never)]
    fn push_apart(&mut self, at: Time, owner: u32, bucket: u64) {
        if bucket != self.cursor {
            self.far.push((at, owner));
        } else if self.front.len() < FRONT_INSERT_MAX {
            self.front.reserve(1);
            self.insert_in_front(Key::new(at, owner, self.shift));
        } else {
            self.late.push((at, rank(at, owner), owner));
        }
    }

    /// Takes the first entry by `(time, rank)`, if it is at `last` or before. Otherwise the next push may be as early
    /// as just after `last`.
    #[inline]
    pub(super) fn pop_until(&mut self, last: Time) -> Option<(Time, u32)> {
        if self.pace.pops_left == 0 {
            self.retune();
        }
        if !self.late.is_empty() {
            return self.pop_from_crowd(last);
        }
        if self.front.is_empty() {
            self.refill(last);
        }
        let key = *self.front.last()?;
        let at = key.at(self.begins);
        if at > last {
            return None;
        }
        self.front.pop();
        self.pace.pops_left -= 1;
        Some((at, key.owner()))
    }

    /// Returns the time of the first entry. Cheap while the bucket being served lasts, a walk through the next one
    /// with entries otherwise.
    ///
    /// It moves nothing on purpose: if the cursor advanced to that bucket, all entries then pushed before it (a live
    /// packet while the next deadline is seconds away) would crowd into `front`.
    pub(super) fn peek_time(&self) -> Option<Time> {
        let in_front = self.front.last().map(|key| key.at(self.begins));
        let in_late = self.late.first().map(|(at, ..)| at);
        if let Some(first) = [in_front, in_late].into_iter().flatten().min() {
            return Some(first);
        }
        let in_wheel = self.wheel.next_filled(self.cursor).and_then(|bucket| {
            let begins = Time::from_ps(bucket << self.shift);
            self.wheel.keys(bucket).min().map(|first| first.at(begins))
        });
        [in_wheel, self.far.first().map(|(at, _)| at)].into_iter().flatten().min()
    }

    /// Returns the owner of the first entry, if that is in the bucket being served.
    #[inline]
    pub(super) fn first_at_hand(&self) -> Option<u32> {
        self.front.last().map(|key| key.owner())
    }

    /// Returns whether a bucket was taken up since the last call.
    #[inline]
    pub(super) fn take_turn(&mut self) -> bool {
        std::mem::take(&mut self.turned)
    }

    /// Returns the entries of the next bucket that this has not shown, of the `most` buckets that follow the one being
    /// served, in no order that counts.
    #[inline]
    pub(super) fn look_further(&mut self, most: u64) -> Option<impl Iterator<Item = (Time, u32)> + '_> {
        let looked = self.looked.max(self.cursor);
        if looked >= self.cursor + most {
            return None;
        }
        // After its last bucket the wheel begins again with the first ones, which the filter leaves out.
        let bucket =
            self.wheel.next_filled(looked).filter(|next| next - self.cursor < self.wheel.buckets())?;
        self.looked = bucket;
        let begins = Time::from_ps(bucket << self.shift);
        Some(self.wheel.keys(bucket).map(move |key| (key.at(begins), key.owner())))
    }

    /// Moves the cursor to the next bucket that has entries, and these to `front`; not beyond `last`.
    #[inline]
    fn refill(&mut self, last: Time) {
        let in_wheel = self.wheel.next_filled(self.cursor).unwrap_or(u64::MAX);
        let in_far = self.far.first().map_or(u64::MAX, |(at, _)| at.as_ps() >> self.shift);
        let next = in_wheel.min(in_far);
        if next > last.as_ps() >> self.shift {
            return;
        }
        self.pace.buckets += (next - self.cursor).min(self.wheel.buckets());
        self.cursor = next;
        self.begins = Time::from_ps(next << self.shift);
        self.turned = true;
        if in_wheel == next {
            self.wheel.take(next, &mut self.front);
        }
        if in_far == next {
            self.take_from_far();
        }
        if self.front.len() > 1 {
            self.sort.sort(&mut self.front, self.shift);
            self.settle_ties();
        }
    }

    /// Puts the entries of one time in the order of their ranks, the first one last.
    #[inline]
    fn settle_ties(&mut self) {
        if self.front.windows(2).any(|pair| pair[0].is_tied_with(pair[1])) {
            let begins = self.begins;
            for tied in self.front.chunk_by_mut(|a, b| a.is_tied_with(*b)) {
                let rank = ranks(tied[0].at(begins));
                tied.sort_unstable_by_key(|key| Reverse(rank(key.owner())));
            }
        }
    }

    #[cold]
    fn take_from_far(&mut self) {
        while let Some((at, owner)) =
            self.far.first().filter(|(at, _)| at.as_ps() >> self.shift == self.cursor)
        {
            self.far.pop();
            self.front.push(Key::new(at, owner, self.shift));
        }
    }

    /// Adds to the bucket being served.
    #[inline(always)]
    fn insert_in_front(&mut self, key: Key) {
        // The earliest entry is at the end, and most pushes are due soon after it: few entries move up.
        let mut place = self.front.len();
        self.front.push(key);
        while place > 0 && self.is_after(key, self.front[place - 1]) {
            self.front[place] = self.front[place - 1];
            place -= 1;
        }
        self.front[place] = key;
    }

    /// Returns whether `key` is later than `other`, both of the bucket being served.
    #[inline(always)]
    fn is_after(&self, key: Key, other: Key) -> bool {
        if key.is_tied_with(other) { self.is_after_in_tie(key, other) } else { key > other }
    }

    #[cold]
    fn is_after_in_tie(&self, key: Key, other: Key) -> bool {
        let rank = ranks(key.at(self.begins));
        rank(key.owner()) > rank(other.owner())
    }

    #[cold]
    fn pop_from_crowd(&mut self, last: Time) -> Option<(Time, u32)> {
        let front = self.front.last().map(|key| (key.at(self.begins), key.owner()));
        let (at, order, owner) = self.late.first()?;
        let comes = match front {
            Some((front, owner)) if front < at || front == at && rank(at, owner) < order => (front, owner),
            _ => (at, owner),
        };
        if comes.0 > last {
            return None;
        }
        if front == Some(comes) {
            self.front.pop();
        } else {
            self.late.pop();
        }
        self.pace.pops_left -= 1;
        Some(comes)
    }

    /// Fits the width and the number of the buckets to the pops since the last call. The cost of moving every entry is
    /// spread over the pops in between, of which there were several for each entry.
    #[cold]
    fn retune(&mut self) {
        let live = self.len() as u64;
        let wanted = (live * REACH / PER_BUCKET).next_power_of_two().clamp(BUCKETS_MIN, BUCKETS_MAX);
        let resize = wanted.ilog2().abs_diff(self.wheel.buckets().ilog2()) > 1;
        let buckets = if resize { wanted } else { self.wheel.buckets() };

        let elapsed_ps = u128::from(self.pace.buckets) << self.shift;
        let span_ps = elapsed_ps * u128::from(live * REACH) / u128::from(self.pace.pops);
        // If all entries fit into `front`, sorted as they arrive, then one bucket spans all waits, and the wheel is
        // left alone.
        let share = if live <= FRONT_INSERT_MAX as u64 { 1 } else { buckets };
        let shift = (span_ps / u128::from(share)).clamp(WIDTH_PS_MIN, WIDTH_PS_MAX).ilog2();
        // If no time elapsed, the width stays. Too wide by a factor of two costs less than moving, and without that
        // slack the width would alternate between two sizes.
        let widen = self.pace.buckets > 0 && shift > self.shift;
        let narrow = self.pace.buckets > 0 && shift + 1 < self.shift;
        if resize || widen || narrow {
            self.rebuild(if widen || narrow { shift } else { self.shift }, buckets);
        }
        self.pace = Pace::over((live * LOOK_POPS_PER_ENTRY).max(LOOK_POPS_MIN));
    }

    fn rebuild(&mut self, shift: u32, buckets: u64) {
        let mut entries = std::mem::take(&mut self.far.0);
        entries.extend(self.front.drain(..).map(|key| (key.at(self.begins), key.owner())));
        entries.extend(self.late.0.drain(..).map(|(at, _, owner)| (at, owner)));
        let wheel = std::mem::replace(&mut self.wheel, Wheel::new(buckets));
        for bucket in self.cursor + 1..self.cursor + wheel.buckets() {
            let begins = Time::from_ps(bucket << self.shift);
            entries.extend(wheel.keys(bucket).map(|key| (key.at(begins), key.owner())));
        }
        // The cursor goes back by less than a bucket, to a time that is not after the last pop.
        self.cursor = self.begins.as_ps() >> shift;
        self.looked = self.cursor;
        self.begins = Time::from_ps(self.cursor << shift);
        self.shift = shift;
        for (at, owner) in entries {
            self.push(at, owner);
        }
    }
}

impl Default for Calendar {
    fn default() -> Calendar {
        Calendar::new()
    }
}

impl Pace {
    fn over(pops: u64) -> Pace {
        Pace { pops_left: pops, pops, buckets: 0 }
    }
}

/// A 4-ary min-heap: half the levels of a binary one, and four children fill one cache line.
#[derive(Clone, Debug)]
struct Heap<K>(Vec<K>);

impl<K> Default for Heap<K> {
    fn default() -> Heap<K> {
        Heap(Vec::new())
    }
}

impl<K: Copy + Ord> Heap<K> {
    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }
    #[inline]
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    #[inline]
    fn first(&self) -> Option<K> {
        self.0.first().copied()
    }

    #[inline]
    fn push(&mut self, key: K) {
        let mut hole = self.0.len();
        self.0.push(key);
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if self.0[parent] <= key {
                break;
            }
            self.0[hole] = self.0[parent];
            hole = parent;
        }
        self.0[hole] = key;
    }

    #[inline]
    fn pop(&mut self) -> Option<K> {
        let last = self.0.pop()?;
        let Some(&first) = self.0.first() else {
            return Some(last);
        };
        let keys = &mut self.0[..];
        let mut hole = 0;
        loop {
            let child = hole * ARITY + 1;
            let Some(least) = (child..keys.len().min(child + ARITY)).min_by_key(|&index| keys[index]) else {
                break;
            };
            if last <= keys[least] {
                break;
            }
            keys[hole] = keys[least];
            hole = least;
        }
        keys[hole] = last;
        Some(first)
    }
}

/// The wheel spans this many mean waits, or up to twice as many after rounding. Timers that hardly
/// ever fire stretch the mean, so that packets leave the wheel even more rarely.
const REACH: u64 = 4;
/// Entries that a bucket would hold if all of the wheel were in use. A long queue wants few, long buckets, which are
/// written and sorted as one run of memory, and which show more of the coming events to a caller that prefetches: with
/// 64 a run of 8,192 hosts took 8 % less than with 32, and 128 gave no more.
const PER_BUCKET: u64 = 64;
/// A short queue needs more buckets than entries, so that most hold one and nothing is sorted: measured best from 256
/// to 1024. The headers, 6 KiB, stay in the first-level cache.
const BUCKETS_MIN: u64 = 256;
/// Enough for half a million entries; more make the buckets longer. The headers take 1.5 MiB.
const BUCKETS_MAX: u64 = 1 << 16;
/// Pops between two looks at the width: enough for a mean, and enough to pay for moving.
const LOOK_POPS_MIN: u64 = 1024;
const LOOK_POPS_PER_ENTRY: u64 = 4;
/// About a microsecond, the time of a full-sized packet at 10 Gb/s. Serves until the first look.
const SHIFT_INITIAL: u32 = 20;
/// Keeps every bucket number, including the one of `Time::MAX`, below `u64::MAX`, which means 'none'.
const WIDTH_PS_MIN: u128 = 2;
/// The greatest width of a bucket, 4.3 ms: the time within it takes 32 bits of a key.
const WIDTH_PS_MAX: u128 = 1 << 32;
/// Up to here inserting into a sorted run costs less than a heap.
const FRONT_INSERT_MAX: usize = 24;
const ARITY: usize = 4;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use plimsoll_units::Span;
    use proptest::prelude::*;

    use super::*;

    fn drain(queue: &mut Calendar) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| queue.pop_until(Time::MAX)).map(|(at, owner)| (at.as_ps(), owner)).collect()
    }

    /// In the order of time, then rank.
    fn ordered(mut entries: Vec<(u64, u32)>) -> Vec<(u64, u32)> {
        entries.sort_by_key(|&(at, owner)| (at, rank(Time::from_ps(at), owner)));
        entries
    }

    #[test]
    fn orders_by_time_then_rank() {
        let mut queue = Calendar::new();
        let entries = [(7, 1), (5, 9), (u64::MAX, 0), (5, 2), (0, u32::MAX), (1 << 40, 3), (7, 0)];
        for (at, owner) in entries {
            queue.push(Time::from_ps(at), owner);
        }
        assert_eq!(drain(&mut queue), ordered(entries.to_vec()));
    }

    #[test]
    fn a_push_at_the_time_last_popped_comes_next_whoever_owns_it() {
        let at = Time::from_ps(1_200_000);
        let mut queue = Calendar::new();
        // By rank: the first of them is popped, and comes back ahead of the others.
        let owners: Vec<_> = ordered((4..8).map(|owner| (at.as_ps(), owner)).collect());
        let first = Some((at, owners[0].1));
        owners.iter().rev().for_each(|&(_, owner)| queue.push(at, owner));
        assert_eq!(queue.pop_until(Time::MAX), first);
        queue.push(at, owners[0].1);
        assert_eq!(queue.pop_until(Time::MAX), first);
        assert_eq!(drain(&mut queue), owners[1..]);
    }

    /// Pops `pops` times; each popped owner is pushed again `wait(owner)` later.
    fn hold(queue: &mut Calendar, pops: u64, wait: impl Fn(u32) -> Span) {
        for _ in 0..pops {
            let (at, owner) = queue.pop_until(Time::MAX).unwrap();
            queue.push(at + wait(owner), owner);
        }
    }

    #[test]
    fn the_wheel_holds_what_is_a_link_delay_ahead() {
        for owners in [20, 1_000, 40_000] {
            let mut queue = Calendar::new();
            (0..owners).for_each(|owner| queue.push(Time::from_ps(u64::from(owner) * 977), owner));
            hold(&mut queue, 40 * u64::from(owners).max(1_000), |owner| {
                Span::from_ns(2_000 + u64::from(owner % 7))
            });
            assert_eq!((queue.far.len(), queue.late.len()), (0, 0), "{owners} owners, shift {}", queue.shift);
            let wheel = &queue.wheel;
            let longest = (0..wheel.buckets()).map(|bucket| wheel.keys(bucket).count()).max().unwrap();
            assert!(longest <= 8 * PER_BUCKET as usize, "{longest} in a bucket for {owners} owners");
        }
    }

    #[test]
    fn idle_seconds_do_not_widen_the_buckets() {
        let mut queue = Calendar::new();
        (0..100).for_each(|owner| queue.push(Time::from_ps(u64::from(owner) * 10_000), owner));
        hold(&mut queue, 10_000, |_| Span::from_us(1));
        let busy = queue.shift;
        for _ in 0..100 {
            // The rack is silent for a second, then all owners are active again.
            hold(&mut queue, 100, |_| Span::from_secs(1));
            hold(&mut queue, 1_000, |_| Span::from_us(1));
        }
        assert!(queue.shift <= busy + 4, "from 2^{busy} to 2^{} ps", queue.shift);
    }

    #[test]
    fn the_width_follows_a_crowd_that_moves_in_step() {
        for wait in [Span::from_ns(1_200), Span::from_ms(10)] {
            let mut queue = Calendar::new();
            (0..5_000).for_each(|owner| queue.push(Time::ZERO, owner));
            hold(&mut queue, 500_000, |_| wait);
            let wheel_ps = queue.wheel.buckets() << queue.shift;
            assert!(wheel_ps > wait.as_ps() && wheel_ps < 16 * wait.as_ps(), "{wheel_ps} ps for {wait}");
        }
    }

    proptest! {
        /// Ties, link delays, think times, timers and silences, with several entries an owner.
        #[test]
        fn pops_like_an_ordered_set(
            steps in prop::collection::vec((0u8..5, 0u64..1 << 44, 0u32..50, 0u8..4), 0..6_000),
        ) {
            let mut queue = Calendar::new();
            let mut model = BTreeSet::new();
            let mut now = Time::ZERO;
            for (scale, draw, owner, step) in steps {
                let spans = [draw % 4, 1_200_000, draw % (1 << 24), draw % (1 << 33), draw];
                let ahead = Span::from_ps(spans[scale as usize]);
                if step < 2 {
                    if model.insert((now + ahead, rank(now + ahead, owner), owner)) {
                        queue.push(now + ahead, owner);
                    }
                } else if step == 2 {
                    let first = model.pop_first();
                    now = first.map_or(now, |(at, ..)| at);
                    prop_assert_eq!(queue.pop_until(Time::MAX), first.map(|(at, _, owner)| (at, owner)));
                } else {
                    let last = now + ahead;
                    let first = model.first().copied().filter(|(at, ..)| *at <= last);
                    prop_assert_eq!(queue.pop_until(last), first.map(|(at, _, owner)| (at, owner)));
                    match first {
                        Some(first) => model.remove(&first),
                        None => true,
                    };
                    now = first.map_or(last, |(at, ..)| at);
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.peek_time(), model.first().map(|&(at, ..)| at));
            }
            let rest: Vec<_> = model.into_iter().map(|(at, _, owner)| (at.as_ps(), owner)).collect();
            prop_assert_eq!(drain(&mut queue), rest);
            prop_assert!(queue.is_empty());
        }
    }
}
