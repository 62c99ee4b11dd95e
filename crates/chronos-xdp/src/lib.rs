//! AF_XDP for servers on Chronos: [`XdpDevice`] is a [`DatagramDevice`] whose datagrams bypass the kernel's network
//! stack.
//!
//! ```text
//! NIC queue q ──> XDP program ──┬─ UDP to a served address ──> AF_XDP socket q: receive ring, in the server's memory
//!                               └─ all else: ARP, ICMP, TCP, fragments, VLAN tags, IP options ──> the kernel's stack
//! receive ring ──> Receiver: checks, and takes the payload out of the frame ──> Service::unseal ──> requests
//! replies ──> Sender: writes the frame, addresses swapped ──> send ring ──> NIC queue q
//! frame of a request ──> fill ring (the kernel receives into it again); frame of a reply ──> completion ring
//! ```
//!
//! A program that serves datagrams names a device in its configuration, and the runtime does the rest:
//!
//! ```
//! use std::sync::Arc;
//!
//! use plimsoll_chronos::{Config, Listen};
//! use plimsoll_chronos_xdp::XdpDevice;
//!
//! let places = vec!["192.0.2.1:11211".parse().expect("an address")];
//! let device = Listen::Device { device: Arc::new(XdpDevice::new("eth0")), places };
//! let config = Config { listen: vec![device], ..Config::default() };
//! assert!(config.check().is_ok());
//! ```
//!
//! Without dispatch threads share nothing: each queue's socket, frames and rings belong to one thread. The device
//! chooses the queue, by the sender's address as a rule; a request for a partition of another thread crosses a ring, as
//! one over TCP does. With dispatch ([`plimsoll_chronos::Config::datagram_steering`]) each thread has a socket at every
//! queue, and the program hands a datagram to the socket of the thread that owns its key's partition. To move a
//! partition changes an entry of the program's map. The sockets of a queue share frames and two rings (`pool.rs`).
//!
//! A reply is sent to the Ethernet address from which the request arrived, without a look-up of routes or neighbours.
//!
//! Requirements: Linux 5.9 (with dispatch 5.18), the feature `kernel` of this crate, and the rights to administer
//! networks and to load eBPF programs. No packet filter of the kernel sees the datagrams.

mod frame;
mod interface;
mod pool;
mod program;
mod queue;
mod ring;
mod socket;

use std::net::SocketAddr;
use std::sync::Arc;

use interface::NetworkDevice;
use plimsoll_chronos::{DatagramDevice, DatagramDispatch, DeviceInfo, Dispatcher, OpenDevice};
use pool::{FRAME_BYTES, Shape};
use program::Redirect;
use queue::{MTU_MAX, XdpQueue};
use socket::BindMode;

/// An Ethernet device that is used by AF_XDP. It must not have an XDP program of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XdpDevice {
    name: String,
}

impl XdpDevice {
    /// Names the device; nothing is changed before a server starts.
    pub fn new(name: impl Into<String>) -> XdpDevice {
        XdpDevice { name: name.into() }
    }
}

impl DatagramDevice for XdpDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(
        &self,
        places: &[SocketAddr],
        dispatch: Option<&DatagramDispatch<'_>>,
    ) -> Result<OpenDevice, String> {
        program::check_build()?;
        let interface = NetworkDevice::find(&self.name)?;
        let places = interface.places(places);
        check(&interface, &places)?;
        let mut redirect = Redirect::load(&interface, &places, dispatch)?;
        let shape = Shape::of(dispatch.map_or(1, |dispatch| dispatch.threads));
        let mut queues =
            (0..interface.receive_queues).map(|_| open(&interface, shape)).collect::<Result<Vec<_>, _>>()?;
        // Nothing has changed up to here. From now on the device has the program, which passes everything to the kernel
        // until it has sockets.
        let is_native = redirect.attach(&interface)?;
        let mut is_zero_copy = true;
        for (number, sockets) in (0..).zip(&mut queues) {
            is_zero_copy &= bind(&interface, number, sockets, !is_native)?;
        }
        for (number, queue) in (0..).zip(queues.iter().flatten()) {
            redirect.set_socket(number, queue.socket())?;
        }
        let info = DeviceInfo {
            name: self.name.clone(),
            places,
            queues: interface.receive_queues,
            mode: mode(is_native, is_zero_copy, interface.receive_queues, shape),
        };
        let queues = queues.into_iter().flatten().map(XdpQueue::into_halves).collect();
        let redirect = Arc::new(redirect);
        let dispatcher = dispatch.map(|_| redirect.clone() as Arc<dyn Dispatcher>);
        Ok(OpenDevice { info, queues, dispatcher, guard: Box::new(redirect) })
    }
}

