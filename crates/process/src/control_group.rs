//! The memory limit of the control groups that this process is in.

use std::fs;
use std::path::Path;

/// Returns the bytes of memory that the control groups of this process allow: the lowest limit of its groups and their
/// ancestors, of either version. None without a limit.
pub fn control_group_memory() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    limit_of_groups(Path::new("/sys/fs/cgroup"), &groups).filter(|&limit| limit < UNLIMITED)
}

/// Version 1 shows a group without a limit as one of almost 2^63 bytes.
const UNLIMITED: u64 = 1 << 62;

/// Returns the lowest limit of the control groups in `groups`, which has the form of /proc/self/cgroup, and of their
/// ancestors.
fn limit_of_groups(root: &Path, groups: &str) -> Option<u64> {
    let mut lowest = None;
    for group in groups.lines() {
        let mut parts = group.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let (root, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let own = root.join(path.trim_start_matches('/'));
        for folder in own.ancestors().take_while(|folder| folder.starts_with(&root)) {
            let limit = fs::read_to_string(folder.join(file)).ok().and_then(|text| text.trim().parse().ok());
            lowest = lowest.into_iter().chain(limit).min();
        }
    }
    lowest
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_limit_of_all_groups_counts() {
        let place = tempfile::tempdir().unwrap();
        let below = place.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        fs::write(place.path().join("a/memory.max"), "5000\n").unwrap();
        fs::write(below.join("memory.max"), "max\n").unwrap();
        assert_eq!(limit_of_groups(place.path(), "0::/a/b\n"), Some(5_000));
        fs::write(below.join("memory.max"), "4000\n").unwrap();
        assert_eq!(limit_of_groups(place.path(), "1:cpu:/\n0::/a/b\n"), Some(4_000));
        assert_eq!(limit_of_groups(place.path(), "0::/\n"), None);
        let old = place.path().join("memory/x");
        fs::create_dir_all(&old).unwrap();
        fs::write(old.join("memory.limit_in_bytes"), "3000\n").unwrap();
        assert_eq!(limit_of_groups(place.path(), "3:cpu,memory:/x\n0::/a/b\n"), Some(3_000));
    }
}
