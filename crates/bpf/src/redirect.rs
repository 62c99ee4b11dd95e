//! [`DatagramRedirect`] redirects a server's datagrams from a device's queues to AF_XDP sockets, past the kernel's
//! stack (`programs/to_sockets.bpf.c`): to the one socket of a queue, or to the socket of the thread that owns the
//! datagram's partition.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

use libbpf_rs::{MapCore, MapFlags};

use crate::shared::{FRAME_PASS, RedirectSettings, Shared};
use crate::{Error, HeldLink, Program, SteeringOptions};

/// The datagrams to redirect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedirectOptions {
    /// The device's own Ethernet address; frames to another address stay with the kernel.
    pub hardware: [u8; 6],
    /// The destination addresses and ports of the datagrams.
    pub endpoints: Vec<SocketAddr>,
    /// The number of the device's receive queues.
    pub queues: u32,
    /// The action for a datagram on a queue without a socket: `shared::FRAME_PASS`, or `shared::FRAME_DROP` in tests.
    pub without_socket: u64,
    /// The dispatch of each queue's datagrams to threads; None for one socket a queue.
    pub dispatch: Option<DispatchOptions>,
}

/// Chronos's dispatch: each datagram is delivered to the thread that owns its partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DispatchOptions {
    /// The function that maps a datagram to its partition.
    pub steering: SteeringOptions,
    /// The number of threads, 1 or more; each has a socket at every queue.
    pub threads: u32,
    /// The thread that initially owns each partition.
    pub owners: Vec<u32>,
}

impl RedirectOptions {
    /// Creates options that leave datagrams on queues without a socket to the kernel, and dispatch nothing.
    pub fn new(hardware: [u8; 6], endpoints: Vec<SocketAddr>, queues: u32) -> RedirectOptions {
        RedirectOptions { hardware, endpoints, queues, without_socket: FRAME_PASS, dispatch: None }
    }

    fn settings(&self) -> RedirectSettings {
        let hardware = self.hardware.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let settings =
            RedirectSettings { hardware, without_socket: self.without_socket, ..RedirectSettings::default() };
        let Some(DispatchOptions { steering, threads, owners }) = &self.dispatch else { return settings };
        RedirectSettings {
            threads: u64::from(*threads),
            seed: steering.seed,
            factor: steering.factor,
            partitions: owners.len() as u64,
            by_vbucket: u64::from(steering.by_vbucket),
            ..settings
        }
    }

    /// Returns the number of sockets, which are numbered queue by queue.
    fn sockets(&self) -> usize {
        let of_each = self.dispatch.as_ref().map_or(1, |dispatch| dispatch.threads);
        self.queues as usize * of_each as usize
    }
}

/// The program and its sockets. It leaves its device when this value is dropped, or when the process ends.
#[derive(Debug)]
pub struct DatagramRedirect {
    program: Program,
    link: Option<HeldLink>,
}

/// XDP_FLAGS_SKB_MODE: the kernel runs the program on its socket buffers, with any driver.
const GENERIC: u32 = 1 << 1;
/// XDP_FLAGS_DRV_MODE: the driver runs the program.
const NATIVE: u32 = 1 << 2;

impl DatagramRedirect {
    /// Loads the program, without attaching it to a device.
    ///
    /// # Errors
    /// Returns [`Error::Unsupported`] or [`Error::Kernel`] as [`Program::clock`]; with dispatch the latter too if the
    /// kernel is older than Linux 5.18.
    pub fn load(options: &RedirectOptions) -> Result<DatagramRedirect, Error> {
        DatagramRedirect::load_program(options, "to_sockets")
    }

    /// Loads a program that cannot be attached, whose test runs return the number of the socket for a frame, or
    /// [`crate::shared::NO_SOCKET`].
    ///
    /// # Errors
    /// Returns the errors of [`DatagramRedirect::load`].
    pub fn load_for_numbers(options: &RedirectOptions) -> Result<DatagramRedirect, Error> {
        DatagramRedirect::load_program(options, "number_of_socket")
    }

