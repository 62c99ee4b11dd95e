//! Ethernet flow control, by link (IEEE 802.3x) or by priority (IEEE 802.1Qbb, PFC): a switch that runs out of room for
//! the packets of a link signals the link's other end to stop, so that nothing is lost.
//!
//! ```text
//!    sender                       link                        receiver, per ingress and priority
//!  PauseState  ──────────── data, propagation d ───────────>  IngressAccount: bytes held
//!   may(p)?    <── pause / resume, after a packet under way ──   held >= xoff: pause
//!              obeys after `response`                            held <= xon:  resume
//!
//!  buffer of a priority:  | ... xon ... xoff | crossing packet < MTU | headroom |
//! ```
//!
//! # Headroom
//! Packets that may still arrive whole after the packet that crossed xoff, on a link of rate R with packets of at most
//! MTU bytes:
//!
//! ```text
//! MTU            the receiver's end has just begun a packet, so the pause frame waits        MTU / R
//! pause frame    is sent                                                                   pause / R
//! R x d          propagates to the sender                                                          d
//! R x response   the sender takes its time to obey                                          response
//! MTU            the sender has just begun a packet, and ends it                             MTU / R
//! R x d          that was on its way when the pause was decided                                    d
//! headroom = 2 MTU + pause + R (2 d + response)
//! ```
//!
//! Where the link back is slower than R, the first MTU there delays the pause longer: it counts R / R_back times.
//!
//! The receiver counts on from the end of the crossing packet: bits that left the sender from d before that moment on
//! arrive later. Every term can be reached, and all of them at once, so nothing less is safe (tested by a model link,
//! term by term).
//!
//! Departures: a pause lasts until the resume. A real port repeats it before its at most 65535 quanta have run out,
//! which changes nothing as long as both ends are up.

use plimsoll_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mechanism::{EngineNeed, Mechanism, Section, Table};

/// Flow control on the links into a switch. It needs a buffer for each link and priority. A pause is sent when the
/// packet in transmission towards the sender has ended; the frame takes its 84 B of time to arrive, and none from the
/// data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PfcParams {
    /// The scope of a pause: one `priority` (802.1Qbb), or the whole `link` (802.3x). Default `priority`.
    pub scope: PauseScope,
    /// The bytes held of one priority (of one link) from which its sender is paused: more than 0. Default
    /// as much as the buffer allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xoff: Option<Bytes>,
    /// The bytes held at which the sender may resume: at most `xoff`. Default half of `xoff` (our choice).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xon: Option<Bytes>,
    /// The room kept for packets that arrive after a pause is decided. The default is as much as the link needs so that
    /// nothing is ever lost: 2 MTU + the pause frame + the bytes of a round trip and `response`. Less may lose packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<Bytes>,
    /// How long a sender takes to obey a pause that has arrived, at most 1 ms; it ends the packet that it
    /// is sending in any case. Default 0 s (802.3, Annex 31B allows a port a time that depends on its
    /// speed, of the order of a microsecond).
    pub response: Span,
}

impl Default for PfcParams {
    fn default() -> PfcParams {
        PfcParams { scope: PauseScope::Priority, xoff: None, xon: None, headroom: None, response: Span::ZERO }
    }
}

impl Mechanism for PfcParams {
    const TABLE: Table =
        Table::replaced_whole(Section::Port, "pfc", "the switch never pauses its neighbours")
            .needs(EngineNeed::GeneralEverywhere)
            .limits_queue();
}

/// The packets that a pause stops: one priority, or all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PauseScope {
    /// A pause stops one priority (802.1Qbb).
    Priority,
    /// A pause stops everything on the link (802.3x).
    Link,
}

