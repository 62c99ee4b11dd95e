//! Pacing by which connections keep to a level themselves, where the host's limiter can refuse packets but not hold
//! them.
//!
//! ```text
//! pace  =  (bucket - frame / 2) / E  x  segment / frame  /  connections that share the level
//! ```
//!
//! Linux paces a connection by the payload of its packets, and compensates for a packet that left late by sending the
//! next one earlier by as much, at most by half of a gap. So of packets that fill k frames of the bucket, one that
//! begins an epoch and the k that follow it are at least k - 1/2 gaps apart. At this pace, a connection that has a
//! level to itself, sends full frames and is paced (the first ten packets are not) never exceeds the share. A bucket of
//! one frame gives half of the level's rate, a bucket of many nearly all of it.
//!
//! All arithmetic is u64, so that the C version is exact.

use plimsoll_units::{Bytes, Span, Time};

/// The pace of one of `sharers` connections of a level that may send `bucket` an epoch, in bytes of payload a second, 1
/// or more. Its full packets have `segment` bytes of payload and `header` bytes of all headers; a bucket of 4 GB and
/// more counts as 4 GB. The epoch is rounded up to a nanosecond.
pub fn pace(bucket: Bytes, epoch: Span, segment: u64, header: u64, sharers: u64) -> u64 {
    let epoch_ns = epoch.as_ps().div_ceil(PS_PER_NS).max(1);
    let (segment, frame) = (segment.min(SEGMENT_MAX), (segment.min(SEGMENT_MAX) + header).max(1));
    let bucket = bucket.get().min(BUCKET_MAX);
    let rate = (bucket - frame.min(bucket) / 2) * segment / frame * NS_PER_S / epoch_ns;
    (rate / sharers.max(1)).max(1)
}

/// Number of connections that share a level: the connections active in this period or, if these are more, in the one
/// before. A connection that is idle for two periods leaves its part to the others.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sharers {
    period: u64,
    now: u64,
    before: u64,
}

/// The time of a connection's last activity, which [`Sharers`] keeps with it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HeardOf(u64);

impl Sharers {
    /// Records that a connection is active, by an acknowledgement or by data that it sends, and returns the number of
    /// connections that share the level, 1 or more. A time before an earlier one counts as of that period.
    pub fn heard_of(&mut self, connection: &mut HeardOf, now: Time) -> u64 {
        // The first period is number 1, so that no connection has been active in it yet.
        let period = (now.saturating_since(Time::ZERO).as_ps() / SHARING.as_ps() + 1).max(self.period);
        if period > self.period {
            self.before = if period == self.period + 1 { self.now } else { 0 };
            (self.period, self.now) = (period, 0);
        }
        if connection.0 != period {
            connection.0 = period;
            self.now += 1;
        }
        self.now.max(self.before)
    }
}

/// A period of [`Sharers`]: long beside the time between two packets of a shared level, short beside a transfer that
/// would have the level to itself. Our choice.
pub const SHARING: Span = Span::from_ms(500);

const SEGMENT_MAX: u64 = u16::MAX as u64;
const BUCKET_MAX: u64 = u32::MAX as u64;
const NS_PER_S: u64 = 1_000_000_000;
const PS_PER_NS: u64 = 1_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Excess, Level, Levels, Limiter, Verdict};
    use super::*;
    use plimsoll_units::Rate;

    #[test]
    fn a_bucket_of_one_frame_gives_half_of_the_rate_and_one_of_many_next_to_all() {
        let (epoch, segment, header) = (Span::from_ms(2), 524, 66);
        let pace = |frames: u64, sharers| pace(Bytes::new(frames * 590), epoch, segment, header, sharers);
        assert_eq!([pace(1, 1), pace(1, 2), pace(1, 0)], [131_000, 65_500, 131_000]);
        assert_eq!(pace(100, 1), 99 * 262_000 + 131_000);
        assert_eq!(super::pace(Bytes::new(1), Span::from_secs(1_000), 1, 66, 9), 1, "never nothing");
        assert!(super::pace(Bytes::new(u64::MAX), Span::from_ps(1), u64::MAX, 0, 1) > 1 << 60);
    }

    #[test]
    fn who_rests_leaves_its_part_to_the_others() {
        let at = |ms| Time::ZERO + Span::from_ms(ms);
        let mut sharers = Sharers::default();
        let mut own = [HeardOf::default(); 3];
        assert_eq!(sharers.heard_of(&mut own[0], at(0)), 1);
        assert_eq!(sharers.heard_of(&mut own[1], at(1)), 2);
        assert_eq!(sharers.heard_of(&mut own[2], at(499)), 3);
        assert_eq!(sharers.heard_of(&mut own[0], at(499)), 3, "the same again");
        assert_eq!(sharers.heard_of(&mut own[0], at(500)), 3, "as many as a period ago");
        assert_eq!(sharers.heard_of(&mut own[0], at(400)), 3, "time does not go back");
        assert_eq!(sharers.heard_of(&mut own[0], at(1_000)), 1, "the others have rested");
        assert_eq!(sharers.heard_of(&mut own[1], at(9_000)), 1, "all have");
    }

    proptest! {
        /// Linux's pacing by the rule at [`pace`], with packets that leave late: none is refused. (Linux rounds a gap
        /// down to a nanosecond; its timers are later than that.)
        #[test]
        fn a_paced_connection_is_never_beyond_its_share(
            frames in 1u64..20, epoch_us in 100u64..10_000, late in prop::collection::vec(0u64..30_000_000, 200),
        ) {
            let (epoch, segment, header) = (Span::from_us(epoch_us), 1_448, 66);
            let bucket = Bytes::new(frames * (segment + header));
            let level = Level { bucket, rate: Rate::from_gbps(1), latency_bound: None };
            let mut limiter = Limiter::new(&Levels { epoch, levels: vec![level] }, Excess::Refuse);
            let gap_ns = (segment * NS_PER_S).div_ceil(pace(bucket, epoch, segment, header, 1));
            let mut due_ns = 0;
            for late_ns in late {
                let now_ns = due_ns + if late_ns % 3 == 0 { late_ns } else { late_ns % 50_000 };
                let now = Time::from_ps(now_ns * PS_PER_NS);
                prop_assert_eq!(limiter.on_packet(now, 0, segment + header), Verdict::Send);
                due_ns = now_ns + gap_ns - (gap_ns / 2).min(now_ns - due_ns);
            }
        }
    }
}
