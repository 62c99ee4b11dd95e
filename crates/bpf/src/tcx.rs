//! [`DeviceLink`]: a program at a device by a link: tcx, which libbpf-rs does not wrap, and XDP, which it does without
//! the choice between the driver and the stack.
#![allow(unsafe_code, reason = "the calls of libbpf that have no safe form")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;

use libbpf_rs::ProgramMut;

use crate::{Direction, Error};

/// A program at a device for as long as this, or its pin.
#[derive(Debug)]
pub struct DeviceLink(OwnedFd);

impl DeviceLink {
    /// Attaches `program` behind what is at the device.
    pub(crate) fn attach(
        program: &ProgramMut,
        ifindex: i32,
        direction: Direction,
    ) -> libbpf_rs::Result<DeviceLink> {
        let point = match direction {
            Direction::Ingress => libbpf_sys::BPF_TCX_INGRESS,
            Direction::Egress => libbpf_sys::BPF_TCX_EGRESS,
        };
        // SAFETY: no options is allowed, and the descriptor is open during the call.
        let answer =
            unsafe { libbpf_sys::bpf_link_create(program.as_fd().as_raw_fd(), ifindex, point, ptr::null()) };
        Ok(DeviceLink(opened(answer)?))
    }

    /// Attaches XDP program `program` with these flags (XDP_FLAGS_*). A program that is there already is never replaced.
    pub(crate) fn attach_xdp(program: &ProgramMut, ifindex: i32, flags: u32) -> io::Result<DeviceLink> {
        let options = libbpf_sys::bpf_link_create_opts {
            sz: size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t,
            flags,
            ..Default::default()
        };
        let (program, point) = (program.as_fd().as_raw_fd(), libbpf_sys::BPF_XDP);
        // SAFETY: the options and the descriptor are valid during the call.
        let answer = unsafe { libbpf_sys::bpf_link_create(program, ifindex, point, &raw const options) };
        Ok(DeviceLink(opened(answer)?))
    }

    /// Pins it at `path`.
    ///
    /// # Errors
    /// [`Error::Kernel`] if that is not in a BPF file system, or there already.
    pub fn pin(&self, path: &Path) -> Result<(), Error> {
        let doing = Error::while_doing(format!("pinning {}", path.display()));
        let pinned = CString::new(path.as_os_str().as_bytes()).map_err(|_| invalid()).and_then(|path| {
            // SAFETY: both are valid during the call.
            Ok(checked(unsafe { libbpf_sys::bpf_obj_pin(self.0.as_raw_fd(), path.as_ptr()) })?)
        });
        pinned.map(drop).map_err(doing)
    }
}

fn invalid() -> libbpf_rs::Error {
    io::Error::from(io::ErrorKind::InvalidInput).into()
}

/// A negative answer is an error's number.
fn checked(answer: i32) -> io::Result<i32> {
    if answer < 0 { Err(io::Error::from_raw_os_error(-answer)) } else { Ok(answer) }
}

/// The descriptor that a call answered with.
fn opened(answer: i32) -> io::Result<OwnedFd> {
    let descriptor = checked(answer)?;
    // SAFETY: the kernel has just opened it, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
