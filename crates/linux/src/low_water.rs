//! The bytes that a program waits for before it reads.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;

/// Has a read of a connection wait until so many bytes are there (`SO_RCVLOWAT`). Until then the kernel acknowledges by
/// itself, without waiting for the read.
///
/// # Errors
/// If the system refuses.
#[expect(unsafe_code, reason = "no safe crate of this workspace sets this")]
pub fn set_low_water(stream: &TcpStream, bytes: libc::c_int) -> io::Result<()> {
    // SAFETY: the call reads the bytes of `bytes`, which lives until it returns.
    let answer = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const bytes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
