//! [`Agenda`]: the steps that hosts have yet to take at this instant, the next one last.
//!
//! A workload acts between two steps, so a step that leads to others adds them in reverse. Then all is done in the
//! order in which calls of the workload would have done it.

use plimsoll_fabric::net::Packet;
use plimsoll_traffic::ConnectionEnd as End;

/// The steps that are left, the next one last; empty between events.
pub(super) type Agenda = Vec<Step>;

/// A step that hosts have yet to take.
#[derive(Debug)]
pub(super) enum Step {
    /// The workload gets a datagram.
    Datagram(u16, Packet),
    /// The workload gets the message of the datagram family that the packet has made whole.
    Message(Packet),
    /// The NIC hands over the packets of a piece: to the reorder buffer, or to the transport.
    Piece(Vec<Packet>),
    /// The transport gets the packets of a piece.
    Receive(Vec<Packet>),
    /// The reorder buffer of the end at this place has handed over all that it released.
    Released(u32),
    /// The stack has handed a segment to an end of a connection.
    Segment(u32, End),
    /// The packet has acknowledged more data to the sender at this end of a connection.
    Acknowledged(u32, End, Packet),
    /// Messages are whole; the application may have to copy them before it receives them.
    Whole(Delivery),
    /// The application receives the messages that are whole.
    Deliver(Delivery),
    /// The connection is closed, if it is idle.
    Close(u32),
}

/// Messages that have become whole at an end of a connection.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) number: u32,
    pub(super) end: End,
    /// The number of bytes of the stream that the end has received in order.
    pub(super) received: u64,
    /// The packet that completed the messages; receive offload may have merged it with those `before` it.
    pub(super) packet: Packet,
    pub(super) before: Vec<Packet>,
}