    fn load_program(options: &RedirectOptions, name: &'static str) -> Result<DatagramRedirect, Error> {
        let owners = options.dispatch.as_ref().map_or(&[][..], |dispatch| &dispatch.owners);
        let sizes = [
            ("endpoints", options.endpoints.len()),
            ("sockets", options.sockets()),
            ("owners", owners.len()),
        ];
        let program = Program::load_with("to_sockets", name, Some(&options.settings().to_bytes()), |open| {
            for mut map in open.maps_mut() {
                let size = sizes.iter().find(|(name, _)| map.name() == *name);
                if let Some((_, size)) = size {
                    map.set_max_entries((*size).max(1) as u32)?;
                }
            }
            for mut other in open.progs_mut().filter(|other| other.name() != name) {
                other.set_autoload(false);
            }
            Ok(())
        })?;
        let endpoints = program.map_named("endpoints");
        for endpoint in &options.endpoints {
            endpoints
                .update(&key(*endpoint), &1_u32.to_ne_bytes(), MapFlags::ANY)
                .map_err(program.failed("adding an address to"))?;
        }
        let redirect = DatagramRedirect { program, link: None };
        for (partition, owner) in (0..).zip(owners) {
            redirect.set_owner(partition, *owner)?;
        }
        Ok(redirect)
    }

    /// Dispatches the partition's datagrams to this thread from now on.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the partition does not exist.
    pub fn set_owner(&self, partition: u32, thread: u32) -> Result<(), Error> {
        self.program
            .map_named("owners")
            .update(&partition.to_ne_bytes(), &thread.to_ne_bytes(), MapFlags::ANY)
            .map_err(Error::while_doing(format!("dispatching partition {partition}")))
    }

    /// Attaches the program to the device: in its driver if that runs XDP programs (returns true), else to the kernel's
    /// socket buffers (returns false). Until a queue has a socket, its datagrams stay with the kernel.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the device does not exist, if it has an XDP program already, or without
    /// CAP_NET_ADMIN.
    pub fn attach(&mut self, ifindex: i32) -> Result<bool, Error> {
        let program = self.program.handle();
        let (link, is_native) = match HeldLink::attach_xdp(&program, ifindex, NATIVE) {
            Ok(link) => (Ok(link), true),
            Err(error) if is_occupied(&error) => (Err(error), true),
            // The driver does not support XDP, or not in the device's present configuration.
            Err(_) => (HeldLink::attach_xdp(&program, ifindex, GENERIC), false),
        };
        let link = link.map_err(|error| {
            let doing = if is_occupied(&error) {
                "attaching to_sockets (the device has an XDP program already, which is not replaced)"
            } else {
                "attaching to_sockets"
            };
            Error::while_doing(doing)(error.into())
        })?;
        self.link = Some(link);
        Ok(is_native)
    }

    /// Gives `socket`, an AF_XDP socket, this number: its queue's number, or with dispatch the queue times the threads
    /// plus the thread.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the number is too large, or the socket is not AF_XDP.
    pub fn set_socket(&self, number: u32, socket: BorrowedFd<'_>) -> Result<(), Error> {
        let descriptor = socket.as_raw_fd() as u32;
        self.program
            .map_named("sockets")
            .update(&number.to_ne_bytes(), &descriptor.to_ne_bytes(), MapFlags::ANY)
            .map_err(self.program.failed("adding a socket to"))
    }

    /// Returns the program, to test it.
    pub fn program(&self) -> &Program {
        &self.program
    }
}

/// Returns whether the error says that the device already has a program.
fn is_occupied(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
}

/// Returns the key of the map: `struct endpoint` of the program.
fn key(endpoint: SocketAddr) -> [u8; 20] {
    let address = match endpoint.ip() {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let mut key = [0; 20];
    key[..16].copy_from_slice(&address.octets());
    key[16..].copy_from_slice(&u32::from(endpoint.port()).to_ne_bytes());
    key
}
