//! [`HomaConfig`]: what all messages of a transport share, and the sizes and priorities that follow.

use super::params::HomaParams;
use crate::tcp::{Flags, TcpSegment};

/// The priorities of packets, 0 to 7, of which the highest is served first.
pub(super) const LEVELS: u8 = 8;

/// The configuration of a transport of Homa: sizes in bytes, and the parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct HomaConfig {
    /// The payload of a full packet, Homa's header included.
    pub segment: u64,
    /// The bytes of all headers below Homa's, frame included.
    pub header: u64,
    /// The bytes left of a message up to which its packets have priority 7, 6, and so on, in ascending order.
    pub cutoffs: Vec<u64>,
    /// The parameters, which [`HomaParams::validate`] has accepted.
    pub params: HomaParams,
}

impl HomaConfig {
    /// Makes the configuration of `params` for packets of `segment` bytes behind `header` bytes.
    pub fn new(segment: u64, header: u64, params: &HomaParams) -> HomaConfig {
        let cutoffs = params.cutoffs.iter().flatten().map(|size| size.get()).collect();
        HomaConfig { segment, header, cutoffs, params: params.clone() }
    }

    /// Returns the number of priorities of unscheduled packets.
    pub fn unscheduled_levels(&self) -> u8 {
        LEVELS - self.params.scheduled_levels
    }

    /// Returns the number of senders to which a host grants at a time.
    pub fn degree(&self) -> usize {
        self.params.degree.unwrap_or(self.params.scheduled_levels.into()) as usize
    }

    /// Returns the most data of an unscheduled packet; of a scheduled one.
    pub(super) fn payload(&self, is_scheduled: bool) -> u64 {
        self.segment.saturating_sub(self.homa_header(is_scheduled)).max(1)
    }

    fn homa_header(&self, is_scheduled: bool) -> u64 {
        let params = &self.params;
        if is_scheduled { params.scheduled_header.get() } else { params.unscheduled_header.get() }
    }

    /// Returns the bytes on the wire of a packet with `data` bytes.
    pub fn wire_of(&self, data: u64, is_scheduled: bool) -> u64 {
        (self.header + self.homa_header(is_scheduled) + data).max(self.params.shortest_frame.get())
    }

    /// Returns the bytes on the wire of a packet.
    pub fn wire_bytes(&self, segment: &TcpSegment) -> u32 {
        match segment.len {
            0 => self.params.control_size.get() as u32,
            len => self.wire_of(len.into(), !segment.flags.has(Flags::CWR)) as u32,
        }
    }

    /// Returns the data of a message that is sent unscheduled at most: what `rtt_bytes` on the wire hold.
    pub fn unscheduled_bytes(&self) -> u64 {
        let (payload, rtt) = (self.payload(false), self.params.rtt_bytes.get());
        let full = self.wire_of(payload, false);
        let rest = (rtt % full).saturating_sub(self.header + self.homa_header(false));
        (rtt / full * payload + rest).max(1)
    }

    /// Returns whether the last `left` bytes of a scheduled message take at most `rtt_bytes` on the wire.
    pub(super) fn is_tail(&self, left: u64) -> bool {
        let payload = self.payload(true);
        let (full, rest) = (left / payload, left % payload);
        let last = if rest > 0 { self.wire_of(rest, true) } else { 0 };
        full * self.wire_of(payload, true) + last <= self.params.rtt_bytes.get()
    }

    /// Returns the priority of an unscheduled packet of a message with `left` bytes to send, the packet's included.
    pub fn unscheduled_priority(&self, left: u64) -> u8 {
        LEVELS - 1 - self.cutoffs.partition_point(|cutoff| *cutoff < left) as u8
    }

    /// Returns the priority of a scheduled packet in `slot`, of which 0 is the highest.
    pub fn scheduled_priority(&self, slot: usize) -> u8 {
        (self.params.scheduled_levels - 1).saturating_sub(slot.min(usize::from(LEVELS)) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> HomaConfig {
        HomaConfig::new(1_472, 66, &HomaParams::default())
    }

    #[test]
    fn sizes_are_those_of_the_authors_simulator() {
        let config = config();
        assert_eq!((config.payload(false), config.payload(true)), (1_442, 1_456));
        assert_eq!(config.unscheduled_bytes(), 1_442 + 7_886);
        assert_eq!([1, 14, 1_442].map(|data| config.wire_of(data, false)), [97, 110, 1_538]);
        assert_eq!([1, 1_456].map(|data| config.wire_of(data, true)), [84, 1_538]);
        // Six full packets of 1,538 B, and 690 B of data in the 772 B that are left of 10,000.
        assert!(config.is_tail(6 * 1_456 + 690) && !config.is_tail(6 * 1_456 + 691));
    }

    #[test]
    fn priorities_fall_with_the_bytes_left_and_with_the_slot() {
        let params = HomaParams { scheduled_levels: 4, ..HomaParams::default() };
        let config = HomaConfig { cutoffs: vec![433, 2_339, 6_756], ..HomaConfig::new(1_472, 66, &params) };
        let of = [1, 433, 434, 2_339, 6_756, 6_757, 1 << 40].map(|left| config.unscheduled_priority(left));
        assert_eq!(of, [7, 7, 6, 6, 5, 4, 4]);
        assert_eq!([0, 1, 2, 3, 9].map(|slot| config.scheduled_priority(slot)), [3, 2, 1, 0, 0]);
    }
}
