//! [`DatagramDevice`]: a source of datagrams that is not a socket. The program that starts a server names one in
//! [`crate::Listen::Device`]; the runtime opens it last, when all sockets are open, and deals its queues to the
//! threads.
//!
//! ```text
//! DatagramDevice::open ──> queues, dealt in turn to the threads; with dispatch, each queue once a thread
//! receiver: receive ──> datagrams, each with its return address ──> requests ──> release
//! sender:   push(return address, reply), any number of times ──> send, once a turn
//! ```
//!
//! A queue has one thread. Its two halves are apart, so that replies are pushed while a batch of requests is borrowed.
//!
//! With dispatch ([`DatagramDispatch`]) the device reads the key of a datagram, and delivers it to the thread that owns
//! its partition. The runtime reports each move to the [`Dispatcher`]. A datagram that was delivered before, or by a
//! wrong guess, is not lost: its thread forwards the request to the owner, as without dispatch.

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use crate::DatagramSteering;

/// A device that delivers datagrams to queues in this process, without a socket for each place that is served.
pub trait DatagramDevice: fmt::Debug + Send + Sync {
    /// Returns the device's name, which is unique on this host.
    fn name(&self) -> &str;

    /// Starts to receive the datagrams for the addresses of the device among `places`, and dispatches them by their
    /// keys if `dispatch` says how.
    ///
    /// # Errors
    /// Returns the reason for which the device cannot be used; it is then as it was before the call.
    fn open(
        &self,
        places: &[SocketAddr],
        dispatch: Option<&DatagramDispatch<'_>>,
    ) -> Result<OpenDevice, String>;
}

/// How a device finds the thread of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramDispatch<'a> {
    /// The function that maps a datagram to its partition.
    pub steering: DatagramSteering,
    /// The number of threads.
    pub threads: u32,
    /// The thread that owns each partition when the device is opened.
    pub owners: &'a [u32],
}

/// The owners of partitions, as a device that dispatches has them.
pub trait Dispatcher: fmt::Debug + Send + Sync {
    /// Delivers the datagrams of a partition to this thread from now on. Datagrams that were delivered before stay
    /// where they are.
    fn set_owner(&self, partition: u32, thread: u32);
}

/// Two devices are equal if they have the same name.
impl PartialEq for dyn DatagramDevice {
    fn eq(&self, other: &dyn DatagramDevice) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn DatagramDevice {}

/// A device that receives.
pub struct OpenDevice {
    /// Describes how the device is used.
    pub info: DeviceInfo,
    /// The device's queues; thread q modulo the number of threads serves queue q. With dispatch these are the sockets
    /// of all threads at the device's first queue, in the order of the threads, then those at its second, and so on.
    pub queues: Vec<DeviceQueue>,
    /// The handle that changes the owners of partitions, if the device dispatches.
    pub dispatcher: Option<Arc<dyn Dispatcher>>,
    /// Ends the use of the device when it is dropped, which the runtime does after its threads have ended.
    pub guard: Box<dyn Any + Send + Sync>,
}

/// The state of a device, as a running server reports it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceInfo {
    /// The name of the device.
    pub name: String,
    /// The addresses and ports whose datagrams are received.
    pub places: Vec<SocketAddr>,
    /// The number of queues.
    pub queues: u32,
    /// The mode of operation in words, such as "zero copy, 2 queues".
    pub mode: String,
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.mode)
    }
}

/// One queue of a device, in both directions.
pub struct DeviceQueue {
    /// The half that receives.
    pub receiver: Box<dyn DeviceReceiver>,
    /// The half that sends replies.
    pub sender: Box<dyn DeviceSender>,
}

/// The half of a queue that receives.
pub trait DeviceReceiver: Send {
    /// Returns the descriptor that becomes readable when a datagram arrives.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Reports whether a datagram waits, without a system call.
    fn has_received(&self) -> bool;

    /// Takes a batch of datagrams that have arrived, and counts the frames that were rejected. The caller releases the
    /// batch before it receives the next.
    fn receive(&mut self) -> Rejected;

    /// Returns the number of datagrams in the batch.
    fn count(&self) -> usize;

    /// Returns a datagram of the batch and its sender's return address, by an index below [`DeviceReceiver::count`].
    fn get(&self, index: usize) -> (ReturnAddress, &[u8]);

    /// Reports whether more datagrams may wait than the batch had room for.
    fn is_full(&self) -> bool;

    /// Returns the memory of the batch to the device.
    fn release(&mut self);

    /// Returns the number of datagrams that the device dropped for lack of room since the last call.
    fn overruns(&mut self) -> u64;
}

/// The half of a queue that sends.
pub trait DeviceSender: Send {
    /// Adds a datagram for the next [`DeviceSender::send`]. One that is longer than the device's packets, or that finds
    /// no room, is dropped, and counted in the result of that call.
    fn push(&mut self, to: &ReturnAddress, datagram: &[u8]);

    /// Reports whether there is something to send.
    fn has_to_send(&self) -> bool;

    /// Sends the datagrams that were added, as far as the device takes them, and counts them.
    fn send(&mut self, now: Duration) -> Sent;

    /// Reports whether the device did not take everything: the caller then calls [`DeviceSender::send`] again soon.
    fn is_stuck(&self) -> bool;

    /// Reports whether everything has left, so that the device may be closed.
    fn is_sent(&mut self) -> bool;
}

/// Frames of a batch that were not handed over as datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rejected {
    /// The number of frames whose checksum was wrong.
    pub bad_checksums: u64,
    /// The number of frames that were not a whole datagram, or whose sender cannot be answered.
    pub malformed: u64,
}

/// The result of sending datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Bytes of the datagrams that were sent.
    pub bytes: u64,
    /// The number of datagrams that were dropped.
    pub dropped: u64,
}

/// The address to which the reply to a datagram is sent, in the encoding of the device that received the datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReturnAddress(pub [u8; ReturnAddress::BYTES]);

impl ReturnAddress {
    /// The size in bytes: Ethernet and IPv6 addresses and ports of both sides, and a byte for the address family.
    pub const BYTES: usize = 2 * (6 + 16 + 2) + 1;
}