/// A link into a switch, as flow control sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PausedLink {
    /// The rate of the link towards the switch.
    pub rate: Rate,
    /// The slowest rate that it ever has in the direction in which pauses go.
    pub back_rate: Rate,
    /// The one-way propagation delay of the link.
    pub propagation: Span,
    /// The largest packet in either direction, in bytes on the wire.
    pub mtu: Bytes,
    /// The buffer for packets that arrive by it, of all priorities.
    pub buffer: Bytes,
    /// Number of priorities in use, 1 to 8; each has its own share of the buffer.
    pub priorities: u8,
}

/// Thresholds that fit their buffer, in bytes held of one class: a priority, or the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thresholds {
    /// The packets that a pause stops: those of one priority, or all of the link.
    pub scope: PauseScope,
    /// The switch pauses the sender when it holds this many bytes or more.
    pub xoff: u64,
    /// The switch resumes the sender when it holds this many bytes or fewer.
    pub xon: u64,
    /// The bytes of buffer kept for packets that arrive after the pause.
    pub headroom: u64,
}

/// Flow control whose parameters cannot work. Sizes are for one of `classes` priorities or links.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each field is the key or quantity that its name says")]
pub enum PfcError {
    /// The buffer is too small.
    #[error(
        "flow control needs {needed} of buffer for a link, which has {buffer}: for each of {classes} class(es) \
         `xoff` {xoff}, the packet that crosses it {mtu}, and `headroom` {headroom}"
    )]
    BufferTooSmall { buffer: Bytes, needed: Bytes, classes: u8, xoff: Bytes, mtu: Bytes, headroom: Bytes },
    /// The thresholds are in the wrong order, or zero bytes would pause a sender.
    #[error("`xoff` cannot be {xoff} where `xon` is {xon}; it is more than 0, and at least `xon`")]
    Thresholds { xoff: Bytes, xon: Bytes },
    /// The sender would not obey in time.
    #[error("`response` cannot be {response}; allowed: at most 1ms")]
    Response { response: Span },
    /// Priorities are numbered from 0 to 7.
    #[error("a link cannot have {priorities} priorities; allowed: 1 to 8")]
    Priorities { priorities: u8 },
}

impl PfcParams {
    /// Computes the thresholds for `link`, and checks that they fit its buffer.
    ///
    /// # Errors
    /// The parts that do not fit, with the numbers.
    ///
    /// # Panics
    /// If the link's rate is zero.
    pub fn resolve(&self, link: &PausedLink) -> Result<Thresholds, PfcError> {
        let PausedLink { mtu, buffer, priorities, .. } = *link;
        if self.response > Span::from_ms(1) {
            return Err(PfcError::Response { response: self.response });
        }
        if !(1..=PRIORITIES as u8).contains(&priorities) {
            return Err(PfcError::Priorities { priorities });
        }
        let classes = if self.scope == PauseScope::Link { 1 } else { priorities };
        let headroom = self.headroom.unwrap_or_else(|| headroom(link, self.response));
        let rest = mtu + headroom;
        let most = Bytes::new(buffer.get() / u64::from(classes)).saturating_sub(rest);
        let xoff = self.xoff.unwrap_or(most.max(Bytes::new(1)));
        let needed = (xoff + rest) * u64::from(classes);
        if needed > buffer {
            return Err(PfcError::BufferTooSmall { buffer, needed, classes, xoff, mtu, headroom });
        }
        let xon = self.xon.unwrap_or(Bytes::new(xoff.get() / 2));
        if xon > xoff || xoff == Bytes::ZERO {
            return Err(PfcError::Thresholds { xoff, xon });
        }
        Ok(Thresholds { scope: self.scope, xoff: xoff.get(), xon: xon.get(), headroom: headroom.get() })
    }
}

