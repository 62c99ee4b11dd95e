//! In-band telemetry: a port writes its state into each data packet that it starts to send, and the receiver returns
//! the gathered states in its acknowledgement (HPCC, Li et al., SIGCOMM 2019; PowerTCP, Addanki et al., NSDI 2022).
//!
//! ```text
//! data ──> port: Stamp ──> port: Stamp ──> receiver ── acknowledgement with all stamps ──> sender
//! ```
//!
//! A stamp has the queue without the departing packet, of all queues of the port; the bytes that the port has sent
//! before the packet; the time at which it starts to be sent; and the rate of the link. A sender computes the
//! throughput of a link from two stamps of one port. A stamp also has the time that the packet spent in the port, whose
//! sum over the hops is the queueing delay for senders that steer by it.
//!
//! In the place of stamps a packet may carry one number, a digest (PINT, Ben Basat et al., SIGCOMM 2020): ports
//! estimate their own loads, and the packet has that of the most loaded one.

use plimsoll_units::{Bytes, Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;
use crate::mechanism::{EngineNeed, Mechanism, Section, Table};

/// Telemetry at a port: its stamps, and the bytes that they take on the wire. These bytes are not in the ideal
/// completion time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IntParams {
    /// The bytes that the first port that stamps a packet adds to it: 0 to 256 B. Default 2 B, as in HPCC's paper. Its
    /// released code has 42 B in all, and `hop = "0B"`.
    pub header: Bytes,
    /// The bytes that each port adds with its stamp: 0 to 64 B. Default 8 B, as in HPCC's paper.
    pub hop: Bytes,
    /// The rate of the senders' NICs, a multiple of 25 Gb/s from 25 to 400 Gb/s: with it, stamps are cut to the fields
    /// of HPCC's released header. With m = rate / 25 Gb/s these are 24 bits of nanoseconds, 20 bits of 128 m bytes sent
    /// and 17 bits of 80 m bytes of queue, all of which wrap. Links may then have 25, 50, 100, 200 or 400 Gb/s only.
    /// Default exact stamps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic_rate: Option<Rate>,
    /// One number in the place of stamps (PINT): the load of the most loaded port, which `hpcc` takes. Ports then add
    /// `header` alone. Default absent: stamps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<DigestParams>,
}

impl Default for IntParams {
    fn default() -> IntParams {
        IntParams { header: Bytes::new(2), hop: Bytes::new(8), nic_rate: None, digest: None }
    }
}

/// A digest of telemetry: each port averages its load U = queue / (B T) + rate / B over the time T, and a packet
/// carries the largest on its path, rounded to a power of `base` (PINT, Ben Basat et al., SIGCOMM 2020).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DigestParams {
    /// T, the round trip of idle links: more than 0. Default 13 us, as in HPCC's paper.
    pub base_rtt: Span,
    /// The ratio of two values that follow each other: more than 1, at most 2. A value is off by half of it at most;
    /// with 1.05 that is 2.5 %, and 8 bits hold the loads from 1/128 to 1,900. Default 1.05.
    #[schemars(range(min = 1.0, max = 2.0))]
    pub base: f64,
}

impl Default for DigestParams {
    fn default() -> DigestParams {
        DigestParams { base_rtt: Span::from_us(13), base: 1.05 }
    }
}

impl Eq for DigestParams {}

impl DigestParams {
    /// Returns `load` as a packet carries it: the nearest power of the base, and 0 below 1/128.
    pub fn rounded(&self, load: f64) -> f64 {
        if load < 1.0 / 128.0 {
            return 0.0;
        }
        self.base.powf((load.ln() / self.base.ln()).round())
    }
}

/// The load of a port, as the port itself estimates it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LoadEstimate {
    load: f64,
    /// When the port last began to send a packet, and the packet's bytes.
    last_at: Time,
    last_bytes: u64,
}

