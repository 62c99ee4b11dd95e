//! [`TcpReceiver`]: reassembly, and the time and contents of ACKs.
//!
//! In order (RFC 5681, section 4.2): an ACK for every `ack_every` segments or after `ack_delay`. At once: out of order,
//! filling a hole, a duplicate, and on a change of DCTCP's CE state (RFC 8257, section 3.2). An immediate ACK is a
//! segment of its own; a delayed one is sent with data.

use plimsoll_units::Time;

use super::config::TcpConfig;
use super::params::Recovery;
use super::ranges::Ranges;
use super::segment::{EcnField, Flags, SackBlocks, TcpSegment};
use crate::transports::Kind;

/// The receiving half of an endpoint.
#[derive(Debug)]
pub(super) struct TcpReceiver {
    /// The next offset expected in order (RCV.NXT).
    nxt: u64,
    /// Number of segments in order that one ACK acknowledges.
    ack_every: u32,
    /// ECE is the CE state of the latest arrival (RFC 8257), not latched until CWR (RFC 3168).
    exact_echo: bool,
    /// Segments in order since the last ACK.
    unacked: u32,
    /// An ACK must be sent now.
    ack_now: bool,
    /// ECE on every ACK: latched until CWR (RFC 3168), or DCTCP.CE (RFC 8257).
    ece: bool,
    /// Before the next ACK, one for this offset with the opposite ECE (RFC 8257, section 3.2).
    earlier_ack: Option<u64>,
    /// When a waiting ACK leaves; `Time::MAX` if none waits.
    deadline: Time,
    /// Data that arrived out of order; made when needed.
    reassembly: Option<Box<Reassembly>>,
}

#[derive(Debug, Default)]
struct Reassembly {
    ranges: Ranges,
    /// Offsets within the blocks that changed last, the latest first (RFC 2018, section 4).
    recent: [u64; SackBlocks::MAX],
    recent_len: usize,
}

impl TcpReceiver {
    pub(super) fn new(config: &TcpConfig) -> TcpReceiver {
        TcpReceiver {
            nxt: 0,
            ack_every: config.ack_every,
            exact_echo: config.params.kind == Kind::Dctcp,
            unacked: 0,
            ack_now: false,
            ece: false,
            earlier_ack: None,
            deadline: Time::MAX,
            reassembly: None,
        }
    }

    /// RCV.NXT: the bytes handed to the application.
    #[inline]
    pub(super) fn nxt(&self) -> u64 {
        self.nxt
    }

    #[inline]
    pub(super) fn deadline(&self) -> Time {
        self.deadline
    }

    /// Returns whether an ACK must leave as a segment of its own.
    #[inline]
    pub(super) fn owes_ack(&self) -> bool {
        self.ack_now
    }

    /// Returns whether an ACK is due now or delayed.
    pub(super) fn has_pending_ack(&self) -> bool {
        self.ack_now || self.unacked > 0
    }

    /// Requests an immediate ACK.
    pub(super) fn ack_now(&mut self) {
        self.ack_now = true;
    }

    /// A segment with data arrived. Returns the bytes newly in order.
    #[inline]
    pub(super) fn on_data(&mut self, config: &TcpConfig, ecn: bool, now: Time, segment: &TcpSegment) -> u64 {
        if ecn {
            self.on_ecn(segment);
        }
        let holes = self.reassembly.as_ref().is_some_and(|reassembly| !reassembly.ranges.is_empty());
        if segment.seq != self.nxt || holes {
            return self.on_data_out_of_order(segment);
        }
        self.nxt += u64::from(segment.len);
        self.unacked += config.segments_in(segment.len);
        if self.unacked >= self.ack_every {
            self.ack_now = true;
        } else if self.deadline == Time::MAX {
            self.deadline = now + config.params.ack_delay;
        }
        u64::from(segment.len)
    }