/// Opens the sockets of one queue of the device, which share its frames.
fn open(interface: &NetworkDevice, shape: Shape) -> Result<Vec<XdpQueue>, String> {
    let first = socket::open(interface.mtu, shape)?;
    let pool = first.pool().clone();
    let others = (1..shape.sockets).map(|number| socket::open_sharing(interface.mtu, &pool, number));
    std::iter::once(Ok(first)).chain(others).collect()
}

/// Binds the sockets of the queue with this number to the device. Returns whether the device reads and writes frames
/// itself.
fn bind(
    interface: &NetworkDevice,
    number: u32,
    sockets: &mut [XdpQueue],
    must_copy: bool,
) -> Result<bool, String> {
    let Some((first, others)) = sockets.split_first_mut() else { return Ok(false) };
    let is_zero_copy = socket::bind(first, interface.index, number, BindMode::First { must_copy })?;
    for other in others {
        socket::bind(other, interface.index, number, BindMode::Sharing(first.socket()))?;
    }
    Ok(is_zero_copy)
}

/// Describes how a device is used. A native program runs in the device's driver, a generic one on the kernel's socket
/// buffers, which costs more; with zero copy the device reads and writes frames itself.
fn mode(is_native: bool, is_zero_copy: bool, queues: u32, shape: Shape) -> String {
    let program = if is_native { "native" } else { "generic" };
    let frames = if is_zero_copy { "zero copy" } else { "copied" };
    let queues = if queues == 1 { "1 queue".to_owned() } else { format!("{queues} queues") };
    let dispatch = match shape.sockets {
        1 => String::new(),
        threads => format!(", dispatched by key to {threads} threads"),
    };
    let count = shape.frames();
    format!("{program} XDP, {frames}, {queues} of {count} frames of {FRAME_BYTES} bytes{dispatch}")
}

/// Checks that the device has an address that is served, small packets, and as many queues to send as to receive.
fn check(interface: &NetworkDevice, places: &[SocketAddr]) -> Result<(), String> {
    let NetworkDevice { mtu, receive_queues, send_queues, .. } = interface;
    if places.is_empty() {
        return Err("it has none of the addresses that are listened on".to_owned());
    }
    if *mtu > MTU_MAX {
        return Err(format!("its MTU is {mtu} bytes; {MTU_MAX} or less is allowed"));
    }
    if *receive_queues == 0 || send_queues < receive_queues {
        return Err(format!(
            "it has {receive_queues} queues to receive and {send_queues} to send; as many to send as to receive, 1 or \
             more, are needed (ethtool --set-channels)"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_cannot_be_served_are_refused() {
        let fit = NetworkDevice {
            index: 1,
            hardware: [2; 6],
            addresses: Vec::new(),
            mtu: 1500,
            receive_queues: 2,
            send_queues: 2,
        };
        let places = [SocketAddr::from(([192, 0, 2, 1], 7))];
        assert_eq!(check(&fit, &places), Ok(()));
        for (interface, places, expected) in [
            (fit.clone(), &places[..0], "it has none of the addresses"),
            (
                NetworkDevice { mtu: 9000, ..fit.clone() },
                &places,
                "its MTU is 9000 bytes; 3826 or less is allowed",
            ),
            (
                NetworkDevice { send_queues: 1, ..fit.clone() },
                &places,
                "it has 2 queues to receive and 1 to send",
            ),
            (NetworkDevice { receive_queues: 0, ..fit.clone() }, &places, "it has 0 queues to receive"),
        ] {
            let error = check(&interface, places).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn the_mode_names_program_frames_and_queues() {
        let alone = Shape::of(1);
        assert_eq!(mode(true, false, 2, alone), "native XDP, copied, 2 queues of 3072 frames of 4096 bytes");
        assert_eq!(
            mode(false, true, 1, alone),
            "generic XDP, zero copy, 1 queue of 3072 frames of 4096 bytes"
        );
        assert_eq!(
            mode(true, false, 1, Shape::of(4)),
            "native XDP, copied, 1 queue of 3072 frames of 4096 bytes, dispatched by key to 4 threads"
        );
        let info =
            DeviceInfo { name: "eth0".to_owned(), places: Vec::new(), queues: 1, mode: "m".to_owned() };
        assert_eq!(info.to_string(), "eth0: m");
    }
}
