//! [`Memory`]: a limit, which keeps a command from exhausting the machine's memory.
//!
//! The memory that a scenario needs by its own parameters is compared with the limit before the first run
//! (`sim/estimate.rs`). Other memory is watched: a thread reads at intervals how much this process uses. Beyond the
//! limit, active runs are cancelled, as by Ctrl-C, and finished ones are kept. Where nothing polls for cancellation, as
//! when a scenario is read or results are summarized, or where memory grows further all the same, the process exits at
//! once, which loses nothing that was written. So does every command where the system refuses a block of memory, as
//! under `ulimit -v` ([`end_where_refused`]).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;
use std::{fs, io};

use plimsoll_process::{note, note_without_memory};
use plimsoll_sim::estimate::about;

/// The smallest default, so that small scenarios run even where little memory is free.
const DEFAULT_LEAST: u64 = 256_000_000;

/// The exit status of a process that ends at its limit.
const EXIT: i32 = 2;

/// The work of this process, which decides the advice where it runs out of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// It runs points, and writes each to the disk.
    Points,
    /// It summarizes points, all of which are finished and written.
    Summary,
    /// It serves a page, and runs points that it does not write.
    Explore,
    /// It runs a single point, which it does not write.
    Replay,
    /// It makes network namespaces, and runs points in them.
    Emulate,
    /// It changes this host by a policy.
    Host,
    /// It reads files, and has no flag for its memory.
    Convert,
    /// It does what needs no advice of its own.
    Other,
}

impl Work {
    /// Returns the advice besides a higher limit.
    fn help(self) -> &'static str {
        match self {
            Work::Points | Work::Explore => {
                ", run fewer points beside each other with `--threads`, or make the runs shorter"
            }
            Work::Replay => ", or make the run shorter",
            Work::Emulate => ", or emulate fewer hosts",
            Work::Summary | Work::Host | Work::Convert | Work::Other => "",
        }
    }

    /// Returns the sentence about results that are kept, or changes that have to be undone.
    fn left(self) -> &'static str {
        match self {
            Work::Points => ". Finished points are kept, and the same command resumes",
            Work::Summary => {
                ". All points are finished and kept; their summary needs more memory, and the same command writes it"
            }
            Work::Emulate => {
                ". Finished points are kept; the next start, or `plimsoll emulate --clean`, removes the network \
                 namespaces of this one"
            }
            Work::Host => ". What it has changed stays; `plimsoll host rollback POLICY` undoes it",
            Work::Explore | Work::Replay | Work::Convert | Work::Other => "",
        }
    }
}

/// Declares what this process does from now on.
pub fn begin(work: Work) {
    *WORK.lock().unwrap_or_else(PoisonError::into_inner) = work;
}

fn work() -> Work {
    *WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

static WORK: Mutex<Work> = Mutex::new(Work::Other);

/// The memory limit, which is being watched.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    limit: u64,
}

/// The limit is global, since it concerns the process.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);
static EXCEEDED: AtomicBool = AtomicBool::new(false);
/// Whether a loop polls for cancellation.
static IS_ASKED: AtomicBool = AtomicBool::new(false);

/// Starts to watch the memory of this process, which does `work`, with a limit in bytes; half of the free memory by
/// default.
///
/// # Errors
/// Returns an error if the system cannot create a thread.
pub fn watch(limit: Option<u64>, work: Work) -> io::Result<Memory> {
    let limit = limit.unwrap_or_else(default_limit);
    LIMIT.store(limit, Ordering::Relaxed);
    begin(work);
    if fs::exists(STATUS).unwrap_or(false) {
        let thread = thread::Builder::new().name("memory".to_owned()).stack_size(STACK);
        thread.spawn(watch_until_the_end)?;
    }
    Ok(Memory { limit })
}

/// The stack of the thread that watches: it counts as addresses, which may be few.
const STACK: usize = 256 << 10;

fn watch_until_the_end() {
    let mut asked_at = None;
    loop {
        thread::sleep(PAUSE);
        // Where no file can be opened now, one can be later.
        let (Some(taken), limit) = (taken(), LIMIT.load(Ordering::Relaxed)) else { continue };
        if taken <= limit {
            continue;
        }
        // A queue that doubles may pass the limit by far at once; a loop that polls is asked before anything is ended.
        let when_asked = *asked_at.get_or_insert(taken);
        let grows = taken > when_asked.saturating_add(limit / 4);
        EXCEEDED.store(true, Ordering::Relaxed);
        if !IS_ASKED.load(Ordering::Relaxed) || grows {
            note!("error: {}{}", beyond(limit, taken), work().left());
            std::process::exit(EXIT);
        }
    }
}

