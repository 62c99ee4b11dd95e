//! Blocks that are mappings of their own: whole large pages, if the kernel has any. Each begins at one, except where
//! addresses are limited: callers can rely on [`SMALL_PAGE`] only.

use std::ffi::c_void;
use std::ptr::null_mut;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags};
use rustix::mm::{madvise, mmap_anonymous, mremap, mremap_fixed, munmap};

/// The bytes of a large page on x86-64, and on other processors with pages of 4 KiB.
pub(super) const LARGE_PAGE: usize = 2 << 20;

/// The bytes to a multiple of which every block begins.
pub(super) const SMALL_PAGE: usize = 4096;

/// Returns the bytes of the large pages that a block of `bytes` takes.
fn pages(bytes: usize) -> usize {
    bytes.next_multiple_of(LARGE_PAGE)
}

/// Returns a new block of `bytes`, all zero; null without memory.
#[cold]
pub(super) fn new(bytes: usize) -> *mut u8 {
    let block = reserve(pages(bytes), ProtFlags::READ | ProtFlags::WRITE);
    ask_for_large(block, pages(bytes));
    block
}

/// Gives the pages of a block of `bytes` back to the kernel.
///
/// # Safety
/// `block` is a mapping of that size that is not used any more.
#[cold]
#[expect(unsafe_code, reason = "the kernel takes an address")]
pub(super) unsafe fn free(block: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise. If the kernel can't split its table of mappings, the block is lost.
    let _ = unsafe { munmap(block.cast(), pages(bytes)) };
}

/// Returns a block of `bytes` with the content of `block`, which has `old` bytes; null without memory, and then `block`
/// is unchanged. Pages move, and no byte is copied.
///
/// # Safety
/// `block` is a mapping of `old` bytes; unless null is returned, it is not used any more.
#[cold]
#[expect(unsafe_code, reason = "the kernel takes addresses")]
pub(super) unsafe fn resize(block: *mut u8, old: usize, bytes: usize) -> *mut u8 {
    let (old, bytes) = (pages(old), pages(bytes));
    if bytes <= old {
        // SAFETY: these pages are behind all that the block keeps.
        let _ = unsafe { munmap(block.wrapping_add(bytes).cast(), old - bytes) };
        return block;
    }
    // SAFETY: `block` is a mapping of `old` bytes, and the caller continues with the result.
    let moved = unsafe { move_to_large_page(block, old, bytes) };
    // Where addresses are limited, a second block may not fit although this one can grow. SAFETY: as above; the kernel
    // chooses the place.
    let moved = moved.or_else(|_| unsafe { mremap(block.cast(), old, bytes, MremapFlags::MAYMOVE) });
    let moved: *mut u8 = moved.map_or(null_mut(), |place| place.cast());
    ask_for_large(moved, bytes);
    moved
}

/// Moves the pages of a block to the beginning of a large page.
///
/// # Safety
/// The conditions of [`resize`]; `bytes` is more than `old`.
#[expect(unsafe_code, reason = "the kernel takes addresses")]
unsafe fn move_to_large_page(block: *mut u8, old: usize, bytes: usize) -> rustix::io::Result<*mut c_void> {
    // Nothing can be read there, so that it does not count as memory beside the old block.
    let place = reserve(bytes, ProtFlags::empty());
    if place.is_null() {
        return Err(Errno::NOMEM);
    }
    // If this fails, the kernel may have unmapped the place and given it to another thread: it is left alone. SAFETY:
    // `block` is a mapping of `old` bytes, `place` one of `bytes` that is not used; it is replaced as a whole.
    unsafe { mremap_fixed(block.cast(), old, bytes, MremapFlags::MAYMOVE, place.cast()) }
}

/// Maps `bytes`, a number of large pages, from the beginning of a large page on; null without room.
#[expect(unsafe_code, reason = "the kernel takes and returns addresses")]
fn reserve(bytes: usize, access: ProtFlags) -> *mut u8 {
    let Some(room) = bytes.checked_add(LARGE_PAGE) else { return null_mut() };
    // SAFETY: a new mapping, at an address of the kernel's choice.
    let Ok(begins) = (unsafe { mmap_anonymous(null_mut(), room, access, MapFlags::PRIVATE) }) else {
        return null_mut();
    };
    let begins: *mut u8 = begins.cast();
    let before = begins.addr().next_multiple_of(LARGE_PAGE) - begins.addr();
    let block = begins.wrapping_add(before);
    for (place, unused) in [(begins, before), (block.wrapping_add(bytes), LARGE_PAGE - before)] {
        if unused > 0 {
            // SAFETY: these pages belong to the new mapping, and no other code has their address.
            let _ = unsafe { munmap(place.cast(), unused) };
        }
    }
    block
}

/// Asks for large pages, which a kernel need not have.
#[expect(unsafe_code, reason = "the kernel takes an address")]
fn ask_for_large(block: *mut u8, bytes: usize) {
    if !block.is_null() {
        // SAFETY: the mapping is the block's; the advice does not change its content.
        let _ = unsafe { madvise(block.cast(), bytes, Advice::LinuxHugepage) };
    }
}
