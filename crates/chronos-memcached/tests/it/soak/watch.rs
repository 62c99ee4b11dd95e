//! The server seen from outside: its memory, its descriptors, and its own counts.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use crate::soak::client::Place;

/// The longest wait for an event that must occur.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the resident memory of a process, in KiB.
pub fn resident(process: u32) -> u64 {
    let path = format!("/proc/{process}/status");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a running process");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Returns the number of open descriptors of a process.
pub fn descriptors(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).expect("a running process").count()
}

/// Waits until a process has no more than `count` descriptors open, and returns their number.
pub fn settled_descriptors(process: u32, count: usize) -> usize {
    let begin = Instant::now();
    while descriptors(process) > count && begin.elapsed() < PATIENCE {
        std::thread::yield_now();
    }
    descriptors(process)
}

/// Returns a counter of `stats`.
pub fn stat(place: &Place, name: &str) -> u64 {
    let mut socket = place.connect();
    socket.write_all(b"stats\r\nquit\r\n").expect("it takes requests");
    let mut text = String::new();
    socket.read_to_string(&mut text).expect("it answers");
    let line =
        text.lines().find_map(|line| line.strip_prefix("STAT ")?.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().expect("a number")
}

/// Returns the median of some numbers.
pub fn median(numbers: &[u64]) -> u64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}
