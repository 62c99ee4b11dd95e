//! [`XdpQueue`]: an AF_XDP socket at one queue of a device, with its datagrams in both directions.
//!
//! ```text
//! fill ring ─> device ─> receive ring ─> Receiver: parse, in place ─────────────> requests
//!     └──────────────────── release ────────┘
//! free frames ─> Sender: write ─> send ring ─ kick, once a turn ─> device ─> completion ring ─> free frames
//!                 └─ none is free: backlog, until some are
//! ```
//!
//! Frames are [`FRAME_BYTES`] each, in the [`Pool`] of the device's queue: some only receive, the others only send.
//! Nothing is allocated after the start, and only one thread uses a socket. With dispatch several sockets share a pool.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_chronos::{Backlog, DeviceQueue, DeviceReceiver, DeviceSender, Rejected, ReturnAddress, Sent};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::frame::{self, ETHERNET_BYTES, FrameRefusal, ReplyRoute};
use super::pool::{FRAME_BYTES, FramePool};
use super::ring::{Consuming, Producing};
use super::socket::overruns;

/// Bytes that the kernel reserves before a received packet (XDP_PACKET_HEADROOM).
const HEADROOM_BYTES: usize = 256;
/// The largest MTU of a device whose packets fit into frames, in bytes.
pub(crate) const MTU_MAX: usize = FRAME_BYTES - HEADROOM_BYTES - ETHERNET_BYTES;
/// The time for which a device may send nothing before the datagrams that wait for it are dropped: its link may be
/// down.
const PATIENCE: Duration = Duration::from_secs(1);
/// The largest number of frames in a batch.
const BATCH: usize = 64;

/// A socket at one queue of a device.
pub(crate) struct XdpQueue {
    socket: Arc<OwnedFd>,
    pool: Arc<FramePool>,
    receiver: QueueReceiver,
    sender: QueueSender,
}

/// The two rings that an AF_XDP socket has for itself.
pub(crate) struct Rings {
    pub(crate) receive: Consuming<libc::xdp_desc>,
    pub(crate) send: Producing<libc::xdp_desc>,
}

impl XdpQueue {
    /// Creates the queue of a device with this MTU. `pool` has its frames, including the frames that the socket with
    /// this number sends, and `rings` belong to `socket`, which is still to be bound.
    pub(crate) fn new(
        socket: OwnedFd,
        number: u32,
        pool: &Arc<FramePool>,
        rings: Rings,
        mtu: usize,
    ) -> XdpQueue {
        let Rings { receive, send } = rings;
        let socket = Arc::new(socket);
        let receiver = QueueReceiver {
            socket: socket.clone(),
            pool: pool.clone(),
            ring: receive,
            frames: Vec::with_capacity(BATCH),
            done: Vec::with_capacity(BATCH),
            datagrams: Vec::with_capacity(BATCH),
            overruns: 0,
        };
        let sender = QueueSender {
            socket: socket.clone(),
            pool: pool.clone(),
            number,
            ring: send,
            free: pool.shape.sends(number).collect(),
            frame_bytes_max: (mtu + ETHERNET_BYTES).min(FRAME_BYTES),
            waiting: Backlog::default(),
            waits_since: None,
            is_zero_copy: false,
            has_moved: false,
            is_stuck: false,
            has_added: false,
            sent: Sent::default(),
        };
        XdpQueue { socket, pool: pool.clone(), receiver, sender }
    }

    /// Notes whether the device reads and writes frames itself.
    pub(crate) fn set_zero_copy(&mut self, is_zero_copy: bool) {
        self.sender.is_zero_copy = is_zero_copy;
    }

    /// Returns the pool, which further sockets of the device's queue may share.
    pub(crate) fn pool(&self) -> &Arc<FramePool> {
        &self.pool
    }

    /// Returns the AF_XDP socket.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Splits the queue into the halves that the runtime uses.
    pub(crate) fn into_halves(self) -> DeviceQueue {
        DeviceQueue { receiver: Box::new(self.receiver), sender: Box::new(self.sender) }
    }
}

