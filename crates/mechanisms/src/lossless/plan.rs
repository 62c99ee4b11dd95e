//! [`BufferPlan`]: how the memory of a switch is divided, computed from its links, and the reasons why it cannot be.

use std::fmt;

use plimsoll_units::{Bytes, Span};

use super::{LosslessParams, fixed, quanta_min, share};
use crate::InvalidParam;
use crate::mechanism::Mechanism;
use crate::pfc::{PAUSE_FRAME, PausedLink, Priorities, headroom};

/// The parts of the memory of a switch, in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufferPlan {
    /// The lossless priorities.
    pub lossless: Priorities,
    /// The memory that each ingress link has for itself, for each priority.
    pub reserve: u64,
    /// The memory that all links and priorities share.
    pub shared: u64,
    /// alpha in units of 2^-16; `None` where `threshold` is fixed.
    pub(super) alpha: Option<u64>,
    /// The fixed threshold in bytes, where `alpha` is `None`.
    pub(super) threshold: u64,
    pub(super) egress_alpha: u64,
    /// The distance below the threshold at which a sender resumes.
    pub resume_offset: u64,
    /// What each link needs, in the order of the links.
    pub needed: Vec<HeadroomTerms>,
    /// The headroom that each link has for each lossless priority, in the order of the links.
    pub headroom: Vec<u64>,
    /// The number of priorities in use.
    pub priorities: u64,
    /// The number of lossless priorities in use.
    pub lossless_in_use: u64,
}

/// The bytes that may arrive at a link after a pause became necessary, by their cause. Displayed as a sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadroomTerms {
    /// The packet that crosses the threshold.
    pub crossing: Bytes,
    /// The packet that the switch has begun to send to the sender, behind which the pause frame waits, and the frame.
    pub ahead: Bytes,
    /// A round trip on the link, and the time until the sender obeys.
    pub in_flight: Bytes,
    /// The packet that the sender has just begun.
    pub last: Bytes,
}

impl HeadroomTerms {
    /// Computes the terms for `link` and the time `response` that a sender takes to obey.
    pub fn of(link: &PausedLink, response: Span) -> HeadroomTerms {
        let back = u128::from(link.back_rate.as_bps().clamp(1, link.rate.as_bps().max(1)));
        let ahead = u128::from((link.mtu + PAUSE_FRAME).get()) * u128::from(link.rate.as_bps());
        let ahead = Bytes::new(ahead.div_ceil(back).min(u128::from(u64::MAX >> 2)) as u64);
        let equal_rates = PausedLink { back_rate: link.rate, ..*link };
        let in_flight = headroom(&equal_rates, response).saturating_sub(link.mtu * 2 + PAUSE_FRAME);
        HeadroomTerms { crossing: link.mtu, ahead, in_flight, last: link.mtu }
    }

    /// Returns the sum of the terms.
    pub fn total(&self) -> Bytes {
        self.crossing + self.ahead + self.in_flight + self.last
    }
}

impl fmt::Display for HeadroomTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HeadroomTerms { crossing, ahead, in_flight, last } = self;
        write!(
            f,
            "{}: {crossing} that cross the threshold, {ahead} while the pause frame waits and is sent, {in_flight} \
             during a round trip and the response, {last} of the packet that the sender has begun",
            self.total()
        )
    }
}

/// Lossless buffers whose parameters cannot work.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each field is the key or quantity that its name says")]
pub enum LosslessError {
    /// A parameter is out of its range.
    #[error(transparent)]
    Invalid(#[from] InvalidParam),
    /// Nothing is left to be shared.
    #[error(
        "`memory` {memory} has no shared part: {links} link(s) with {reserve} of `reserve` and {headroom} of \
         `headroom` in all need more than {needed}"
    )]
    MemoryTooSmall { memory: Bytes, links: usize, reserve: Bytes, headroom: Bytes, needed: Bytes },
    /// A pause ends before it can be refreshed, and packets may be dropped.
    #[error(
        "a pause of {quanta} `quanta` ends before its refresh has come: the frame may wait for a full packet in half \
         of the time, which needs {needed}, or `may_drop = true`"
    )]
    PauseTooShort { quanta: u16, needed: u64 },
}

