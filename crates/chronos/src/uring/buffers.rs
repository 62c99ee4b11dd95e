//! [`BufferRing`]: buffers of which the kernel chooses one when bytes arrive (io_uring's provided buffers).

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

/// The buffers of one thread, all of one size.
pub(crate) struct BufferRing {
    /// A page-aligned array of [`COUNT`] entries that the kernel reads.
    entries: NonNull<BufRingEntry>,
    /// The memory into which the kernel writes received bytes: [`COUNT`] buffers of [`SIZE`] bytes. The kernel has its
    /// address, so it is reached through this pointer only.
    bytes: NonNull<u8>,
    tail: u16,
}

/// Buffers; a power of two.
const COUNT: u16 = 256;
/// The size of each buffer in bytes.
const SIZE: usize = 4096;
/// The group's name to the kernel.
pub(crate) const GROUP: u16 = 0;

const fn entries_layout() -> Layout {
    match Layout::from_size_align(COUNT as usize * size_of::<BufRingEntry>(), 4096) {
        Ok(layout) => layout,
        Err(_) => panic!("a page is a power of two"),
    }
}

const fn bytes_layout() -> Layout {
    match Layout::from_size_align(COUNT as usize * SIZE, 4096) {
        Ok(layout) => layout,
        Err(_) => panic!("a page is a power of two"),
    }
}

impl BufferRing {
    /// Gives the kernel the buffers. They are to be dropped after all operations of the ring that use them have ended.
    #[expect(unsafe_code, reason = "the kernel shares this memory")]
    pub(crate) fn register(ring: &IoUring) -> io::Result<BufferRing> {
        // SAFETY: neither layout is of size zero.
        let (entries, bytes) = unsafe { (alloc_zeroed(entries_layout()), alloc_zeroed(bytes_layout())) };
        let entries = NonNull::new(entries.cast()).unwrap_or_else(|| handle_alloc_error(entries_layout()));
        let bytes = NonNull::new(bytes).unwrap_or_else(|| handle_alloc_error(bytes_layout()));
        let mut buffers = BufferRing { entries, bytes, tail: 0 };
        // SAFETY: the entries are page-aligned, COUNT of them, zeroed, and live until `buffers` is dropped, which the
        // driver does after the ring.
        unsafe { ring.submitter().register_buf_ring_with_flags(entries.as_ptr() as u64, COUNT, GROUP, 0)? };
        (0..COUNT).for_each(|number| buffers.give(number));
        Ok(buffers)
    }

    /// Returns the bytes that the kernel put into a buffer.
    #[expect(unsafe_code, reason = "the kernel shares this memory")]
    pub(crate) fn get(&self, number: u16, length: usize) -> &[u8] {
        assert!(number < COUNT && length <= SIZE, "the kernel names a buffer of ours");
        // SAFETY: the range lies in `bytes` by the assertion. The kernel wrote it before it named the buffer, and
        // writes to it again only after `give`, which takes `self` exclusively.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().add(usize::from(number) * SIZE), length) }
    }

    /// Gives a buffer back to the kernel.
    #[expect(unsafe_code, reason = "the kernel shares this memory")]
    pub(crate) fn give(&mut self, number: u16) {
        assert!(number < COUNT, "it is a buffer of ours");
        // SAFETY: the index is below COUNT, so the entry lies in the array; the kernel does not read an entry beyond
        // the tail, which is moved after the entry is written. The first entry's unused field is the tail, as the
        // kernel defines it, and is only ever written atomically here: `set_*` write the other fields.
        unsafe {
            let entry = self.entries.as_ptr().add(usize::from(self.tail & (COUNT - 1)));
            (*entry).set_addr(self.bytes.as_ptr().add(usize::from(number) * SIZE) as u64);
            (*entry).set_len(SIZE as u32);
            (*entry).set_bid(number);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(self.entries.as_ptr()).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for BufferRing {
    #[expect(unsafe_code, reason = "the kernel shares this memory")]
    fn drop(&mut self) {
        // SAFETY: both were allocated with these layouts; the driver drops the buffers only after the kernel has let
        // go of them.
        unsafe {
            dealloc(self.entries.as_ptr().cast(), entries_layout());
            dealloc(self.bytes.as_ptr(), bytes_layout());
        }
    }
}