/// Returns the bytes that may still arrive after a pause is decided, rounded up; the module's head derives them. They
/// grow by `2 d x R`: 2.5 kB for each microsecond of delay at 10 Gb/s.
pub fn headroom(link: &PausedLink, response: Span) -> Bytes {
    let span = u128::from(link.propagation.as_ps()) * 2 + u128::from(response.as_ps());
    let in_flight = (span * u128::from(link.rate.as_bps())).div_ceil(8 * PS_PER_S);
    // A pause waits for a packet in its direction, during which more than one may arrive if that direction is slower.
    let ahead = u128::from(link.mtu.get()) * u128::from(link.rate.as_bps());
    let ahead = ahead.div_ceil(u128::from(link.back_rate.as_bps().clamp(1, link.rate.as_bps().max(1))));
    let ahead = Bytes::new(ahead.min(u128::from(u64::MAX >> 2)) as u64);
    link.mtu + ahead + PAUSE_FRAME + Bytes::new(in_flight.min(u128::from(u64::MAX >> 1)) as u64)
}

/// A set of 802.1p priorities.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Priorities(u8);

impl Priorities {
    /// The set of all eight priorities.
    pub const ALL: Priorities = Priorities(u8::MAX);

    /// The set of `priority` alone, 0 to 7.
    ///
    /// # Panics
    /// If `priority` is 8 or more.
    pub const fn one(priority: u8) -> Priorities {
        assert!(priority < PRIORITIES as u8, "priorities are 0 to 7");
        Priorities(1 << priority)
    }

    /// Returns whether `priority` is in the set.
    #[inline]
    pub const fn has(self, priority: u8) -> bool {
        priority < PRIORITIES as u8 && self.0 >> priority & 1 == 1
    }

    /// The set with `priority`, 0 to 7, as well.
    ///
    /// # Panics
    /// If `priority` is 8 or more.
    #[must_use]
    pub const fn with(self, priority: u8) -> Priorities {
        Priorities(self.0 | Priorities::one(priority).0)
    }

    /// Returns the priorities of this set that are not in `others`, such as priorities with waiting packets that are
    /// not paused.
    #[must_use]
    pub const fn without(self, others: Priorities) -> Priorities {
        Priorities(self.0 & !others.0)
    }

    /// Returns the priorities in the set, the lowest first.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..PRIORITIES as u8).filter(move |priority| self.has(*priority))
    }

    /// Returns the highest priority in the set, 0 to 7.
    #[inline]
    pub const fn highest(self) -> Option<u8> {
        match self.0.checked_ilog2() {
            Some(priority) => Some(priority as u8),
            None => None,
        }
    }

    /// Returns whether all of `others` are in the set.
    pub const fn has_all(self, others: Priorities) -> bool {
        others.0 & !self.0 == 0
    }

    /// Returns the number of priorities in the set.
    pub const fn count(self) -> u8 {
        self.0.count_ones() as u8
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Signals from a receiver to its link's other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// The sender stops these priorities.
    Pause(Priorities),
    /// The sender resumes these priorities.
    Resume(Priorities),
}

impl Signal {
    /// Returns the priorities that the signal stops or resumes.
    pub fn priorities(self) -> Priorities {
        match self {
            Signal::Pause(priorities) | Signal::Resume(priorities) => priorities,
        }
    }
}

/// The receiver's account for one ingress: the bytes that it holds of each priority, in all queues of the switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IngressAccount {
    thresholds: Thresholds,
    /// Bytes held by class; for 802.3x only the first.
    held: [u64; PRIORITIES],
    /// The most bytes that a class held so far.
    peak: u64,
    paused: Priorities,
}

impl IngressAccount {
    /// Makes the account of a link with nothing held.
    pub fn new(thresholds: &Thresholds) -> IngressAccount {
        IngressAccount {
            thresholds: *thresholds,
            held: [0; PRIORITIES],
            peak: 0,
            paused: Priorities::default(),
        }
    }

    /// A packet of `bytes` bytes has arrived whole. The signal to send now, if any.
    ///
    /// # Panics
    /// If `priority` is 8 or more.
    #[inline]
    pub fn on_arrival(&mut self, priority: u8, bytes: u64) -> Option<Signal> {
        let (class, members) = self.class(priority);
        self.held[class] += bytes;
        self.peak = self.peak.max(self.held[class]);
        if self.held[class] < self.thresholds.xoff || self.paused.has(priority) {
            return None;
        }
        self.paused.0 |= members.0;
        Some(Signal::Pause(members))
    }

