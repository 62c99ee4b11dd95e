//! Measures the processor time that other programs and other virtual machines take while a test measures time.

use std::fs;

/// Processor time so far, in ticks: all of it, the idle part, and the part of this process and the children that it has
/// waited for.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    all: u64,
    unused: u64,
    own: u64,
}

/// The processor time of others since the moment at which this value was created.
#[derive(Clone, Copy, Debug)]
pub struct Others(Option<Ticks>);

impl Others {
    /// Starts the measurement.
    pub fn watch() -> Others {
        Others(Ticks::now())
    }

    /// Returns the share of all processor time since the start, from 0 to 1, that went to other programs or to other
    /// virtual machines (steal). Interrupts count as idle. Returns 0 where the system does not report it.
    pub fn share(self) -> f64 {
        let (Some(then), Some(now)) = (self.0, Ticks::now()) else { return 0.0 };
        let [all, unused, own] =
            [now.all - then.all, now.unused - then.unused, now.own - then.own].map(|ticks| ticks as f64);
        ((all - unused - own) / all.max(1.0)).max(0.0)
    }

    /// Returns true, and reports the test as skipped, where others took more than a fifth of the processor time.
    pub fn were_busy(self) -> bool {
        let share = self.share();
        let were_busy = share > 0.2;
        if were_busy {
            crate::skipped!(
                "others took {:.0} % of the processor time, so times are not comparable",
                share * 100.0
            );
        }
        were_busy
    }
}

impl Ticks {
    fn now() -> Option<Ticks> {
        Ticks::parse(&fs::read_to_string("/proc/stat").ok()?, &fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// Parses the contents of `/proc/stat` and `/proc/self/stat` (proc(5)).
    fn parse(all: &str, own: &str) -> Option<Ticks> {
        let numbers =
            |text: &str| text.split_whitespace().map_while(|word| word.parse().ok()).collect::<Vec<u64>>();
        // The fields are user, nice, system, idle, iowait, irq, softirq and steal; guest time is part of user and nice.
        let all = numbers(all.strip_prefix("cpu ")?.lines().next()?);
        // The name, in parentheses, may contain anything; the letter after it is the state, which is field 3.
        let own: Vec<&str> = own.rsplit_once(')')?.1.split_whitespace().collect();
        let own = own.get(11..15)?.iter().map(|word| word.parse::<u64>().ok()).sum::<Option<u64>>()?;
        let eight = all.get(..8)?;
        Some(Ticks { all: eight.iter().sum(), unused: eight[3..7].iter().sum(), own })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        let all = "cpu  10 1 5 80 2 3 4 5 7 7\ncpu0 1 2 3 4\n";
        let own = "17 (a ) name) R 1 17 17 0 -1 4194304 100 200 0 0 6 2 1 1 20 0 1 0 5 0 0\n";
        let ticks = Ticks::parse(all, own).unwrap();
        assert_eq!((ticks.all, ticks.unused, ticks.own), (110, 89, 10));
        assert!(Ticks::parse("", own).is_none() && Ticks::parse(all, "17 (name").is_none());
        assert!(Ticks::now().is_some_and(|now| now.all > now.unused));
    }

    #[test]
    fn what_others_took_is_neither_unused_nor_ours() {
        let now = Ticks::now().unwrap();
        let share = Others(Some(Ticks { all: 0, unused: 0, own: 0 })).share();
        let expected = (now.all - now.unused - now.own) as f64 / now.all as f64;
        assert!((share - expected).abs() < 0.01, "{share} {expected}");
    }
}
