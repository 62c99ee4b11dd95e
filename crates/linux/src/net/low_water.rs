//! Options of receiving sockets: the bytes that a program waits for before it reads, and the window that it offers.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};

/// Makes reads of a connection wait until `bytes` bytes are there (`SO_RCVLOWAT`). Until then the kernel acknowledges
/// by itself, without waiting for the read.
///
/// # Errors
/// If the system refuses.
pub fn set_low_water(stream: &TcpStream, bytes: libc::c_int) -> io::Result<()> {
    set(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes)
}

/// Makes a connection, or the connections that a listener accepts, offer a window of at most `bytes`
/// (`TCP_WINDOW_CLAMP`).
///
/// # Errors
/// If the system refuses.
pub fn clamp_window(socket: &impl AsRawFd, bytes: libc::c_int) -> io::Result<()> {
    set(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, bytes)
}

#[expect(unsafe_code, reason = "no safe crate of this workspace sets these")]
fn set(socket: RawFd, level: libc::c_int, option: libc::c_int, bytes: libc::c_int) -> io::Result<()> {
    // SAFETY: the call reads the bytes of `bytes`, which lives until it returns.
    let answer = unsafe {
        libc::setsockopt(
            socket,
            level,
            option,
            (&raw const bytes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
