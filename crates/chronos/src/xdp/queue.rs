//! [`Queue`]: one queue of a device by an AF_XDP socket: its frames, and the datagrams in them.
//!
//! ```text
//! fill ring ─> device ─> receive ring ─> Receiver: parse, in place ─────────────> requests
//!     └────────────────── give_back ────────┘
//! free frames ─> Sender: write ─> send ring ─ kick, once a turn ─> device ─> completion ring ─> free frames
//!                 └─ none is free: backlog, until some are
//! ```
//!
//! Frames are [`FRAME_BYTES`] each, in memory of the queue's own: the first [`RECEIVE_FRAMES`] only receive, the
//! [`SEND_FRAMES`] behind them only send. Nothing is allocated after the start, and no thread but one touches them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::frame::{self, ETHERNET_BYTES, Refusal, Route};
use super::ring::{Consuming, Mapping, Producing};
use super::socket::overruns;
use crate::backlog::Backlog;
use crate::mmsg::Sent;
use crate::port::{Batch, Client};

/// Bytes of a frame: a page, which is the most that the kernel takes.
pub(crate) const FRAME_BYTES: usize = 4096;
/// Frames that a queue can receive before its thread looks, a power of two.
pub(crate) const RECEIVE_FRAMES: u32 = 2048;
/// Frames that a queue can have on their way, a power of two: a value of 1 MiB in datagrams of 1400 bytes.
pub(crate) const SEND_FRAMES: u32 = 1024;
/// Bytes that the kernel keeps for itself before what it receives (XDP_PACKET_HEADROOM).
const HEADROOM_BYTES: usize = 256;
/// The largest MTU of a device whose packets fit into frames, in bytes.
pub(crate) const MTU_MAX: usize = FRAME_BYTES - HEADROOM_BYTES - ETHERNET_BYTES;
/// How long a device may send nothing before what waits for it is dropped: its link is down, say.
const PATIENCE: Duration = Duration::from_secs(1);
/// Frames taken at once.
const BATCH: usize = 64;

/// One queue of a device.
pub(crate) struct Queue {
    socket: OwnedFd,
    /// None while its batch is being run.
    receiver: Option<Box<Receiver>>,
    sender: Sender,
    /// Since when something waits and the device sends nothing.
    waits_since: Option<Duration>,
    /// Overruns that were counted already.
    overruns: u64,
}

/// What becomes of a batch that was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Refused {
    /// Frames with a wrong checksum.
    pub(crate) bad_checksums: u64,
    /// Frames that are no datagram, or whose sender cannot be answered.
    pub(crate) malformed: u64,
}

/// The four rings of a socket.
pub(crate) struct Rings {
    pub(crate) fill: Producing<u64>,
    pub(crate) receive: Consuming<libc::xdp_desc>,
    pub(crate) send: Producing<libc::xdp_desc>,
    pub(crate) completion: Consuming<u64>,
}

impl Queue {
    /// Of a device with this MTU; `memory` has all frames, and `rings` are those of `socket`, which is to be bound.
    pub(crate) fn new(socket: OwnedFd, memory: &Arc<Mapping>, rings: Rings, mtu: usize) -> Queue {
        debug_assert_eq!(memory.bytes(), (RECEIVE_FRAMES + SEND_FRAMES) as usize * FRAME_BYTES);
        let Rings { mut fill, receive, send, completion } = rings;
        for number in 0..RECEIVE_FRAMES {
            let has_room = fill.put(start_of(number));
            debug_assert!(has_room, "the ring is as large");
        }
        fill.publish();
        let receiver = Receiver {
            memory: memory.clone(),
            fill,
            ring: receive,
            frames: Vec::with_capacity(BATCH),
            done: Vec::with_capacity(BATCH),
            datagrams: Vec::with_capacity(BATCH),
        };
        let sender = Sender {
            memory: memory.clone(),
            ring: send,
            completion,
            free: (RECEIVE_FRAMES..RECEIVE_FRAMES + SEND_FRAMES).map(start_of).collect(),
            frame_bytes_max: (mtu + ETHERNET_BYTES).min(FRAME_BYTES),
            waiting: Backlog::default(),
            is_zero_copy: false,
            has_moved: false,
            is_stuck: false,
            has_added: false,
            sent: Sent::default(),
        };
        let receiver = Some(Box::new(receiver));
        Queue { socket, receiver, sender, waits_since: None, overruns: 0 }
    }

