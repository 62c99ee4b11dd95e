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

/// What a packet of Homa is for, as its length and flags say.
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