    /// Handles a packet of `bytes` bytes from this ingress that has left the switch. Returns the signal to send now, if
    /// any.
    ///
    /// # Panics
    /// If `priority` is 8 or more, or as many bytes are not held: bytes would have been made up.
    #[inline]
    pub fn on_departure(&mut self, priority: u8, bytes: u64) -> Option<Signal> {
        let (class, members) = self.class(priority);
        assert!(self.held[class] >= bytes, "more leaves than is held");
        self.held[class] -= bytes;
        if self.held[class] > self.thresholds.xon || !self.paused.has(priority) {
            return None;
        }
        self.paused.0 &= !members.0;
        Some(Signal::Resume(members))
    }

    /// Forgets the signals sent so far, as the link has failed or come back. The sender is paused again when more
    /// arrives.
    pub fn forget_pauses(&mut self) {
        self.paused = Priorities::default();
    }

    /// Returns the bytes held in the class of `priority`.
    pub fn held_bytes(&self, priority: u8) -> u64 {
        self.held[self.class(priority).0]
    }

    /// Returns the most bytes that one class held so far, and the threshold at which its sender is paused.
    pub fn peak(&self) -> (u64, u64) {
        (self.peak, self.thresholds.xoff)
    }

    /// Returns the priorities that the sender was signalled to stop.
    pub fn paused(&self) -> Priorities {
        self.paused
    }

    /// Returns the priorities that are paused and resumed together with `priority`.
    pub fn members(&self, priority: u8) -> Priorities {
        self.class(priority).1
    }

    /// Returns whether a paused sender stays paused for as long as `bytes` of its class are held.
    pub fn keeps_paused(&self, bytes: u64) -> bool {
        bytes > self.thresholds.xon
    }

    /// The place of a priority's count, and the priorities that share it.
    fn class(&self, priority: u8) -> (usize, Priorities) {
        match self.thresholds.scope {
            PauseScope::Priority => (usize::from(priority), Priorities::one(priority)),
            PauseScope::Link => (0, Priorities::ALL),
        }
    }
}

/// Keeps the priorities that a sender may send on its link.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PauseState {
    paused: Priorities,
}

impl PauseState {
    /// A signal takes effect: it has arrived, and the response time is over. True if a priority may be
    /// sent now that could not before, so that an idle port should look again.
    pub fn on_signal(&mut self, signal: Signal) -> bool {
        let before = self.paused;
        match signal {
            Signal::Pause(priorities) => self.paused.0 |= priorities.0,
            Signal::Resume(priorities) => self.paused.0 &= !priorities.0,
        }
        before.0 & !self.paused.0 != 0
    }

    /// Returns the state in which `priorities` are paused as well.
    #[must_use]
    pub fn and(self, priorities: Priorities) -> PauseState {
        PauseState { paused: Priorities(self.paused.0 | priorities.0) }
    }

    /// Returns whether a packet of `priority`, 0 to 7, may be begun.
    #[inline]
    pub fn may(&self, priority: u8) -> bool {
        !self.paused.has(priority)
    }

    /// Returns the priorities that may not be sent on the link now.
    pub fn paused(&self) -> Priorities {
        self.paused
    }
}

/// A pause frame on the wire, of either kind: the smallest frame, 64 B, with preamble and gap (802.3,
/// clauses 3 and 31).
pub const PAUSE_FRAME: Bytes = Bytes::new(84);

/// The number of priorities of IEEE 802.1Q: 0, the lowest, to 7.
pub const PRIORITIES: usize = 8;

const PS_PER_S: u128 = 1_000_000_000_000;

#[cfg(test)]
#[path = "pfc_tests.rs"]
mod tests;
