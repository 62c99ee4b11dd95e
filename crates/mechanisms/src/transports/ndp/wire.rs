//! [`Answer`]: what the packets of NDP hold, in the fields of a segment.
//!
//! | | `seq` | `ack` | flags | SACK |
//! |---|---|---|---|---|
//! | data | stream offset | number | CWR: nothing written behind it | |
//! | header | the same | the same | TRIMMED; SYN where it was sent back | |
//! | ACK | next number expected | next offset expected | ACK | number, entropy; pulls |
//! | NACK | the same | the same | ACK, CWR | the same |
//! | PULL | pulls from the beginning on | next number expected | | |
//!
//! Packets are numbered apart from the offsets of their bytes. Numbers and pulls have 32 bits.

use crate::tcp::{Flags, TcpSegment};

/// An acknowledgement of one packet, positive or negative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    /// The payload of the packet was trimmed.
    pub(super) is_nack: bool,
    /// The number of the packet, and the entropy value by which it came.
    pub(super) number: u32,
    pub(super) entropy: u16,
    /// The pulls from the beginning on, where the answer holds one.
    pub(super) pulled: Option<u32>,
    /// The packet was sent again. For round trips, and not on the wire.
    pub(super) was_repeated: bool,
}

impl Answer {
    /// Returns the segment of the answer of a receiver that expects packet `next` at `offset`.
    pub(super) fn segment(self, next: u64, offset: u64) -> TcpSegment {
        let pulled = self.pulled.map(|pulled| (u64::from(pulled), 1));
        let flags = Flags::ACK.with_if(self.is_nack, Flags::CWR);
        TcpSegment {
            seq: next,
            ack: offset,
            flags: flags.with_if(self.was_repeated, Flags::RETRANSMISSION),
            sack: [(self.number.into(), self.entropy.into())].into_iter().chain(pulled).collect(),
            ..TcpSegment::default()
        }
    }

    /// Returns the answer in a segment. Only the low 32 bits of each word came by the wire.
    pub(super) fn of(segment: &TcpSegment) -> Answer {
        let blocks = segment.sack.as_slice();
        let (number, entropy) = blocks.first().copied().unwrap_or_default();
        Answer {
            is_nack: segment.flags.has(Flags::CWR),
            number: number as u32,
            entropy: entropy as u16,
            pulled: blocks.get(1).map(|(pulled, _)| *pulled as u32),
            was_repeated: segment.flags.has(Flags::RETRANSMISSION),
        }
    }
}

/// What a packet of NDP is for, as its length and flags say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PacketKind {
    /// A data packet, or the header of one that was trimmed.
    Data,
    /// A header that a switch has sent back.
    Bounced,
    Ack,
    Nack,
    Pull,
}

impl PacketKind {
    pub(super) fn of(segment: &TcpSegment) -> PacketKind {
        match (segment.len, segment.flags.has(Flags::ACK), segment.flags.has(Flags::CWR)) {
            (1.., ..) if segment.flags.has(Flags::TRIMMED.with(Flags::SYN)) => PacketKind::Bounced,
            (1.., ..) => PacketKind::Data,
            (0, true, false) => PacketKind::Ack,
            (0, true, true) => PacketKind::Nack,
            (0, false, _) => PacketKind::Pull,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_passes_through_blocks_of_32_bits() {
        for pulled in [None, Some(0), Some(u32::MAX)] {
            let answer =
                Answer { is_nack: pulled.is_none(), number: 7, entropy: 0x8182, pulled, was_repeated: true };
            let segment = answer.segment(5, 45_000);
            // What the wire keeps of a word are its low bits; the receiver puts others above them.
            let blocks = segment.sack.as_slice().iter();
            let wrapped = blocks.map(|(a, b)| (a & 0xffff_ffff | 7 << 40, b & 0xffff_ffff | 1 << 33));
            assert_eq!(Answer::of(&TcpSegment { sack: wrapped.collect(), ..segment }), answer);
            let kind = if answer.is_nack { PacketKind::Nack } else { PacketKind::Ack };
            assert_eq!((PacketKind::of(&segment), segment.seq), (kind, 5));
        }
    }
}
