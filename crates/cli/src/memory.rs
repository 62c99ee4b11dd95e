//! `--memory-max`: no command takes the machine down with it.
//!
//! What a scenario says of its needs is compared with the limit before the first run (`sim/estimate.rs`). What it does
//! not say is watched: a thread of its own reads now and then how much memory this process has. Beyond the limit the
//! runs under way are cancelled, as by Ctrl-C, and what is finished stays. Where nothing asks whether to go on, as when
//! a scenario is read or results are summed up, or memory grows further all the same, the process ends at once, which
//! loses nothing that was kept.

use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use plimsoll_sim::estimate::about;
use plimsoll_stdio::note;
use plimsoll_units::Bytes;

use crate::output;

/// How much memory a command may take.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Budget {
    /// Most memory that this process may take, all runs together; half of what is free by default. A scenario that
    /// needs more is refused before it runs, or stopped with what is finished kept.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory_max: Option<Bytes>,
}

/// At least this much: what the program needs by itself.
const LEAST: Bytes = Bytes::new(64_000_000);

/// Where little is free now, small scenarios still run.
const DEFAULT_LEAST: u64 = 256_000_000;

fn size(text: &str) -> Result<Bytes, String> {
    let size = Bytes::from_str(text).map_err(|error| error.to_string())?;
    if size < LEAST { Err(format!("at least {LEAST}")) } else { Ok(size) }
}

impl Budget {
    /// Watches the memory of this process from now on.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn watch(self) -> anyhow::Result<Memory> {
        watch(self.memory_max.map_or_else(default_limit, Bytes::get))
    }
}

/// Watches the memory of a command that has no flag for it.
///
/// # Errors
/// If the system refuses a thread.
pub fn watch_by_default() -> anyhow::Result<Memory> {
    watch(default_limit())
}

/// The limit, which is watched.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    limit: u64,
}

/// One process, one memory.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);
static EXCEEDED: AtomicBool = AtomicBool::new(false);
/// Something asks from time to time whether to go on.
static IS_ASKED: AtomicBool = AtomicBool::new(false);

fn watch(limit: u64) -> anyhow::Result<Memory> {
    LIMIT.store(limit, Ordering::Relaxed);
    if taken().is_some() {
        let watched = thread::Builder::new().name("memory".to_owned()).spawn(watch_until_the_end);
        watched.context("cannot start a thread")?;
    }
    Ok(Memory { limit })
}

fn watch_until_the_end() {
    loop {
        thread::sleep(PAUSE);
        let (Some(taken), limit) = (taken(), LIMIT.load(Ordering::Relaxed)) else { return };
        if taken <= limit {
            continue;
        }
        EXCEEDED.store(true, Ordering::Relaxed);
        if !IS_ASKED.load(Ordering::Relaxed) || taken > limit.saturating_add(limit / 4) {
            note!(
                "error: {}. Finished points are kept, and the same command goes on from there",
                beyond(limit, taken)
            );
            std::process::exit(output::ERROR.into());
        }
    }
}

/// Memory grows by some ten megabytes meanwhile.
const PAUSE: Duration = Duration::from_millis(20);

fn beyond(limit: u64, taken: u64) -> String {
    format!(
        "out of memory: this process has {}, and its limit is {}; raise it with `--memory-max SIZE`, run fewer points \
         beside each other with `--threads`, or make the runs shorter",
        about(taken as f64),
        about(limit as f64)
    )
}

impl Memory {
    /// Bytes that this process may take.
    pub fn limit(self) -> u64 {
        self.limit
    }

    /// Whether the limit has been passed. To be asked from time to time, until what is returned is dropped.
    pub fn is_exceeded(self) -> bool {
        EXCEEDED.load(Ordering::Relaxed)
    }

    /// From now on until the guard is dropped, something asks [`Memory::is_exceeded`] from time to time.
    pub fn asked(self) -> Asked {
        IS_ASKED.store(true, Ordering::Relaxed);
        Asked
    }

    /// The error of a command that has been stopped for the limit.
    pub fn error(self) -> anyhow::Error {
        anyhow::anyhow!(beyond(self.limit, taken().unwrap_or(0).max(self.limit)))
    }
}

/// Something asks from time to time whether to go on.
#[derive(Debug)]
pub struct Asked;

impl Drop for Asked {
    fn drop(&mut self) {
        // A command that has been stopped for its memory ends by itself, with more words.
        IS_ASKED.store(EXCEEDED.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Bytes of memory that this process has, in the machine or swapped out; `None` where that is not known.
fn taken() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some(kilobytes(&status, "RssAnon:")? + kilobytes(&status, "VmSwap:").unwrap_or(0))
}

/// Half of what is free, of the machine and of the control group; as much as there is where that is not known. A list
/// that grows doubles its room, so with half of it there is always room for that.
fn default_limit() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|info| kilobytes(&info, "MemAvailable:"));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let free = [machine, limit_of_groups(Path::new("/sys/fs/cgroup"), &groups), limit_of_addresses()];
    free.into_iter().flatten().min().map_or(u64::MAX, |free| (free / 2).max(DEFAULT_LEAST.min(free / 4 * 3)))
}

/// The line of a file below /proc that begins with `key`, in bytes.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// The lowest limit of the control groups in `groups`, which reads as /proc/self/cgroup, and of those that they are in.
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

/// `ulimit -v`.
fn limit_of_addresses() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_size_with_room_for_the_program() {
        assert_eq!(size("4GB"), Ok(Bytes::new(4_000_000_000)));
        assert_eq!(size("1MB"), Err("at least 64MB".to_owned()));
        assert!(size("4").is_err() && size("many").is_err());
    }

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

    #[cfg(target_os = "linux")]
    #[test]
    fn the_memory_of_this_process_is_known() {
        let before = taken().expect("it is known on Linux");
        let room = vec![1u8; 50_000_000];
        assert!(taken().expect("it is known on Linux") >= before + 40_000_000);
        assert_eq!(room.len(), 50_000_000);
        assert!(default_limit() > 0);
    }
}
