//! The allocator under a program of its own: blocks that grow and shrink over its limits, and the kernel's view.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::ops::Range;

use plimsoll_memory::LargePages;
use plimsoll_testing::skipped;
use proptest::prelude::*;

#[global_allocator]
static ALLOCATOR: LargePages = LargePages;

const MIB: usize = 1 << 20;

/// Returns the byte at a place of a test's block.
fn byte(place: usize) -> u8 {
    (place % 251) as u8
}

/// The places that are examined, in a range: one in each page of 4 KiB.
fn places(range: Range<usize>) -> impl Iterator<Item = usize> {
    (range.start.next_multiple_of(4096)..range.end).step_by(4096)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A block keeps its content, whichever kind it is before and after.
    #[test]
    fn a_block_keeps_its_bytes(sizes in prop::collection::vec(1..9 * MIB, 1..6)) {
        let mut block: Vec<u8> = Vec::new();
        for size in sizes {
            block.truncate(size);
            block.shrink_to_fit();
            block.reserve_exact(size - block.len());
            let kept = block.len();
            block.resize(size, 0);
            places(kept..size).for_each(|place| block[place] = byte(place));
            prop_assert_eq!(block.capacity(), size);
            prop_assert!(places(0..size).all(|place| block[place] == byte(place)));
        }
    }
}

#[test]
fn a_zeroed_block_is_zero_where_another_was() {
    for bytes in [MIB - 1, MIB, 7 * MIB] {
        drop(vec![1_u8; bytes]);
        assert!(vec![0_u8; bytes].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn an_alignment_above_a_page_is_kept() {
    #[repr(align(4_194_304))]
    struct Wide {
        _byte: u8,
    }
    let wide: Vec<Wide> = Vec::with_capacity(3);
    assert_eq!(wide.as_ptr().addr() % (4 * MIB), 0);
}

#[test]
fn a_size_that_no_memory_has_is_refused() {
    let mut block: Vec<u8> = vec![1; 2 * MIB];
    assert!(block.try_reserve_exact(isize::MAX as usize - 2 * MIB).is_err());
    assert_eq!(block, [1; 2 * MIB]);
}

#[test]
fn a_large_block_is_in_large_pages_when_it_has_grown_too() {
    const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    if fs::read_to_string(ENABLED).map_or(true, |enabled| enabled.contains("[never]")) {
        skipped!("{ENABLED} says that the kernel gives no large pages");
        return;
    }
    let mut block: Vec<u8> = Vec::new();
    for size in [8 * MIB, 64 * MIB] {
        let before = block.len();
        block.reserve_exact(size - block.len());
        block.resize(size, 1);
        let large = large_kib_at(block.as_ptr().addr());
        // The number of large pages that the kernel finds depends on the load of the machine.
        assert!(
            large > before / 1024,
            "{large} KiB are in large pages, of {size} bytes, {before} of them old"
        );
    }
}

/// Returns the part of the mapping with an address that is in large pages, in KiB.
fn large_kib_at(address: usize) -> usize {
    let maps = fs::read_to_string("/proc/self/smaps").unwrap();
    let mut is_here = false;
    for line in maps.lines() {
        let first = line.split_whitespace().next().unwrap();
        if let Some((begins, ends)) = first.split_once('-') {
            let at = |text| usize::from_str_radix(text, 16).unwrap_or_default();
            is_here = (at(begins)..at(ends)).contains(&address);
        } else if is_here && first == "AnonHugePages:" {
            return line.split_whitespace().nth(1).unwrap().parse().unwrap();
        }
    }
    0
}
