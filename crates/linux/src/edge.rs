//! [`Edge`]: frames between hosts' [`Devices`] and the fabric, by the devices' clock.
//!
//! One thread. It sleeps until shortly before the next event, or until a host has sent something; the last microseconds
//! it spins, because a sleeping thread wakes up late. How late each frame was handed to its host is counted.
//!
//! Hosts that have sent something take turns of [`BATCH`] frames, and frames that are due leave between any two frames
//! that are read: a host that floods delays the frames that others send by a turn, and the frames that others receive
//! by one frame.

pub(crate) mod capture;
pub mod frame;
pub mod live;
pub(crate) mod tap;
pub(crate) mod taps;

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::Receiver;

use plimsoll_circuits::Demand;
use plimsoll_fabric::net::HostId;
use plimsoll_units::{Span, Time};

use crate::edge::capture::{FrameCapture, Way};
use crate::edge::frame::{ETHERNET, Header, VLAN_TAG};
use crate::edge::live::{Egress, FrameEntry, LiveFabric, Out};
use crate::net::multipath::{ActiveSubflows, FlowHashes};
use crate::read_outs::lateness::Spread;

/// The bytes that waited in the hosts' sockets.
#[derive(Clone, Debug)]
pub struct SocketBacklog {
    /// When the reading was complete.
    pub at: Time,
    /// The bytes that wait, from each host to each other.
    pub demand: Demand,
}

/// The hosts' devices, and the clock that they go by.
pub trait Devices {
    /// Returns the present time of the devices' clock.
    fn now(&mut self) -> Time;

    /// Waits at most `timeout`, and less if a host sends something; adds the hosts to `ready` that have sent since the
    /// last read without a result.
    ///
    /// # Errors
    /// If the system refuses.
    fn wait(&mut self, timeout: Span, ready: &mut Vec<HostId>) -> io::Result<()>;

    /// Reads one frame that `from` has sent into `room`: its bytes there.
    ///
    /// # Errors
    /// `WouldBlock` if there is none.
    fn receive(&mut self, from: HostId, room: &mut [u8]) -> io::Result<usize>;

    /// Hands a frame to a host.
    ///
    /// # Errors
    /// If its device does not take it.
    fn send(&mut self, to: HostId, frame: &[u8]) -> io::Result<()>;
}

/// A frame in room for the longest, and its bytes.
#[derive(Debug)]
struct Slot {
    room: Box<[u8]>,
    len: usize,
}

/// The frames under way, by number.
#[derive(Debug)]
struct Frames {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// One byte more than frames may have: a frame that fills it is too long.
    room: usize,
}

impl Frames {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { room: vec![0; self.room].into(), len: 0 });
            self.slots.len() as u32 - 1
        })
    }
}

/// The way out of the fabric.
#[derive(Debug)]
struct Exits<D> {
    devices: D,
    frames: Frames,
    capture: Option<FrameCapture>,
    subflows: Option<ActiveSubflows>,
    lateness: Spread,
    waited: Spread,
    refused: u64,
}

impl<D: Devices> Out for Exits<D> {
    fn delivered(&mut self, egress: Egress) {
        let Slot { room, len } = &mut self.frames.slots[egress.frame as usize];
        let frame = &mut room[..*len];
        if egress.marked {
            frame::mark(frame);
        }
        if self.devices.send(egress.to, frame).is_err() {
            self.refused += 1;
        }
        let now = self.devices.now();
        if let Some(capture) = &mut self.capture {
            capture.keep(egress.to, now, Way::ToHost, frame);
        }
        self.lateness.record(now.saturating_since(egress.at));
        self.waited.record(egress.waited);
        self.frames.free.push(egress.frame);
    }

    fn dropped(&mut self, frame: u32) {
        self.frames.free.push(frame);
    }

    fn circuits_changed(&mut self, host: HostId, has_some: bool) {
        if let Some(subflows) = &mut self.subflows {
            subflows.set(host, has_some);
        }
    }
}

/// Hosts that have something to be read, in the order of their turns.
#[derive(Debug)]
struct HostTurns {
    queue: VecDeque<HostId>,
    queued: Vec<bool>,
}