impl LoadEstimate {
    /// The port begins to send a packet of `bytes`, and leaves `queue_bytes` behind. Returns the load of its link from
    /// the packet before to this one, averaged over `base_rtt`.
    pub fn on_transmit(
        &mut self,
        now: Time,
        [queue_bytes, bytes]: [u64; 2],
        rate: Rate,
        base_rtt: Span,
    ) -> f64 {
        let time = now.saturating_since(self.last_at).min(base_rtt);
        if !time.is_zero() {
            let queue = queue_bytes as f64 / bytes_in(rate, base_rtt);
            let sent = self.last_bytes as f64 / bytes_in(rate, time);
            self.load = averaged(self.load, queue + sent, time, base_rtt);
        }
        (self.last_at, self.last_bytes) = (now, bytes);
        self.load
    }
}

/// Returns the bytes that a link of `rate` sends in `time`.
pub(crate) fn bytes_in(rate: Rate, time: Span) -> f64 {
    rate.as_bps() as f64 / 8.0 * time.as_secs_f64()
}

/// Returns `average` after a sample that holds for `time`, of the last `span`.
pub(crate) fn averaged(average: f64, sample: f64, time: Span, span: Span) -> f64 {
    average + (time.as_ps() as f64 / span.as_ps() as f64).min(1.0) * (sample - average)
}

impl Mechanism for IntParams {
    const TABLE: Table =
        Table::replaced_whole(Section::Port, "int", "packets leave the port without its state")
            .needs(EngineNeed::GeneralHere);

    fn validate(&self) -> Result<(), InvalidParam> {
        InvalidParam::unless(self.header.get() <= 256, "header", self.header, "0B to 256B")?;
        InvalidParam::unless(self.hop.get() <= 64, "hop", self.hop, "0B to 64B")?;
        if let Some(DigestParams { base_rtt, base }) = self.digest {
            InvalidParam::unless(!base_rtt.is_zero(), "digest.base_rtt", base_rtt, "more than 0")?;
            InvalidParam::unless(
                base > 1.0 && base <= 2.0,
                "digest.base",
                base,
                "more than 1 and at most 2",
            )?;
        }
        let Some(rate) = self.nic_rate else { return Ok(()) };
        InvalidParam::unless(self.digest.is_none(), "nic_rate", rate, "no `nic_rate` beside `digest`")?;
        let is_multiple = rate.as_bps().is_multiple_of(QUANTUM.as_bps());
        let in_range = (QUANTUM..=Rate::from_gbps(400)).contains(&rate);
        InvalidParam::unless(is_multiple && in_range, "nic_rate", rate, "multiples of 25Gbps up to 400Gbps")
    }
}

impl IntParams {
    /// The most bytes that ports with these parameters add to a packet.
    pub fn bytes_max(&self) -> u64 {
        let hops = if self.digest.is_some() { 0 } else { Stamps::HOPS_MAX as u64 };
        self.header.get() + self.hop.get() * hops
    }

    /// Returns whether a stamp can express the rate of a link.
    pub fn has_code_for(&self, rate: Rate) -> bool {
        self.nic_rate.is_none() || [25, 50, 100, 200, 400].map(Rate::from_gbps).contains(&rate)
    }

    /// The unit of quantised stamps, as a multiple of that of a NIC with 25 Gb/s; 0 where stamps are exact.
    fn scale(&self) -> u8 {
        self.nic_rate.map_or(0, |rate| (rate.as_bps() / QUANTUM.as_bps()) as u8)
    }

    /// Returns `stamp` as the header carries it: unchanged, or cut to the fields of HPCC's released header.
    pub fn written(&self, stamp: Stamp) -> Stamp {
        if self.nic_rate.is_none() {
            return stamp;
        }
        let scale = u64::from(self.scale());
        let field = |value: u64, unit: u64, bits: u32| (value / unit % (1 << bits)) * unit;
        Stamp {
            queue_bytes: field(stamp.queue_bytes, 80 * scale, 17),
            sent_bytes: field(stamp.sent_bytes, SENT_UNIT * scale, SENT_BITS),
            at: Time::from_ps(field(stamp.at.as_ps(), PS_PER_NS, TIME_BITS)),
            ..stamp
        }
    }
}

