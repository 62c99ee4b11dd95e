//! [`TcpSegment`]: the unit that two endpoints exchange.

/// The ECN field of the IP header (RFC 3168, section 5), without the unused ECT(1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum EcnField {
    /// The sender does not react to marks.
    #[default]
    NotEct = 0,
    /// The sender reacts to marks: ECN-capable transport, ECT(0).
    Ect = 2,
    /// A queue has marked the packet: congestion experienced.
    Ce = 3,
}

/// Flags of the TCP header, and four that exist only in a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// The empty set of flags.
    pub const NONE: Flags = Flags(0);
    /// The segment opens a connection.
    pub const SYN: Flags = Flags(1);
    /// The acknowledgement number is valid.
    pub const ACK: Flags = Flags(2);
    /// A switch has cut the payload off. In a simulation only, in the place of FIN, which no endpoint sends.
    pub const TRIMMED: Flags = Flags(4);
    /// ECN echo (RFC 3168, section 6.1).
    pub const ECE: Flags = Flags(8);
    /// Congestion window reduced (RFC 3168, section 6.1).
    pub const CWR: Flags = Flags(16);
    /// Some of the payload was sent before. Not on the wire; for counters and captures.
    pub const RETRANSMISSION: Flags = Flags(32);
    /// The packet travels from the server of its connection to the client: the role of a port number.
    pub const FROM_SERVER: Flags = Flags(64);
    /// The last bytes of the packet are SACK blocks, not waiting times.
    pub const SACK: Flags = Flags(128);
    /// The flags that endpoints set and read; the others belong to packets.
    pub const OF_SEGMENTS: Flags = Flags(63);

    /// Returns whether a packet without data that has these flags is a READ request of RoCE: of the flags of the header
    /// it has CWR alone, as no packet of TCP.
    #[inline]
    pub const fn are_of_read_request(self) -> bool {
        let of_header = Flags::SYN.with(Flags::ACK).with(Flags::ECE).with(Flags::CWR);
        self.and(of_header).0 == Flags::CWR.0
    }

    /// Returns whether all of `flags` are set.
    #[inline]
    pub const fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Returns these flags and `flags`.
    #[inline]
    pub const fn with(self, flags: Flags) -> Flags {
        Flags(self.0 | flags.0)
    }

    /// Returns the flags that these and `flags` have in common.
    #[inline]
    pub const fn and(self, flags: Flags) -> Flags {
        Flags(self.0 & flags.0)
    }

    /// Returns these flags, and `flags` if `on`.
    #[inline]
    pub const fn with_if(self, on: bool, flags: Flags) -> Flags {
        if on { self.with(flags) } else { self }
    }
}

/// Up to three SACK blocks (RFC 2018, section 3), the most recently changed first. A block is a range
/// `start..end` of stream offsets that the receiver holds above the acknowledgement number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlocks {
    count: u8,
    blocks: [(u64, u64); SackBlocks::MAX],
}

impl SackBlocks {
    /// The most blocks a segment carries: the number that fits beside a timestamp option.
    pub const MAX: usize = 3;
    /// The option without a block.
    pub const NONE: SackBlocks = SackBlocks { count: 0, blocks: [(0, 0); SackBlocks::MAX] };

    /// Appends a block; a fourth is left out.
    #[inline]
    pub fn push(&mut self, start: u64, end: u64) {
        if let Some(slot) = self.blocks.get_mut(self.count as usize) {
            *slot = (start, end);
            self.count += 1;
        }
    }

    /// The blocks, the most recently changed first.
    #[inline]
    pub fn as_slice(&self) -> &[(u64, u64)] {
        &self.blocks[..self.count as usize]
    }

    /// Returns whether the list is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl FromIterator<(u64, u64)> for SackBlocks {
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(blocks: I) -> SackBlocks {
        let mut sack = SackBlocks::NONE;
        blocks.into_iter().for_each(|(start, end)| sack.push(start, end));
        sack
    }
}

/// A TCP segment, with offsets of the stream for sequence numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpSegment {
    /// Stream offset of the first payload byte.
    pub seq: u64,
    /// The number of payload bytes; 0 in a pure ACK.
    pub len: u32,
    /// Next stream offset expected from the other end.
    pub ack: u64,
    /// The flags of the TCP header.
    pub flags: Flags,
    /// The ECN field of the IP header.
    pub ecn: EcnField,
    /// The value by which its sender chooses the path; 0 where the connection has one.
    pub entropy: u16,
    /// The blocks of the SACK option, at most three (RFC 2018).
    pub sack: SackBlocks,
}

impl TcpSegment {
    /// Returns the stream offset after the last payload byte.
    #[inline]
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }

    /// Returns whether it is a READ request of RoCE: no data, and of the flags of the header CWR alone.
    #[inline]
    pub fn is_read_request(&self) -> bool {
        self.len == 0 && self.flags.are_of_read_request()
    }
}
