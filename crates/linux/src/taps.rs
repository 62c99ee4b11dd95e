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

/// A thread that goes before all others and never sleeps is stopped by the kernel for 50 ms in a second, in one piece,
/// so that others have their 5 %. One that rests for as much in small pieces is not: 20 us and the 15 us that waking up
/// takes, in 700 us.
const AWAKE_MAX: Span = Span::from_us(700);
const REST: Span = Span::from_us(20);
/// Hosts that one call may name; the next names others.
const EVENTS: usize = 32;

impl Taps {
    /// Takes the devices of hosts 0, 1, ...
    ///
    /// # Errors
    /// If the system refuses to watch them.
    pub fn new(files: Vec<File>, clock: Clock) -> io::Result<Taps> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        // Edges: who has been read empty is told again, and nobody else is asked for.
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
        if timeout.is_zero() {
            let now = self.clock.now();
            if now.saturating_since(self.slept) > AWAKE_MAX {
                std::thread::sleep(Duration::from_nanos(REST.as_ps() / 1_000));
                self.slept = self.clock.now();
            }
        } else {
            // Waiting by epoll itself counts in milliseconds on kernels before 5.11.
            let mut polled = [PollFd::new(&self.poll, PollFlags::IN)];
            uninterrupted(poll(&mut polled, Some(&timespec(timeout))).map(drop))?;
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
