//! [`Locks`] sums up how long the server's threads slept at each futex, and where in memory each is.

use std::fs;

use hashbrown::HashMap;
use serde::Serialize;

/// The sleeps at one futex.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Lock {
    /// The process whose threads slept.
    pub process: u32,
    /// The address, in hexadecimal.
    pub address: String,
    /// The mapped file and the offset in it, or the name of another mapping, such as `[heap]`; may be empty.
    pub place: String,
    /// The futex operation of the last sleep.
    pub operation: &'static str,
    /// How often a thread slept there.
    pub waits: u64,
    /// The sum of these sleeps, in ns, up to when the thread had a processor again.
    pub total_ns: u64,
    /// The longest sleep, in ns.
    pub max_ns: u64,
}

/// The sleeps at all futexes of the server.
#[derive(Debug, Default)]
pub struct Locks(HashMap<(u32, u64), Waits>);

#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    operation: u64,
    waits: u64,
    total_ns: u64,
    max_ns: u64,
}

impl Locks {
    /// Adds a sleep of a thread of `process` at the futex `address`.
    pub fn add(&mut self, process: u32, address: u64, operation: u64, slept_ns: u64) {
        if self.0.len() >= LOCKS_MAX && !self.0.contains_key(&(process, address)) {
            return;
        }
        let waits = self.0.entry((process, address)).or_default();
        waits.operation = operation;
        waits.waits += 1;
        waits.total_ns += slept_ns;
        waits.max_ns = waits.max_ns.max(slept_ns);
    }

    /// Returns the futexes where threads slept longest in sum. The processes must still run to find the places.
    pub fn longest(&self, most: usize) -> Vec<Lock> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|(key, waits)| (std::cmp::Reverse(waits.total_ns), **key));
        let lock = |(&(process, address), waits): (&(u32, u64), &Waits)| Lock {
            process,
            address: format!("{address:#x}"),
            place: place(&maps(process), address).unwrap_or_default(),
            operation: name_of(waits.operation),
            waits: waits.waits,
            total_ns: waits.total_ns,
            max_ns: waits.max_ns,
        };
        all.into_iter().take(most).map(lock).collect()
    }
}

fn maps(process: u32) -> String {
    fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default()
}

/// Finds the mapping of an address in /proc/PID/maps (proc_pid_maps(5)).
fn place(maps: &str, address: u64) -> Option<String> {
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    maps.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (from, to) = fields.first()?.split_once('-')?;
        let (from, to) = (number(from)?, number(to)?);
        if !(from..to).contains(&address) {
            return None;
        }
        let name = fields.get(5).copied().unwrap_or("anonymous memory");
        match name.rsplit_once('/') {
            Some((_, file)) => {
                let offset = address - from + number(fields.get(2)?)?;
                Some(format!("{file}+{offset:#x}"))
            }
            None => Some(name.to_owned()),
        }
    })
}

/// Returns the name of a futex operation (futex(2)), without its flags.
fn name_of(operation: u64) -> &'static str {
    match operation & FUTEX_COMMAND {
        0 => "FUTEX_WAIT",
        6 | 13 => "FUTEX_LOCK_PI",
        9 => "FUTEX_WAIT_BITSET",
        11 => "FUTEX_WAIT_REQUEUE_PI",
        _ => "other",
    }
}

/// The operation without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME.
const FUTEX_COMMAND: u64 = 0x7f;
/// The futexes that are told apart.
const LOCKS_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_are_summed_by_address_and_placed() {
        let mut locks = Locks::default();
        locks.add(1, 0x5010, 0x80, 10);
        locks.add(1, 0x5010, 0x80, 30);
        locks.add(1, 0x9000, 0x189, 25);
        let longest = locks.longest(1);
        assert_eq!((longest[0].waits, longest[0].total_ns, longest[0].max_ns), (2, 40, 30));
        assert_eq!((longest[0].address.as_str(), longest[0].operation), ("0x5010", "FUTEX_WAIT"));
        assert_eq!(locks.longest(9)[1].operation, "FUTEX_WAIT_BITSET");
        let maps = "4000-6000 rw-p 00003000 fe:00 42    /usr/bin/server\n8000-9000 rw-p 00000000 00:00 0  [heap]\n\
                    9000-a000 rw-p 00000000 00:00 0\n";
        assert_eq!(place(maps, 0x5010).as_deref(), Some("server+0x4010"));
        assert_eq!(place(maps, 0x8fff).as_deref(), Some("[heap]"));
        assert_eq!(place(maps, 0x9000).as_deref(), Some("anonymous memory"));
        assert_eq!(place(maps, 0xa000), None);
    }
}
