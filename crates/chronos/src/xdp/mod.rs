//! Datagrams past the kernel's stack: an XDP program takes those of the server out of what a device receives, to
//! AF_XDP sockets, one for each of the device's queues.
//!
//! ```text
//! device's queue q ─> XDP program ─┬─ ours ─> socket q, of thread q modulo the threads ─> requests ─> reply, back out
//!                                  └─ all else (ARP, ICMP, TCP, fragments, tags, options) ─> the kernel's stack
//! ```
//!
//! Threads share nothing: each queue's socket, frames and rings are one thread's. The queue is the device's choice, by
//! the sender's address as a rule; a request whose partition is another thread's crosses a ring, as one over TCP does.
//! A reply goes to the Ethernet address that the request came from, without a route or a neighbour being asked for.

mod frame;
mod interface;
mod program;
mod queue;
mod ring;
mod socket;

use std::fmt;
use std::net::SocketAddr;

use interface::Interface;
use program::Redirect;
use queue::{FRAME_BYTES, MTU_MAX, RECEIVE_FRAMES, SEND_FRAMES};

pub(crate) use frame::Route;
pub(crate) use queue::Queue;

use crate::StartError;

/// A device that a server takes datagrams from ([`crate::Listen::Device`]), and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Its name.
    pub interface: String,
    /// The addresses and ports whose datagrams are taken.
    pub places: Vec<SocketAddr>,
    /// Its queues; thread q modulo the number of threads serves queue q.
    pub queues: u32,
    /// The program runs in the device's driver (native), or on the kernel's socket buffers (generic), which costs more.
    pub is_native: bool,
    /// The device reads and writes frames itself; else the kernel copies them.
    pub is_zero_copy: bool,
}

impl Device {
    /// Frames of a queue; no more datagrams wait in it, in both directions together.
    pub const FRAMES_PER_QUEUE: u32 = RECEIVE_FRAMES + SEND_FRAMES;
    /// Bytes that a frame takes in memory.
    pub const FRAME_BYTES: usize = FRAME_BYTES;
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Device { interface, queues, is_native, is_zero_copy, .. } = self;
        let program = if *is_native { "native" } else { "generic" };
        let frames = if *is_zero_copy { "zero copy" } else { "copied" };
        let queues = if *queues == 1 { "1 queue".to_owned() } else { format!("{queues} queues") };
        write!(
            f,
            "{interface}: {program} XDP, {frames}, {queues} of {} frames of {} bytes",
            Device::FRAMES_PER_QUEUE,
            Device::FRAME_BYTES
        )
    }
}

/// A device that datagrams are taken from, until this is dropped.
pub(crate) struct Opened {
    pub(crate) device: Device,
    pub(crate) queues: Vec<Queue>,
    /// Holds the program at the device.
    pub(crate) program: Program,
}

/// What holds a program at its device.
#[derive(Debug)]
pub(crate) struct Program {
    _redirect: Redirect,
}

/// Takes the datagrams of those `places` that are the device's.
pub(crate) fn open(interface: &str, places: &[SocketAddr]) -> Result<Opened, StartError> {
    try_open(interface, places)
        .map_err(|reason| StartError::Device { interface: interface.to_owned(), reason })
}

fn try_open(name: &str, places: &[SocketAddr]) -> Result<Opened, String> {
    let interface = Interface::find(name)?;
    let places = interface.places(places);
    check(&interface, &places)?;
    let mut redirect = Redirect::load(&interface, &places)?;
    let open = |_| socket::open(interface.mtu);
    let mut queues = (0..interface.receive_queues).map(open).collect::<Result<Vec<Queue>, String>>()?;
    // Up to here nothing has changed. Now the device has the program, which leaves all to the kernel until it has
    // sockets.
    let is_native = redirect.attach(&interface)?;
    let mut is_zero_copy = true;
    for (number, queue) in (0..).zip(&mut queues) {
        is_zero_copy &= socket::bind(queue, interface.index, number, !is_native)?;
    }
    for (number, queue) in (0..).zip(&queues) {
        redirect.set_socket(number, queue.socket())?;
    }
    let device = Device {
        interface: name.to_owned(),
        places,
        queues: interface.receive_queues,
        is_native,
        is_zero_copy,
    };
    Ok(Opened { device, queues, program: Program { _redirect: redirect } })
}

/// Whether the device is one that this can serve.
fn check(interface: &Interface, places: &[SocketAddr]) -> Result<(), String> {
    let Interface { mtu, receive_queues, send_queues, .. } = interface;
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
        let fit = Interface {
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
                Interface { mtu: 9000, ..fit.clone() },
                &places,
                "its MTU is 9000 bytes; 3826 or less is allowed",
            ),
            (
                Interface { send_queues: 1, ..fit.clone() },
                &places,
                "it has 2 queues to receive and 1 to send",
            ),
            (Interface { receive_queues: 0, ..fit.clone() }, &places, "it has 0 queues to receive"),
        ] {
            let error = check(&interface, places).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn how_a_device_is_used_is_said_in_a_line() {
        let device = Device {
            interface: "eth0".to_owned(),
            places: Vec::new(),
            queues: 2,
            is_native: true,
            is_zero_copy: false,
        };
        assert_eq!(device.to_string(), "eth0: native XDP, copied, 2 queues of 3072 frames of 4096 bytes");
        let device = Device { queues: 1, is_native: false, is_zero_copy: true, ..device };
        assert_eq!(device.to_string(), "eth0: generic XDP, zero copy, 1 queue of 3072 frames of 4096 bytes");
    }
}