/// The rate of which HPCC's units are for: the slowest NIC of its released code.
const QUANTUM: Rate = Rate::from_gbps(25);
const PS_PER_NS: u64 = 1_000;
/// The width of a quantised time, in nanoseconds.
const TIME_BITS: u32 = 24;
/// The unit and the width of quantised bytes sent.
const SENT_UNIT: u64 = 128;
const SENT_BITS: u32 = 20;

/// The state of a port when it starts to send a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stamp {
    /// The bytes that wait in all queues of the port, without the departing packet.
    pub queue_bytes: u64,
    /// The bytes that the port has sent before the packet, since the run began.
    pub sent_bytes: u64,
    /// When the port starts to send the packet.
    pub at: Time,
    /// The rate of the port's link.
    pub rate: Rate,
    /// The time that the packet has spent in the port's queue.
    pub waited: Span,
}

/// What a port writes into a packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Written {
    /// The state of the port, beside the states of the ports before it.
    Stamp(Stamp),
    /// The load of the port's link, of which a digest keeps the largest on the path.
    Load(f64),
}

/// The stamps that a packet has gathered, in the order of its path, or their digest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamps {
    hops: [Stamp; Stamps::HOPS_MAX],
    count: u8,
    /// The load of the most loaded port, in a packet with a digest.
    load: Option<f64>,
    /// The bytes that the stamps take on the wire.
    bytes: u16,
    /// The unit of quantised stamps ([`IntParams::scale`]); 0 where they are exact. Ports of a network agree in it.
    scale: u8,
}

/// Stamps are equal if packets with them are: stamps of an earlier packet behind the last one do not count.
impl PartialEq for Stamps {
    fn eq(&self, other: &Stamps) -> bool {
        (self.hops(), self.load, self.bytes) == (other.hops(), other.load, other.bytes)
    }
}

impl Stamps {
    /// The number of stamps for which a packet has room: ports behind them write none.
    pub const HOPS_MAX: usize = 8;

    /// Adds what a port has written, a stamp only if there is room. Returns the bytes that it adds on the wire.
    pub fn push(&mut self, written: Written, params: &IntParams) -> u16 {
        let header = if self.is_empty() { params.header } else { Bytes::ZERO };
        let added = match written {
            Written::Load(load) => {
                self.load = Some(self.load.map_or(load, |most| most.max(load)));
                header
            }
            Written::Stamp(stamp) => {
                let Some(free) = self.hops.get_mut(usize::from(self.count)) else { return 0 };
                *free = stamp;
                self.count += 1;
                header + params.hop
            }
        };
        self.bytes += added.get() as u16;
        self.scale = params.scale();
        added.get() as u16
    }

    /// Removes all stamps, and so their bytes.
    pub fn clear(&mut self) {
        (self.count, self.load, self.bytes, self.scale) = (0, None, 0, 0);
    }

    /// The load of the most loaded port, where ports write a digest.
    pub fn load(&self) -> Option<f64> {
        self.load
    }

    /// The stamps, in the order in which ports wrote them.
    pub fn hops(&self) -> &[Stamp] {
        &self.hops[..usize::from(self.count)]
    }

