//! The adaptive wheel with linked lists for buckets, two or three entries long, and a heap for the
//! bucket being served: less code and a little faster on short queues, but on long ones every entry
//! and every list head is a cache miss of its own. See `crates/fabric/src/engine/calendar.rs` for the parts in common.

use plimsoll_units::Time;

/// Pending events, popped in the order of `(time, owner)`.
///
/// Two live entries must differ in time or in owner; one owner may have several entries. A push is
/// never earlier than the last pop. An equal time is fine, even with a smaller owner: it comes next.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// Everything up to the end of bucket `cursor`.
    front: KeyHeap,
    /// The bucket being served, counted from time zero.
    cursor: u64,
    /// A bucket is `1 << shift` picoseconds wide.
    shift: u32,
    wheel: Wheel,
    /// What was at least a whole wheel ahead when it was pushed. It goes straight to `front` when
    /// its bucket comes, never through the wheel.
    far: KeyHeap,
    pace: Pace,
}

/// What [`EventQueue::retune`] looks at, counted since it last looked.
#[derive(Clone, Debug)]
struct Pace {
    /// Pops until the next look.
    pops_left: u64,
    pops: u64,
    /// How far the cursor moved, in buckets, with silences cut short.
    buckets: u64,
}

impl EventQueue {
    /// An empty queue at time zero.
    pub fn new() -> EventQueue {
        EventQueue {
            front: KeyHeap::default(),
            cursor: 0,
            shift: SHIFT_INITIAL,
            wheel: Wheel::new(BUCKETS_MIN),
            far: KeyHeap::default(),
            pace: Pace::over(LOOK_POPS_MIN),
        }
    }

    fn len(&self) -> usize {
        self.front.len() + self.wheel.len() + self.far.len()
    }

    /// Adds an entry; `at` is not before the time last popped.
    #[inline]
    pub fn push(&mut self, at: Time, owner: u32) {
        self.insert(Key::new(at, owner));
    }

    /// Takes the first entry by `(time, owner)`.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, u32)> {
        if self.pace.pops_left == 0 {
            self.retune();
        }
        if self.front.is_empty() {
            self.refill();
        }
        let key = self.front.pop()?;
        self.pace.pops_left -= 1;
        Some((key.at(), key.owner()))
    }

    #[inline]
    fn insert(&mut self, key: Key) {
        let bucket = key.bucket(self.shift);
        if bucket <= self.cursor {
            self.front.push(key);
        } else if bucket - self.cursor < self.wheel.buckets() {
            self.wheel.insert(bucket, key);
        } else {
            self.far.push(key);
        }
    }

    /// Moves the cursor to the next bucket that has entries, and these to `front`.
    #[inline]
    fn refill(&mut self) {
        let in_wheel = self.wheel.next_full(self.cursor).unwrap_or(u64::MAX);
        let in_far = self.far.first().map_or(u64::MAX, |key| key.bucket(self.shift));
        let next = in_wheel.min(in_far);
        if next == u64::MAX {
            return;
        }
        self.pace.buckets += (next - self.cursor).min(self.wheel.buckets() / SILENCE_SHARE);
        self.cursor = next;
        if in_wheel == next {
            self.wheel.take(next, &mut self.front);
        }
        if in_far == next {
            self.refill_from_far();
        }
    }

    #[cold]
    fn refill_from_far(&mut self) {
        while let Some(key) = self.far.first().filter(|key| key.bucket(self.shift) <= self.cursor) {
            self.far.pop();
            self.front.push(key);
        }
    }

    /// Fits the bucket width and the number of buckets to the pops since the last look, and counts
    /// anew. Moving every entry is paid for by the pops in between, which are at least as many.
    #[cold]
    fn retune(&mut self) {
        let live = self.len() as u64;
        let buckets = (live * REACH / PER_BUCKET).next_power_of_two().clamp(BUCKETS_MIN, BUCKETS_MAX);
        let gap_ps = (u128::from(self.pace.buckets) << self.shift) / u128::from(self.pace.pops);
        let width_ps = u64::try_from(gap_ps * u128::from(PER_BUCKET)).unwrap_or(u64::MAX).max(WIDTH_PS_MIN);
        let shift = width_ps.ilog2();
        // A factor of two either way costs less than moving, and sitting on a boundary would mean
        // moving for ever.
        let moved = self.pace.buckets > 0 && shift.abs_diff(self.shift) > 1;
        let resized = buckets.ilog2().abs_diff(self.wheel.buckets().ilog2()) > 1;
        if moved || resized {
            self.rebuild(if moved { shift } else { self.shift }, buckets);
        }
        self.pace = Pace::over((live * LOOK_POPS_PER_ENTRY).max(LOOK_POPS_MIN));
    }

    fn rebuild(&mut self, shift: u32, buckets: u64) {
        let mut keys = std::mem::take(&mut self.front).into_keys();
        self.wheel.drain_into(&mut keys);
        keys.append(&mut std::mem::take(&mut self.far).into_keys());
        // The start of the bucket being served is not after the last pop, so no later push can
        // fall behind the new cursor by more than `front` takes.
        let now_ps = self.cursor << self.shift;
        self.shift = shift;
        self.cursor = now_ps >> shift;
        self.wheel = Wheel::new(buckets);
        for key in keys {
            self.insert(key);
        }
    }
}

