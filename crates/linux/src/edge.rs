//! [`Edge`]: frames between TAP devices and the fabric, by the wall's clock.
//!
//! One thread. It sleeps until shortly before the next event, or until a host has sent something; the last microseconds
//! it spins, because a sleeping thread wakes up late. How late each frame was handed to its host is counted.

use std::fs::File;
use std::io::{self, Read, Write};
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::time::Instant;

use plimsoll_fabric::net::HostId;
use plimsoll_units::{Span, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::frame::{self, ETHERNET, Header, VLAN_TAG};
use crate::lateness::Spread;
use crate::live::{Egress, Ingress, LiveFabric, Out};

/// The wall's clock, as the fabric counts time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that shows zero now.
    pub fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    /// The time.
    pub fn now(&self) -> Time {
        Time::ZERO + Span::from_ns(self.start.elapsed().as_nanos() as u64)
    }
}

/// The frames under way, by number.
#[derive(Debug, Default)]
struct Frames {
    slots: Vec<Vec<u8>>,
    free: Vec<u32>,
}

impl Frames {
    fn take(&mut self, room: usize) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Vec::with_capacity(room));
            self.slots.len() as u32 - 1
        })
    }
}

/// The way out of the fabric.
#[derive(Debug)]
struct Exits {
    taps: Vec<File>,
    frames: Frames,
    clock: Clock,
    lateness: Spread,
    waited: Spread,
    refused: u64,
}

impl Out for Exits {
    fn delivered(&mut self, egress: Egress) {
        let frame = &mut self.frames.slots[egress.frame as usize];
        if egress.marked {
            frame::mark(frame);
        }
        if (&self.taps[egress.to.0 as usize]).write(frame).is_err() {
            self.refused += 1;
        }
        self.lateness.record(self.clock.now().saturating_since(egress.at));
        self.waited.record(egress.waited);
        self.frames.free.push(egress.frame);
    }

    fn dropped(&mut self, frame: u32) {
        self.frames.free.push(frame);
    }
}

/// Everything at the fabric's edge.
#[derive(Debug)]
pub struct Edge {
    fabric: LiveFabric,
    exits: Exits,
    room: usize,
    spin: Span,
    log: Option<Vec<Ingress>>,
    foreign: u64,
}

/// What the edge has seen.
#[derive(Debug)]
pub struct Seen {
    /// How long after its time each frame was handed to its host.
    pub lateness: Spread,
    /// How long each waited in queues and pacers of the fabric.
    pub waited: Spread,
    /// Frames that a host's device did not take.
    pub refused: u64,
    /// Frames that were not for the fabric, such as those to groups.
    pub foreign: u64,
    /// What came in, where it was to be kept.
    pub log: Option<Vec<Ingress>>,
}

/// Frames read of a host before others have their turn.
const BATCH: usize = 8;
/// The most urgent that an ordinary thread can be.
const PRIORITY: i32 = -20;
/// The edge looks this often at least whether it is to stop.
const PATIENCE: Span = Span::from_ms(20);

impl Edge {
    /// An edge for packets of at most `mtu` bytes, that spins for `spin` before an event, and keeps a log if told so.
    pub fn new(
        fabric: LiveFabric,
        taps: Vec<File>,
        clock: Clock,
        mtu: u32,
        spin: Span,
        keeps_log: bool,
    ) -> Edge {
        let exits = Exits {
            taps,
            frames: Frames::default(),
            clock,
            lateness: Spread::default(),
            waited: Spread::default(),
            refused: 0,
        };
        let room = mtu as usize + ETHERNET + 2 * VLAN_TAG;
        Edge { fabric, exits, room, spin, log: keeps_log.then(Vec::new), foreign: 0 }
    }