    /// Returns whether no port has stamped the packet.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.load.is_none()
    }

    /// The bytes that the stamps take on the wire.
    pub fn bytes(&self) -> u16 {
        self.bytes
    }

    /// Returns the bytes that a port has sent, and the time that has passed, from its stamp `old` to `new`, one of
    /// these. Differences of quantised stamps are modulo the widths of their fields, so that stamps that are further
    /// apart than [`unambiguous`](Stamps::unambiguous) seem to be closer.
    pub fn difference(&self, new: &Stamp, old: &Stamp) -> (u64, Span) {
        if self.scale == 0 {
            return (new.sent_bytes.saturating_sub(old.sent_bytes), new.at.saturating_since(old.at));
        }
        let sent_width = (SENT_UNIT * u64::from(self.scale)) << SENT_BITS;
        let time_width = PS_PER_NS << TIME_BITS;
        let difference = |new: u64, old: u64, width: u64| (new + width - old) % width;
        let passed = difference(new.at.as_ps(), old.at.as_ps(), time_width);
        (difference(new.sent_bytes, old.sent_bytes, sent_width), Span::from_ps(passed))
    }

    /// Returns the time within which no field of the stamps can have wrapped unseen, from one of them to the next:
    /// 16.8 ms, or less where a link sends the 2^20 units of bytes sooner. [`Span::MAX`] for exact stamps.
    pub fn unambiguous(&self) -> Span {
        if self.scale == 0 {
            return Span::MAX;
        }
        let sent_width = Bytes::new((SENT_UNIT * u64::from(self.scale)) << SENT_BITS);
        let of_links = self.hops().iter().map(|stamp| sent_width.time_at(stamp.rate)).min();
        of_links.unwrap_or(Span::MAX).min(Span::from_ps(PS_PER_NS << TIME_BITS))
    }

    /// The queueing delay of the packet: the time that it spent in the queues of the ports that stamped it. Unlike the
    /// waits in the packet itself it is kept beside SACK blocks as well.
    pub fn queueing_delay(&self) -> Span {
        self.hops().iter().fold(Span::ZERO, |sum, stamp| sum + stamp.waited)
    }

    /// The sum of the queues that the packet left behind, in bytes.
    pub fn queue_bytes(&self) -> u64 {
        self.hops().iter().map(|stamp| stamp.queue_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp() -> Stamp {
        Stamp {
            queue_bytes: 80 * 4 * ((1 << 17) + 3) + 319,
            sent_bytes: 128 * 4 * ((1 << 20) + 5) + 511,
            at: Time::from_ps(((1 << 24) + 7) * 1_000 + 999),
            rate: Rate::from_gbps(400),
            waited: Span::from_us(3),
        }
    }

    #[test]
    fn the_released_header_wraps() {
        let exact = IntParams::default();
        assert_eq!(exact.written(stamp()), stamp());
        let released = IntParams { nic_rate: Some(Rate::from_gbps(100)), ..exact };
        let written = released.written(stamp());
        assert_eq!((written.queue_bytes, written.sent_bytes), (3 * 320, 5 * 512));
        assert_eq!(written.at, Time::from_ps(7_000));
        assert_eq!((written.rate, written.waited), (stamp().rate, stamp().waited));
        assert!(released.has_code_for(Rate::from_gbps(400)) && !released.has_code_for(Rate::from_gbps(10)));
    }

    #[test]
    fn differences_of_quantised_stamps_wrap_with_their_fields() {
        let params = IntParams { nic_rate: Some(Rate::from_gbps(100)), ..IntParams::default() };
        let old = stamp();
        // A field of 20 bits of 512 B is full after 537 MB, and one of 24 bits of nanoseconds after 16.8 ms.
        let new = Stamp { sent_bytes: old.sent_bytes + 300_000_000, at: old.at + Span::from_ms(10), ..old };
        let mut stamps = Stamps::default();
        stamps.push(Written::Stamp(params.written(new)), &params);
        let (sent, passed) = stamps.difference(&stamps.hops()[0], &params.written(old));
        assert_eq!((sent, passed), (300_000_000 / 512 * 512 + 512, Span::from_ms(10)));
        // Further apart, they seem closer: 400 Gb/s send 537 MB in 10.7 ms.
        let later = Stamp { at: old.at + Span::from_ms(20), ..old };
        let (_, seen) = stamps.difference(&params.written(later), &params.written(old));
        assert_eq!(seen, Span::from_ms(20) - Span::from_ns(1 << 24));
        assert_eq!(stamps.unambiguous(), Bytes::new(512 << 20).time_at(Rate::from_gbps(400)));
        let exact = Stamps::default();
        assert_eq!(exact.difference(&new, &old), (300_000_000, Span::from_ms(10)));
        assert_eq!(exact.unambiguous(), Span::MAX);
    }

    #[test]
    fn the_bytes_are_those_of_the_paper() {
        let (params, mut stamps) = (IntParams::default(), Stamps::default());
        let added: Vec<u16> = (0..10).map(|_| stamps.push(Written::Stamp(stamp()), &params)).collect();
        assert_eq!(added, [10, 8, 8, 8, 8, 8, 8, 8, 0, 0]);
        assert_eq!(u64::from(stamps.bytes()), params.bytes_max());
        assert_eq!(stamps.queueing_delay(), Span::from_us(24));
        let released = IntParams { header: Bytes::new(42), hop: Bytes::ZERO, ..params };
        let mut stamps = Stamps::default();
        (0..5).for_each(|_| _ = stamps.push(Written::Stamp(stamp()), &released));
        assert_eq!(stamps.bytes(), 42);
    }

    #[test]
    fn a_digest_is_the_most_loaded_port_in_two_bytes() {
        let digest = DigestParams::default();
        let (params, mut stamps) =
            (IntParams { digest: Some(digest), ..IntParams::default() }, Stamps::default());
        assert!(stamps.is_empty() && stamps.load().is_none());
        let added = [0.4, 1.2, 0.0].map(|load| stamps.push(Written::Load(load), &params));
        assert_eq!((added, params.bytes_max(), stamps.bytes()), ([2, 0, 0], 2, 2));
        assert_eq!((stamps.load(), stamps.hops().len(), stamps.is_empty()), (Some(1.2), 0, false));
        stamps.clear();
        assert!(stamps.is_empty());
        // Half of a step, and neither less nor more at the ends.
        for load in [0.008, 0.3, 0.95, 1.0, 7.0, 1_900.0] {
            let ratio: f64 = digest.rounded(load) / load;
            assert!(ratio.ln().abs() <= 1.05_f64.ln() / 2.0, "{load}: {ratio}");
        }
        assert_eq!((digest.rounded(0.0), digest.rounded(0.007), digest.rounded(1.0)), (0.0, 0.0, 1.0));
    }

    #[test]
    fn a_port_estimates_its_own_load() {
        // 100 Gb/s and 8 us: 100,000 B, and 1,000 B take 80 ns.
        let (rate, base_rtt, mut port) = (Rate::from_gbps(100), Span::from_us(8), LoadEstimate::default());
        let at = |ns: u64| Time::ZERO + Span::from_ns(ns);
        assert_eq!(port.on_transmit(at(1_000_000), [0, 1_000], rate, base_rtt), 0.0);
        // Half of the link's rate for a hundredth of T, then with a queue of a tenth.
        let mut expected = 0.01 * 2.0 * 0.5;
        assert!((port.on_transmit(at(1_000_160), [0, 1_000], rate, base_rtt) - expected).abs() < 1e-12);
        expected += 0.02 * (0.5 + 0.1 - expected);
        assert!((port.on_transmit(at(1_000_320), [10_000, 1_000], rate, base_rtt) - expected).abs() < 1e-12);
        // It converges to the rate, and one pause longer than T leaves the last packet's bytes over T alone.
        let mut load = 0.0;
        for packet in 0..2_000 {
            load = port.on_transmit(at(1_000_480 + 100 * packet), [0, 1_000], rate, base_rtt);
        }
        assert!((load - 0.8).abs() < 1e-6, "{load}");
        let load = port.on_transmit(at(9_000_000), [0, 1_000], rate, base_rtt);
        assert!((load - 0.01).abs() < 1e-12, "{load}");
    }

    #[test]
    fn ranges() {
        for (text, key) in [
            ("header = '257B'", "header"),
            ("hop = '65B'", "hop"),
            ("nic_rate = '10Gbps'", "nic_rate"),
            ("nic_rate = '425Gbps'", "nic_rate"),
            ("nic_rate = '100Gbps'\ndigest = {}", "nic_rate"),
            ("digest = { base = 1.0 }", "digest.base"),
            ("digest = { base_rtt = '0s' }", "digest.base_rtt"),
        ] {
            assert_eq!(toml::from_str::<IntParams>(text).unwrap().validate().unwrap_err().key, key);
        }
    }
}
