//! [`Redirect`]: the XDP program of a device, where this build has it (feature `kernel`).

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use plimsoll_chronos::{DatagramDispatch, Dispatcher};

use super::interface::NetworkDevice;

/// The program, which leaves its device when this is dropped, or its process ends.
#[derive(Debug)]
pub(crate) struct Redirect {
    #[cfg(feature = "kernel")]
    program: plimsoll_bpf::DatagramRedirect,
}

/// Checks that this build has the program.
pub(crate) fn check_build() -> Result<(), String> {
    let has_programs = cfg!(feature = "kernel");
    has_programs.then_some(()).ok_or_else(|| NO_PROGRAMS.to_owned())
}

/// The reason of a build without programs.
const NO_PROGRAMS: &str = "this build has no eBPF programs (feature `kernel`)";

#[cfg(feature = "kernel")]
impl Redirect {
    /// Loads a program for the datagrams of these places; no device has it yet.
    pub(crate) fn load(
        interface: &NetworkDevice,
        places: &[SocketAddr],
        dispatch: Option<&DatagramDispatch<'_>>,
    ) -> Result<Redirect, String> {
        let queues = interface.receive_queues;
        let mut options = plimsoll_bpf::RedirectOptions::new(interface.hardware, places.to_vec(), queues);
        options.dispatch = dispatch.map(|dispatch| plimsoll_bpf::DispatchOptions {
            steering: plimsoll_bpf::SteeringOptions {
                seed: dispatch.steering.hash.seed,
                factor: dispatch.steering.hash.factor(),
                by_vbucket: dispatch.steering.by_vbucket,
            },
            threads: dispatch.threads,
            owners: dispatch.owners.to_vec(),
        });
        let program = plimsoll_bpf::DatagramRedirect::load(&options).map_err(|error| error.to_string())?;
        Ok(Redirect { program })
    }

    /// Attaches it. Returns true if the driver runs it; otherwise the kernel does, on its socket buffers.
    pub(crate) fn attach(&mut self, interface: &NetworkDevice) -> Result<bool, String> {
        let ifindex = i32::try_from(interface.index).map_err(|error| error.to_string())?;
        self.program.attach(ifindex).map_err(|error| error.to_string())
    }

    /// Makes `socket` the one with this number: with dispatch, sockets are numbered queue after queue, in each by
    /// thread.
    pub(crate) fn set_socket(&self, number: u32, socket: BorrowedFd<'_>) -> Result<(), String> {
        self.program.set_socket(number, socket).map_err(|error| error.to_string())
    }
}

#[cfg(not(feature = "kernel"))]
impl Redirect {
    /// Returns an error: this build has no eBPF programs.
    pub(crate) fn load(
        _interface: &NetworkDevice,
        _places: &[SocketAddr],
        _dispatch: Option<&DatagramDispatch<'_>>,
    ) -> Result<Redirect, String> {
        Err(NO_PROGRAMS.to_owned())
    }

    pub(crate) fn attach(&mut self, _interface: &NetworkDevice) -> Result<bool, String> {
        Ok(false)
    }

    pub(crate) fn set_socket(&self, _number: u32, _socket: BorrowedFd<'_>) -> Result<(), String> {
        Ok(())
    }
}

impl Dispatcher for Redirect {
    fn set_owner(&self, partition: u32, thread: u32) {
        #[cfg(feature = "kernel")]
        // The partition exists; and the thread of a wrongly dispatched datagram forwards its request.
        let _ = self.program.set_owner(partition, thread);
        #[cfg(not(feature = "kernel"))]
        let _ = (partition, thread);
    }
}
