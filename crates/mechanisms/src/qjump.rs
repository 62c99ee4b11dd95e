//! QJump (NSDI 2015): each host may send a number of bytes per network epoch, by level; packets within that share meet
//! a queue of known length.
//!
//! ```text
//! network epoch   E  = 2 n P / R + eps              n hosts, packets of P bytes, edge rate R    (Eq. 2)
//! level i         f_i P bytes per epoch                                       f_i = n T_i / R   (Eq. 4)
//!                 waits at most  n' P / R + eps, if no more than n' = n / f_i hosts meet
//!
//! packet ──> level's bucket ──> NIC, strict priority by level ──> switches, the same priorities
//!             now >= next:  next = now + E,  bucket = full
//!             fits?         send, bucket -= length       else refuse or drop
//! ```
//!
//! The rule above is the kernel module's, per host and level. A level never catches up and never carries over: an idle
//! host has at most one bucket, and a window as long as an epoch sees at most two. The paper's listing differs (one
//! timeout for all levels, advanced by one epoch): there k idle epochs allow a burst of k buckets, and one level's
//! packet uses up the epoch of the others.
//!
//! Assumptions of the bound: `n' P / R` is one packet from each of n' hosts. Hosts are not synchronised, so each of
//! them may send two whole buckets back to back; n' hosts that do so at once take `2 n' f P / R + eps = E`. The factor
//! of 2 in Eq. 2 leaves room for that: **within an epoch the queue is empty again**, and an epoch is the bound without
//! further assumptions.
//!
//! Trap: with Eq. 2's epoch, Eq. 4's factor gives half of the target rate, since `f P / E ~ T / 2`.
//! Factors up to `2 n`, which is line rate, are therefore useful (the authors' two-phase commit had f_0 = 24
//! with 1518 B and 30 us, the epoch of 12 hosts). Their ns-2 simulation used `n P / R` instead of Eq. 2.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use plimsoll_units::{Bytes, Rate, Span, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::InvalidParam;
use crate::mechanism::{Mechanism, Section, Table};

mod sharing;

pub use sharing::{HeardOf, SHARING, Sharers, pace};

/// QJump at the hosts: limits of the bytes that each level may send in a network epoch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QjumpParams {
    /// n: how many hosts may send to one at the same time, 1 or more. Default all hosts of the topology, each
    /// counted once for each of its guests (`host.guest`), since each guest has buckets of its own. A
    /// smaller number assumes less contention (of four hosts, 4:1 is the worst case; 2:1 lets all send
    /// twice as much, 1:1 four times) and queues where the assumption is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<u32>,
    /// P: the largest packet of the levels with a bound, in bytes with its header: 1 B to 65 KB. Default
    /// 256 B (the paper's example).
    pub packet: Bytes,
    /// eps: propagation and processing along the longest path, at most 1 s. Default 4 us (the paper gives
    /// 1 to 4 us).
    pub epsilon: Span,
    /// The network epoch, more than 0 and at most 1000 s, in place of Eq. 2's. Default by Eq. 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Span>,
    /// The bytes that each level may send in an epoch, level 0 (the lowest) first: 1 to 8 levels, each at least one
    /// `packet`. `"6x"` is a factor f: f packets; `"5Gbps"` is a target rate T, for f = n T / R (Eq. 4); `"9750B"` is a
    /// number of bytes; `"line"` has no limit. Default `["line", "64x", "32x", "16x", "8x", "4x", "2x", "1x"]` (our
    /// choice; the paper's 144-host simulation had 144, 100, 20, 10, 5, 3, 2 and 1).
    pub levels: Vec<LevelShare>,
    /// When a bucket is full again: `on-packet`, at the first packet after an epoch (the kernel module, per
    /// host and level); `periodic`, once an epoch by a timer per connection that starts with its flow (the
    /// simulation of the paper's Fig. 9). Default `on-packet`.
    pub refill: Refill,
    /// The action for a packet beyond its level's share: `refuse`, the sender gets an error, as by ENOBUFS, and keeps
    /// the packet; `drop`, it is lost without notice. Default `refuse`.
    pub excess: Excess,
}

impl Default for QjumpParams {
    fn default() -> QjumpParams {
        let factors = [64, 32, 16, 8, 4, 2, 1].map(|factor| LevelShare::Factor(f64::from(factor)));
        QjumpParams {
            hosts: None,
            packet: Bytes::new(256),
            epsilon: Span::from_us(4),
            epoch: None,
            levels: std::iter::once(LevelShare::Line).chain(factors).collect(),
            refill: Refill::OnPacket,
            excess: Excess::Refuse,
        }
    }
}

impl Mechanism for QjumpParams {
    const TABLE: Table = Table::replaced_whole(Section::Host, "qjump", "no priority is limited");
}

