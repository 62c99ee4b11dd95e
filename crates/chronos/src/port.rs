//! [`DatagramPort`]: the place where one thread receives datagrams: a UDP socket, or a queue of a device.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::device::{DeviceReceiver, DeviceSender, ReturnAddress, Sent};
use crate::mmsg::DatagramSocket;

/// A place where one thread receives datagrams.
pub(crate) enum DatagramPort {
    /// A UDP socket of the kernel.
    Socket(Box<DatagramSocket>),
    /// A queue of a device, whose receiver is absent while its batch is served.
    Device(Option<Box<dyn DeviceReceiver>>, Box<dyn DeviceSender>),
}

/// The sender of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DatagramSender {
    /// The sender's address at a socket, if the socket names one.
    Socket(Option<SocketAddr>),
    /// The sender's return address at a device.
    Device(ReturnAddress),
}

/// Datagrams that were received together.
pub(crate) trait DatagramBatch {
    /// Returns the number of datagrams.
    fn count(&self) -> usize;
    /// Returns a datagram and its sender, by an index below [`DatagramBatch::count`].
    fn get(&self, index: usize) -> (DatagramSender, &[u8]);
}

impl DatagramBatch for dyn DeviceReceiver + '_ {
    fn count(&self) -> usize {
        DeviceReceiver::count(self)
    }

    fn get(&self, index: usize) -> (DatagramSender, &[u8]) {
        let (address, datagram) = DeviceReceiver::get(self, index);
        (DatagramSender::Device(address), datagram)
    }
}

impl DatagramPort {
    /// Returns the descriptor that becomes readable when a datagram arrives; None while a device's batch is served.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            DatagramPort::Socket(socket) => Some(socket.descriptor()),
            DatagramPort::Device(receiver, _) => receiver.as_ref().map(|receiver| receiver.descriptor()),
        }
    }

    /// Adds a datagram to `client`, which sent a datagram to this port.
    pub(crate) fn push(&mut self, client: &DatagramSender, datagram: &[u8]) {
        match (self, client) {
            (DatagramPort::Socket(socket), DatagramSender::Socket(address)) => {
                socket.push(*address, datagram)
            }
            (DatagramPort::Device(_, sender), DatagramSender::Device(address)) => {
                sender.push(address, datagram)
            }
            _ => unreachable!("a client's address is of the port that received its datagram"),
        }
    }

    /// Reports whether there is something to send.
    pub(crate) fn has_to_send(&self) -> bool {
        match self {
            DatagramPort::Socket(socket) => !socket.is_empty(),
            DatagramPort::Device(_, sender) => sender.has_to_send(),
        }
    }

    /// Sends the datagrams that were added, as far as the kernel or the device takes them.
    pub(crate) fn send(&mut self, now: Duration) -> Sent {
        match self {
            DatagramPort::Socket(socket) => socket.send(),
            DatagramPort::Device(_, sender) => sender.send(now),
        }
    }

    /// Reports whether datagrams wait for the kernel or the device: the caller sends again soon.
    pub(crate) fn is_stuck(&self) -> bool {
        match self {
            DatagramPort::Socket(socket) => !socket.is_empty(),
            DatagramPort::Device(_, sender) => sender.is_stuck(),
        }
    }

    /// Reports whether everything has left, so that a server that stops may close the port.
    pub(crate) fn is_sent(&mut self) -> bool {
        match self {
            DatagramPort::Socket(socket) => socket.is_empty(),
            DatagramPort::Device(_, sender) => sender.is_sent(),
        }
    }
}
