//! [`EarliestDeparture`]: the paper's pacer where a packet's departure is fixed when it arrives, for a queue that keeps
//! departure times (Linux: fq). `crates/bpf/programs/pacer.bpf.c` is the same machine in C.
//!
//! ```text
//! not associated, nothing of its flow held   ->  bypass
//! else  r      = max(R, the rate if the interval ended now)
//!       leaves = free + (min(bits, bucket) - tokens) / r
//!       free   = free + (bits - tokens) / r              free: when all that was taken is paid for
//! idle since free: tokens grow at R, up to the bucket
//! ```
//!
//! Differences from [`HostPacer`](super::HostPacer), which exist because a packet's departure time cannot be changed
//! later:
//!
//! * The cost of a packet is charged at the rate of its arrival. So that the first packets of a burst do not wait at
//!   the rate of an idle host, the interval so far counts as one that ends now, where that gives a higher rate; and Q,
//!   which will push R once for each interval that it is held, has done so already, 1 / eta times at most (R forgets
//!   the others).
//! * Q is the bits that leave later than now, taken as spread evenly up to `free`. Of several intervals between two
//!   packets the first has the push of Q, and the others only decay.
//! * The rate of an idle host must not reach zero: [`PacerParams::min_rate`] is needed.
//!
//! All arithmetic is u64, so that the C version is exact:
//!
//! | quantity | unit | rounding, range |
//! |---|---|---|
//! | time | ns | waiting up; a packet leaves 2^32 - 1 ns after now at the latest |
//! | R | bit/s, at most 10^12 | each of the three terms down |
//! | eta | 2^-23, at least 0.001 | nearest |
//! | eta / T_r, beta | 2^-16 /s | down, nearest |
//! | M_r, Q, tokens | bits | down; M_r saturates where it would give more than 10^12 bit/s, Q at 2^31 - 1 |
//! | draws | 32 bits | p_a up to 2^-32 |

use std::collections::BTreeMap;

use plimsoll_units::Rate;

use super::PacerParams;
use crate::InvalidParam;
use crate::mechanism::Mechanism;

/// A pacer's parameters, converted to the constants with which Rust and C calculate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EarliestDepartureConstants {
    /// The size of the token bucket is given in bits.
    pub bucket_bits: u64,
    /// T_r is the interval after which R changes, in ns.
    pub interval_ns: u64,
    /// R has this value before the first interval, in bit/s.
    pub initial_rate: u64,
    /// R never falls below this value, in bit/s.
    pub floor: u64,
    /// The share of R that remains after 2^i intervals, in 2^-23.
    pub keep: [u64; KEEP_POWERS],
    /// eta / T_r weighs the measured rate, in 2^-16 /s.
    pub measured: u64,
    /// beta weighs the backlog, in 2^-16 /s.
    pub push: u64,
    /// More bits than these make no difference to `measured`.
    pub received_max: u64,
    /// More bits than these make no difference to `push`.
    pub pushing_max: u64,
    /// R remembers this many pushes: 1 / eta.
    pub pushes_max: u64,
    /// This many of 2^32 draws associate a flow.
    pub hits: u64,
    /// T_i is the time after which an association ends, in ns.
    pub timeout_ns: u64,
}

impl EarliestDepartureConstants {
    /// Converts `params`.
    ///
    /// # Errors
    /// A value outside its range: the ranges of [`PacerParams::validate`], `eta` of less than 0.001, or no `min_rate`.
    pub fn new(params: &PacerParams) -> Result<EarliestDepartureConstants, InvalidParam> {
        params.validate()?;
        InvalidParam::unless(params.eta >= ETA_MIN, "eta", params.eta, "0.001 to 1")?;
        let floor = params.min_rate.map_or(0, Rate::as_bps);
        InvalidParam::unless(floor > 0, "min_rate", "none", "1Kbps to 1Tbps, for departure times")?;
        let one = 1u64 << SHARE_BITS;
        let eta = (params.eta * one as f64).round() as u64;
        let interval_ns = params.interval.as_ps() / PS_PER_NS;
        let per_second = ((u128::from(eta) * u128::from(NS_PER_S)) << FACTOR_BITS) >> SHARE_BITS;
        let measured = (per_second / u128::from(interval_ns)) as u64;
        let push = (params.beta * (1u64 << FACTOR_BITS) as f64).round() as u64;
        let mut keep = [one - eta; KEEP_POWERS];
        for power in 1..KEEP_POWERS {
            keep[power] = (keep[power - 1] * keep[power - 1]) >> SHARE_BITS;
        }
        let two_pow_32 = (1u64 << 32) as f64;
        Ok(EarliestDepartureConstants {
            bucket_bits: params.bucket.bits(),
            interval_ns,
            initial_rate: params.initial_rate.as_bps().clamp(floor, RATE_MAX),
            floor,
            keep,
            measured,
            push,
            received_max: PRODUCT_MAX / measured.max(1),
            pushing_max: PRODUCT_MAX / push.max(1),
            pushes_max: one / eta,
            hits: (params.association_probability * two_pow_32) as u64,
            timeout_ns: params.association_timeout.as_ps() / PS_PER_NS,
        })
    }
}