impl Default for EventQueue {
    fn default() -> EventQueue {
        EventQueue::new()
    }
}

impl Pace {
    fn over(pops: u64) -> Pace {
        Pace { pops_left: pops, pops, buckets: 0 }
    }
}

/// An entry as one integer, whose order is that of `(time, owner)`: a comparison takes two
/// instructions and no branch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key(u128);

impl Key {
    #[inline]
    fn new(at: Time, owner: u32) -> Key {
        Key(u128::from(at.as_ps()) << u32::BITS | u128::from(owner))
    }
    #[inline]
    fn at(self) -> Time {
        Time::from_ps((self.0 >> u32::BITS) as u64)
    }
    #[inline]
    fn owner(self) -> u32 {
        self.0 as u32
    }
    #[inline]
    fn bucket(self, shift: u32) -> u64 {
        self.at().as_ps() >> shift
    }
}

/// A ring of unsorted lists, one for each bucket after the cursor.
#[derive(Clone, Debug)]
struct Wheel {
    /// The first node of each bucket's list, or [`NIL`]. A power of two long.
    heads: Vec<u32>,
    /// One bit for each bucket: whether its list has nodes.
    full: Vec<u64>,
    nodes: Vec<Node>,
    /// The first unused node. The node freed last is used first: it is still in the cache.
    free: u32,
    len: usize,
}

/// 16 bytes, so that four share a cache line.
#[derive(Clone, Copy, Debug)]
struct Node {
    at: Time,
    owner: u32,
    next: u32,
}

impl Wheel {
    fn new(buckets: u64) -> Wheel {
        Wheel {
            heads: vec![NIL; buckets as usize],
            full: vec![0; buckets.div_ceil(WORD) as usize],
            nodes: Vec::new(),
            free: NIL,
            len: 0,
        }
    }

    #[inline]
    fn buckets(&self) -> u64 {
        self.heads.len() as u64
    }

    #[inline]
    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn slot(&self, bucket: u64) -> usize {
        bucket as usize & (self.heads.len() - 1)
    }

    #[inline]
    fn insert(&mut self, bucket: u64, key: Key) {
        let slot = self.slot(bucket);
        let node = Node { at: key.at(), owner: key.owner(), next: self.heads[slot] };
        let index = self.free;
        if index == NIL {
            self.heads[slot] = self.nodes.len() as u32;
            self.nodes.push(node);
        } else {
            self.heads[slot] = index;
            let place = &mut self.nodes[index as usize];
            self.free = place.next;
            *place = node;
        }
        self.full[slot / WORD as usize] |= 1 << (slot % WORD as usize);
        self.len += 1;
    }