/// Has the process end with a message, rather than by an abort, where the system refuses a block of memory.
pub fn end_where_refused() {
    plimsoll_memory::on_refusal(end_refused);
    let of_addresses = limit_of_addresses()
        .map(|limit| format!(", where `ulimit -v` allows {} of addresses", about(limit as f64)));
    ADDRESSES.get_or_init(|| of_addresses.unwrap_or_default());
}

/// Ends the process, to which the system has refused a block of memory. It may have none for the message either.
fn end_refused(bytes: usize) {
    note_without_memory(format_args!(
        "error: out of memory: the system has refused a block of {bytes} bytes{}; raise the limit{}{}",
        ADDRESSES.get().map_or("", String::as_str),
        work().help(),
        work().left()
    ));
    std::process::exit(EXIT);
}

/// The limit of addresses as [`end_refused`] writes it; empty where there is none.
static ADDRESSES: OnceLock<String> = OnceLock::new();

/// The interval between two readings, in which memory grows by some ten megabytes.
const PAUSE: Duration = Duration::from_millis(20);

fn beyond(limit: u64, taken: u64) -> String {
    let work = work();
    let raise = match work {
        Work::Convert => "which is half of the free memory",
        _ => "raise it with `--memory-max SIZE`",
    };
    format!(
        "out of memory: this process has {}, and its limit is {}; {raise}{}",
        about(taken as f64),
        about(limit as f64),
        work.help()
    )
}

impl Memory {
    /// Returns the limit in bytes, of all runs of the process together.
    pub fn limit(self) -> u64 {
        self.limit
    }

    /// Returns whether the limit has been exceeded, which a caller of [`Memory::asked`] polls.
    pub fn is_exceeded(self) -> bool {
        EXCEEDED.load(Ordering::Relaxed)
    }

    /// Forgets that the limit has been exceeded: the command continues without the work that exceeded it.
    pub fn resume(self) {
        EXCEEDED.store(false, Ordering::Relaxed);
    }

    /// Declares that the caller polls [`Memory::is_exceeded`] until the guard is dropped.
    pub fn asked(self) -> Asked {
        IS_ASKED.store(true, Ordering::Relaxed);
        Asked
    }

    /// Returns the error of a command that was stopped at the limit.
    pub fn error(self) -> OutOfMemory {
        OutOfMemory(beyond(self.limit, taken().unwrap_or(0).max(self.limit)))
    }
}

/// The error of a process that has reached its memory limit; the text names limit and remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OutOfMemory(String);

/// The guard of a loop that polls for cancellation.
#[derive(Debug)]
pub struct Asked;

impl Drop for Asked {
    fn drop(&mut self) {
        // A command that was stopped for its memory ends by itself, with a longer message.
        IS_ASKED.store(EXCEEDED.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Returns the bytes of memory that this process uses, in memory or swapped out; `None` where that is unknown.
fn taken() -> Option<u64> {
    let status = fs::read_to_string(STATUS).ok()?;
    Some(kilobytes(&status, "RssAnon:")? + kilobytes(&status, "VmSwap:").unwrap_or(0))
}

/// The file with the memory of this process.
const STATUS: &str = "/proc/self/status";

/// Returns half of the free memory of the machine and of the control group, or the total where the free part is
/// unknown. A growing vector doubles its capacity, so half always leaves space for that.
pub fn default_limit() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|info| kilobytes(&info, "MemAvailable:"));
    #[cfg(unix)]
    let group = plimsoll_process::control_group_memory();
    #[cfg(not(unix))]
    let group = None;
    let free = [machine, group, limit_of_addresses()];
    free.into_iter().flatten().min().map_or(u64::MAX, |free| (free / 2).max(DEFAULT_LEAST.min(free / 4 * 3)))
}

/// Returns the value in bytes of the line of a file below /proc that begins with `key`.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Returns the limit of the address space (`ulimit -v`).
fn limit_of_addresses() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