/// The half of a queue that receives.
pub(crate) struct QueueReceiver {
    socket: Arc<OwnedFd>,
    pool: Arc<FramePool>,
    ring: Consuming<libc::xdp_desc>,
    /// The frames of this batch, rejected ones included.
    frames: Vec<u64>,
    /// Frames of earlier batches, which the fill ring did not take yet.
    done: Vec<u64>,
    /// The datagrams of this batch: return address, offset in memory, and length.
    datagrams: Vec<(ReplyRoute, usize, usize)>,
    /// The number of overruns that were counted already.
    overruns: u64,
}

impl QueueReceiver {
    /// Returns `length` bytes of a frame of this batch; None if they are not in the part of memory that receives.
    #[expect(unsafe_code, reason = "memory that the kernel writes")]
    fn bytes(&self, start: usize, length: usize) -> Option<&[u8]> {
        let is_inside = start.checked_add(length)? <= self.pool.shape.receive_frames() as usize * FRAME_BYTES;
        if !is_inside {
            return None;
        }
        // SAFETY: it is within the mapping, which lives as long as this, and initialised, as mappings are. The kernel
        // has handed the frame over by the receive ring of this socket alone and does not write it before it is in the
        // fill ring again, which `release` does, and needs this alone; senders have the other part of the memory.
        Some(unsafe { std::slice::from_raw_parts(self.pool.memory.start().add(start).as_ptr(), length) })
    }
}

impl DeviceReceiver for QueueReceiver {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn has_received(&self) -> bool {
        !self.ring.is_empty()
    }

    fn receive(&mut self) -> Rejected {
        let mut rejected = Rejected::default();
        while self.frames.len() < BATCH
            && let Some(found) = self.ring.take()
        {
            // The start of the frame that has the packet.
            self.frames.push(found.addr & !(FRAME_BYTES as u64 - 1));
            let (start, length) = (found.addr as usize, found.len as usize);
            match self.bytes(start, length).map_or(Err(FrameRefusal::Malformed), frame::parse) {
                Ok((route, payload)) => {
                    // The payload is a part of the frame.
                    let at = payload.as_ptr().addr() - self.pool.memory.start().addr().get();
                    let length = payload.len();
                    self.datagrams.push((route, at, length));
                }
                Err(FrameRefusal::Checksum) => rejected.bad_checksums += 1,
                Err(FrameRefusal::Malformed | FrameRefusal::Sender) => rejected.malformed += 1,
            }
        }
        self.ring.release();
        rejected
    }

    fn count(&self) -> usize {
        self.datagrams.len()
    }

    fn get(&self, index: usize) -> (ReturnAddress, &[u8]) {
        let (route, start, length) = &self.datagrams[index];
        // `receive` has checked the range.
        (route.encode(), self.bytes(*start, *length).unwrap_or_default())
    }

    fn is_full(&self) -> bool {
        self.frames.len() == BATCH
    }

    fn release(&mut self) {
        self.datagrams.clear();
        self.done.append(&mut self.frames);
        if self.done.is_empty() {
            return;
        }
        if self.pool.give_back(&mut self.done) {
            // The call makes the driver continue; its result concerns sending, or nothing new.
            let _ = recv(&self.socket, &mut [0; 0][..], RecvFlags::DONTWAIT);
        }
    }

    fn overruns(&mut self) -> u64 {
        // A kernel that does not report overruns has none that could be counted.
        let all = overruns(&self.socket).unwrap_or(self.overruns);
        let before = std::mem::replace(&mut self.overruns, all);
        all.saturating_sub(before)
    }
}

/// The half of a queue that sends.
struct QueueSender {
    socket: Arc<OwnedFd>,
    pool: Arc<FramePool>,
    /// The number of the socket among the sockets that share the pool.
    number: u32,
    ring: Producing<libc::xdp_desc>,
    /// The offsets of the frames that are free.
    free: Vec<u64>,
    /// The length of the longest frame in bytes.
    frame_bytes_max: usize,
    /// Datagrams that were added while no frame was free.
    waiting: Backlog<ReplyRoute>,
    /// The time since which datagrams have waited while the device sent nothing.
    waits_since: Option<Duration>,
    is_zero_copy: bool,
    /// True if the device has sent a frame since the last call of `send`.
    has_moved: bool,
    /// True if the kernel does not take the entries of the ring for now.
    is_stuck: bool,
    /// True if something was added, or dropped, since the last call of `send`.
    has_added: bool,
    /// The bytes and drops to be reported by the next call of `send`.
    sent: Sent,
}

