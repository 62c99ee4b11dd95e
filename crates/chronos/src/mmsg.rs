//! Datagrams in batches: `recvmmsg` and `sendmmsg` receive and send many by one system call.

use std::io::{IoSlice, IoSliceMut};
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmmsg};

use crate::backlog::Backlog;
use crate::device::Sent;
use crate::port::{DatagramBatch, DatagramSender};

/// The largest number of datagrams received by one call.
const BATCH: usize = 32;
/// The largest number of datagrams sent by one call.
const SENDS: usize = 64;
/// The size of the largest datagram in bytes.
const DATAGRAM_BYTES: usize = 65_536;

/// Datagrams that were received together.
pub(crate) struct Received {
    bytes: Box<[u8]>,
    addresses: [Option<SocketAddr>; BATCH],
    lengths: [usize; BATCH],
    count: usize,
}

impl Received {
    pub(crate) fn new() -> Received {
        // Untouched memory costs nothing, and each place uses only as much as its datagrams are long.
        let bytes = vec![0; BATCH * DATAGRAM_BYTES].into_boxed_slice();
        Received { bytes, addresses: [None; BATCH], lengths: [0; BATCH], count: 0 }
    }

    /// Reports whether more datagrams may wait than the batch had room for.
    pub(crate) fn is_full(&self) -> bool {
        self.count == BATCH
    }
}

impl DatagramBatch for Received {
    fn count(&self) -> usize {
        self.count
    }

    fn get(&self, index: usize) -> (DatagramSender, &[u8]) {
        let bytes = &self.bytes[index * DATAGRAM_BYTES..][..self.lengths[index]];
        (DatagramSender::Socket(self.addresses[index]), bytes)
    }
}

/// A non-blocking UDP socket, and the datagrams to be sent by it.
pub(crate) struct DatagramSocket {
    socket: OwnedFd,
    /// The headers of received datagrams. They belong to one socket: the kernel shortens the room for an address to the
    /// length of the last, which differs between IPv4 and IPv6.
    received: MultiHeaders<SockaddrStorage>,
    sent: MultiHeaders<SockaddrStorage>,
    waiting: Backlog<Option<SocketAddr>>,
    /// True if the socket took no more when it was last asked.
    is_full: bool,
    /// The number of datagrams that were dropped since the last call of `send`.
    dropped: u64,
}