impl LosslessParams {
    /// Divides the memory of a switch that `links` lead to, with packets of the priorities in `used`. Each link's
    /// `buffer` and `priorities` do not count.
    ///
    /// # Errors
    /// The part that is too small, with the numbers.
    pub fn resolve(&self, links: &[PausedLink], used: Priorities) -> Result<BufferPlan, LosslessError> {
        self.validate()?;
        let lossless = self.lossless()?;
        let quanta_needed = links.iter().map(quanta_min).max().unwrap_or(0);
        if let Some(quanta) =
            self.quanta.filter(|quanta| u64::from(*quanta) < quanta_needed && !self.may_drop)
        {
            return Err(LosslessError::PauseTooShort { quanta, needed: quanta_needed });
        }
        let needed: Vec<HeadroomTerms> =
            links.iter().map(|link| HeadroomTerms::of(link, self.response)).collect();
        let headroom: Vec<u64> =
            needed.iter().map(|needed| self.headroom.unwrap_or(needed.total()).get()).collect();
        let (priorities, lossy) = (u64::from(used.count()), u64::from(used.without(lossless).count()));
        let sum = |parts: &mut dyn Iterator<Item = u64>| parts.fold(0u64, u64::saturating_add);
        let headroom_sum = sum(&mut headroom.iter().map(|bytes| bytes.saturating_mul(priorities - lossy)));
        let reserve_sum = self.reserve.get().saturating_mul(priorities).saturating_mul(links.len() as u64);
        let needed_sum = headroom_sum.saturating_add(reserve_sum);
        if needed_sum >= self.memory.get() {
            return Err(LosslessError::MemoryTooSmall {
                memory: self.memory,
                links: links.len(),
                reserve: Bytes::new(reserve_sum),
                headroom: Bytes::new(headroom_sum),
                needed: Bytes::new(needed_sum),
            });
        }
        Ok(BufferPlan {
            lossless,
            reserve: self.reserve.get(),
            shared: self.memory.get() - needed_sum,
            alpha: self.threshold.is_none().then(|| fixed(self.alpha)),
            threshold: self.threshold.map_or(0, Bytes::get),
            egress_alpha: fixed(self.egress_alpha),
            resume_offset: self.resume_offset.get(),
            needed,
            headroom,
            priorities,
            lossless_in_use: priorities - lossy,
        })
    }
}

impl BufferPlan {
    /// Returns the number of the first link whose headroom is smaller than it needs, and by how much, in words:
    /// lossless packets may be dropped there.
    pub fn too_small(&self) -> Option<(usize, String)> {
        let mut links = self.headroom.iter().zip(&self.needed).enumerate();
        let (link, (headroom, needed)) =
            links.find(|(_, (headroom, needed))| **headroom < needed.total().get())?;
        let headroom = Bytes::new(*headroom);
        let missing = needed.total().saturating_sub(headroom);
        Some((link, format!("`headroom` {headroom} is {missing} less than the link needs, {needed}")))
    }

    /// Returns the threshold where it is fixed.
    pub fn fixed_threshold(&self) -> Option<Bytes> {
        self.alpha.is_none().then(|| Bytes::new(self.threshold))
    }

    /// Returns the threshold of one link and priority while `used` bytes of the shared memory are in use.
    pub fn threshold(&self, used: u64) -> Bytes {
        Bytes::new(self.threshold_bytes(used))
    }

    #[inline]
    pub(super) fn threshold_bytes(&self, used: u64) -> u64 {
        match self.alpha {
            Some(alpha) => share(alpha, self.shared - used),
            None => self.threshold,
        }
    }

    /// Returns the most shared bytes that one link and priority uses while no other uses any: `alpha / (1 + alpha)` of
    /// them.
    pub fn alone(&self) -> Bytes {
        let one = 1u128 << super::ALPHA_BITS;
        match self.alpha.map(u128::from) {
            Some(alpha) => Bytes::new((alpha * u128::from(self.shared) / (one + alpha)) as u64),
            None => Bytes::new(self.threshold.min(self.shared)),
        }
    }

    /// Returns the largest fixed threshold at which all links and priorities have room at once: DCQCN's
    /// `(B - 8 n t_flight) / (8 n)`.
    pub fn even_share(&self) -> Bytes {
        Bytes::new(self.shared / self.accounts())
    }

    /// Returns the threshold of each of the `n` links and priorities while all of them use as much as theirs: `alpha x
    /// shared / (1 + n alpha)`, or the fixed threshold, of which no more fits than [`BufferPlan::even_share`].
    pub fn together(&self) -> Bytes {
        let one = 1u128 << super::ALPHA_BITS;
        match self.alpha.map(u128::from) {
            Some(alpha) => {
                let all = one + alpha * u128::from(self.accounts());
                Bytes::new((alpha * u128::from(self.shared) / all) as u64)
            }
            None => self.even_share().min(Bytes::new(self.threshold)),
        }
    }

    /// Returns the number of ingress links and priorities that share the memory, at least 1.
    fn accounts(&self) -> u64 {
        (self.needed.len() as u64).saturating_mul(self.priorities).max(1)
    }

    /// Returns the bound on the ECN thresholds of egress queues that mark before any link is paused, even if all bytes
    /// of all queues came by one link: with `n` links and `p` priorities `alpha x shared / (n (1 + alpha p))`, DCQCN's
    /// `beta (B - 8 n t_flight) / (8 n (beta + 1))`. A fixed threshold, of which no more is used than there is
    /// shared memory, over `n`.
    pub fn ecn_first_below(&self) -> Bytes {
        let links = self.needed.len().max(1) as u128;
        let one = 1u128 << super::ALPHA_BITS;
        let bound = match self.alpha.map(u128::from) {
            Some(alpha) => {
                alpha * u128::from(self.shared) / (links * (one + alpha * u128::from(self.priorities)))
            }
            None => u128::from(self.threshold.min(self.shared)) / links,
        };
        Bytes::new(bound as u64)
    }
}
