//! The event engine: a queue of events in a total order and a lane for each link's packets.
//!
//! ```text
//! EventQueue::pop ──> (time, owner) ──> the owner's handler ──> EventQueue::push, Lanes::append ──> ...
//! ```
//!
//! Events are ordered by time. Events of the same instant are ordered by a rank of their [`Owner`], which is a
//! permutation of the owners that differs from instant to instant, so that no owner wins every tie. The order does not
//! depend on memory addresses or on the order of insertion. The packets in flight on a link wait in a lane of their
//! own, first in, first out, and only the first one is an event.

mod bucket_sort;
mod calendar;
mod key;
mod lanes;
mod queue;
mod ties;
mod wheel;

use plimsoll_units::Time;

pub use lanes::{FoundHop, Lanes};
pub use queue::EventQueue;

/// The owner of an event: a kind, and a number within the kind. [`EventQueue`] says how the owners of one instant are
/// ordered; the order of owners themselves means nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Owner(u32);

/// The kinds of objects that own events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum OwnerKind {
    /// The first packet of a link reaches its far end; the number is the sending port's.
    Link = 0,
    /// A port has requested a call.
    Port = 1,
    /// A host's pacer has requested a call.
    Pacer = 2,
    /// A connection's end has a deadline; the number is twice the connection's, plus the end.
    Endpoint = 3,
    /// A workload has something to send.
    Workload = 4,
    /// The run's own clock: number 0 samples a time series, 1 changes links, 2 drives circuits, 3 begins and
    /// ends nights.
    Clock = 5,
    /// A host hands received packets over: its receive offload, or, with numbers that follow the hosts', the reorder
    /// buffer of an end of a connection.
    Receive = 6,
    /// Pauses reach the port that sends on a link; the number is that port's.
    Pause = 7,
}

const KIND_SHIFT: u32 = 29;

impl Owner {
    /// Returns the owner of `kind` with `number`, below 2^29.
    #[inline]
    pub const fn new(kind: OwnerKind, number: u32) -> Owner {
        debug_assert!(number < 1 << KIND_SHIFT);
        Owner((kind as u32) << KIND_SHIFT | number)
    }

    /// Returns the kind of owner.
    #[inline]
    pub const fn kind(self) -> OwnerKind {
        match self.0 >> KIND_SHIFT {
            0 => OwnerKind::Link,
            1 => OwnerKind::Port,
            2 => OwnerKind::Pacer,
            3 => OwnerKind::Endpoint,
            4 => OwnerKind::Workload,
            5 => OwnerKind::Clock,
            6 => OwnerKind::Receive,
            _ => OwnerKind::Pause,
        }
    }

    /// Returns the number within the kind.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0 & ((1 << KIND_SHIFT) - 1)
    }

    /// Returns whether an event of this owner precedes one of `other` at the same instant.
    pub fn precedes(self, other: Owner, at: Time) -> bool {
        ties::rank(at, self.bits()) < ties::rank(at, other.bits())
    }

    /// Returns kind and number as one word.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the owner for the result `bits` of [`Owner::bits`].
    #[inline]
    pub const fn from_bits(bits: u32) -> Owner {
        Owner(bits)
    }
}
