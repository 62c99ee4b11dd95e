//! TAP devices: frames to and from a kernel's network stack, by a file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;

/// Makes the TAP device `name` in the network namespace that this thread is in. Closing the file removes it. Reading
/// and writing do not block.
///
/// # Errors
/// If the system refuses; without `CAP_NET_ADMIN` it does.
pub fn create(name: &str) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/net/tun")?;
    set_interface(&file, name)?;
    Ok(file)
}

/// `struct ifreq` as `TUNSETIFF` reads it (linux/if.h): a name that ends with zero, and flags. 40 bytes on 64-bit
/// systems, of which the ioctl copies all.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; NAME_BYTES],
    flags: u16,
    rest: [u8; 22],
}

const NAME_BYTES: usize = 16;
/// Frames, not IP packets (linux/if_tun.h).
const IFF_TAP: u16 = 0x0002;
/// No packet information before each frame.
const IFF_NO_PI: u16 = 0x1000;
/// `_IOW('T', 202, int)`
const TUNSETIFF: rustix::ioctl::Opcode = 0x4004_54ca;

#[expect(unsafe_code, reason = "no safe crate of this workspace knows the ioctl of TAP devices")]
fn set_interface(file: &File, name: &str) -> io::Result<()> {
    if name.is_empty() || name.len() >= NAME_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "an interface has a name of 1 to 15 bytes"));
    }
    let mut request = InterfaceRequest { name: [0; NAME_BYTES], flags: IFF_TAP | IFF_NO_PI, rest: [0; 22] };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: TUNSETIFF reads and writes one `struct ifreq` at the pointer that it gets. `InterfaceRequest` is that
    // struct: 40 bytes, initialised, alive and not otherwise borrowed during the call, and every bit pattern that
    // comes back is a value of it.
    unsafe {
        let set = rustix::ioctl::Updater::<TUNSETIFF, InterfaceRequest>::new(&mut request);
        rustix::ioctl::ioctl(file, set)?;
    }
    Ok(())
}

const _: () = assert!(size_of::<InterfaceRequest>() == 40);
