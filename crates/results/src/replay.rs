//! [`Recording`]: all packets in a network during some hundred microseconds, hop by hop.
//!
//! ```text
//! a run, repeated with an observer (crate sim) ──> Recording ── JSON ──> one page that draws it (crate report)
//! ```
//!
//! A *hop* is a packet's stay at a port and its way along the port's link: it enters the queue, starts to be sent, has
//! left after its serialisation, and has arrived a propagation later. Times are picoseconds from the start of the
//! window; packets that had entered a queue before it have negative times. Packets and hops are kept in columns, which
//! are a third of the size of objects in JSON; the first time of a hop is the difference from that of the hop before
//! it.

use plimsoll_units::{Span, Time};
use serde::Serialize;

/// The most hops that a recording has; more make a page slow to draw, and too long to read.
pub const HOPS_MAX: usize = 100_000;

/// The part of a run that is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplayWindow {
    /// The first instant of the window.
    pub from: Time,
    /// The length of the window.
    pub length: Span,
}

impl ReplayWindow {
    /// Returns the last instant of the window.
    pub fn until(self) -> Time {
        self.from.saturating_add(self.length)
    }
}

/// The packets of a window, and the network in which they move.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Recording {
    /// The start of the window in the run, in ps.
    pub from: u64,
    /// The length of the window in ps.
    pub length: u64,
    /// The names of the tiers, from the hosts (`host`) upwards.
    pub tiers: Vec<String>,
    /// The nodes: all hosts by number, then all switches.
    pub nodes: Vec<NodeOfReplay>,
    /// Links by the number of their port.
    pub links: Vec<LinkOfReplay>,
    /// The names of the workloads.
    pub workloads: Vec<String>,
    /// The packets, in the order in which their first recorded hop began.
    pub packets: PacketColumns,
    /// The hops, in the order in which they began.
    pub hops: HopColumns,
    /// The times in which a link was paused: the link's number, the start and the end.
    pub pauses: Vec<(u32, i64, i64)>,
    /// The circuits: the sending and the receiving host, the start and the end.
    pub circuits: Vec<(u32, u32, i64, i64)>,
}

/// A host or a switch as a replay draws it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NodeOfReplay {
    /// The name of the node, such as `h3` or `leaf0`.
    pub name: String,
    /// The number of its tier in [`Recording::tiers`].
    pub tier: usize,
}

/// One direction of a link, with the port that sends on it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LinkOfReplay {
    /// The number of the node that sends on it.
    pub from: u32,
    /// The number of the node at its far end.
    pub to: u32,
    /// The rate in bits per second.
    pub rate: u64,
    /// The one-way propagation delay in ps.
    pub delay: u64,
}

/// The packets of a recording, by number; every column is as long.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PacketColumns {
    /// The number of the workload in [`Recording::workloads`].
    pub workload: Vec<u16>,
    /// The number of the connection.
    pub flow: Vec<u32>,
    /// The number of the host that sent the packet.
    pub source: Vec<u32>,
    /// The number of the host to which the packet is addressed.
    pub destination: Vec<u32>,
    /// The size of the packet in bytes on the wire.
    pub size: Vec<u16>,
    /// The number of the first payload byte in the connection, modulo 2^32.
    pub seq: Vec<u32>,
    /// The kind of the packet, as the number of a [`PacketKind`].
    pub kind: Vec<u8>,
    /// The 802.1p priority of the packet.
    pub priority: Vec<u8>,
}

/// The kinds of packet that a replay distinguishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PacketKind {
    /// A segment with payload.
    Data = 0,
    /// An acknowledgement without payload.
    Ack = 1,
    /// A segment that is sent again.
    Retransmission = 2,
    /// A segment of a handshake or the end of a connection, without payload.
    Control = 3,
    /// A single packet without a connection.
    Datagram = 4,
}

/// The hops of a recording; every column is as long.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct HopColumns {
    /// The number of the packet, by which its columns are found.
    pub packet: Vec<u32>,
    /// The number of the link and of its port.
    pub link: Vec<u32>,
    /// When the packet was handed to the port, less the same time of the hop before.
    pub entered: Vec<i64>,
    /// Time for which a pacer held it, in ps.
    pub paced: Vec<u64>,
    /// Time from its entry until it starts to be sent, or is lost, in ps.
    pub wait: Vec<u64>,
    /// The number of the [`Fate`] of the hop.
    pub fate: Vec<u8>,
}

/// Fate of a packet on a hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Fate {
    /// It arrives unchanged.
    Arrives = 0,
    /// It is marked CE by the port, and arrives.
    Marked = 1,
    /// The port has no room for it, or drops it later for another one.
    Dropped = 2,
    /// It is lost on the link or at its far end: the link is dead, or a circuit leads elsewhere.
    LostOnLink = 3,
    /// It is lost by its host before the NIC, as the scenario says.
    LostByHost = 4,
}

/// A hop as it is recorded, with absolute times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The number of the packet, by which its columns are found.
    pub packet: u32,
    /// The number of the link.
    pub link: u32,
    /// When the packet was handed to the port.
    pub entered: Time,
    /// Time for which a pacer held it.
    pub paced: Span,
    /// When it starts to be sent, or is lost.
    pub starts: Time,
    /// Fate of the packet on this hop.
    pub fate: Fate,
}

/// Returns the picoseconds from the start of a window to a time, which may be before it.
pub fn relative(window: ReplayWindow, time: Time) -> i64 {
    time.as_ps() as i64 - window.from.as_ps() as i64
}

impl HopColumns {
    /// Arranges hops in columns, in the order in which they began; ties go by packet.
    pub fn new(mut hops: Vec<Hop>, window: ReplayWindow) -> HopColumns {
        hops.sort_by_key(|hop| (hop.entered, hop.packet, hop.link));
        let mut columns = HopColumns::default();
        let mut last = 0;
        for hop in hops {
            let entered = relative(window, hop.entered);
            columns.packet.push(hop.packet);
            columns.link.push(hop.link);
            columns.entered.push(entered - last);
            columns.paced.push(hop.paced.as_ps());
            columns.wait.push(hop.starts.saturating_since(hop.entered).as_ps());
            columns.fate.push(hop.fate as u8);
            last = entered;
        }
        columns
    }
}

impl Recording {
    /// Returns the recording as compact JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a recording has neither maps nor floats")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_are_in_order_and_relative_to_the_window() {
        let at = |us| Time::ZERO + Span::from_us(us);
        let hop = |packet, entered, starts| Hop {
            packet,
            link: 7,
            entered: at(entered),
            paced: Span::ZERO,
            starts: at(starts),
            fate: Fate::Arrives,
        };
        let window = ReplayWindow { from: at(10), length: Span::from_us(5) };
        let columns = HopColumns::new(vec![hop(1, 12, 12), hop(0, 8, 11)], window);
        assert_eq!(columns.packet, [0, 1]);
        assert_eq!(columns.entered, [-2_000_000, 4_000_000]);
        assert_eq!(columns.wait, [3_000_000, 0]);
        assert_eq!(window.until(), at(15));
    }
}
