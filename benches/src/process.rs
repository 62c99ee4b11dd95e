//! The cost of this process so far, as the kernel counts it.

use std::fs;

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

/// Returns the seconds of CPU time, to the nanosecond; `/proc/self/stat` counts hundredths.
pub fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Returns the largest number of bytes that were resident at a time.
pub fn peak_bytes() -> Result<u64> {
    let text = fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().context("VmHWM")?;
    Ok(kibibytes * 1024)
}
