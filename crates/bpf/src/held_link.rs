//! [`HeldLink`] attaches a program to a device (tcx, or XDP with a choice between driver and kernel), or a pinned one
//! to a cgroup, by links that libbpf-rs does not wrap.
#![expect(unsafe_code, reason = "the calls of libbpf that have no safe form")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;

use libbpf_rs::{Program, ProgramMut};
use rustix::fs::{Mode, OFlags};

use crate::{Error, HookDirection};

/// A program that is attached to a device or a cgroup as long as this value, or its pin, exists.
#[derive(Debug)]
pub struct HeldLink(OwnedFd);

/// The events that a program at a cgroup handles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CgroupPoint {
    /// Every packet that leaves a socket of the cgroup.
    Egress,
    /// The events of TCP connections (sock_ops).
    Connections,
}

impl HeldLink {
    /// Attaches `program` behind the programs that the device already has.
    pub(crate) fn attach(
        program: &ProgramMut,
        ifindex: i32,
        direction: HookDirection,
    ) -> libbpf_rs::Result<HeldLink> {
        let point = match direction {
            HookDirection::Ingress => libbpf_sys::BPF_TCX_INGRESS,
            HookDirection::Egress => libbpf_sys::BPF_TCX_EGRESS,
        };
        Ok(HeldLink::create(program.as_fd(), ifindex, point, None)?)
    }

    /// Attaches XDP program `program` with these flags (XDP_FLAGS_*). It never replaces an existing program.
    pub(crate) fn attach_xdp(program: &ProgramMut, ifindex: i32, flags: u32) -> io::Result<HeldLink> {
        let options = libbpf_sys::bpf_link_create_opts {
            sz: size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t,
            flags,
            ..Default::default()
        };
        HeldLink::create(program.as_fd(), ifindex, libbpf_sys::BPF_XDP, Some(&options))
    }

    /// Attaches the program that is pinned at `program` to the cgroup (version 2) of the folder `cgroup`, next to its
    /// existing programs.
    ///
    /// # Errors
    /// Returns [`Error::Unsupported`] if the cgroup does not exist, [`Error::Kernel`] if the program does not exist or
    /// is of another kind.
    pub fn at_cgroup(program: &Path, cgroup: &Path, point: CgroupPoint) -> Result<HeldLink, Error> {
        let folder = rustix::fs::open(cgroup, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| Error::Unsupported(format!("cgroup {}: {error}", cgroup.display())))?;
        let point = match point {
            CgroupPoint::Egress => libbpf_sys::BPF_CGROUP_INET_EGRESS,
            CgroupPoint::Connections => libbpf_sys::BPF_CGROUP_SOCK_OPS,
        };
        Program::fd_from_pinned_path(program)
            .and_then(|program| Ok(HeldLink::create(program.as_fd(), folder.as_raw_fd(), point, None)?))
            .map_err(Error::while_doing(format!("attaching {}", program.display())))
    }

    fn create(
        program: BorrowedFd<'_>,
        target: i32,
        point: u32,
        options: Option<&libbpf_sys::bpf_link_create_opts>,
    ) -> io::Result<HeldLink> {
        let options = options.map_or(ptr::null(), ptr::from_ref);
        // SAFETY: no options is allowed, and the options that there are and the descriptor are valid during the call.
        let answer = unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), target, point, options) };
        let descriptor = checked(answer)?;
        // SAFETY: the kernel has just opened the descriptor, and no other value owns it.
        Ok(HeldLink(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Pins the link at `path`.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if `path` is not in a BPF file system, or exists already.
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

/// Turns a negative result into the error with its number.
fn checked(answer: i32) -> io::Result<i32> {
    if answer < 0 { Err(io::Error::from_raw_os_error(-answer)) } else { Ok(answer) }
}
