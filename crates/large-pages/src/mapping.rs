//! Blocks that are mappings of their own: whole large pages, if the kernel has such.

use std::ptr::null_mut;

use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags};
use rustix::mm::{madvise, mmap_anonymous, mremap_fixed, munmap};

/// The bytes of a large page on x86-64, and on other processors with pages of 4 KiB.
pub(crate) const LARGE_PAGE: usize = 2 << 20;

/// Returns the bytes of the large pages that a block of `bytes` takes.
fn pages(bytes: usize) -> usize {
    bytes.next_multiple_of(LARGE_PAGE)
}

/// Returns a new block of `bytes`, all zero; null if there is no memory.
#[cold]
pub(crate) fn new(bytes: usize) -> *mut u8 {
    let block = reserve(pages(bytes));
    ask_for_large(block, pages(bytes));
    block
}

/// Frees a block of `bytes`.
///
/// # Safety
/// `block` is a mapping of that size that nobody uses any more.
#[cold]
#[expect(unsafe_code, reason = "the kernel takes an address")]
pub(crate) unsafe fn free(block: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise. If the kernel can't split its table of mappings, the block is lost.
    let _ = unsafe { munmap(block.cast(), pages(bytes)) };
}

/// Returns a block of `bytes` with the content of `block`, which has `old` bytes; null if there is no memory, and
/// then `block` is as before. Pages move, not what is in them.
///
/// # Safety
/// `block` is a mapping of `old` bytes; unless null is returned, nobody uses it any more.
#[cold]
#[expect(unsafe_code, reason = "the kernel takes addresses")]
pub(crate) unsafe fn resize(block: *mut u8, old: usize, bytes: usize) -> *mut u8 {
    let (old, bytes) = (pages(old), pages(bytes));
    if bytes <= old {
        // SAFETY: these pages are behind all that the block keeps.
        let _ = unsafe { munmap(block.wrapping_add(bytes).cast(), old - bytes) };
        return block;
    }
    let place = reserve(bytes);
    if place.is_null() {
        return place;
    }
    // SAFETY: `block` is a mapping of `old` bytes, `place` one of `bytes` that nobody uses; it is replaced as a whole.
    match unsafe { mremap_fixed(block.cast(), old, bytes, MremapFlags::MAYMOVE, place.cast()) } {
        Ok(_) => {
            ask_for_large(place, bytes);
            place
        }
        Err(_) => {
            // SAFETY: the mapping is as `reserve` returned it.
            let _ = unsafe { munmap(place.cast(), bytes) };
            null_mut()
        }
    }
}

/// Maps `bytes`, a number of large pages, from the beginning of a large page on; null if there is no memory.
#[expect(unsafe_code, reason = "the kernel takes and returns addresses")]
fn reserve(bytes: usize) -> *mut u8 {
    let Some(room) = bytes.checked_add(LARGE_PAGE) else { return null_mut() };
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping, at an address of the kernel's choice.
    let Ok(begins) = (unsafe { mmap_anonymous(null_mut(), room, access, flags) }) else {
        return null_mut();
    };
    let begins: *mut u8 = begins.cast();
    let before = begins.addr().next_multiple_of(LARGE_PAGE) - begins.addr();
    let block = begins.wrapping_add(before);
    for (place, unused) in [(begins, before), (block.wrapping_add(bytes), LARGE_PAGE - before)] {
        if unused > 0 {
            // SAFETY: these pages belong to the new mapping, and nobody knows of them.
            let _ = unsafe { munmap(place.cast(), unused) };
        }
    }
    block
}

/// Asks for large pages, which a kernel need not have.
#[expect(unsafe_code, reason = "the kernel takes an address")]
fn ask_for_large(block: *mut u8, bytes: usize) {
    if !block.is_null() {
        // SAFETY: the mapping is the block's; the advice changes nothing that is in it.
        let _ = unsafe { madvise(block.cast(), bytes, Advice::LinuxHugepage) };
    }
}