impl HostTurns {
    fn add(&mut self, host: HostId) {
        if !std::mem::replace(&mut self.queued[host.0 as usize], true) {
            self.queue.push_back(host);
        }
    }

    fn take(&mut self) -> Option<HostId> {
        let host = self.queue.pop_front()?;
        self.queued[host.0 as usize] = false;
        Some(host)
    }
}

/// Result of a host's turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    /// The host has no more frames to send.
    Empty,
    /// Others have theirs now.
    Over,
    /// It must wait: its NIC is paused or full.
    Held,
}

/// Everything at the fabric's edge.
#[derive(Debug)]
pub struct Edge<D> {
    fabric: LiveFabric,
    exits: Exits<D>,
    turns: HostTurns,
    spin: Span,
    log: Option<Vec<FrameEntry>>,
    sockets: Option<Receiver<SocketBacklog>>,
    flows: Option<FlowHashes>,
    foreign: u64,
}

/// Observations of the edge.
#[derive(Debug)]
pub struct EdgeCounts {
    /// Lateness of each frame: the time between its due time and its hand-over to its host.
    pub lateness: Spread,
    /// Time for which each frame waited in queues and pacers of the fabric.
    pub waited: Spread,
    /// Frames that a host's device did not take.
    pub refused: u64,
    /// Frames that were not for the fabric, such as frames to groups or frames longer than hosts may send.
    pub foreign: u64,
    /// The log of arrivals, where it was to be kept.
    pub log: Option<Vec<FrameEntry>>,
    /// The frames of every host, where they were to be kept.
    pub capture: Option<FrameCapture>,
    /// The flows with payload, where they were to be kept.
    pub(crate) flows: Option<FlowHashes>,
}

/// Frames read of a host before others have their turn.
pub const BATCH: usize = 8;
/// Interval at which the edge checks at least whether it is to stop.
const PATIENCE: Span = Span::from_ms(20);
/// Interval at which it checks whether a host with data to send still must wait: room in a NIC's queue is not an event.
const HELD: Span = Span::from_us(10);

impl<D: Devices> Edge<D> {
    /// An edge for packets of at most `mtu` bytes, that spins for `spin` before an event.
    pub fn new(fabric: LiveFabric, devices: D, mtu: u32, spin: Span) -> Edge<D> {
        let hosts = fabric.hosts() as usize;
        let room = mtu as usize + ETHERNET + 2 * VLAN_TAG + 1;
        let exits = Exits {
            devices,
            frames: Frames { slots: Vec::new(), free: Vec::new(), room },
            capture: None,
            subflows: None,
            lateness: Spread::default(),
            waited: Spread::default(),
            refused: 0,
        };
        let turns = HostTurns { queue: VecDeque::with_capacity(hosts), queued: vec![false; hosts] };
        Edge { fabric, exits, turns, spin, log: None, sockets: None, flows: None, foreign: 0 }
    }

    /// Keeps a log of all arrivals, for [`crate::edge::live::replay`].
    pub fn keep_log(&mut self) {
        self.log = Some(Vec::new());
    }

    /// Keeps the flows that carry payload.
    pub fn keep_flows(&mut self) {
        self.flows = Some(FlowHashes::default());
    }

    /// Passes the readings of the hosts' sockets on to the fabric.
    pub fn read_sockets(&mut self, readings: Receiver<SocketBacklog>) {
        self.sockets = Some(readings);
    }

    /// Changes the active subflows of hosts whenever the schedule of a week is for other hosts than the last one.
    pub(crate) fn activate_subflows(&mut self, subflows: ActiveSubflows) {
        self.exits.subflows = Some(subflows);
    }

    /// Ends the changes of active subflows.
    ///
    /// # Errors
    /// If one has failed.
    pub(crate) fn keep_subflows(&mut self) -> io::Result<()> {
        self.exits.subflows.take().map_or(Ok(()), ActiveSubflows::finish)
    }

    /// Keeps all frames of hosts.
    pub fn capture(&mut self, capture: FrameCapture) {
        self.exits.capture = Some(capture);
    }

