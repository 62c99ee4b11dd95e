//! [`FramePool`]: the frames of one device queue, and the two rings in which they circulate: frames that the kernel may
//! receive into, and frames that it has sent.
//!
//! ```text
//! fill ring ─> kernel ─> receive ring of a socket ─> its thread ─> give_back ─> fill ring
//! own free frames ─> send ring of a socket ─> kernel ─> completion ring ─> collect ─> the owner's free frames
//! ```
//!
//! With dispatch several sockets, one a thread, share a queue's pool (XDP_SHARED_UMEM). Each has its own receive and
//! send rings, but the kernel wants a single producer of the fill ring and a single consumer of the completion ring. A
//! thread with frames for a ring takes this role for a moment: it takes the ring, passes a batch of frames, and leaves
//! it. A thread that finds the ring taken does not wait; it keeps its frames for its next turn. So no thread depends on
//! another one to be awake, as it would if one owned the rings.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use super::ring::{Consuming, MappedMemory, Producing};

/// The size of a frame in bytes: a page, which is the largest that the kernel allows.
pub(crate) const FRAME_BYTES: usize = 4096;
/// The number of frames that a queue can receive before its thread takes them, a power of two.
pub(crate) const RECEIVE_FRAMES: u32 = 2048;
/// The number of frames that a queue can have in flight, a power of two: a value of 1 MiB in datagrams of 1400 bytes.
pub(crate) const SEND_FRAMES: u32 = 1024;
/// The least of either that a socket has, regardless of the number that share the queue.
const SHARE_MIN: u32 = 256;
/// Received frames that a socket keeps rather than wait for the fill ring.
const KEPT_MAX: usize = 64;

/// The numbers of frames and ring entries of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    /// The number of sockets that share the queue, 1 or more.
    pub(crate) sockets: u32,
    /// The entries of each socket's receive ring, a power of two. There are as many frames to receive into for each
    /// socket, so that one whose thread is late leaves the others theirs.
    pub(crate) receive: u32,
    /// The frames that each socket has to send, and the entries of its send ring, a power of two.
    pub(crate) send: u32,
}

impl Shape {
    /// Returns the shape of a queue that `sockets` sockets share.
    pub(crate) fn of(sockets: u32) -> Shape {
        let share = |frames: u32| (frames / sockets.next_power_of_two()).max(SHARE_MIN);
        Shape { sockets, receive: share(RECEIVE_FRAMES), send: share(SEND_FRAMES) }
    }

    /// Returns the number of frames that only receive, which are the first of the memory.
    pub(crate) fn receive_frames(self) -> u32 {
        self.receive * self.sockets
    }

    /// Returns the number of all frames.
    pub(crate) fn frames(self) -> u32 {
        self.receive_frames() + self.send * self.sockets
    }

    /// Returns the bytes of all frames, which the kernel keeps in memory (RLIMIT_MEMLOCK).
    pub(crate) fn memory_bytes(self) -> usize {
        self.frames() as usize * FRAME_BYTES
    }

    /// Returns the entries of the fill ring, a power of two.
    pub(crate) fn fill_entries(self) -> u32 {
        self.receive_frames().next_power_of_two()
    }

    /// Returns the entries of the completion ring, a power of two.
    pub(crate) fn completion_entries(self) -> u32 {
        (self.send * self.sockets).next_power_of_two()
    }

    /// Returns the offsets of the frames that the socket with this number sends, which is below the number of sockets.
    pub(crate) fn sends(self, socket: u32) -> impl Iterator<Item = u64> {
        let first = self.receive_frames() + socket * self.send;
        (first..first + self.send).map(start_of)
    }

    /// Returns the number of the socket that sends the frame at `offset`; None if there is none.
    fn sender_of(self, offset: u64) -> Option<u32> {
        let number = u32::try_from(offset / FRAME_BYTES as u64).ok()?;
        let socket = number.checked_sub(self.receive_frames())? / self.send;
        (socket < self.sockets).then_some(socket)
    }
}

/// Returns the offset of the frame with this number.
fn start_of(number: u32) -> u64 {
    u64::from(number) * FRAME_BYTES as u64
}

