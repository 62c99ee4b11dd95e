//! The rings of an AF_XDP socket: memory that the kernel and this process share. One side writes entries and moves
//! `producer`, the other reads them and moves `consumer`; both only ever grow, and an entry's place is its number
//! modulo the ring's size.
//!
//! | ring | entries | written by |
//! |---|---|---|
//! | fill | frames that the kernel may receive into | this process: [`Producing`] |
//! | receive | frames with received packets | the kernel: [`Consuming`] |
//! | send | frames to be sent | this process: [`Producing`] |
//! | completion | frames that are sent | the kernel: [`Consuming`] |

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Memory that is mapped until this is dropped.
#[derive(Debug)]
pub(crate) struct MappedMemory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns the mapping, and hands out nothing but its address; each access through that has its own reason.
#[expect(unsafe_code, reason = "it is a range of addresses, which any thread may know")]
unsafe impl Send for MappedMemory {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "it is a range of addresses, which any thread may know")]
unsafe impl Sync for MappedMemory {}

impl MappedMemory {
    /// Maps new memory, all zeros.
    pub(crate) fn anonymous(bytes: usize) -> io::Result<MappedMemory> {
        MappedMemory::map(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    /// Maps a part of `file`.
    pub(crate) fn of(file: BorrowedFd<'_>, bytes: usize, offset: libc::off_t) -> io::Result<MappedMemory> {
        MappedMemory::map(bytes, libc::MAP_SHARED | libc::MAP_POPULATE, file.as_raw_fd(), offset)
    }

    #[expect(unsafe_code, reason = "no safe crate of this workspace maps memory")]
    fn map(bytes: usize, flags: i32, file: i32, offset: libc::off_t) -> io::Result<MappedMemory> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, file, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at 0"))?;
        Ok(MappedMemory { start, bytes })
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for MappedMemory {
    #[expect(unsafe_code, reason = "no safe crate of this workspace maps memory")]
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and every holder of an address in it holds the mapping.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// The common parts of both kinds of rings.
#[derive(Debug)]
struct Ring<T> {
    mapping: MappedMemory,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    /// The number of its entries, a power of two.
    size: u32,
}

// SAFETY: the pointers lead into the mapping beside them, and numbers may be read on any thread.
#[expect(unsafe_code, reason = "it points into a mapping that it owns")]
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Creates a ring in `mapping` whose parts are at these offsets.
    #[expect(unsafe_code, reason = "places within a mapping")]
    fn new(mapping: MappedMemory, at: &libc::xdp_ring_offset, size: u32) -> io::Result<Ring<T>> {
        let bytes = size as usize * size_of::<T>();
        let place = |at: u64, align: usize, bytes: usize| {
            let at = usize::try_from(at).ok()?;
            let fits = at.checked_add(bytes)? <= mapping.bytes() && at.is_multiple_of(align);
            fits.then_some(at)
        };
        let number = |at: u64| place(at, align_of::<AtomicU32>(), size_of::<AtomicU32>());
        let places = (
            number(at.producer),
            number(at.consumer),
            number(at.flags),
            place(at.desc, align_of::<T>(), bytes),
        );
        let (Some(producer), Some(consumer), Some(flags), Some(entries)) = places else {
            return Err(io::Error::other("the kernel names places outside a ring's memory"));
        };
        debug_assert!(size.is_power_of_two());
        let start = mapping.start();
        // SAFETY: `place` has found each within the mapping, with room for its type, and aligned: a mapping begins at a
        // page.
        unsafe {
            Ok(Ring {
                producer: start.add(producer).cast(),
                consumer: start.add(consumer).cast(),
                flags: start.add(flags).cast(),
                entries: start.add(entries).cast(),
                mapping,
                size,
            })
        }
    }

    #[expect(unsafe_code, reason = "the kernel changes it too, as the atomic that it is")]
    fn number(&self, place: NonNull<AtomicU32>) -> &AtomicU32 {
        debug_assert!(self.mapping.bytes() > 0);
        // SAFETY: `place` is one of this ring's, in a mapping that lives as long, and both sides only use it
        // atomically.
        unsafe { place.as_ref() }
    }

    /// Returns the place of the entry with this number.
    #[expect(unsafe_code, reason = "a place within a mapping")]
    fn entry(&self, number: u32) -> NonNull<T> {
        // SAFETY: the mask keeps it among the `size` entries that `new` has found room for.
        unsafe { self.entries.add((number & (self.size - 1)) as usize) }
    }
}

/// A ring that this process writes.
#[derive(Debug)]
pub(crate) struct Producing<T> {
    ring: Ring<T>,
    /// The number of the next entry; the kernel knows the entries below as of the last `publish`.
    next: u32,
}

impl<T: Copy> Producing<T> {
    pub(crate) fn new(
        mapping: MappedMemory,
        at: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Producing<T>> {
        let ring = Ring::new(mapping, at, size)?;
        let next = ring.number(ring.producer).load(Ordering::Relaxed);
        Ok(Producing { ring, next })
    }

    /// Returns the number of entries that the kernel has not taken yet.
    pub(crate) fn waiting(&self) -> u32 {
        self.next.wrapping_sub(self.ring.number(self.ring.consumer).load(Ordering::Acquire))
    }

    /// Writes an entry that the kernel sees after `publish`. Returns false, and writes nothing, if the ring is full.
    #[must_use]
    #[expect(unsafe_code, reason = "shared memory")]
    pub(crate) fn put(&mut self, entry: T) -> bool {
        if self.waiting() >= self.ring.size {
            return false;
        }
        // SAFETY: the place is the ring's, and the kernel does not read it before `publish`; it has read the earlier
        // entry, as `consumer` shows.
        unsafe {
            self.ring.entry(self.next).write(entry);
        }
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Hands the entries that were put over to the kernel.
    pub(crate) fn publish(&mut self) {
        self.ring.number(self.ring.producer).store(self.next, Ordering::Release);
    }

    /// Reports whether the kernel looks at the ring only if it is asked to.
    pub(crate) fn wants_wakeup(&self) -> bool {
        // The entries must be visible before the flag is read: the kernel sets the flag, then looks again.
        fence(Ordering::SeqCst);
        self.ring.number(self.ring.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// A ring that the kernel writes.
#[derive(Debug)]
pub(crate) struct Consuming<T> {
    ring: Ring<T>,
    /// The number of the next entry to be read; the kernel knows the entries below as of the last `release`.
    next: u32,
    /// The number of the first entry that may not be written yet.
    end: u32,
}

impl<T: Copy> Consuming<T> {
    pub(crate) fn new(
        mapping: MappedMemory,
        at: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Consuming<T>> {
        let ring = Ring::new(mapping, at, size)?;
        let next = ring.number(ring.consumer).load(Ordering::Relaxed);
        Ok(Consuming { ring, next, end: next })
    }

    /// Reports whether there is an entry, as far as it has been seen to be written.
    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.end && self.next == self.ring.number(self.ring.producer).load(Ordering::Relaxed)
    }

    /// Returns the next entry, if there is one.
    #[expect(unsafe_code, reason = "shared memory")]
    pub(crate) fn take(&mut self) -> Option<T> {
        if self.next == self.end {
            self.end = self.ring.number(self.ring.producer).load(Ordering::Acquire);
            if self.next == self.end {
                return None;
            }
        }
        // SAFETY: the place is the ring's; the kernel wrote it before it moved `producer`, and does not write it again
        // before `release`. Every bit pattern is a number.
        let entry = unsafe { self.ring.entry(self.next).read() };
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// Returns the places of the entries that were taken.
    pub(crate) fn release(&mut self) {
        self.ring.number(self.ring.consumer).store(self.next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: libc::xdp_ring_offset =
        libc::xdp_ring_offset { producer: 0, consumer: 64, flags: 128, desc: 192 };
    const SIZE: u32 = 4;
    /// Numbers wrap around after the largest.
    const FIRST: u32 = u32::MAX - 5;

    fn memory(bytes: usize) -> MappedMemory {
        MappedMemory::anonymous(bytes).unwrap()
    }

    /// A ring of either kind over memory in which both sides are at [`FIRST`].
    fn begun() -> Ring<u64> {
        let ring = Ring::<u64>::new(memory(4096), &AT, SIZE).unwrap();
        ring.number(ring.producer).store(FIRST, Ordering::Relaxed);
        ring.number(ring.consumer).store(FIRST, Ordering::Relaxed);
        ring
    }

    #[test]
    fn entries_are_handed_over_when_they_are_published() {
        let mut produced = Producing { ring: begun(), next: FIRST };
        let kernel = |ring: &Producing<u64>| ring.ring.number(ring.ring.producer).load(Ordering::Relaxed);
        for round in 0..5_u64 {
            for entry in 0..4 {
                assert!(produced.put(10 * round + entry));
            }
            assert!(!produced.put(99), "it is full");
            assert_eq!(kernel(&produced), FIRST.wrapping_add(4 * round as u32), "nothing is published yet");
            produced.publish();
            let end = kernel(&produced);
            assert_eq!(end, FIRST.wrapping_add(4 * (round as u32 + 1)));
            assert_eq!(produced.waiting(), 4);
            produced.ring.number(produced.ring.consumer).store(end, Ordering::Relaxed);
            assert_eq!(produced.waiting(), 0);
        }
        assert!(!produced.wants_wakeup());
        produced.ring.number(produced.ring.flags).store(libc::XDP_RING_NEED_WAKEUP, Ordering::Relaxed);
        assert!(produced.wants_wakeup());
    }

    #[test]
    fn entries_come_in_order_and_their_places_go_back() {
        let mut kernel = Producing { ring: begun(), next: FIRST };
        // Both rings are over one memory: one side reads the entries that the other writes.
        let (producer, consumer, entries) = (kernel.ring.producer, kernel.ring.consumer, kernel.ring.entries);
        let own = Ring { producer, consumer, entries, ..begun() };
        let mut consumed = Consuming { ring: own, next: FIRST, end: FIRST };
        assert_eq!(consumed.take(), None);
        for round in 0..5_u64 {
            for entry in 0..3 {
                assert!(kernel.put(10 * round + entry));
            }
            assert_eq!((consumed.is_empty(), consumed.take()), (true, None), "not published");
            kernel.publish();
            assert!(!consumed.is_empty());
            assert_eq!(
                [(); 4].map(|()| consumed.take()),
                [0, 1, 2, 9].map(|entry| { (entry < 3).then_some(10 * round + entry) })
            );
            assert_eq!(kernel.waiting(), 3, "the places are not given back");
            consumed.release();
            assert_eq!(kernel.waiting(), 0);
        }
    }

    #[test]
    fn a_ring_outside_its_memory_is_refused() {
        for (bytes, at) in [
            (192 + 31, AT),
            (4096, libc::xdp_ring_offset { producer: 4093, ..AT }),
            (4096, libc::xdp_ring_offset { consumer: 2, ..AT }),
            (4096, libc::xdp_ring_offset { flags: u64::MAX, ..AT }),
            (4096, libc::xdp_ring_offset { desc: 196, ..AT }),
        ] {
            assert!(Ring::<u64>::new(memory(bytes), &at, SIZE).is_err());
        }
    }
}