    /// Carries frames until `stops` returns true; returns the time then.
    ///
    /// # Errors
    /// If the system refuses to wait for devices.
    pub fn run(&mut self, mut stops: impl FnMut(Time) -> bool) -> io::Result<Time> {
        let mut ready = Vec::new();
        let mut more = false;
        loop {
            self.take_readings();
            let now = self.exits.devices.now();
            self.fabric.advance(now, &mut self.exits);
            if stops(now) {
                return Ok(now);
            }
            let due = self.fabric.next_event().map_or(PATIENCE, |next| next.saturating_since(now));
            let patience = if self.turns.queue.is_empty() { PATIENCE } else { HELD };
            let sleep = if more { Span::ZERO } else { due.saturating_sub(self.spin).min(patience) };
            self.exits.devices.wait(sleep, &mut ready)?;
            ready.drain(..).for_each(|host| self.turns.add(host));
            more = self.round();
        }
    }

    /// Takes the readings of the hosts' sockets that have arrived, each with its time; it does not wait for one.
    fn take_readings(&mut self) {
        let Some(sockets) = &self.sockets else { return };
        for SocketBacklog { at, demand } in sockets.try_iter() {
            let entry = self.fabric.on_socket_demand(at, demand, &mut self.exits);
            if let Some(log) = &mut self.log {
                log.push(entry);
            }
        }
    }

    /// Gives every host that has sent something a turn; returns whether one of them may send more at once.
    fn round(&mut self) -> bool {
        let mut more = false;
        for _ in 0..self.turns.queue.len() {
            let Some(host) = self.turns.take() else { break };
            let ended = self.turn(host);
            if ended != Turn::Empty {
                self.turns.add(host);
            }
            more |= ended == Turn::Over;
        }
        more
    }

    /// Takes what `from` has sent, up to a batch.
    fn turn(&mut self, from: HostId) -> Turn {
        for _ in 0..BATCH {
            let now = self.exits.devices.now();
            if self.fabric.holds(now, from) {
                return Turn::Held;
            }
            let number = self.exits.frames.take();
            let slot = &mut self.exits.frames.slots[number as usize];
            let Ok(size) = self.exits.devices.receive(from, &mut slot.room) else {
                self.exits.frames.free.push(number);
                return Turn::Empty;
            };
            slot.len = size;
            self.take(from, number);
        }
        Turn::Over
    }

    /// A frame of `from` is in a slot.
    fn take(&mut self, from: HostId, number: u32) {
        let now = self.exits.devices.now();
        let Slot { room, len } = &self.exits.frames.slots[number as usize];
        let frame = &room[..*len];
        if let Some(capture) = &mut self.exits.capture {
            capture.keep(from, now, Way::FromHost, frame);
        }
        let hosts = self.fabric.hosts();
        let header = if frame.len() < room.len() { Header::parse(frame, hosts) } else { None };
        if let Some(header) = header {
            if let Some(flows) = self.flows.as_mut().filter(|_| header.payload > 0) {
                flows.entry((from, header.to)).or_default().insert(header.flow);
            }
            let size = frame.len().min(usize::from(u16::MAX)) as u16;
            let entry = self.fabric.on_frame(now, from, header, size, number, &mut self.exits);
            if let Some(log) = &mut self.log {
                log.push(FrameEntry::Frame(entry));
            }
            return;
        }
        match frame::answer(frame, hosts) {
            Some(reply) => {
                // If the device rejects the answer, its host asks again.
                let _ = self.exits.devices.send(from, &reply);
                if let Some(capture) = &mut self.exits.capture {
                    capture.keep(from, now, Way::ToHost, &reply);
                }
            }
            None => self.foreign += 1,
        }
        self.exits.frames.free.push(number);
    }

    /// Returns the fabric and the observations.
    pub fn finish(self) -> (LiveFabric, EdgeCounts) {
        let Edge { fabric, exits, log, flows, foreign, .. } = self;
        let Exits { lateness, waited, refused, capture, .. } = exits;
        (fabric, EdgeCounts { lateness, waited, refused, foreign, log, capture, flows })
    }
}

#[cfg(test)]
mod tests;
