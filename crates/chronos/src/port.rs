//! [`Port`]: where datagrams come to one thread: a UDP socket of the kernel, or a queue of a device.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::mmsg::{Address, Outgoing, Sent};
use crate::xdp::{Queue, Route};

/// One thread's place for datagrams.
pub(crate) enum Port {
    /// A UDP socket, and what it is to send.
    Socket(OwnedFd, Outgoing),
    /// A queue of a device, past the kernel's stack.
    Queue(Queue),
}

/// Who sent a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Client {
    /// As a socket knows it.
    Socket(Address),
    /// As a device's frames know it.
    Device(Route),
}

/// Datagrams that came together.
pub(crate) trait Batch {
    /// How many they are.
    fn count(&self) -> usize;
    /// A datagram and its sender, by its number below [`Batch::count`].
    fn get(&self, index: usize) -> (Client, &[u8]);
}

impl Port {
    /// What tells that a datagram is there, by its being readable.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Port::Socket(socket, _) => socket.as_fd(),
            Port::Queue(queue) => queue.socket(),
        }
    }

    /// Adds a datagram to `client`, whom a datagram of this port named.
    pub(crate) fn push(&mut self, client: &Client, datagram: &[u8]) {
        match (self, client) {
            (Port::Socket(_, outgoing), Client::Socket(address)) => outgoing.push(*address, datagram),
            (Port::Queue(queue), Client::Device(route)) => queue.push(route, datagram),
            _ => unreachable!("a client is known as the port knows it that it came by"),
        }
    }

    /// Whether there is something to be sent.
    pub(crate) fn has_to_send(&self) -> bool {
        match self {
            Port::Socket(_, outgoing) => !outgoing.is_empty(),
            Port::Queue(queue) => queue.has_to_send(),
        }
    }

    /// Sends what was added.
    pub(crate) fn send(&mut self, now: Duration) -> Sent {
        match self {
            Port::Socket(socket, outgoing) => outgoing.send(socket),
            Port::Queue(queue) => queue.send(now),
        }
    }

    /// Whether what was to be sent waits for the kernel or the device: it is to be sent again soon.
    pub(crate) fn is_stuck(&self) -> bool {
        match self {
            Port::Socket(_, outgoing) => !outgoing.is_empty(),
            Port::Queue(queue) => queue.is_stuck(),
        }
    }

    /// Whether all that was added has gone: a server that stops closes it then.
    pub(crate) fn is_sent(&mut self) -> bool {
        match self {
            Port::Socket(_, outgoing) => outgoing.is_empty(),
            Port::Queue(queue) => queue.is_sent(),
        }
    }
}
