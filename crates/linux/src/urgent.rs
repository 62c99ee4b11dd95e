//! [`Urgent`]: a thread that has precedence over others, until the value is dropped.

use std::io;
use std::num::NonZeroU64;

use rustix::process::{Resource, Rlimit, getpriority_process, getrlimit, setpriority_process, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity, set_current_timer_slack};

/// This thread is urgent until the value is dropped.
///
/// * On one processor: the kernel queues the frames given to a TAP device by processor, so a thread that moves
///   reorders frames.
/// * Its timers are exact; with the kernel's default it would wake up to 50 us late.
/// * It runs before all ordinary threads (`SCHED_FIFO`, lowest priority), else at the highest ordinary priority.
///   Without the right to either, the lateness shows it.
///
/// Limits that keep it from hanging the machine: it has one processor; the fabric's loop rests for 5 % of the time; the
/// kernel keeps 5 % of a second for ordinary threads (`sched_rt_runtime_us`); and `RLIMIT_RTTIME` ends the process if
/// the thread runs for a second without sleeping at all.
#[derive(Debug)]
pub struct Urgent {
    allowed: CpuSet,
    nice: i32,
    run_time: Option<Rlimit>,
}

/// The most urgent that an ordinary thread can be.
const NICE: i32 = -20;
/// Microseconds that the thread may run before all others without sleeping.
const RUN_TIME_MAX: u64 = 1_000_000;

impl Urgent {
    /// Makes this thread urgent, as far as the system allows.
    ///
    /// # Errors
    /// If the system does not say how the thread is now.
    pub fn begin() -> io::Result<Urgent> {
        let nice = getpriority_process(None)?;
        let allowed = sched_getaffinity(None)?;
        let mut pinned = CpuSet::new();
        pinned.set(sched_getcpu());
        let _ = sched_setaffinity(None, &pinned);
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let _ = setpriority_process(None, NICE);
        let run_time = getrlimit(Resource::Rttime);
        let limit = Rlimit { current: Some(RUN_TIME_MAX), ..run_time };
        let limited = setrlimit(Resource::Rttime, limit).is_ok();
        if limited {
            let _ = set_scheduler(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1);
        }
        Ok(Urgent { allowed, nice, run_time: limited.then_some(run_time) })
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        let _ = set_scheduler(libc::SCHED_OTHER, 0);
        if let Some(run_time) = self.run_time.take() {
            let _ = setrlimit(Resource::Rttime, run_time);
        }
        let _ = setpriority_process(None, self.nice);
        let _ = set_current_timer_slack(None);
        let _ = sched_setaffinity(None, &self.allowed);
    }
}

/// Makes this thread wake up at the requested time, and run before ordinary threads, as far as the system allows: for
/// threads that work for some 100 us at a time, on any processor. [`Urgent`] limits the threads of the process.
pub(crate) fn wake_in_time() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let _ = set_scheduler(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1);
}

#[expect(unsafe_code, reason = "no safe crate of this workspace sets a thread's scheduler")]
fn set_scheduler(policy: i32, priority: i32) -> io::Result<()> {
    // The system call itself, as musl's function only says that it is not implemented. Its `sched_param` is one number.
    // SAFETY: the call reads one number at the pointer, which lives until it returns; 0 is this thread.
    let set = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
