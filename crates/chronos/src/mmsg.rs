//! Datagrams by the batch: `recvmmsg` and `sendmmsg`, one call for many.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::{mem, ptr};

use crate::backlog::Backlog;
use crate::device::Sent;
use crate::port::{Batch, Client};

/// A client's address as the kernel writes it: large enough for IPv6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    bytes: [u8; size_of::<libc::sockaddr_in6>()],
    length: u32,
}

/// Datagrams received at once.
const BATCH: usize = 32;
/// Datagrams sent at once.
const SENDS: usize = 64;
/// The largest datagram that there is.
const DATAGRAM_BYTES: usize = 65_536;

const NOWHERE: Address = Address { bytes: [0; size_of::<libc::sockaddr_in6>()], length: 0 };

/// Datagrams received.
pub(crate) struct Received {
    bytes: Box<[u8]>,
    addresses: [Address; BATCH],
    lengths: [usize; BATCH],
    count: usize,
}

impl Received {
    pub(crate) fn new() -> Received {
        // Untouched memory costs nothing: only as much as datagrams are long is ever used of each place.
        let bytes = vec![0; BATCH * DATAGRAM_BYTES].into_boxed_slice();
        Received { bytes, addresses: [NOWHERE; BATCH], lengths: [0; BATCH], count: 0 }
    }

    /// Receives what waits at a non-blocking socket, in place of what was received before.
    pub(crate) fn receive(&mut self, socket: impl AsFd) {
        // An error is what an earlier datagram met with (its client is gone, say), not these.
        self.count = self.receive_some(socket).unwrap_or_default();
    }

    /// Whether there may be more.
    pub(crate) fn is_full(&self) -> bool {
        self.count == BATCH
    }

    /// Says how many there were; 0 if none.
    #[expect(unsafe_code, reason = "no safe crate of this workspace has recvmmsg")]
    fn receive_some(&mut self, socket: impl AsFd) -> io::Result<usize> {
        // SAFETY: all-zero is a valid `iovec` and `mmsghdr`: null pointers with lengths of zero.
        let (mut slices, mut headers): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        let places = self.bytes.chunks_exact_mut(DATAGRAM_BYTES).zip(&mut self.addresses);
        for ((place, address), (slice, header)) in places.zip(slices.iter_mut().zip(&mut headers)) {
            *slice = libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: place.len() };
            header.msg_hdr.msg_name = address.bytes.as_mut_ptr().cast();
            header.msg_hdr.msg_namelen = address.bytes.len() as u32;
            header.msg_hdr.msg_iov = slice;
            header.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: each header points to one slice, each slice to a place of its own in `self.bytes` and each name to
        // an address of `self.addresses`, all of which live until the call returns, with the lengths that are said.
        let count = unsafe {
            let (socket, flags) = (socket.as_fd().as_raw_fd(), libc::MSG_DONTWAIT);
            libc::recvmmsg(socket, headers.as_mut_ptr(), BATCH as u32, flags, ptr::null_mut())
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            let is_none = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
            return if is_none { Ok(0) } else { Err(error) };
        }
        for (index, header) in headers.iter().enumerate().take(count as usize) {
            self.lengths[index] = (header.msg_len as usize).min(DATAGRAM_BYTES);
            self.addresses[index].length = header.msg_hdr.msg_namelen;
        }
        Ok(count as usize)
    }
}

impl Batch for Received {
    fn count(&self) -> usize {
        self.count
    }

    fn get(&self, index: usize) -> (Client, &[u8]) {
        let bytes = &self.bytes[index * DATAGRAM_BYTES..][..self.lengths[index]];
        (Client::Socket(self.addresses[index]), bytes)
    }
}

/// Datagrams to be sent.
#[derive(Default)]
pub(crate) struct Outgoing {
    waiting: Backlog<Address>,
    /// The socket took no more when it was last asked.
    is_full: bool,
    /// Datagrams dropped since then.
    dropped: u64,
}

impl Outgoing {
    /// Adds a datagram; drops it where enough waits for the socket.
    pub(crate) fn push(&mut self, address: Address, datagram: &[u8]) {
        if self.is_full && !self.waiting.has_room(datagram.len()) {
            self.dropped += 1;
            return;
        }
        self.waiting.push(address, datagram);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends what the socket has room for, and keeps the rest; those that the kernel refuses are dropped, as on the way.
    pub(crate) fn send(&mut self, socket: impl AsFd) -> Sent {
        let mut sent = Sent { bytes: 0, dropped: mem::take(&mut self.dropped) };
        let mut from = 0;
        self.is_full = false;
        while from < self.waiting.count() && !self.is_full {
            match self.send_some(&socket, from) {
                Ok(count) => {
                    sent.bytes += self.waiting.bytes_of(from..from + count) as u64;
                    from += count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_full = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The error is the first one's: a client that cannot be reached, say.
                Err(_) => {
                    sent.dropped += 1;
                    from += 1;
                }
            }
        }
        self.waiting.forget(from);
        sent
    }

    /// Sends up to [`SENDS`] datagrams from the one with index `from`, and says how many went; at least 1.
    #[expect(unsafe_code, reason = "no safe crate of this workspace has sendmmsg with addresses")]
    fn send_some(&self, socket: impl AsFd, from: usize) -> io::Result<usize> {
        // SAFETY: all-zero is a valid `iovec` and `mmsghdr`: null pointers with lengths of zero.
        let (mut slices, mut headers): ([libc::iovec; SENDS], [libc::mmsghdr; SENDS]) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        let places = slices.iter_mut().zip(&mut headers);
        let mut count = 0;
        for ((address, datagram), (slice, header)) in self.waiting.iter_from(from).zip(places) {
            *slice = libc::iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: datagram.len() };
            header.msg_hdr.msg_name = address.bytes.as_ptr().cast_mut().cast();
            header.msg_hdr.msg_namelen = address.length;
            header.msg_hdr.msg_iov = slice;
            header.msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        // SAFETY: the first `count` headers point to one slice each, which points to a datagram that waits, and to its
        // address; neither changes until the call returns, and the kernel only reads them.
        let result = unsafe {
            let (socket, flags) = (socket.as_fd().as_raw_fd(), libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
            libc::sendmmsg(socket, headers.as_mut_ptr(), count, flags)
        };
        if result > 0 { Ok(result as usize) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    /// A UNIX socket takes as many datagrams as its reader's queue has room for, and then none, as UDP does where the
    /// network is slower than the server.
    #[test]
    fn what_a_full_socket_does_not_take_is_kept_in_order() {
        let (sender, receiver) = UnixDatagram::pair().unwrap();
        let mut outgoing = Outgoing::default();
        const COUNT: u32 = 5000;
        (0..COUNT).for_each(|number| outgoing.push(NOWHERE, &number.to_le_bytes()));
        let mut sent = Sent::default();
        let mut pauses = 0;
        for number in 0..COUNT {
            if !outgoing.is_empty() {
                let more = outgoing.send(&sender);
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
        let mut outgoing = Outgoing::default();
        let datagram = [0; 1 << 16];
        let mut dropped = 0;
        for _ in 0..2000 {
            outgoing.push(NOWHERE, &datagram);
            dropped += outgoing.send(&sender).dropped;
        }
        let bytes = outgoing.waiting.bytes_of(0..outgoing.waiting.count());
        assert!(bytes <= Backlog::<Address>::BYTES_MAX && dropped > 0, "{bytes} bytes wait");
        // A client that is gone is no reason to wait.
        drop(receiver);
        outgoing.send(&sender);
        assert!(outgoing.is_empty());
    }
}
