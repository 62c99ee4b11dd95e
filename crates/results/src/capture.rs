//! Output for other tools: packets for Wireshark ([`pcapng`]), timelines for Perfetto ([`perfetto`]).

mod circuit_tracks;
mod frame;
pub mod pcapng;
pub mod perfetto;

pub use plimsoll_fabric::net::{EcnField, Flags};
use plimsoll_units::Time;

/// One packet as a port sent it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PacketRecord<'a> {
    /// The time at which the packet's last bit left the port.
    pub time: Time,
    /// The port that sent it, as an index into the interfaces of the capture.
    pub interface: u32,
    /// The number of the sending host.
    pub source: u32,
    /// The number of the receiving host.
    pub destination: u32,
    /// Its flow: both directions of a connection have the same.
    pub flow: u64,
    /// First payload byte's place in the stream.
    pub seq: u64,
    /// The next byte expected from the other side; `None` sends no ACK.
    pub ack: Option<u64>,
    /// The number of bytes on the wire.
    pub size: u32,
    /// The number of payload bytes.
    pub payload: u32,
    /// The control bits of the TCP header, without ACK, which [`PacketRecord::ack`] represents.
    pub flags: Flags,
    /// The IP header's ECN field.
    pub ecn: EcnField,
    /// Blocks received out of order, as first byte and the byte after the last; at most three are
    /// written.
    pub sack: &'a [(u64, u64)],
}

/// Packets that a run kept, in the order in which they left.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Capture {
    /// The captured ports, in words: `tor -> h0`. Packets refer to them by index.
    pub ports: Vec<String>,
    /// The captured packets, in the order of their times.
    pub packets: Vec<CapturedPacket>,
}

/// A [`PacketRecord`] that owns its SACK blocks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CapturedPacket {
    /// The fields of the packet other than its SACK blocks.
    header: PacketRecord<'static>,
    sack: [(u64, u64); SACK_BLOCKS],
    sack_len: u8,
}

/// Number of SACK blocks that are written.
const SACK_BLOCKS: usize = 3;

impl CapturedPacket {
    /// Keeps a packet with its first three SACK blocks.
    pub fn new(packet: &PacketRecord<'_>) -> CapturedPacket {
        let len = packet.sack.len().min(SACK_BLOCKS);
        let mut sack = [(0, 0); SACK_BLOCKS];
        sack[..len].copy_from_slice(&packet.sack[..len]);
        CapturedPacket { header: PacketRecord { sack: &[], ..*packet }, sack, sack_len: len as u8 }
    }

    /// Returns the packet with its SACK blocks.
    pub fn record(&self) -> PacketRecord<'_> {
        PacketRecord { sack: &self.sack[..usize::from(self.sack_len)], ..self.header }
    }
}
