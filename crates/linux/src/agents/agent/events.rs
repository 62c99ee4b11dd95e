//! Readiness of sockets, as epoll reports it.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll;

/// The bit of an event's number that marks a listener; the other bits are its host.
pub(super) const LISTENER: u64 = 1 << 62;
/// The bit of an event's number that marks a socket of datagrams; the other bits are its host.
pub(super) const DATAGRAMS: u64 = 1 << 63;

/// Reports every change of the socket's readiness under the number `token`.
///
/// # Errors
/// Fails if the system refuses.
pub(super) fn watch(epoll: &OwnedFd, socket: impl AsFd, token: u64) -> io::Result<()> {
    let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
    Ok(epoll::add(epoll, socket, epoll::EventData::new_u64(token), flags)?)
}

/// Returns `None` if an operation would block.
///
/// # Errors
/// Returns all other errors.
pub(super) fn ready<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => Ok(None),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error),
    }
}
