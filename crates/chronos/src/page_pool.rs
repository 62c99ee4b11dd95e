//! [`PagePool`]: memory in pages of one size, cut from regions that the kernel is asked to map by huge pages.
//!
//! An address that the processor's TLB does not hold costs a walk through the page tables, in a virtual machine through
//! two. With pages of 2 MiB the TLB covers gigabytes, with pages of 4 KiB some megabytes.

use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a huge page.
const HUGE_BYTES: usize = 2 << 20;
/// Bytes of addresses that are reserved at once; untouched pages take no memory.
const REGION_BYTES: usize = 16 * HUGE_BYTES;

/// The source of a service's pages, for all its partitions.
#[derive(Debug)]
pub struct PagePool {
    page_bytes: usize,
    ground: Mutex<Ground>,
}

#[derive(Debug, Default)]
struct Ground {
    regions: Vec<Region>,
    /// Bytes of the last region that are handed out.
    used: usize,
    /// Pages that were given back.
    free: Vec<Start>,
}

/// The start of a free page.
#[derive(Debug)]
struct Start(NonNull<u8>);

/// [`REGION_BYTES`] of zeroed memory from a multiple of [`HUGE_BYTES`] on, and the mapping that contains it.
#[derive(Debug)]
struct Region {
    mapped: NonNull<u8>,
    start: NonNull<u8>,
}

/// One page, which returns to its pool when it is dropped. The default is an empty one of no pool.
#[derive(Debug)]
pub struct Page {
    start: NonNull<u8>,
    bytes: usize,
    pool: Option<Arc<PagePool>>,
}

/// Bytes mapped for a region: it begins at a multiple of a huge page.
const MAPPED_BYTES: usize = REGION_BYTES + HUGE_BYTES;

impl PagePool {
    /// Creates a pool of pages of `page_bytes`: a power of two from 4096 to 2 MiB.
    ///
    /// # Panics
    ///
    /// If `page_bytes` is another size.
    pub fn new(page_bytes: usize) -> Arc<PagePool> {
        assert!(
            page_bytes.is_power_of_two() && (4096..=HUGE_BYTES).contains(&page_bytes),
            "a page of {page_bytes} bytes is not allowed; a power of two from 4096 to {HUGE_BYTES} is"
        );
        Arc::new(PagePool { page_bytes, ground: Mutex::default() })
    }

    /// Returns a page: zeros, or the contents of one that was dropped. Ends the process if the kernel has no memory, as
    /// every allocation does.
    pub fn take(self: &Arc<PagePool>) -> Page {
        let mut ground = self.ground.lock().unwrap_or_else(PoisonError::into_inner);
        let start = match ground.free.pop() {
            Some(Start(start)) => start,
            None => ground.fresh(self.page_bytes),
        };
        Page { start, bytes: self.page_bytes, pool: Some(self.clone()) }
    }
}

impl Ground {
    #[expect(unsafe_code, reason = "a place within a mapping")]
    fn fresh(&mut self, page_bytes: usize) -> NonNull<u8> {
        if self.regions.is_empty() || self.used == REGION_BYTES {
            let layout = std::alloc::Layout::new::<[u8; REGION_BYTES]>();
            let region = Region::map().unwrap_or_else(|_| std::alloc::handle_alloc_error(layout));
            self.regions.push(region);
            self.used = 0;
        }
        let region = &self.regions[self.regions.len() - 1];
        // SAFETY: `used` is below REGION_BYTES, and the region has as many bytes from its start.
        let page = unsafe { region.start.add(self.used) };
        self.used += page_bytes;
        page
    }
}

impl Region {
    #[expect(unsafe_code, reason = "no safe crate of this workspace maps memory")]
    fn map() -> io::Result<Region> {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new private mapping at an address of the kernel's choice touches nothing that exists.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), MAPPED_BYTES, access, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapped = NonNull::new(mapped.cast::<u8>()).ok_or_else(|| io::Error::other("mapped at 0"))?;
        // SAFETY: the multiple lies less than HUGE_BYTES behind `mapped`, so that REGION_BYTES follow it.
        let start = unsafe { mapped.add(mapped.as_ptr().align_offset(HUGE_BYTES)) };
        // SAFETY: the range lies within the mapping, and the advice changes no contents. Without huge pages (an
        // error) everything is the same but slower.
        unsafe { libc::madvise(start.as_ptr().cast(), REGION_BYTES, libc::MADV_HUGEPAGE) };
        Ok(Region { mapped, start })
    }
}

