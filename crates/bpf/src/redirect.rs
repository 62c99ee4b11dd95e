//! [`DatagramRedirect`]: a server's datagrams go from a device's queues to AF_XDP sockets, past the kernel's stack
//! (`programs/to_sockets.bpf.c`).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

use libbpf_rs::{MapCore, MapFlags};

use crate::shared::{FRAME_PASS, RedirectSettings, Shared};
use crate::{Error, HeldLink, Program};

/// What is taken from a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedirectOptions {
    /// The device's own Ethernet address; what came to another is left to the kernel.
    pub hardware: [u8; 6],
    /// Addresses and ports of the datagrams.
    pub places: Vec<SocketAddr>,
    /// The device's queues.
    pub queues: u32,
    /// What is answered to a datagram on a queue that has no socket: `shared::FRAME_PASS`, or in
    /// tests `shared::FRAME_DROP`.
    pub without_socket: u64,
}

impl RedirectOptions {
    /// Leaves what comes on queues without a socket to the kernel.
    pub fn new(hardware: [u8; 6], places: Vec<SocketAddr>, queues: u32) -> RedirectOptions {
        RedirectOptions { hardware, places, queues, without_socket: FRAME_PASS }
    }
}

/// The program and the sockets that it knows. It leaves its device when this is dropped, or its process ends.
#[derive(Debug)]
pub struct DatagramRedirect {
    program: Program,
    link: Option<HeldLink>,
}

/// XDP_FLAGS_SKB_MODE: the kernel runs the program on its socket buffers, whatever the driver.
const GENERIC: u32 = 1 << 1;
/// XDP_FLAGS_DRV_MODE: the driver runs the program.
const NATIVE: u32 = 1 << 2;

impl DatagramRedirect {
    /// Loads the program; no device has it yet.
    ///
    /// # Errors
    /// [`Error::Unsupported`] or [`Error::Kernel`] as [`Program::clock`].
    pub fn load(options: &RedirectOptions) -> Result<DatagramRedirect, Error> {
        let hardware = options.hardware.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let settings = RedirectSettings { hardware, without_socket: options.without_socket };
        let sizes = [("places", options.places.len()), ("sockets", options.queues as usize)];
        let program = Program::load_with("to_sockets", "to_sockets", Some(&settings.to_bytes()), |open| {
            for mut map in open.maps_mut() {
                let size = sizes.iter().find(|(name, _)| map.name() == *name);
                if let Some((_, size)) = size {
                    map.set_max_entries((*size).max(1) as u32)?;
                }
            }
            Ok(())
        })?;
        let places = program.map_named("places");
        for place in &options.places {
            places
                .update(&key(*place), &1_u32.to_ne_bytes(), MapFlags::ANY)
                .map_err(program.failed("adding an address to"))?;
        }
        Ok(DatagramRedirect { program, link: None })
    }

    /// Attaches it to the device: in its driver where that runs XDP programs, else to the kernel's socket buffers. True
    /// for the driver. Until a queue has its socket, its datagrams are the kernel's.
    ///
    /// # Errors
    /// [`Error::Kernel`] if there is no such device, if it has an XDP program already, or without CAP_NET_ADMIN.
    pub fn attach(&mut self, ifindex: i32) -> Result<bool, Error> {
        let program = self.program.handle();
        let (link, is_native) = match HeldLink::attach_xdp(&program, ifindex, NATIVE) {
            Ok(link) => (Ok(link), true),
            Err(error) if is_occupied(&error) => (Err(error), true),
            // The driver has none, or none for the device as it is set up.
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

    /// From now on the datagrams of this queue go to `socket`, an AF_XDP socket that is bound to it.
    ///
    /// # Errors
    /// [`Error::Kernel`] if there is no such queue, or the socket is none of AF_XDP.
    pub fn set_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), Error> {
        let descriptor = socket.as_raw_fd() as u32;
        self.program
            .map_named("sockets")
            .update(&queue.to_ne_bytes(), &descriptor.to_ne_bytes(), MapFlags::ANY)
            .map_err(self.program.failed("adding a socket to"))
    }

    /// The program, to test it.
    pub fn program(&self) -> &Program {
        &self.program
    }
}

/// A device keeps the program that it has.
fn is_occupied(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
}

/// `struct place` of the program.
fn key(place: SocketAddr) -> [u8; 20] {
    let address = match place.ip() {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let mut key = [0; 20];
    key[..16].copy_from_slice(&address.octets());
    key[16..].copy_from_slice(&u32::from(place.port()).to_ne_bytes());
    key
}
