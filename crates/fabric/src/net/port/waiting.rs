//! [`Waiting`]: a packet in a queue.

use std::collections::VecDeque;

use plimsoll_units::Time;

use crate::net::{Packet, Slot};

/// A packet that waits, in a quarter of a cache line: the fields that a queue decides by, and the packet's slot.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The time since which it waits.
    pub(super) since: Time,
    pub(super) slot: Slot,
    /// The number of bytes on the wire.
    pub(super) size: u16,
    /// 802.1p priority, 0..=7.
    pub(super) priority: u8,
    /// The pacer decided, when the packet arrived, that it draws when it leaves.
    pub(super) draws: bool,
}

const _: () = assert!(size_of::<Waiting>() == 16, "four fit into a cache line");

/// A packet that leaves its queue to be sent.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) waiting: Waiting,
    /// The discipline decided that it is marked.
    pub(super) mark: bool,
}

impl Leaving {
    /// A packet that its queue does not mark.
    #[inline]
    pub(super) fn unmarked(waiting: Waiting) -> Leaving {
        Leaving { waiting, mark: false }
    }
}

impl Waiting {
    /// Returns `packet`, which is in `slot`, as a packet that waits from `since` on.
    #[inline]
    pub(super) fn new(slot: Slot, packet: &Packet, since: Time, draws: bool) -> Waiting {
        Waiting { since, slot, size: packet.size, priority: packet.priority, draws }
    }
}

/// Returns whether the queue is empty; then the next packet gets the first place of the ring, which is in the cache. A
/// ring that was long once would otherwise step through all of its memory, even if only one packet waits at a time.
#[inline]
pub(super) fn begins_anew(queue: &mut VecDeque<Waiting>) -> bool {
    let is_empty = queue.is_empty();
    if is_empty {
        queue.clear();
    }
    is_empty
}

/// Returns the slots of the packets of a queue, the first first.
pub(super) fn line_of(queue: &VecDeque<Waiting>) -> Vec<Slot> {
    queue.iter().map(|waiting| waiting.slot).collect()
}
