//! [`check`] names the capabilities that tracing needs and this process lacks.

use std::fs;

use crate::Error;

/// Checks that this process has the capabilities that tracing needs.
///
/// # Errors
/// Returns [`Error::Privileges`] with the missing ones.
pub fn check() -> Result<(), Error> {
    let status = fs::read_to_string("/proc/self/status").map_err(Error::reading("/proc/self/status"))?;
    let missing = missing(effective(&status));
    if missing.is_empty() { Ok(()) } else { Err(Error::Privileges { missing: missing.join(", ") }) }
}

/// Returns the effective capabilities, a bit each (capabilities(7)).
fn effective(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn missing(effective: u64) -> Vec<&'static str> {
    let has = |bit: u32| effective >> bit & 1 == 1;
    let lacks = |(_, bit, or): &&(&str, u32, u32)| !(has(*bit) || has(*or));
    NEEDED.iter().filter(lacks).map(|(name, ..)| *name).collect()
}

/// The capabilities with their bits, and the bits of others that include them: CAP_SYS_ADMIN includes the ones split
/// from it (Linux 5.8). The last two are for the descriptors of other users' processes, where sockets are found.
const NEEDED: [(&str, u32, u32); 4] =
    [("CAP_BPF", 39, 21), ("CAP_PERFMON", 38, 21), ("CAP_SYS_PTRACE", 19, 19), ("CAP_DAC_READ_SEARCH", 2, 1)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_capabilities_are_named() {
        assert_eq!(missing(0), ["CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"]);
        assert_eq!(missing(1 << 39 | 1 << 38 | 1 << 2), ["CAP_SYS_PTRACE"]);
        // CAP_SYS_ADMIN and CAP_DAC_OVERRIDE.
        assert!(missing(1 << 21 | 1 << 19 | 1 << 1).is_empty());
        assert_eq!(effective("Name:\tx\nCapEff:\t000001ffffffffff\n"), 0x1ff_ffff_ffff);
    }
}
