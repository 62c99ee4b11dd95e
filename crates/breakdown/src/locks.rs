//! [`Locks`] sums up the time that the server's threads slept at each futex, with its place in memory and its callers.

use hashbrown::HashMap;
use serde::Serialize;

use crate::symbols::{Symbol, Symbols};

/// The sleeps at one futex.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FutexSleeps {
    /// The process whose threads slept.
    pub process: u32,
    /// The address, in hexadecimal.
    pub address: String,
    /// The mapped file and the offset in it, or the name of another mapping, such as `[heap]`; may be empty.
    pub place: String,
    /// The futex operation of the last sleep.
    pub operation: &'static str,
    /// Number of times that a thread slept there.
    pub waits: u64,
    /// The sum of these sleeps, in ns, up to when the thread had a processor again.
    pub total_ns: u64,
    /// The longest sleep, in ns.
    pub max_ns: u64,
    /// The functions of the commonest stack at these sleeps, the innermost first: as far as its frames have pointers to
    /// their callers.
    pub callers: Vec<Symbol>,
}

/// A sleep of a thread at a futex.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sleep {
    /// The process of the thread.
    pub process: u32,
    /// The address of the futex.
    pub address: u64,
    /// The futex operation with its flags.
    pub operation: u64,
    /// The number of the thread's stack, if known.
    pub stack: Option<u32>,
    /// Length of the sleep, in ns.
    pub slept_ns: u64,
}

/// The sleeps at all futexes of the server.
#[derive(Debug, Default)]
pub struct Locks(HashMap<(u32, u64), Waits>);

#[derive(Clone, Debug, Default)]
struct Waits {
    operation: u64,
    waits: u64,
    total_ns: u64,
    max_ns: u64,
    /// The first few different stacks, with the sleeps of each.
    stacks: Vec<(u32, u64)>,
}

impl Locks {
    /// Adds a sleep.
    pub fn add(&mut self, sleep: Sleep) {
        let Sleep { process, address, operation, stack, slept_ns } = sleep;
        if self.0.len() >= LOCKS_MAX && !self.0.contains_key(&(process, address)) {
            return;
        }
        let waits = self.0.entry((process, address)).or_default();
        waits.operation = operation;
        waits.waits += 1;
        waits.total_ns += slept_ns;
        waits.max_ns = waits.max_ns.max(slept_ns);
        let Some(stack) = stack else { return };
        let has_room = waits.stacks.len() < STACKS_MAX;
        match waits.stacks.iter_mut().find(|(known, _)| *known == stack) {
            Some((_, sleeps)) => *sleeps += 1,
            None if has_room => waits.stacks.push((stack, 1)),
            None => {}
        }
    }

    /// Returns the number of sleeps and their sum in ns, at the futexes whose last sleep was by this operation, such as
    /// `FUTEX_WAIT`; at all futexes without one.
    pub fn sum(&self, operation: Option<&str>) -> (u64, u64) {
        let is_meant =
            |waits: &&Waits| operation.is_none_or(|operation| name_of(waits.operation) == operation);
        let meant = self.0.values().filter(is_meant);
        meant.fold((0, 0), |(waits, ns), one| (waits + one.waits, ns + one.total_ns))
    }

    /// Returns the futexes where threads slept longest in sum; `stack` returns the addresses of a stack by its number.
    /// The processes must still run to find the places and the callers.
    pub fn longest(
        &self,
        most: usize,
        symbols: &mut Symbols,
        stack: impl Fn(u32) -> Vec<u64>,
    ) -> Vec<FutexSleeps> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|(key, waits)| (std::cmp::Reverse(waits.total_ns), **key));
        let lock = |(&(process, address), waits): (&(u32, u64), &Waits)| {
            let commonest = waits.stacks.iter().max_by_key(|(number, sleeps)| (*sleeps, *number));
            let addresses = commonest.map_or_else(Vec::new, |(number, _)| stack(*number));
            let mut callers = Vec::new();
            // Each address is the one behind a call, which may be the begin of the next function. The chain of frames
            // ends at an address outside code.
            for call in addresses.iter().map(|address| address.saturating_sub(1)) {
                if !symbols.is_code(process, call) {
                    break;
                }
                callers.push(symbols.of_process(process, call));
            }
            FutexSleeps {
                process,
                address: format!("{address:#x}"),
                place: symbols.place(process, address).unwrap_or_default(),
                operation: name_of(waits.operation),
                waits: waits.waits,
                total_ns: waits.total_ns,
                max_ns: waits.max_ns,
                callers,
            }
        };
        all.into_iter().take(most).map(lock).collect()
    }
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
/// Limit of the stacks of a futex that are distinguished.
const STACKS_MAX: usize = 16;
/// Limit of the futexes that are distinguished.
const LOCKS_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    fn sleep(process: u32, address: u64, operation: u64, stack: Option<u32>, slept_ns: u64) -> Sleep {
        Sleep { process, address, operation, stack, slept_ns }
    }

    #[test]
    fn sleeps_are_summed_by_address() {
        let mut locks = Locks::default();
        locks.add(sleep(1, 0x5010, 0x80, None, 10));
        locks.add(sleep(1, 0x5010, 0x80, None, 30));
        locks.add(sleep(1, 0x9000, 0x189, None, 25));
        let longest = |most| locks.longest(most, &mut Symbols::default(), |_| Vec::new());
        let [lock] = &longest(1)[..] else { panic!("{:?}", longest(1)) };
        assert_eq!((lock.waits, lock.total_ns, lock.max_ns), (2, 40, 30));
        assert_eq!((lock.address.as_str(), lock.operation), ("0x5010", "FUTEX_WAIT"));
        assert_eq!(longest(9)[1].operation, "FUTEX_WAIT_BITSET");
        assert_eq!((locks.sum(Some("FUTEX_WAIT")), locks.sum(None)), ((2, 40), (3, 65)));
    }

    #[test]
    fn the_callers_are_those_of_the_commonest_stack_up_to_what_is_no_code() {
        let process = std::process::id();
        let code =
            (the_callers_are_those_of_the_commonest_stack_up_to_what_is_no_code as fn()) as usize as u64;
        let mut locks = Locks::default();
        for stack in [7, 3, 3] {
            locks.add(sleep(process, code, 0x80, Some(stack), 10));
        }
        let stack =
            |number: u32| if number == 3 { vec![code + 1, code + 2, 1, code + 1] } else { Vec::new() };
        let longest = locks.longest(1, &mut Symbols::default(), stack);
        assert_eq!(longest[0].callers.len(), 2, "{longest:?}");
        assert!(longest[0].callers[0].function.ends_with("up_to_what_is_no_code"), "{longest:?}");
    }
}