impl Drop for Region {
    #[expect(unsafe_code, reason = "no safe crate of this workspace maps memory")]
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and every page holds its pool, so none is left.
        unsafe { libc::munmap(self.mapped.as_ptr().cast(), MAPPED_BYTES) };
    }
}

#[expect(unsafe_code, reason = "memory that nobody else has may go to another thread")]
// SAFETY: a region is plain memory, which belongs to no thread.
unsafe impl Send for Region {}

#[expect(unsafe_code, reason = "memory that nobody else has may go to another thread")]
// SAFETY: the page has no owner; it is plain memory.
unsafe impl Send for Start {}

#[expect(unsafe_code, reason = "a page is its owner's alone, as a Box is")]
// SAFETY: `start` is the only way to its bytes, like a Box<[u8]>'s pointer; the pool is shared under a lock.
unsafe impl Send for Page {}

#[expect(unsafe_code, reason = "a page is its owner's alone, as a Box is")]
// SAFETY: a shared reference only reads.
unsafe impl Sync for Page {}

impl Page {
    /// Drops the page, and gives its memory back to the kernel: its contents are zeros afterwards.
    #[expect(unsafe_code, reason = "no safe crate of this workspace gives memory back")]
    pub fn release(self) {
        if self.pool.is_some() {
            // SAFETY: the range is this page's, whole 4 KiB pages of a private mapping, which read as zeros afterwards.
            // If the kernel keeps it (locked memory, say) it stays as it is, which a later owner may see as well.
            unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes, libc::MADV_DONTNEED) };
        }
    }
}

impl Default for Page {
    fn default() -> Page {
        Page { start: NonNull::dangling(), bytes: 0, pool: None }
    }
}

impl Deref for Page {
    type Target = [u8];

    #[inline]
    #[expect(unsafe_code, reason = "a page is a pointer and a length")]
    fn deref(&self) -> &[u8] {
        // SAFETY: `bytes` bytes from `start` on are mapped for as long as the pool is held, zeroed or written by the
        // owner, and belong to this page alone; with 0 bytes any aligned pointer does.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Page {
    #[inline]
    #[expect(unsafe_code, reason = "a page is a pointer and a length")]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let Some(pool) = self.pool.take() else { return };
        pool.ground.lock().unwrap_or_else(PoisonError::into_inner).free.push(Start(self.start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_lie_apart_and_are_used_again() {
        const PAGE_BYTES: usize = 64 << 10;
        let pool = PagePool::new(PAGE_BYTES);
        // One region and a bit.
        let mut pages: Vec<Page> = (0..REGION_BYTES / PAGE_BYTES + 3).map(|_| pool.take()).collect();
        for (number, page) in pages.iter_mut().enumerate() {
            assert!(page.len() == PAGE_BYTES && page[0] == 0 && page[PAGE_BYTES - 1] == 0);
            page.fill(number as u8);
        }
        let is_whole = |(number, page): (usize, &Page)| page.iter().all(|&byte| byte == number as u8);
        assert!(pages.iter().enumerate().all(is_whole));
        assert_eq!(pages[0].as_ptr() as usize % HUGE_BYTES, 0);
        let places: Vec<usize> = pages.iter().map(|page| page.as_ptr() as usize).collect();
        pages.drain(1..4).for_each(Page::release);
        for _ in 0..3 {
            let page = pool.take();
            assert!(places[1..4].contains(&(page.as_ptr() as usize)) && page.iter().all(|&byte| byte == 0));
            pages.push(page);
        }
        assert_eq!(pool.ground.lock().expect("no panic").regions.len(), 2);
        assert!(Page::default().is_empty());
    }
}
