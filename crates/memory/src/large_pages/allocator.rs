//! The allocator: which blocks are mappings of their own, and which come from the system's allocator.

use std::alloc::{GlobalAlloc, Layout, System};

use super::mapping::{self, LARGE_PAGE, SMALL_PAGE};
use super::refusal::or_tell;

/// The system's allocator for blocks below 1 MiB; larger ones are in large pages if the kernel has any.
#[derive(Debug)]
pub struct LargePages;

/// The size from which on a block has large pages: it may take twice its memory, if it uses all of it.
const LARGE_BLOCK: usize = LARGE_PAGE / 2;

fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE_BLOCK && layout.align() <= SMALL_PAGE
}

#[expect(unsafe_code, reason = "an allocator is unsafe to implement and to call")]
// SAFETY: both kinds of block have the layout's size and alignment and overlap no other; which kind a block is, and so
// who frees it, follows from its layout.
unsafe impl GlobalAlloc for LargePages {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return or_tell(mapping::new(layout.size()), layout.size());
        }
        // SAFETY: the caller's promises are the same.
        or_tell(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return or_tell(mapping::new(layout.size()), layout.size());
        }
        // SAFETY: the caller's promises are the same.
        or_tell(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_large(layout) {
            // SAFETY: with this layout `block` is a mapping, and the caller is done with it.
            return unsafe { mapping::free(block, layout.size()) };
        }
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises a size that, rounded up to the alignment, an `isize` holds.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let moved = match (is_large(layout), is_large(wanted)) {
            // SAFETY: the caller's promises are the same.
            (false, false) => unsafe { System.realloc(block, layout, size) },
            // SAFETY: with this layout `block` is a mapping, and the caller continues with the result.
            (true, true) => unsafe { mapping::resize(block, layout.size(), size) },
            // SAFETY: the caller's promises are the same.
            _ => unsafe { self.replace(block, layout, wanted) },
        };
        or_tell(moved, size)
    }
}

impl LargePages {
    /// Copies a block into one of the other kind, and frees it.
    ///
    /// # Safety
    /// The conditions of [`GlobalAlloc::realloc`].
    #[cold]
    #[expect(unsafe_code, reason = "an allocator is unsafe to call")]
    unsafe fn replace(&self, block: *mut u8, layout: Layout, wanted: Layout) -> *mut u8 {
        let other = match is_large(wanted) {
            true => mapping::new(wanted.size()),
            // SAFETY: the caller promises that the size is not zero.
            false => unsafe { System.alloc(wanted) },
        };
        if !other.is_null() {
            // SAFETY: both blocks have the copied bytes; the new one overlaps no other; the caller has finished
            // with the old.
            unsafe {
                std::ptr::copy_nonoverlapping(block, other, layout.size().min(wanted.size()));
                self.dealloc(block, layout);
            }
        }
        other
    }
}
