//! Sends and receives several datagrams a system call.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::AsRawFd;

use nix::sys::socket::{MsgFlags, MultiHeaders, recvmmsg, sendmmsg};
use socket2::Socket;

/// The buffers that receive datagrams.
pub struct ReceiveBuffers {
    headers: MultiHeaders<()>,
    buffers: Box<[[u8; DATAGRAM_BYTES]; BATCH]>,
}

impl ReceiveBuffers {
    /// Allocates buffers for one call.
    pub fn new() -> ReceiveBuffers {
        ReceiveBuffers {
            headers: MultiHeaders::preallocate(BATCH, None),
            buffers: Box::new([[0; DATAGRAM_BYTES]; BATCH]),
        }
    }

    /// Receives datagrams of `socket`; those beyond the buffers come with the next call.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; else the error of the socket.
    pub fn receive(&mut self, socket: &Socket) -> io::Result<impl Iterator<Item = &[u8]>> {
        let mut lengths = [0; BATCH];
        let mut slices = self.buffers.each_mut().map(|buffer| [IoSliceMut::new(buffer)]);
        let received =
            recvmmsg(socket.as_raw_fd(), &mut self.headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None)?;
        let mut count = 0;
        for message in received {
            lengths[count] = message.bytes.min(DATAGRAM_BYTES);
            count += 1;
        }
        Ok(self.buffers.iter().zip(lengths).take(count).map(|(buffer, length)| &buffer[..length]))
    }
}

/// Sends the datagrams of `out`, which end at `ends`; returns the numbers of bytes and datagrams sent.
///
/// # Errors
/// `WouldBlock` if none was sent; else the error of the socket.
pub fn send(socket: &Socket, out: &[u8], ends: &[usize]) -> io::Result<(usize, usize)> {
    if let [end] = *ends {
        socket.send(&out[..end])?;
        return Ok((end, 1));
    }
    let ends = &ends[..ends.len().min(BATCH)];
    let starts = [0].into_iter().chain(ends.iter().copied());
    let slices: Vec<[IoSlice<'_>; 1]> =
        starts.zip(ends).map(|(start, &end)| [IoSlice::new(&out[start..end])]).collect();
    let mut headers = MultiHeaders::<()>::preallocate(slices.len(), None);
    let addresses = vec![None; slices.len()];
    let flags = MsgFlags::MSG_DONTWAIT;
    let taken = sendmmsg(socket.as_raw_fd(), &mut headers, &slices, addresses, [], flags)?.count();
    Ok((ends[..taken].last().copied().unwrap_or(0), taken))
}

/// The number of datagrams a call.
pub const BATCH: usize = 32;
/// The length of a buffer in bytes: a reply's datagram has at most 1400 (memcached's UDP_MAX_PAYLOAD_SIZE).
const DATAGRAM_BYTES: usize = 2048;
