//! [`PacketKind`]: the packets of Homa, in the fields of a segment.
//!
//! | | `seq` | `ack` | flags |
//! |---|---|---|---|
//! | data | stream offset | end of its message | CWR: unscheduled |
//! | GRANT | priority | offset up to which is granted | no flag |
//! | ACK | | offset up to which all has arrived | ACK |
//! | RESEND | bytes that are missing | offset of the first | ACK, CWR |
//! | probe | | end of the message | CWR |

use crate::tcp::{Flags, TcpSegment};

/// The types of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PacketKind {
    Data,
    Grant,
    Ack,
    Resend,
    Probe,
}

impl PacketKind {
    pub(super) fn of(segment: &TcpSegment) -> PacketKind {
        match (segment.len, segment.flags.has(Flags::ACK), segment.flags.has(Flags::CWR)) {
            (1.., ..) => PacketKind::Data,
            (0, false, false) => PacketKind::Grant,
            (0, true, false) => PacketKind::Ack,
            (0, true, true) => PacketKind::Resend,
            (0, false, true) => PacketKind::Probe,
        }
    }
}

/// Returns the offset with the low 32 bits of `wire` that is nearest to `near`.
pub(super) fn offset_near(wire: u64, near: u64) -> u64 {
    let distance = (wire as u32).wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(distance.into())
}
