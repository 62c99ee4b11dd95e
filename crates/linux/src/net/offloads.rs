//! Switches the offloads of a device on and off, as `ethtool -K` does.

use std::io;
use std::os::fd::AsRawFd as _;

use socket2::{Domain, Socket, Type};

/// Work that a device does for TCP, or the kernel in its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Offload {
    /// The device cuts a segment into packets (`tso`); without it the kernel does, before it hands them to the device.
    Segmentation,
    /// The kernel joins received packets to a segment before TCP sees them (`gro`).
    Receive,
}

impl Offload {
    /// Returns the command that sets it (linux/ethtool.h).
    fn command(self) -> u32 {
        match self {
            Offload::Segmentation => ETHTOOL_STSO,
            Offload::Receive => ETHTOOL_SGRO,
        }
    }
}

const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGRO: u32 = 0x2c;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Switches an offload of the device `name`, of the network namespace that this thread is in, on or off.
///
/// # Errors
/// If the device does not exist, or cannot switch it.
#[expect(unsafe_code, reason = "no safe crate of this workspace sets this")]
pub(crate) fn set(name: &str, offload: Offload, on: bool) -> io::Result<()> {
    // Any socket will do to ask.
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    let mut value = Value { command: offload.command(), data: u32::from(on) };
    // SAFETY: all-zero is an `ifreq`: an empty name, and a union of numbers and null pointers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    let length = request.ifr_name.len() - 1;
    for (place, &byte) in request.ifr_name[..length].iter_mut().zip(name.as_bytes()) {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the call reads one `ifreq`, and the `struct ethtool_value` that it points to; both live until it returns.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if answer == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(io::Error::new(error.kind(), format!("{offload:?} of {name}: {error}")))
}
