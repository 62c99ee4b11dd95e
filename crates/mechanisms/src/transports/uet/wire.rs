//! [`Feedback`]: the contents of Ultra Ethernet's packets, in the fields of a segment.
//!
//! | | `seq` | `ack` | flags | `entropy` | 24 bytes of SACK |
//! |---|---|---|---|---|---|
//! | data | stream offset | number, target | CWR: answer at once | its path | |
//! | request | 0 | number, target | CWR, no ACK | its path | |
//! | probe | 0 | its own number, target | CWR, ECE, no ACK | its path | |
//! | ACK | next number expected | next offset expected | ACK | its path | [`Feedback`] |
//! | NACK | the same | the same | ACK, CWR | its path | [`Feedback`] |
//! | PULL | | | no flag | its path | the quanta granted |
//!
//! Packets are numbered (PSN) apart from the offsets of their bytes, with 16 bits, as a sender has fewer outstanding;
//! so is a pull target, in quanta. RETRANSMISSION on an ACK says that the packet that caused it had been sent before.

use crate::tcp::{Flags, SackBlocks, TcpSegment};

/// What an ACK or a NACK says beside the next number expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Feedback {
    /// The number of the packet that caused it, and the entropy value by which that came.
    pub(super) number: u16,
    pub(super) entropy: u16,
    /// The number of the first packet of `map`, whose bits say which of 64 packets have arrived.
    pub(super) base: u16,
    pub(super) map: u64,
    /// The bytes on the wire that have arrived, modulo 2^32, duplicates included.
    pub(super) arrived: u32,
    /// The packets that wait behind a gap.
    pub(super) ahead: u16,
    /// A trimmed packet lost its payload at the last switch of its path.
    pub(super) at_last_hop: bool,
    /// It answers the probe of this number.
    pub(super) is_of_probe: bool,
}

impl Feedback {
    /// Returns the words in the place of SACK blocks.
    pub(super) fn blocks(self) -> SackBlocks {
        let high = |high: u16, low: u16| u64::from(high) << 16 | u64::from(low);
        [
            (high(self.number, self.entropy), high(self.base, self.ahead)),
            (self.map >> 32, self.map & u64::from(u32::MAX)),
            (u64::from(self.arrived), u64::from(self.at_last_hop) | u64::from(self.is_of_probe) << 1),
        ]
        .into_iter()
        .collect()
    }

    /// Returns the feedback of an ACK or NACK. Only the low 32 bits of each word came by the wire.
    pub(super) fn of(segment: &TcpSegment) -> Feedback {
        let mut words = [[0; 2]; 3];
        for (words, (first, second)) in words.iter_mut().zip(segment.sack.as_slice()) {
            *words = [*first as u32, *second as u32];
        }
        let [[path, base], [map_high, map_low], [arrived, bits]] = words;
        Feedback {
            number: (path >> 16) as u16,
            entropy: path as u16,
            base: (base >> 16) as u16,
            map: u64::from(map_high) << 32 | u64::from(map_low),
            arrived,
            ahead: base as u16,
            at_last_hop: bits & 1 != 0,
            is_of_probe: bits & 2 != 0,
        }
    }
}

/// Returns the acknowledgement field of data: the packet's number and its sender's pull target.
pub(super) fn data_label(number: u64, target: u64) -> u64 {
    u64::from(number as u16) | u64::from(target as u16) << 16
}

/// Returns the number and the pull target of a data packet or request.
pub(super) fn label_of(segment: &TcpSegment) -> (u16, u16) {
    (segment.ack as u16, (segment.ack >> 16) as u16)
}

/// What a packet of Ultra Ethernet is for, as its length and flags say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PacketKind {
    Data,
    Ack,
    Nack,
    Pull,
    Request,
    Probe,
}

impl PacketKind {
    pub(super) fn of(segment: &TcpSegment) -> PacketKind {
        match (segment.len, segment.flags.has(Flags::ACK), segment.flags.has(Flags::CWR)) {
            (1.., ..) => PacketKind::Data,
            (0, true, false) => PacketKind::Ack,
            (0, true, true) => PacketKind::Nack,
            (0, false, true) if segment.flags.has(Flags::ECE) => PacketKind::Probe,
            (0, false, true) => PacketKind::Request,
            (0, false, false) => PacketKind::Pull,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_passes_through_three_blocks_of_32_bits() {
        let feedback = Feedback {
            number: 65_535,
            entropy: 4_095,
            base: 65_500,
            map: 0x8000_0000_0000_0001,
            arrived: u32::MAX - 1,
            ahead: 33,
            at_last_hop: false,
            is_of_probe: true,
        };
        // The wire keeps the low bits of a word; the receiver puts others above them.
        let blocks = feedback.blocks();
        let wrapped =
            blocks.as_slice().iter().map(|(a, b)| (a & 0xffff_ffff | 7 << 40, b & 0xffff_ffff | 1 << 33));
        let segment = TcpSegment { sack: wrapped.collect(), ..TcpSegment::default() };
        assert_eq!(Feedback::of(&segment), feedback);
    }

    #[test]
    fn a_label_holds_a_number_and_a_target() {
        assert_eq!(
            label_of(&TcpSegment { ack: data_label(70_000, 65_537), ..TcpSegment::default() }),
            (4_464, 1)
        );
    }
}
