//! [`Event`]: an event of a request or of a thread of the server, with its time.

/// A connection, or the address of a UDP client, by the peer's address and port and the local port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Flow(u64);

impl Flow {
    /// Creates the flow from the 64 bits of a record: the peer's IPv4 address in network order (or 32 bits folded from
    /// its IPv6 address), its port and the local port.
    pub fn from_bits(bits: u64) -> Flow {
        Flow(bits)
    }

    /// Returns the peer's port.
    pub fn peer_port(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Returns the server's port.
    pub fn local_port(self) -> u16 {
        self.0 as u16
    }
}

impl std::fmt::Display for Flow {
    /// Writes the peer's address in the form of IPv4, and its port. Only 28 bits of an IPv6 address are kept.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d] = ((self.0 >> 32) as u32).to_ne_bytes();
        match a {
            // A host never has a class E address: the programs mark folded IPv6 addresses by it.
            0xf0.. => write!(f, "[IPv6 {:07x}]:{}", u32::from_be_bytes([a & 0xf, b, c, d]), self.peer_port()),
            _ => write!(f, "{a}.{b}.{c}.{d}:{}", self.peer_port()),
        }
    }
}

/// The transport protocol of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// The packet is a TCP segment.
    Tcp,
    /// The packet is a UDP datagram.
    Udp,
}

/// A thread of the server, by the number that the kernel gives to it (gettid(2)).
pub type ThreadId = u32;

/// An event with its time in ns by one monotonic clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// The time of the event, in ns.
    pub at: u64,
    /// The kind of the event, with its data.
    pub kind: EventKind,
}

/// The kinds of event. Only packets with payload are reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// A packet reaches the network stack from a device.
    Received {
        /// The connection of the packet.
        flow: Flow,
        /// The transport protocol.
        protocol: Protocol,
        /// The sequence number of the first byte; 0 for UDP.
        sequence: u32,
        /// The bytes of payload.
        bytes: u32,
    },
    /// The socket has the payload and notifies its readers.
    Ready {
        /// The connection of the socket, or the client whose datagram it is.
        flow: Flow,
        /// The UDP socket, by its address; `None` for TCP.
        socket: Option<u64>,
    },
    /// A thread has read the oldest datagram of a UDP socket.
    ReadDatagram {
        /// The socket, by its address.
        socket: u64,
        /// The thread that read.
        thread: ThreadId,
        /// The bytes that it read.
        bytes: u32,
    },
    /// A thread has read payload from a TCP connection.
    Read {
        /// The connection of the socket.
        flow: Flow,
        /// The thread that read.
        thread: ThreadId,
        /// The bytes that it read.
        bytes: u32,
    },
    /// A thread begins to send payload. A system call is reported again for each packet that it fills.
    Send {
        /// The connection of the socket.
        flow: Flow,
        /// The thread that sends.
        thread: ThreadId,
        /// The bytes that the system call still has.
        bytes: u32,
    },
    /// A packet enters the queueing discipline of a device.
    Queued(Packet),
    /// A packet is handed to the device's driver.
    Transmitted(Packet),
    /// A thread continues on a processor after it stopped.
    Resumed {
        /// The thread that continues.
        thread: ThreadId,
        /// When it stopped, in ns; 0 if that was not seen.
        stopped: u64,
        /// When it was woken, in ns; 0 if that was not seen. Without meaning for a preempted thread.
        woken: u64,
        /// True if it stopped although it could have continued.
        preempted: bool,
    },
    /// The connection no longer exists.
    Closed {
        /// The connection that was closed.
        flow: Flow,
    },
}

/// A packet with payload that leaves the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The connection of the packet.
    pub flow: Flow,
    /// The thread on the processor, which need not be the sender: acknowledgements also make TCP send.
    pub thread: ThreadId,
    /// The sequence number of the first byte; 0 for UDP.
    pub sequence: u32,
    /// The bytes of payload.
    pub bytes: u32,
    /// The index of the device.
    pub device: u32,
    /// When the thread's last sending system call began, in ns; 0 if that is not traced.
    pub call: u64,
}