    /// RFC 5681, section 4.2: out of order, into a hole, or again: acknowledge at once.
    #[cold]
    fn on_data_out_of_order(&mut self, segment: &TcpSegment) -> u64 {
        self.ack_now = true;
        let (start, end) = (segment.seq.max(self.nxt), segment.end());
        if end <= self.nxt {
            return 0;
        }
        let before = self.nxt;
        if start > self.nxt {
            self.reassembly.get_or_insert_default().insert(start, end);
            return 0;
        }
        self.nxt = end;
        if let Some(reassembly) = &mut self.reassembly {
            while let Some(end) = reassembly.ranges.take_first_if_reached(self.nxt) {
                self.nxt = self.nxt.max(end);
            }
            reassembly.forget_below(self.nxt);
        }
        self.nxt - before
    }

    /// Updates the echo for the ECN field of `segment` (RFC 3168, section 6.1.3, or RFC 8257, section 3.2).
    #[inline]
    pub(super) fn on_ecn(&mut self, segment: &TcpSegment) {
        let ce = segment.ecn == EcnField::Ce;
        if self.exact_echo {
            if ce != self.ece && (ce || segment.len > 0) {
                self.on_ce_change(segment.len > 0);
            }
        } else {
            if segment.flags.has(Flags::CWR) && !segment.flags.has(Flags::SYN) {
                self.ece = false;
            }
            self.ece |= ce;
        }
    }

    /// RFC 8257, section 3.2: the ACK of earlier data carries the old state, so that the sender's count of marked bytes
    /// is exact.
    fn on_ce_change(&mut self, has_data: bool) {
        if self.unacked > 0 {
            self.earlier_ack = Some(self.nxt);
        }
        self.ece = !self.ece;
        self.ack_now |= has_data;
    }

    /// The delayed ACK is due.
    pub(super) fn on_deadline(&mut self) {
        self.deadline = Time::MAX;
        self.ack_now = true;
    }

    /// An ACK that must leave before anything else: its number and ECE.
    #[inline]
    pub(super) fn take_earlier_ack(&mut self) -> Option<(u64, bool)> {
        self.earlier_ack.take().map(|ack| (ack, !self.ece))
    }

    /// An ACK leaves with the segment being made: its number and ECE.
    #[inline]
    pub(super) fn take_ack(&mut self) -> (u64, bool) {
        self.unacked = 0;
        self.ack_now = false;
        self.deadline = Time::MAX;
        (self.nxt, self.ece)
    }

    /// The SACK blocks to report (RFC 2018, section 4).
    #[inline]
    pub(super) fn sack(&self, config: &TcpConfig) -> SackBlocks {
        match &self.reassembly {
            Some(reassembly) if config.params.recovery == Recovery::Sack => reassembly.blocks(),
            _ => SackBlocks::NONE,
        }
    }
}

impl Reassembly {
    fn insert(&mut self, start: u64, end: u64) {
        self.ranges.insert(start, end);
        let Some(block) = self.ranges.find(start) else { return };
        // This block first, then the others in the order of their last change.
        let mut recent = [start; SackBlocks::MAX];
        let mut len = 1;
        for &offset in &self.recent[..self.recent_len] {
            if len < SackBlocks::MAX && !(block.0..block.1).contains(&offset) {
                recent[len] = offset;
                len += 1;
            }
        }
        (self.recent, self.recent_len) = (recent, len);
    }

    fn forget_below(&mut self, offset: u64) {
        let kept: Vec3 = self.recent[..self.recent_len].iter().copied().filter(|at| *at >= offset).collect();
        (self.recent, self.recent_len) = (kept.0, kept.1);
    }

    fn blocks(&self) -> SackBlocks {
        self.recent[..self.recent_len].iter().filter_map(|offset| self.ranges.find(*offset)).collect()
    }
}

/// Up to three offsets, and their number.
struct Vec3([u64; SackBlocks::MAX], usize);

impl FromIterator<u64> for Vec3 {
    fn from_iter<I: IntoIterator<Item = u64>>(offsets: I) -> Vec3 {
        offsets.into_iter().take(SackBlocks::MAX).fold(Vec3([0; SackBlocks::MAX], 0), |mut all, offset| {
            all.0[all.1] = offset;
            all.1 += 1;
            all
        })
    }
}