impl DeviceSender for QueueSender {
    fn push(&mut self, to: &ReturnAddress, payload: &[u8]) {
        let Some(route) = ReplyRoute::decode(to) else { return };
        self.has_added = true;
        // Waiting datagrams are sent first.
        if self.waiting.is_empty() && self.find_room() {
            self.write(&route, payload);
        } else if self.waiting.has_room(payload.len()) {
            self.waiting.push(route, payload);
        } else {
            self.sent.dropped += 1;
        }
    }

    fn has_to_send(&self) -> bool {
        self.has_added || self.is_stuck()
    }

    /// Makes the device send the datagrams that were added. The sender waits for an inactive device no longer than
    /// [`PATIENCE`], and not at all until the device has sent something.
    fn send(&mut self, now: Duration) -> Sent {
        self.write_backlog();
        self.kick();
        self.has_added = false;
        if std::mem::take(&mut self.has_moved) {
            self.waits_since = None;
        }
        if !self.waiting.is_empty() {
            let since = *self.waits_since.get_or_insert(now);
            if now.saturating_sub(since) > PATIENCE {
                self.sent.dropped += self.waiting.count() as u64;
                self.waiting = Backlog::default();
            }
        }
        std::mem::take(&mut self.sent)
    }

    fn is_stuck(&self) -> bool {
        self.is_stuck || !self.waiting.is_empty()
    }

    fn is_sent(&mut self) -> bool {
        self.recycle();
        // A frame that was copied is free when its receiver has read it; the sender does not wait for that.
        let is_out = !self.is_zero_copy || self.free.len() == self.pool.shape.send as usize;
        is_out && !self.has_to_send()
    }
}

impl QueueSender {
    /// Writes the datagrams that wait into frames, as far as there are free ones.
    fn write_backlog(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let mut written = 0;
        for (route, payload) in waiting.iter_from(0) {
            if !self.find_room() {
                break;
            }
            self.write(route, payload);
            written += 1;
        }
        self.waiting = waiting;
        self.waiting.forget(written);
    }

    /// Reports whether a frame is free, after an attempt to free one.
    fn find_room(&mut self) -> bool {
        if self.free.is_empty() {
            self.recycle();
        }
        if self.free.is_empty() {
            // Copied frames are sent by the call; a device that reads them itself takes its time.
            self.kick();
        }
        !self.free.is_empty()
    }

    /// Writes a datagram into a free frame, and puts the frame into the send ring.
    fn write(&mut self, route: &ReplyRoute, payload: &[u8]) {
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

    /// Returns the free frame at offset `start`, as long as a packet of the device may be.
    #[expect(unsafe_code, reason = "memory that the kernel reads")]
    fn frame(&mut self, start: u64) -> &mut [u8] {
        // SAFETY: `free` has starts of frames in the part of the mapping that this socket sends, which lives as long as
        // this, and one that is free neither the kernel nor anything of this process reads; the borrow of `self` keeps
        // it so.
        unsafe {
            let start = self.pool.memory.start().add(start as usize);
            std::slice::from_raw_parts_mut(start.as_ptr(), self.frame_bytes_max)
        }
    }

    /// Makes the kernel send the entries of the ring.
    fn kick(&mut self) {
        self.ring.publish();
        self.is_stuck = false;
        if self.is_zero_copy {
            if self.ring.wants_wakeup() {
                // The driver sends in its own time, and the next kick asks again.
                let _ = send(&self.socket, &[], SendFlags::DONTWAIT);
            }
        } else {
            self.copy_out();
        }
        self.recycle();
    }

    /// Calls the kernel until it has copied and sent the frames of the ring, some at a time.
    fn copy_out(&mut self) {
        let mut waiting = self.ring.waiting();
        while waiting > 0 {
            let result = send(&self.socket, &[], SendFlags::DONTWAIT);
            let before = std::mem::replace(&mut waiting, self.ring.waiting());
            if waiting == before {
                // Full for now, or down: then the frame stays until the next kick.
                self.is_stuck = matches!(result, Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS));
                return;
            }
        }
    }

    /// Frees the frames that the device has sent.
    fn recycle(&mut self) {
        self.has_moved |= self.pool.collect(self.number, &mut self.free);
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
