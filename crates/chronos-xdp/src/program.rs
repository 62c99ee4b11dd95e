//! [`Redirect`]: the XDP program of a device, where this build has it (feature `kernel`).

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use super::interface::Interface;

/// The program, which leaves its device when this is dropped, or its process ends.
#[derive(Debug)]
pub(crate) struct Redirect {
    #[cfg(feature = "kernel")]
    program: plimsoll_bpf::DatagramRedirect,
}

#[cfg(feature = "kernel")]
impl Redirect {
    /// Loads a program for the datagrams of these places; no device has it yet.
    pub(crate) fn load(interface: &Interface, places: &[SocketAddr]) -> Result<Redirect, String> {
        let options =
            plimsoll_bpf::RedirectOptions::new(interface.hardware, places.to_vec(), interface.receive_queues);
        let program = plimsoll_bpf::DatagramRedirect::load(&options).map_err(|error| error.to_string())?;
        Ok(Redirect { program })
    }

    /// Attaches it. True if the driver runs it; else the kernel does, on its socket buffers.
    pub(crate) fn attach(&mut self, interface: &Interface) -> Result<bool, String> {
        let ifindex = i32::try_from(interface.index).map_err(|error| error.to_string())?;
        self.program.attach(ifindex).map_err(|error| error.to_string())
    }

    /// From now on the datagrams of this queue go to `socket`.
    pub(crate) fn set_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), String> {
        self.program.set_socket(queue, socket).map_err(|error| error.to_string())
    }
}

#[cfg(not(feature = "kernel"))]
impl Redirect {
    /// This build has none.
    pub(crate) fn load(_interface: &Interface, _places: &[SocketAddr]) -> Result<Redirect, String> {
        Err("this build has no eBPF programs (feature `kernel`)".to_owned())
    }

    pub(crate) fn attach(&mut self, _interface: &Interface) -> Result<bool, String> {
        Ok(false)
    }

    pub(crate) fn set_socket(&self, _queue: u32, _socket: BorrowedFd<'_>) -> Result<(), String> {
        Ok(())
    }
}