    /// The device reads frames itself, when it likes.
    pub(crate) fn set_zero_copy(&mut self, is_zero_copy: bool) {
        self.sender.is_zero_copy = is_zero_copy;
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Datagrams that came when there was no room, since this was asked last.
    pub(crate) fn overruns(&mut self) -> u64 {
        // A kernel that does not say has none that could be counted.
        let all = overruns(&self.socket).unwrap_or(self.overruns);
        let before = std::mem::replace(&mut self.overruns, all);
        all.saturating_sub(before)
    }

    /// Whether something has come, without a call of the kernel.
    pub(crate) fn has_received(&self) -> bool {
        self.receiver.as_ref().is_some_and(|receiver| !receiver.ring.is_empty())
    }

    /// Takes what has come, without a call of the kernel, to be given back by [`Queue::give_back`]. None if the last
    /// batch is not yet.
    pub(crate) fn receive(&mut self) -> Option<(Box<Receiver>, Refused)> {
        let mut receiver = self.receiver.take()?;
        let refused = receiver.fetch();
        Some((receiver, refused))
    }

    /// The frames of a batch may be received into again.
    pub(crate) fn give_back(&mut self, mut receiver: Box<Receiver>) {
        if receiver.give_back() {
            // The driver goes on when it is called; what it says is about sending, or nothing new.
            let _ = recv(&self.socket, &mut [0; 0][..], RecvFlags::DONTWAIT);
        }
        self.receiver = Some(receiver);
    }

    /// Adds a datagram; it goes with the next [`Queue::send`], or waits there until a frame is free. One that does not fit
    /// into a packet of the device, or that comes when enough waits, is dropped, and counted there.
    pub(crate) fn push(&mut self, route: &Route, payload: &[u8]) {
        self.sender.push(self.socket.as_fd(), route, payload);
    }

    /// Whether there is something to be sent.
    pub(crate) fn has_to_send(&self) -> bool {
        self.sender.has_added || self.is_stuck()
    }

    /// Whether the device could not take all that was to be sent: it is to be asked again soon.
    pub(crate) fn is_stuck(&self) -> bool {
        self.sender.is_stuck || !self.sender.waiting.is_empty()
    }

    /// Whether the device has sent all that was added, and does not need this socket any more.
    pub(crate) fn is_sent(&mut self) -> bool {
        self.sender.recycle();
        // A frame that was copied is free when whoever received it has read it: that is not waited for.
        let is_out = !self.sender.is_zero_copy || self.sender.free.len() == SEND_FRAMES as usize;
        is_out && !self.has_to_send()
    }

    /// Has the device send what was added, and says what that was. A device that sends nothing is not waited for any
    /// longer than [`PATIENCE`], and no more until it has sent something.
    pub(crate) fn send(&mut self, now: Duration) -> Sent {
        let sender = &mut self.sender;
        sender.go_on(self.socket.as_fd());
        sender.kick(self.socket.as_fd());
        sender.has_added = false;
        if std::mem::take(&mut sender.has_moved) {
            self.waits_since = None;
        }
        if !sender.waiting.is_empty() {
            let since = *self.waits_since.get_or_insert(now);
            if now.saturating_sub(since) > PATIENCE {
                sender.sent.dropped += sender.waiting.count() as u64;
                sender.waiting = Backlog::default();
            }
        }
        std::mem::take(&mut sender.sent)
    }
}

/// Where the frame with this number begins.
fn start_of(number: u32) -> u64 {
    u64::from(number) * FRAME_BYTES as u64
}

/// The half of a queue that receives.
pub(crate) struct Receiver {
    memory: Arc<Mapping>,
    fill: Producing<u64>,
    ring: Consuming<libc::xdp_desc>,
    /// Frames of this batch, the refused ones too.
    frames: Vec<u64>,
    /// Frames of batches before, for which the fill ring had no room yet.
    done: Vec<u64>,
    /// Datagrams of this batch: where they are in memory.
    datagrams: Vec<(Route, usize, usize)>,
}

impl Receiver {
    fn fetch(&mut self) -> Refused {
        let mut refused = Refused::default();
        while self.frames.len() < BATCH
            && let Some(found) = self.ring.take()
        {
            // Where the frame begins that the packet is somewhere in.
            self.frames.push(found.addr & !(FRAME_BYTES as u64 - 1));
            let (start, length) = (found.addr as usize, found.len as usize);
            match self.bytes(start, length).map_or(Err(Refusal::Malformed), frame::parse) {
                Ok((route, payload)) => {
                    // The payload is a part of the frame.
                    let at = payload.as_ptr().addr() - self.memory.start().addr().get();
                    let length = payload.len();
                    self.datagrams.push((route, at, length));
                }
                Err(Refusal::Checksum) => refused.bad_checksums += 1,
                Err(Refusal::Malformed | Refusal::Sender) => refused.malformed += 1,
            }
        }
        self.ring.release();
        refused
    }

    /// True if the kernel wants to be told.
    fn give_back(&mut self) -> bool {
        self.datagrams.clear();
        self.done.append(&mut self.frames);
        if self.done.is_empty() {
            return false;
        }
        // The ring is as large as there are frames, but the kernel hands over what has come before it says which frames it
        // has taken (`xsk_flush`): for that moment the ring may look full.
        while let Some(&frame) = self.done.last()
            && self.fill.put(frame)
        {
            self.done.pop();
        }
        self.fill.publish();
        self.fill.wants_wakeup()
    }