/// The time at which a bucket is full again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Refill {
    /// At the first packet after an epoch, per host and level: [`Limiter`].
    OnPacket,
    /// Once an epoch from the flow's start, per connection: [`PeriodicLimiter`].
    Periodic,
}

/// The action for a packet beyond its level's share.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Excess {
    /// The sender gets an error and keeps the packet.
    Refuse,
    /// The packet is dropped, and its sender gets no error.
    Drop,
}

/// The share of one level in an epoch, in the user's notation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LevelShare {
    /// The share is a number of packets: `"6x"`.
    Factor(f64),
    /// A target rate, converted by Eq. 4: `"5Gbps"`.
    Rate(Rate),
    /// The share is a number of bytes: `"9750B"`.
    Bytes(Bytes),
    /// The share has no limit: `"line"`.
    Line,
}

/// The levels of one host, computed from its parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Levels {
    /// The length of the network epoch: 2 n P / R + eps, or as given.
    pub epoch: Span,
    /// Level 0, the lowest, first; at most [`LEVELS_MAX`].
    pub levels: Vec<Level>,
}

/// The share of one level, and the latency that it gets for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// The bytes that the level may send in an epoch; `Bytes::new(u64::MAX)` without a limit.
    pub bucket: Bytes,
    /// The rate at which it may send for ever: bucket over epoch, rounded down, at most the link's.
    pub rate: Rate,
    /// The longest time that a packet takes if at most n' hosts meet: `n' P / R + eps`, where n' is at least one host.
    /// None for a level without limit.
    pub latency_bound: Option<Span>,
}

impl QjumpParams {
    /// Works out the levels of a host with a link of rate `link` among `hosts` hosts.
    ///
    /// # Errors
    /// The first key outside the range given at it.
    ///
    /// # Panics
    /// If `link` is zero.
    pub fn resolve(&self, hosts: u32, link: Rate) -> Result<Levels, InvalidParam> {
        let hosts = self.hosts.unwrap_or(hosts);
        InvalidParam::unless(hosts > 0, "hosts", hosts, "1 or more")?;
        let packet_ok = (1..=65_000).contains(&self.packet.get());
        InvalidParam::unless(packet_ok, "packet", self.packet, "1B to 65KB")?;
        let epsilon_ok = self.epsilon <= Span::from_secs(1);
        InvalidParam::unless(epsilon_ok, "epsilon", self.epsilon, "at most 1s")?;
        let epoch = self.epoch.unwrap_or_else(|| network_epoch(hosts, self.packet, link, self.epsilon));
        let epoch_ok = !epoch.is_zero() && epoch <= Span::from_secs(1_000);
        InvalidParam::unless(epoch_ok, "epoch", epoch, "more than 0 and at most 1000s")?;
        let count = self.levels.len();
        InvalidParam::unless((1..=LEVELS_MAX).contains(&count), "levels", count, "1 to 8 levels")?;
        let resolve = |share: &LevelShare| {
            let bucket = share.bucket(hosts, self.packet, link);
            InvalidParam::unless(bucket >= self.packet, "levels", share, "at least one `packet` an epoch")?;
            let bound = latency_bound(hosts, self.packet, bucket, link, self.epsilon);
            let latency_bound = (*share != LevelShare::Line).then_some(bound);
            Ok(Level { bucket, rate: rate_of(bucket, epoch, link), latency_bound })
        };
        Ok(Levels { epoch, levels: self.levels.iter().map(resolve).collect::<Result<_, _>>()? })
    }
}

impl LevelShare {
    /// The bytes of an epoch; a target rate rounds down, a factor to the nearest.
    fn bucket(self, hosts: u32, packet: Bytes, link: Rate) -> Bytes {
        match self {
            LevelShare::Factor(factor) => Bytes::new((factor * packet.get() as f64).round() as u64),
            LevelShare::Rate(rate) => {
                let bytes = u128::from(hosts) * u128::from(packet.get()) * u128::from(rate.as_bps());
                Bytes::new((bytes / u128::from(link.as_bps())).min(u128::from(u64::MAX)) as u64)
            }
            LevelShare::Bytes(bytes) => bytes,
            LevelShare::Line => UNLIMITED,
        }
    }
}

/// Eq. 2: `2 n P / R + eps`, rounded up to a picosecond.
///
/// # Panics
/// If `link` is zero.
pub fn network_epoch(hosts: u32, packet: Bytes, link: Rate, epsilon: Span) -> Span {
    (packet * (2 * u64::from(hosts))).time_at(link) + epsilon
}

