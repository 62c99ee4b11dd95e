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
    // CAP_SYS_ADMIN includes the two that were split from it (Linux 5.8).
    let needed = [("CAP_BPF", 39, true), ("CAP_PERFMON", 38, true), ("CAP_SYS_PTRACE", 19, false)];
    let lacks = |&(_, bit, in_admin): &(&str, u32, bool)| !(has(bit) || in_admin && has(SYS_ADMIN));
    needed.iter().filter(|one| lacks(one)).map(|(name, ..)| *name).collect()
}

const SYS_ADMIN: u32 = 21;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_capabilities_are_named() {
        assert_eq!(missing(0), ["CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE"]);
        assert_eq!(missing(1 << 39 | 1 << 38), ["CAP_SYS_PTRACE"]);
        assert!(missing(1 << SYS_ADMIN | 1 << 19).is_empty());
        assert_eq!(effective("Name:\tx\nCapEff:\t000001ffffffffff\n"), 0x1ff_ffff_ffff);
    }
}
