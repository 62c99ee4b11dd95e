//! A program at a device by a link (tcx), which libbpf-rs does not wrap.
#![allow(unsafe_code, reason = "the only call into libbpf that has no safe form")]

use std::ptr;

use libbpf_rs::{AsRawLibbpf, Link, ProgramMut};

use crate::Direction;

/// Attaches `program` behind what is at the device.
pub fn attach(program: &ProgramMut, ifindex: i32, direction: Direction) -> libbpf_rs::Result<Link> {
    let point = match direction {
        Direction::Ingress => libbpf_sys::BPF_TCX_INGRESS,
        Direction::Egress => libbpf_sys::BPF_TCX_EGRESS,
    };
    let handle = program.as_libbpf_object();
    // SAFETY: the program is loaded and outlives both calls, which keep no pointer to it.
    let link = unsafe {
        libbpf_sys::bpf_program__set_expected_attach_type(handle.as_ptr(), point);
        libbpf_sys::bpf_program__attach_tcx(handle.as_ptr(), ifindex, ptr::null())
    };
    if link.is_null() {
        return Err(std::io::Error::last_os_error().into());
    }
    // SAFETY: libbpf hands over a link that nobody else has.
    Ok(unsafe { Link::from_ptr(ptr::NonNull::new(link).expect("it is not null")) })
}