impl DatagramSocket {
    pub(crate) fn new(socket: OwnedFd) -> DatagramSocket {
        DatagramSocket {
            socket,
            received: MultiHeaders::preallocate(BATCH, None),
            sent: MultiHeaders::preallocate(SENDS, None),
            waiting: Backlog::default(),
            is_full: false,
            dropped: 0,
        }
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Receives the datagrams that wait into `batch`, in place of its earlier ones.
    pub(crate) fn receive(&mut self, batch: &mut Received) {
        batch.count = 0;
        let mut places = batch.bytes.chunks_exact_mut(DATAGRAM_BYTES);
        let mut slices: [[IoSliceMut<'_>; 1]; BATCH] =
            std::array::from_fn(|_| [IoSliceMut::new(places.next().unwrap_or_default())]);
        let (socket, flags) = (self.socket.as_raw_fd(), MsgFlags::MSG_DONTWAIT);
        let Ok(found) = recvmmsg(socket, &mut self.received, slices.iter_mut(), flags, None) else {
            // Nothing waits; or an earlier datagram caused the error: its client is gone, for example.
            return;
        };
        for (index, message) in found.enumerate() {
            batch.lengths[index] = message.bytes.min(DATAGRAM_BYTES);
            batch.addresses[index] = message.address.as_ref().and_then(address_of);
            batch.count = index + 1;
        }
    }

    /// Adds a datagram; drops it where enough waits for the socket.
    pub(crate) fn push(&mut self, address: Option<SocketAddr>, datagram: &[u8]) {
        if self.is_full && !self.waiting.has_room(datagram.len()) {
            self.dropped += 1;
            return;
        }
        self.waiting.push(address, datagram);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends the datagrams that the socket has room for, and keeps the rest. Datagrams that the kernel rejects are
    /// dropped, as if they were lost in the network.
    pub(crate) fn send(&mut self) -> Sent {
        let mut sent = Sent { bytes: 0, dropped: mem::take(&mut self.dropped) };
        let mut from = 0;
        self.is_full = false;
        while from < self.waiting.count() && !self.is_full {
            match self.send_some(from) {
                Ok(count) => {
                    sent.bytes += self.waiting.bytes_of(from..from + count) as u64;
                    from += count;
                }
                Err(Errno::EAGAIN) => self.is_full = true,
                Err(Errno::EINTR) => {}
                // The error is that of the first datagram: its client cannot be reached, for example.
                Err(_) => {
                    sent.dropped += 1;
                    from += 1;
                }
            }
        }
        self.waiting.forget(from);
        sent
    }

    /// Sends up to [`SENDS`] datagrams from index `from` on, and returns the number sent, which is at least 1.
    fn send_some(&mut self, from: usize) -> nix::Result<usize> {
        let mut slices = [[IoSlice::new(&[])]; SENDS];
        let mut addresses = [None; SENDS];
        let mut count = 0;
        let places = slices.iter_mut().zip(&mut addresses);
        for ((address, datagram), (slice, place)) in self.waiting.iter_from(from).zip(places) {
            *slice = [IoSlice::new(datagram)];
            *place = address.map(SockaddrStorage::from);
            count += 1;
        }
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let socket = self.socket.as_raw_fd();
        let sent = sendmmsg(socket, &mut self.sent, &slices[..count], &addresses[..count], [], flags)?;
        Ok(sent.count())
    }
}

fn address_of(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|address| SocketAddr::V4((*address).into()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| SocketAddr::V6((*address).into())))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::unix::net::UnixDatagram;

    use super::*;

    /// A UNIX socket takes as many datagrams as its reader's queue has room for, and then none, as a UDP socket does
    /// when the network is slower than the server.
    #[test]
    fn what_a_full_socket_does_not_take_is_kept_in_order() {
        let (sender, receiver) = UnixDatagram::pair().unwrap();
        let mut outgoing = DatagramSocket::new(sender.into());
        const COUNT: u32 = 5000;
        (0..COUNT).for_each(|number| outgoing.push(None, &number.to_le_bytes()));
        let mut sent = Sent::default();
        let mut pauses = 0;
        for number in 0..COUNT {
            if !outgoing.is_empty() {
                let more = outgoing.send();
                sent = Sent { bytes: sent.bytes + more.bytes, dropped: sent.dropped + more.dropped };
                pauses += u32::from(!outgoing.is_empty());
            }
            let mut datagram = [0; 4];
            assert_eq!(receiver.recv(&mut datagram).unwrap(), 4);
            assert_eq!(u32::from_le_bytes(datagram), number);
        }
        assert!(pauses > 0, "the socket was never full");
        assert_eq!(sent, Sent { bytes: u64::from(COUNT) * 4, dropped: 0 });
    }

    #[test]
    fn what_waits_for_a_full_socket_is_bounded() {
        let (sender, receiver) = UnixDatagram::pair().unwrap();
        let mut outgoing = DatagramSocket::new(sender.into());
        let datagram = [0; 1 << 16];
        let mut dropped = 0;
        for _ in 0..2000 {
            outgoing.push(None, &datagram);
            dropped += outgoing.send().dropped;
        }
        let bytes = outgoing.waiting.bytes_of(0..outgoing.waiting.count());
        assert!(bytes <= Backlog::<Option<SocketAddr>>::BYTES_MAX && dropped > 0, "{bytes} bytes wait");
        // The kernel does not wait for a client that has gone.
        drop(receiver);
        outgoing.send();
        assert!(outgoing.is_empty());
    }

    /// One batch serves sockets of both address families, whose addresses differ in length.
    #[test]
    fn replies_reach_senders_of_both_families() {
        let mut received = Received::new();
        for host in ["127.0.0.1", "[::1]", "127.0.0.1", "[::1]"] {
            let Ok(socket) = UdpSocket::bind(format!("{host}:0")) else { continue };
            let server = socket.local_addr().unwrap();
            let mut socket = DatagramSocket::new(socket.into());
            for number in 0..3_u8 {
                let client = UdpSocket::bind(format!("{host}:0")).unwrap();
                client.send_to(&[number; 100], server).unwrap();
                socket.receive(&mut received);
                assert_eq!(received.count(), 1);
                let (DatagramSender::Socket(address), datagram) = received.get(0) else {
                    panic!("a socket's client")
                };
                assert_eq!((address, datagram), (Some(client.local_addr().unwrap()), &[number; 100][..]));
                socket.push(address, datagram);
                assert_eq!(socket.send(), Sent { bytes: 100, dropped: 0 });
                let mut reply = [0; 200];
                assert_eq!((client.recv(&mut reply).unwrap(), reply[0]), (100, number));
            }
        }
    }
}