    /// Carries frames until `stops` says so; the time then.
    ///
    /// # Errors
    /// If the system refuses to wait for devices.
    pub fn run(&mut self, stops: impl FnMut(Time) -> bool) -> io::Result<Time> {
        // Whatever else runs, frames go first. Without the right to it the lateness tells.
        let own = rustix::process::getpriority_process(None)?;
        let _ = rustix::process::setpriority_process(None, PRIORITY);
        // The kernel's default is to wake up to 50 us late.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        // The kernel queues what a TAP device is given by processor, so a thread that moves reorders frames.
        let allowed = rustix::thread::sched_getaffinity(None)?;
        let mut pinned = rustix::thread::CpuSet::new();
        pinned.set(rustix::thread::sched_getcpu());
        let _ = rustix::thread::sched_setaffinity(None, &pinned);
        let ended = self.carry(stops);
        let _ = rustix::thread::sched_setaffinity(None, &allowed);
        let _ = rustix::thread::set_current_timer_slack(None);
        let _ = rustix::process::setpriority_process(None, own);
        ended
    }

    fn carry(&mut self, mut stops: impl FnMut(Time) -> bool) -> io::Result<Time> {
        let hosts = self.fabric.hosts();
        let mut readable: Vec<u32> = Vec::new();
        loop {
            let now = self.exits.clock.now();
            self.fabric.advance(now, &mut self.exits);
            if stops(now) {
                return Ok(now);
            }
            let ready = self.fabric.next_event().map_or(PATIENCE, |next| next.saturating_since(now));
            let sleep = ready.saturating_sub(self.spin).min(PATIENCE);
            let (fabric, taps) = (&mut self.fabric, &self.exits.taps);
            let open: Vec<u32> = (0..hosts).filter(|host| !fabric.holds(now, HostId(*host))).collect();
            let mut polled: Vec<PollFd<'_>> = open
                .iter()
                .map(|host| PollFd::from_borrowed_fd(taps[*host as usize].as_fd(), PollFlags::IN))
                .collect();
            let nanoseconds = (sleep.as_ps() / 1_000) as i64;
            let timeout = Timespec { tv_sec: 0, tv_nsec: nanoseconds };
            match poll(&mut polled, Some(&timeout)) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            readable.clear();
            let ready = open.iter().zip(&polled).filter(|(_, polled)| !polled.revents().is_empty());
            readable.extend(ready.map(|(host, _)| *host));
            for host in &readable {
                self.read(HostId(*host));
                let now = self.exits.clock.now();
                self.fabric.advance(now, &mut self.exits);
            }
        }
    }

    /// Takes what `from` has sent.
    fn read(&mut self, from: HostId) {
        for _ in 0..BATCH {
            let now = self.exits.clock.now();
            if self.fabric.holds(now, from) {
                return;
            }
            let slot = self.exits.frames.take(self.room);
            let frame = &mut self.exits.frames.slots[slot as usize];
            frame.resize(self.room, 0);
            let Ok(size) = (&self.exits.taps[from.0 as usize]).read(frame) else {
                self.exits.frames.free.push(slot);
                return;
            };
            frame.truncate(size);
            match Header::parse(frame, self.fabric.hosts()) {
                Some(header) => {
                    let size = size.min(usize::from(u16::MAX)) as u16;
                    let entry = self.fabric.on_frame(now, from, header, size, slot, &mut self.exits);
                    if let Some(log) = &mut self.log {
                        log.push(entry);
                    }
                }
                None => {
                    match frame::answer(frame, self.fabric.hosts()) {
                        // A device that does not take the answer is asked again by its host.
                        Some(reply) => drop((&self.exits.taps[from.0 as usize]).write(&reply)),
                        None => self.foreign += 1,
                    }
                    self.exits.frames.free.push(slot);
                }
            }
        }
    }

    /// What was seen, and the fabric as it is.
    pub fn finish(self) -> (LiveFabric, Seen) {
        let Exits { lateness, waited, refused, .. } = self.exits;
        (self.fabric, Seen { lateness, waited, refused, foreign: self.foreign, log: self.log })
    }
}
