//! Prefetches memory that will be used soon. It affects nothing but time.
//!
//! Data that is in no cache takes as long as hundreds of instructions. A load waits for it sooner or later, and with it
//! every instruction behind; a prefetch does not wait. The processor's hint takes a pointer, so it is here and not
//! where it is used: the simulator and the servers need no `unsafe` of their own for it.

/// Prefetches all cache lines of `value` into the cache that is nearest to the processor: for data that is used next.
#[inline(always)] // a call would take longer than what it asks for
pub fn prefetch<T: ?Sized>(value: &T) {
    each_line(value, prefetch_line);
}

/// Prefetches all cache lines of `value` into the cache behind the nearest one: for data that is used after hundreds of
/// other lines, which would evict it from the nearest cache.
#[inline(always)] // as above
pub fn prefetch_for_later<T: ?Sized>(value: &T) {
    each_line(value, prefetch_line_for_later);
}

#[inline(always)] // as above
fn each_line<T: ?Sized>(value: &T, prefetch_line: impl Fn(*const u8)) {
    let begins: *const T = value;
    let begins: *const u8 = begins.cast();
    let mut line = 0;
    while line < size_of_val(value) {
        prefetch_line(begins.wrapping_add(line));
        line += LINE_BYTES;
    }
}

/// The bytes that one hint asks for, a cache line.
const LINE_BYTES: usize = 64;

#[cfg(target_arch = "x86_64")]
#[inline(always)] // one instruction
#[expect(unsafe_code, reason = "the processor's hint takes a pointer")]
fn prefetch_line(line: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction reads nothing that the program sees, and faults at no address; SSE is in every x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)] // one instruction
#[expect(unsafe_code, reason = "the processor's hint takes a pointer")]
fn prefetch_line_for_later(line: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
    // SAFETY: as above.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(line.cast()) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)] // nothing
fn prefetch_line(_line: *const u8) {
    // Stable Rust has no such hint here.
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)] // nothing
fn prefetch_line_for_later(_line: *const u8) {
    // Stable Rust has no such hint here.
}