/// The state of a pacer that changes with time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct EarliestDepartureState {
    /// R is the pacing rate, in bit/s.
    pub rate: u64,
    /// When the interval ends, in ns; 0 before the first packet.
    pub tick_ns: u64,
    /// M_r counts the bits that arrived in this interval.
    pub received: u64,
    /// The time at which all bits that have left or will leave are paid for, in ns.
    pub free_ns: u64,
    /// The bucket held this many bits at `free_ns`.
    pub tokens: u64,
    /// Q: bits that leave later than `backlog_ns`.
    pub backlog: u64,
    /// The time at which `backlog` was computed, in ns.
    pub backlog_ns: u64,
}

/// The pacer of one device. Flows are numbered by the caller, and forgotten only by
/// [`EarliestDeparture::forget_before`].
#[derive(Clone, Debug)]
pub struct EarliestDeparture {
    constants: EarliestDepartureConstants,
    state: EarliestDepartureState,
    flows: BTreeMap<u64, PacedFlow>,
}

/// A flow that was associated at least once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PacedFlow {
    /// The association ends at this time, in ns.
    pub until_ns: u64,
    /// Its last packet leaves at this time, in ns.
    pub leaves_ns: u64,
}

impl EarliestDeparture {
    /// A pacer that has seen no packet.
    ///
    /// # Errors
    /// As [`EarliestDepartureConstants::new`].
    pub fn new(params: &PacerParams) -> Result<EarliestDeparture, InvalidParam> {
        let constants = EarliestDepartureConstants::new(params)?;
        let (rate, tokens) = (constants.initial_rate, constants.bucket_bits);
        let state = EarliestDepartureState { rate, tokens, ..Default::default() };
        Ok(EarliestDeparture { constants, state, flows: BTreeMap::new() })
    }

    /// An acknowledgement with ECE arrived for `flow`: one draw, `draw` uniform. True if the flow is now paced for
    /// another timeout.
    pub fn on_ece(&mut self, now_ns: u64, flow: u64, draw: u32) -> bool {
        let hit = u64::from(draw) < self.constants.hits;
        if hit {
            self.flows.entry(flow).or_default().until_ns = now_ns.saturating_add(self.constants.timeout_ns);
        }
        hit
    }

    /// Handles a packet of `bytes` from the host. Returns when it leaves, in ns and not before now; `None` if it
    /// bypasses.
    pub fn on_packet(&mut self, now_ns: u64, flow: u64, bytes: u64) -> Option<u64> {
        let bits = 8 * bytes.min(BYTES_MAX);
        self.end_intervals(now_ns);
        self.state.received = (self.state.received + bits).min(self.constants.received_max);
        let paced = self.flows.get_mut(&flow)?;
        if now_ns >= paced.until_ns && now_ns >= paced.leaves_ns {
            return None;
        }
        let leaves = self.state.pay(&self.constants, now_ns, bits);
        paced.leaves_ns = leaves;
        Some(leaves)
    }

    /// Forgets the flows that are associated no more at `now_ns` and hold no packet.
    pub fn forget_before(&mut self, now_ns: u64) {
        self.flows.retain(|_, flow| now_ns < flow.until_ns || now_ns < flow.leaves_ns);
    }

    /// Returns the state that changes with time.
    pub fn state(&self) -> EarliestDepartureState {
        self.state
    }

    /// Returns the state of `flow`; `None` if it was never associated.
    pub fn flow(&self, flow: u64) -> Option<PacedFlow> {
        self.flows.get(&flow).copied()
    }

    fn end_intervals(&mut self, now_ns: u64) {
        let (state, constants) = (&mut self.state, &self.constants);
        if state.tick_ns == 0 {
            state.tick_ns = now_ns.saturating_add(constants.interval_ns);
        }
        if now_ns < state.tick_ns {
            return;
        }
        let idle = (now_ns - state.tick_ns) / constants.interval_ns;
        state.drain(state.tick_ns);
        state.rate = state.next_rate(constants, 1);
        state.received = 0;
        state.decay(constants, idle);
        state.tick_ns = (state.tick_ns + idle * constants.interval_ns).saturating_add(constants.interval_ns);
    }
}