    /// Moves the list of `bucket` into `front`.
    #[inline]
    fn take(&mut self, bucket: u64, front: &mut KeyHeap) {
        let slot = self.slot(bucket);
        self.full[slot / WORD as usize] &= !(1 << (slot % WORD as usize));
        let mut index = std::mem::replace(&mut self.heads[slot], NIL);
        while index != NIL {
            let node = &mut self.nodes[index as usize];
            front.push(Key::new(node.at, node.owner));
            let next = std::mem::replace(&mut node.next, self.free);
            self.free = index;
            index = next;
            self.len -= 1;
        }
    }

    /// The first bucket after `cursor` that has entries. The bucket of the cursor itself is empty:
    /// its entries are in `front`.
    #[inline]
    fn next_full(&self, cursor: u64) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let start = self.slot(cursor + 1);
        let mut word = start / WORD as usize;
        let mut bits = self.full[word] & (u64::MAX << (start % WORD as usize));
        // Comes round to the first word once more, for the bits below the start.
        while bits == 0 {
            word = (word + 1) & (self.full.len() - 1);
            bits = self.full[word];
        }
        let slot = word * WORD as usize + bits.trailing_zeros() as usize;
        let ahead = self.slot((slot as u64).wrapping_sub(start as u64)) as u64;
        Some(cursor + 1 + ahead)
    }

    fn drain_into(&mut self, keys: &mut Vec<Key>) {
        for head in &mut self.heads {
            let mut index = std::mem::replace(head, NIL);
            while let Some(node) = self.nodes.get(index as usize) {
                keys.push(Key::new(node.at, node.owner));
                index = node.next;
            }
        }
        *self = Wheel::new(self.buckets());
    }
}

/// A 4-ary min-heap: half the levels of a binary one, and four children fill one cache line.
#[derive(Clone, Default, Debug)]
struct KeyHeap(Vec<Key>);

impl KeyHeap {
    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }
    #[inline]
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    #[inline]
    fn first(&self) -> Option<Key> {
        self.0.first().copied()
    }
    fn into_keys(self) -> Vec<Key> {
        self.0
    }

    #[inline]
    fn push(&mut self, key: Key) {
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
    fn pop(&mut self) -> Option<Key> {
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

/// No node.
const NIL: u32 = u32::MAX;
const ARITY: usize = 4;
/// Buckets in a word of the bitmap.
const WORD: u64 = u64::BITS as u64;
/// Entries that a bucket should hold, on average: below two the search for the next full bucket
/// dominates, from four on the sorting does. Measured flat in between.
const PER_BUCKET: u64 = 2;
/// The wheel spans this many mean waits.
const REACH: u64 = 4;
/// A pause between two pops counts for no more than this part of the wheel. That is half a mean
/// wait, which steady traffic never reaches; without the limit one idle second would widen the
/// buckets for the microseconds of work around it.
const SILENCE_SHARE: u64 = 8;
/// One word of the bitmap.
const BUCKETS_MIN: u64 = WORD;
/// 4 MiB of list heads. More entries than this serves make the buckets fuller, not wrong.
const BUCKETS_MAX: u64 = 1 << 20;
/// Pops between two looks at the width: enough for a mean, and enough to pay for moving.
const LOOK_POPS_MIN: u64 = 1024;
const LOOK_POPS_PER_ENTRY: u64 = 4;
/// Keeps every bucket number, that of `Time::MAX` too, below `u64::MAX`.
const WIDTH_PS_MIN: u64 = 2;
/// About a microsecond, the time of a full-sized packet at 10 Gb/s. Only the first look needs it.
const SHIFT_INITIAL: u32 = 20;
