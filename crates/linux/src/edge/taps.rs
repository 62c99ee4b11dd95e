//! [`Taps`]: the TAP devices of all hosts, by the wall's clock.

use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

use plimsoll_fabric::net::HostId;
use plimsoll_units::{Span, Time};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;

use crate::clock::Clock;
use crate::edge::Devices;

/// The TAP devices, by host.
#[derive(Debug)]
pub struct Taps {
    files: Vec<File>,
    poll: OwnedFd,
    clock: Clock,
    /// When this thread last slept.
    slept: Time,
}

/// The kernel stops a thread of the highest priority that never sleeps for 50 ms in a second, in one piece, so that
/// others have their 5 %, and ends it after a second (RLIMIT_RTTIME). It does not stop a thread that rests for as much
/// in small pieces: 50 us and the 15 us that waking up takes, in 700 us. With 20 us others have half of their share:
/// the kernel then took the other half at once, 25 ms in a second.
const AWAKE_MAX: Span = Span::from_us(700);
const REST: Span = Span::from_us(50);
/// A shorter sleep is over before the thread has gone to sleep, and so does not count as a rest: it looks again at
/// once.
const SLEEP_MIN: Span = Span::from_us(20);
/// A shorter wait has found a host ready, and did not count as a rest either.
const SLEPT_MIN: Span = Span::from_us(10);
/// Hosts that one call may name; the next names others.
const EVENTS: usize = 32;

impl Taps {
    /// Takes the devices of hosts 0, 1, ...
    ///
    /// # Errors
    /// If the system refuses to watch them.
    pub fn new(files: Vec<File>, clock: Clock) -> io::Result<Taps> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        // Edge-triggered: a host that has been read empty is reported again, and only such hosts are asked for.
        let edges = epoll::EventFlags::IN | epoll::EventFlags::ET;
        for (host, file) in files.iter().enumerate() {
            epoll::add(&poll, file, epoll::EventData::new_u64(host as u64), edges)?;
        }
        Ok(Taps { files, poll, clock, slept: Time::ZERO })
    }
}

fn timespec(span: Span) -> Timespec {
    let nanoseconds = (span.as_ps() / 1_000) as i64;
    Timespec { tv_sec: nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000 }
}

/// A call that a signal has ended is made again by the loop.
fn uninterrupted(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error != Errno::INTR => Err(error.into()),
        _ => Ok(()),
    }
}

impl Devices for Taps {
    fn now(&mut self) -> Time {
        self.clock.now()
    }

    fn wait(&mut self, timeout: Span, ready: &mut Vec<HostId>) -> io::Result<()> {
        let asked = self.clock.now();
        if timeout >= SLEEP_MIN {
            // Waiting by epoll itself counts in milliseconds on kernels before 5.11.
            let mut polled = [PollFd::new(&self.poll, PollFlags::IN)];
            uninterrupted(poll(&mut polled, Some(&timespec(timeout))).map(drop))?;
            let now = self.clock.now();
            if now.saturating_since(asked) >= SLEPT_MIN {
                self.slept = now;
            }
        }
        if asked.saturating_since(self.slept) > AWAKE_MAX {
            std::thread::sleep(Duration::from_nanos(REST.as_ps() / 1_000));
            self.slept = self.clock.now();
        }
        let mut events = [MaybeUninit::uninit(); EVENTS];
        uninterrupted(epoll::wait(&self.poll, &mut events, Some(&timespec(Span::ZERO))).map(|(events, _)| {
            ready.extend(events.iter().map(|event| HostId(event.data.u64() as u32)));
        }))
    }

    fn receive(&mut self, from: HostId, room: &mut [u8]) -> io::Result<usize> {
        (&self.files[from.0 as usize]).read(room)
    }

    fn send(&mut self, to: HostId, frame: &[u8]) -> io::Result<()> {
        (&self.files[to.0 as usize]).write(frame).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how often this thread has gone to sleep.
    fn sleeps() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("every thread has one");
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.and_then(|count| count.trim().parse().ok()).expect("a number")
    }

    /// Waits that are over before the thread sleeps do not count as rests: the kernel would end it for never sleeping.
    /// On a busy machine a rest may be over before the thread has gone to sleep too, so some of twenty may be missing.
    #[test]
    fn a_thread_that_only_ever_waits_for_a_moment_rests() {
        for wait in [Span::ZERO, Span::from_us(1), Span::from_us(10), Span::from_us(19)] {
            let mut taps = Taps::new(Vec::new(), Clock::start()).expect("epoll");
            let before = sleeps();
            let mut rests = 0;
            while rests < 20 {
                let slept = taps.slept;
                taps.wait(wait, &mut Vec::new()).expect("it waits");
                rests += u32::from(taps.slept != slept);
            }
            assert!(sleeps() - before >= 10, "{wait}: {} sleeps", sleeps() - before);
        }
    }
}