impl EarliestDepartureState {
    /// Returns how often Q will have pushed R before all of it has left.
    fn pushes(&self, constants: &EarliestDepartureConstants, now_ns: u64) -> u64 {
        let intervals = self.free_ns.saturating_sub(now_ns) / constants.interval_ns;
        (intervals + 1).min(constants.pushes_max)
    }

    /// Returns R after an interval that ends now, with this number of pushes of Q.
    fn next_rate(&self, constants: &EarliestDepartureConstants, pushes: u64) -> u64 {
        let kept = (self.rate * constants.keep[0]) >> SHARE_BITS;
        let measured = (self.received * constants.measured) >> FACTOR_BITS;
        let pushed = (self.backlog.min(constants.pushing_max) * constants.push) >> FACTOR_BITS;
        let pushed = pushed.min(RATE_MAX) * pushes;
        (kept + measured + pushed).min(RATE_MAX).max(constants.floor)
    }

    /// Lowers R for `intervals` without traffic.
    fn decay(&mut self, constants: &EarliestDepartureConstants, intervals: u64) {
        if intervals >> KEEP_POWERS > 0 {
            self.rate = 0;
        }
        for (power, keep) in constants.keep.iter().enumerate() {
            if intervals >> power & 1 == 1 {
                self.rate = (self.rate * keep) >> SHARE_BITS;
            }
        }
        self.rate = self.rate.max(constants.floor);
    }

    /// Takes the bits that leave up to `now_ns` out of the backlog.
    fn drain(&mut self, now_ns: u64) {
        if now_ns >= self.free_ns {
            self.backlog = 0;
        } else if now_ns > self.backlog_ns {
            self.backlog = self.backlog * (self.free_ns - now_ns) / (self.free_ns - self.backlog_ns);
        }
        self.backlog_ns = self.backlog_ns.max(now_ns);
    }

    /// Fills the bucket for the time that the pacer was idle.
    fn refill(&mut self, constants: &EarliestDepartureConstants, now_ns: u64) {
        if now_ns <= self.free_ns {
            return;
        }
        let idle = now_ns - self.free_ns;
        let full = (constants.bucket_bits * NS_PER_S).div_ceil(self.rate);
        let earned = if idle >= full { constants.bucket_bits } else { self.rate * idle / NS_PER_S };
        self.tokens = (self.tokens + earned).min(constants.bucket_bits);
        self.free_ns = now_ns;
    }

    /// Returns the time at which a packet that takes tokens leaves.
    fn pay(&mut self, constants: &EarliestDepartureConstants, now_ns: u64, bits: u64) -> u64 {
        self.drain(now_ns);
        self.refill(constants, now_ns);
        let rate = self.rate.max(self.next_rate(constants, self.pushes(constants, now_ns)));
        let wait = |bits: u64| (bits * NS_PER_S).div_ceil(rate);
        let needed = bits.min(constants.bucket_bits);
        let leaves = self.free_ns.saturating_add(wait(needed.saturating_sub(self.tokens)));
        let free = self.free_ns.saturating_add(wait(bits.saturating_sub(self.tokens)));
        self.free_ns = free.min(now_ns.saturating_add(HORIZON_NS)).max(self.free_ns);
        self.tokens = self.tokens.saturating_sub(bits);
        let leaves = leaves.min(self.free_ns);
        if leaves > now_ns {
            self.backlog = (self.backlog + bits).min(BACKLOG_MAX);
        }
        leaves
    }
}

/// 2^16 intervals leave nothing of a rate, at any allowed `eta`.
pub const KEEP_POWERS: usize = 16;

const ETA_MIN: f64 = 0.001;
const SHARE_BITS: u32 = 23;
const FACTOR_BITS: u32 = 16;
const RATE_MAX: u64 = 1_000_000_000_000;
/// Upper limit of a factor times bits: 2^47 bit/s, beyond the largest rate.
const PRODUCT_MAX: u64 = 1 << 63;
const BYTES_MAX: u64 = (1 << 24) - 1;
const BACKLOG_MAX: u64 = (1 << 31) - 1;
/// fq drops packets beyond its horizon of 10 s, and this is less.
const HORIZON_NS: u64 = (1 << 32) - 1;
const NS_PER_S: u64 = 1_000_000_000;
const PS_PER_NS: u64 = 1_000;

#[cfg(test)]
#[path = "earliest_tests.rs"]
mod tests;
