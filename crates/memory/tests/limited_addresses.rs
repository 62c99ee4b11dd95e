//! A block grows where the process may not have as many addresses as a second one would take (`ulimit -v`). A program
//! of its own, as the limit holds for all of it.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;

use plimsoll_memory::LargePages;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[global_allocator]
static ALLOCATOR: LargePages = LargePages;

const MIB: usize = 1 << 20;

#[test]
fn a_block_grows_without_room_for_a_second_one() {
    let mut block = vec![7_u8; 256 * MIB];
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    let mapped = pages.split(' ').next().unwrap().parse::<usize>().unwrap() * 4096;
    let Rlimit { maximum, .. } = getrlimit(Resource::As);
    setrlimit(Resource::As, Rlimit { current: Some((mapped + 128 * MIB) as u64), maximum }).unwrap();

    assert!(block.try_reserve_exact(256 * MIB).is_err(), "the limit holds");
    block.try_reserve_exact(64 * MIB).unwrap();
    block.resize(320 * MIB, 8);
    assert!(block[..256 * MIB].iter().step_by(4096).all(|byte| *byte == 7));
    assert!(block[256 * MIB..].iter().step_by(4096).all(|byte| *byte == 8));
}