/// The frames of a device queue, and their rings.
#[derive(Debug)]
pub(crate) struct FramePool {
    pub(crate) memory: MappedMemory,
    pub(crate) shape: Shape,
    fill: Mutex<Producing<u64>>,
    completed: Mutex<Completed>,
}

/// The frames that the kernel has sent.
#[derive(Debug)]
struct Completed {
    ring: Consuming<u64>,
    /// The frames taken from the ring, by the socket to which they belong.
    free: Vec<Vec<u64>>,
}

impl FramePool {
    /// Creates a pool whose frames are in `memory`, and hands the receiving ones to the kernel.
    pub(crate) fn new(
        memory: MappedMemory,
        shape: Shape,
        mut fill: Producing<u64>,
        completion: Consuming<u64>,
    ) -> FramePool {
        debug_assert_eq!(memory.bytes(), shape.memory_bytes());
        for number in 0..shape.receive_frames() {
            let has_room = fill.put(start_of(number));
            debug_assert!(has_room, "the ring is as large");
        }
        fill.publish();
        let free = (0..shape.sockets).map(|_| Vec::with_capacity(shape.send as usize)).collect();
        let completed = Mutex::new(Completed { ring: completion, free });
        FramePool { memory, shape, fill: Mutex::new(fill), completed }
    }

    /// Gives `frames` back to the kernel, to receive into. Frames for which the ring has no room, or that find the ring
    /// taken by another thread, stay in `frames` for the next call. Returns whether the driver wants to be woken.
    pub(crate) fn give_back(&self, frames: &mut Vec<u64>) -> bool {
        let fill =
            if frames.len() <= KEPT_MAX { unless_taken(&self.fill) } else { Some(wait_for(&self.fill)) };
        let Some(mut fill) = fill else { return false };
        // The ring is as large as there are frames, but the kernel hands over a packet before it says which frames it
        // has taken (`xsk_flush`): for that moment the ring may look full.
        while let Some(&frame) = frames.last()
            && fill.put(frame)
        {
            frames.pop();
        }
        fill.publish();
        fill.wants_wakeup()
    }

    /// Adds to `free` the frames of this socket that the kernel has sent. Returns whether there are any; there may be
    /// some although not, if another thread has the ring.
    pub(crate) fn collect(&self, socket: u32, free: &mut Vec<u64>) -> bool {
        let Some(mut completed) = unless_taken(&self.completed) else { return false };
        let Completed { ring, free: all } = &mut *completed;
        while let Some(start) = ring.take() {
            let sender = self.shape.sender_of(start);
            debug_assert!(sender.is_some(), "frame {start} was never sent");
            if let Some(sender) = sender {
                all[sender as usize].push(start);
            }
        }
        ring.release();
        let own = &mut all[socket as usize];
        let has_some = !own.is_empty();
        free.append(own);
        has_some
    }
}

/// Takes the value in the mutex, unless another thread has it.
fn unless_taken<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Takes the value in the mutex, after another thread.
fn wait_for<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_share_a_queues_frames() {
        for (sockets, receive, send, megabytes) in [
            (1, 2048, 1024, 12),
            (2, 1024, 512, 12),
            (3, 512, 256, 9),
            (4, 512, 256, 12),
            (64, 256, 256, 128),
        ] {
            let shape = Shape::of(sockets);
            assert_eq!(shape, Shape { sockets, receive, send });
            assert_eq!(shape.memory_bytes(), megabytes << 20, "{sockets} sockets");
            assert!(shape.fill_entries() >= shape.receive_frames());
            let senders: Vec<_> =
                (0..shape.frames()).map(|number| shape.sender_of(start_of(number))).collect();
            let (receiving, sending) = senders.split_at(shape.receive_frames() as usize);
            assert!(receiving.iter().all(Option::is_none));
            for (socket, frames) in (0..sockets).zip(sending.chunks(send as usize)) {
                assert!(frames.iter().all(|&sender| sender == Some(socket)));
                assert!(shape.sends(socket).all(|start| shape.sender_of(start) == Some(socket)));
                assert_eq!(shape.sends(socket).count(), send as usize);
            }
            assert_eq!(shape.sender_of(start_of(shape.frames())), None);
        }
    }
}