    /// `length` bytes of a frame of this batch; None if they are not in the part of memory that receives.
    #[expect(unsafe_code, reason = "memory that the kernel writes")]
    fn bytes(&self, start: usize, length: usize) -> Option<&[u8]> {
        let is_inside = start.checked_add(length)? <= RECEIVE_FRAMES as usize * FRAME_BYTES;
        if !is_inside {
            return None;
        }
        // SAFETY: it is within the mapping, which lives as long as this, and initialised, as mappings are. The kernel has
        // handed the frame over by the receive ring and does not write it before it is in the fill ring again, which
        // `give_back` does, and needs this alone; senders have the other part of the memory.
        Some(unsafe { std::slice::from_raw_parts(self.memory.start().add(start).as_ptr(), length) })
    }

    /// Whether there may be more than this batch.
    pub(crate) fn is_full(&self) -> bool {
        self.frames.len() == BATCH
    }
}

impl Batch for Receiver {
    fn count(&self) -> usize {
        self.datagrams.len()
    }

    fn get(&self, index: usize) -> (Client, &[u8]) {
        let (route, start, length) = self.datagrams[index];
        // It has been found there.
        (Client::Device(route), self.bytes(start, length).unwrap_or_default())
    }
}

/// The half of a queue that sends.
struct Sender {
    memory: Arc<Mapping>,
    ring: Producing<libc::xdp_desc>,
    completion: Consuming<u64>,
    /// Frames that nothing is in.
    free: Vec<u64>,
    /// Bytes of the longest frame.
    frame_bytes_max: usize,
    /// Datagrams that came when no frame was free.
    waiting: Backlog<Route>,
    is_zero_copy: bool,
    /// Frames have come back since that was asked last.
    has_moved: bool,
    /// The kernel could not take what is in the ring for now.
    is_stuck: bool,
    /// Something was added, or dropped, since the last send.
    has_added: bool,
    /// What that was.
    sent: Sent,
}

impl Sender {
    fn push(&mut self, socket: BorrowedFd<'_>, route: &Route, payload: &[u8]) {
        self.has_added = true;
        // Those that wait go first.
        if self.waiting.is_empty() && self.find_room(socket) {
            self.write(route, payload);
        } else if self.waiting.has_room(payload.len()) {
            self.waiting.push(*route, payload);
        } else {
            self.sent.dropped += 1;
        }
    }

    /// Writes what waits into frames, as far as there are some.
    fn go_on(&mut self, socket: BorrowedFd<'_>) {
        let waiting = std::mem::take(&mut self.waiting);
        let mut written = 0;
        for (route, payload) in waiting.iter_from(0) {
            if !self.find_room(socket) {
                break;
            }
            self.write(route, payload);
            written += 1;
        }
        self.waiting = waiting;
        self.waiting.forget(written);
    }

    /// Whether a frame is free, which a kick may make.
    fn find_room(&mut self, socket: BorrowedFd<'_>) -> bool {
        if self.free.is_empty() {
            self.recycle();
        }
        if self.free.is_empty() {
            // Frames that are copied are sent by the call; a device that reads them itself takes its time.
            self.kick(socket);
        }
        !self.free.is_empty()
    }

    /// Writes a datagram into a frame that is free.
    fn write(&mut self, route: &Route, payload: &[u8]) {
        let Some(start) = self.free.pop() else { return };
        let Some(length) = route.write(payload, self.frame(start)) else {
            self.free.push(start);
            self.sent.dropped += 1;
            return;
        };
        let entry = libc::xdp_desc { addr: start, len: length as u32, options: 0 };
        let has_room = self.ring.put(entry);
        debug_assert!(has_room, "the ring is as large as there are frames");
        self.sent.bytes += payload.len() as u64;
    }

    /// The free frame that begins there, as long as a packet of the device may be.
    #[expect(unsafe_code, reason = "memory that the kernel reads")]
    fn frame(&mut self, start: u64) -> &mut [u8] {
        // SAFETY: `free` has starts of frames in the part of the mapping that sends, which lives as long as this, and one
        // that is free neither the kernel nor anything of this process reads; the borrow of `self` keeps it so.
        unsafe {
            let start = self.memory.start().add(start as usize);
            std::slice::from_raw_parts_mut(start.as_ptr(), self.frame_bytes_max)
        }
    }

    /// Has the kernel send what is in the ring.
    fn kick(&mut self, socket: BorrowedFd<'_>) {
        self.ring.publish();
        self.is_stuck = false;
        if self.is_zero_copy {
            if self.ring.wants_wakeup() {
                // The driver has its own time, and the next kick says so again.
                let _ = send(socket, &[], SendFlags::DONTWAIT);
            }
        } else {
            self.copy_out(socket);
        }
        self.recycle();
    }

    /// Where frames are copied it is this call that does it, some at a time.
    fn copy_out(&mut self, socket: BorrowedFd<'_>) {
        let mut waiting = self.ring.waiting();
        while waiting > 0 {
            let result = send(socket, &[], SendFlags::DONTWAIT);
            let before = std::mem::replace(&mut waiting, self.ring.waiting());
            if waiting == before {
                // Full for now, or down: then it stays until the next kick.
                self.is_stuck = matches!(result, Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS));
                return;
            }
        }
    }

    /// Takes back the frames that are sent.
    fn recycle(&mut self) {
        while let Some(start) = self.completion.take() {
            self.free.push(start);
            self.has_moved = true;
        }
        self.completion.release();
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