/// `n' P / R + eps`, n' = n / f at least 1: how long a packet of `packet` bytes is under way at most when
/// one packet of each of n' hosts meets it. f is `bucket` over `packet`; for the bound of Eq. 1, with
/// n' = n, pass one packet as the bucket.
///
/// # Panics
/// If `link` or `bucket` is zero.
pub fn latency_bound(hosts: u32, packet: Bytes, bucket: Bytes, link: Rate, epsilon: Span) -> Span {
    // n' P = n P x P / bucket, in whole bytes, rounded up.
    let square = u128::from(packet.get()) * u128::from(packet.get());
    let contending = (u128::from(hosts) * square).div_ceil(u128::from(bucket.get()));
    Bytes::new(contending as u64).max(packet).time_at(link) + epsilon
}

fn rate_of(bucket: Bytes, epoch: Span, link: Rate) -> Rate {
    let bits_per_second = u128::from(bucket.get()) * 8 * PS_PER_S / u128::from(epoch.as_ps());
    Rate::from_bps(bits_per_second.min(u128::from(link.as_bps())) as u64)
}

/// The 802.1p priority of a level: its number, so that level 7 is served first. Switches must serve the
/// priorities in numeric order; the mapping that 802.1Q recommends serves 1 below 0.
pub fn priority_of(level: u8) -> u8 {
    level.min(LEVELS_MAX as u8 - 1)
}

/// Verdict on a packet that is to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The packet leaves the host.
    Send,
    /// The packet stays with the sender, which gets an error.
    Refuse,
    /// The packet is dropped without an error.
    Drop,
}

impl Excess {
    fn verdict(self, fits: bool) -> Verdict {
        match (fits, self) {
            (true, _) => Verdict::Send,
            (false, Excess::Refuse) => Verdict::Refuse,
            (false, Excess::Drop) => Verdict::Drop,
        }
    }
}

/// The limiter of one host: a bucket per level, refilled by the kernel module's rule.
///
/// All arithmetic is u64, so that a C version can be exact: two comparisons and a subtraction a packet. The C version's
/// quantum is a nanosecond, with the epoch rounded up to one; with times and an epoch in whole nanoseconds, both agree.
/// The end of an epoch saturates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limiter {
    epoch: Span,
    excess: Excess,
    buckets: [EpochBudget; LEVELS_MAX],
}

/// The bytes that a level may still send in an epoch. It is filled at once, and not at a rate.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct EpochBudget {
    full: u64,
    bytes: u64,
    /// A packet refills the bucket from this time on.
    next: Time,
}

impl Limiter {
    /// Makes a limiter whose levels have sent nothing yet. Levels beyond the given ones may send nothing.
    pub fn new(levels: &Levels, excess: Excess) -> Limiter {
        let mut buckets = [EpochBudget::default(); LEVELS_MAX];
        for (bucket, level) in buckets.iter_mut().zip(&levels.levels) {
            bucket.full = level.bucket.get();
        }
        Limiter { epoch: levels.epoch, excess, buckets }
    }

    /// Handles a packet of `bytes` bytes, all headers included, that is to leave at `level`. A packet larger than the
    /// bucket never leaves.
    ///
    /// # Panics
    /// If `level` is 8 or more.
    #[inline]
    pub fn on_packet(&mut self, now: Time, level: u8, bytes: u64) -> Verdict {
        let bucket = &mut self.buckets[usize::from(level)];
        if now >= bucket.next {
            bucket.next = now.saturating_add(self.epoch);
            bucket.bytes = bucket.full;
        }
        let fits = bytes <= bucket.bytes;
        if fits {
            bucket.bytes -= bytes;
        }
        self.excess.verdict(fits)
    }

    /// Like [`Limiter::on_packet`], for a packet that may carry a time no later than `now`, such as the time of its
    /// burst. If that time is within the epoch, the packet leaves if it fits, even when the epoch has ended by now: the
    /// bucket is the same or older, so that the bytes that leave between two refills stay within it, and an expensive
    /// clock is not read. A false stamp gains nothing.
    ///
    /// # Panics
    /// If `level` is 8 or more.
    pub fn on_stamped_packet(&mut self, stamp: Option<Time>, now: Time, level: u8, bytes: u64) -> Verdict {
        let bucket = &mut self.buckets[usize::from(level)];
        if stamp.is_some_and(|stamp| stamp < bucket.next) && bytes <= bucket.bytes {
            bucket.bytes -= bytes;
            return Verdict::Send;
        }
        self.on_packet(now, level, bytes)
    }

    /// Returns the state that must agree with the C version: the bytes left at `level`, and the time from which on a
    /// packet refills it.
    ///
    /// # Panics
    /// If `level` is 8 or more.
    pub fn bucket(&self, level: u8) -> (Bytes, Time) {
        let bucket = &self.buckets[usize::from(level)];
        (Bytes::new(bucket.bytes), bucket.next)
    }

