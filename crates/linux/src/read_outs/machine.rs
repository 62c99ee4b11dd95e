//! [`MachineStart`]: the time that the machine took from a thread.

use std::fs;
use std::time::Instant;

/// The machine's state at the beginning.
#[derive(Debug)]
pub struct MachineStart {
    begun: Instant,
    stolen: f64,
    waited: f64,
}

/// The time taken since the begin, as shares of the elapsed time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TakenShares {
    /// Share of the processors' time that the hypervisor gave to others (steal in `/proc/stat`).
    pub stolen: f64,
    /// Share of the thread's time in which it was ready and another ran (run delay in `schedstat`).
    pub waited: f64,
}

/// Ticks of `/proc/stat` in a second, on every system (USER_HZ).
const TICKS: f64 = 100.0;

impl MachineStart {
    /// Begins to watch this thread.
    pub fn watch() -> MachineStart {
        MachineStart { begun: Instant::now(), stolen: stolen(), waited: waited() }
    }

    /// Returns the time taken since the begin; call it from the thread that has begun.
    pub fn taken(&self) -> TakenShares {
        let passed = self.begun.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        TakenShares { stolen: (stolen() - self.stolen) / passed, waited: (waited() - self.waited) / passed }
    }
}

/// Returns the seconds stolen so far of a processor, on average; zero where the system does not report them.
fn stolen() -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    stolen_of(&text).unwrap_or(0.0)
}

fn stolen_of(stat: &str) -> Option<f64> {
    let processors = stat.lines().filter(|line| line.starts_with("cpu")).count().checked_sub(1)?;
    let ticks: f64 = stat.lines().next()?.split_whitespace().nth(STEAL)?.parse().ok()?;
    Some(ticks / TICKS / processors.max(1) as f64)
}

/// Column of the first line of `/proc/stat` (proc_stat(5)).
const STEAL: usize = 8;

/// Returns the seconds that this thread has waited for a processor so far; zero where the system does not report them.
fn waited() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds: Option<f64> = text.split_whitespace().nth(1).and_then(|text| text.parse().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_by_processor() {
        let stat = "cpu  10 20 30 40 50 60 70 300 0 0\ncpu0 1 2 3 4 5 6 7 100 0 0\n\
                    cpu1 1 2 3 4 5 6 7 200 0 0\nintr 5\n";
        assert_eq!(stolen_of(stat), Some(1.5));
        assert_eq!(stolen_of(""), None);
    }

    #[test]
    fn shares_are_of_the_time_that_has_passed() {
        let machine = MachineStart { begun: Instant::now(), stolen: stolen(), waited: waited() - 1e9 };
        assert!(machine.taken().waited > 1.0);
    }
}