    /// Returns the time from which on a packet of `bytes` bytes may leave at `level` if nothing else does: now, at the
    /// end of the epoch, or never. For a sender that waits after a refusal.
    ///
    /// # Panics
    /// If `level` is 8 or more.
    pub fn ready_at(&self, now: Time, level: u8, bytes: u64) -> Option<Time> {
        let bucket = &self.buckets[usize::from(level)];
        if bytes > bucket.full {
            None
        } else if now >= bucket.next || bytes <= bucket.bytes {
            Some(now)
        } else {
            Some(bucket.next)
        }
    }
}

/// The limiter of one connection as the simulation of Fig. 9 had it: from the start of a flow on, a timer sets the
/// bucket once an epoch. The timer costs no event: its effect is computed at the packet. Phases differ from flow to
/// flow, and the connections of a host share nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeriodicLimiter {
    epoch: Span,
    excess: Excess,
    full: u64,
    bytes: u64,
    /// The time at which the bucket was last set.
    set_at: Time,
    active: bool,
}

impl PeriodicLimiter {
    /// Makes a limiter that lets all packets pass until it is activated. `epoch` is more than 0.
    pub fn new(epoch: Span, excess: Excess) -> PeriodicLimiter {
        PeriodicLimiter { epoch, excess, full: 0, bytes: 0, set_at: Time::ZERO, active: false }
    }

    /// A flow starts that may send `bucket` an epoch: the bucket is full, and the timer starts now.
    pub fn activate(&mut self, now: Time, bucket: Bytes) {
        (self.full, self.bytes) = (bucket.get(), bucket.get());
        (self.set_at, self.active) = (now, true);
    }

    /// Handles a packet of `bytes` bytes that is to leave. At the end of an epoch the timer is first.
    pub fn on_packet(&mut self, now: Time, bytes: u64) -> Verdict {
        if !self.active {
            return Verdict::Send;
        }
        let epochs = now.saturating_since(self.set_at).as_ps() / self.epoch.as_ps().max(1);
        if epochs > 0 {
            self.set_at = self.set_at.saturating_add(self.epoch.saturating_mul(epochs));
            self.bytes = self.full;
        }
        let fits = bytes <= self.bytes;
        if fits {
            self.bytes -= bytes;
        }
        self.excess.verdict(fits)
    }

    /// Returns the time from which on a packet of `bytes` bytes may leave if nothing else does; `None` for never.
    pub fn ready_at(&self, now: Time, bytes: u64) -> Option<Time> {
        let next = self.set_at.saturating_add(self.epoch);
        match () {
            () if !self.active || bytes <= self.bytes => Some(now),
            () if bytes <= self.full => Some(now.max(next)),
            () => None,
        }
    }
}

/// A text that is not a level's share.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` is not a level's share; write a factor of at least 1 such as \"6x\", a rate such as \"5Gbps\", a size \
     such as \"9750B\", or \"line\""
)]
pub struct ParseLevelError(String);

impl FromStr for LevelShare {
    type Err = ParseLevelError;
    fn from_str(text: &str) -> Result<LevelShare, ParseLevelError> {
        let error = || ParseLevelError(text.to_owned());
        let trimmed = text.trim();
        if trimmed == "line" {
            return Ok(LevelShare::Line);
        }
        if let Some(number) = trimmed.strip_suffix('x') {
            let factor: f64 = number.trim().parse().map_err(|_| error())?;
            let ok = (1.0..=FACTOR_MAX).contains(&factor);
            return if ok { Ok(LevelShare::Factor(factor)) } else { Err(error()) };
        }
        let rate = || trimmed.parse().map(LevelShare::Rate);
        trimmed.parse().map(LevelShare::Bytes).or_else(|_| rate()).map_err(|_| error())
    }
}

impl fmt::Display for LevelShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LevelShare::Factor(factor) => write!(f, "{factor}x"),
            LevelShare::Rate(rate) => rate.fmt(f),
            LevelShare::Bytes(bytes) => bytes.fmt(f),
            LevelShare::Line => f.write_str("line"),
        }
    }
}

impl Serialize for LevelShare {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LevelShare {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LevelShare, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for LevelShare {
    fn schema_name() -> Cow<'static, str> {
        "LevelShare".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^\\s*(line|[0-9._]+\\s*(x|[KMGTkmgt]?B|[KMGkmg]iB|[KMGTkmgt]?bps))\\s*$",
            "description": "What a level may send in an epoch: a factor such as \"6x\", a rate such as \
                            \"5Gbps\", a size such as \"9750B\", or \"line\"."
        })
    }
}

/// The greatest number of levels: the eight priorities of IEEE 802.1Q.
pub const LEVELS_MAX: usize = 8;

const UNLIMITED: Bytes = Bytes::new(u64::MAX);
const FACTOR_MAX: f64 = 1e9;
const PS_PER_S: u128 = 1_000_000_000_000;

#[cfg(test)]
#[path = "qjump_tests.rs"]
mod tests;
