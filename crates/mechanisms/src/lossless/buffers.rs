//! [`IngressBuffers`]: the memory of one switch at work.

use std::cmp::Ordering;

use super::{BufferPlan, share};
use crate::pfc::{PRIORITIES, Priorities, Signal};

/// The memory of a switch: the bytes that each ingress link and priority holds of each part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IngressBuffers {
    plan: BufferPlan,
    /// By ingress link and priority.
    accounts: Vec<[Account; PRIORITIES]>,
    /// The bytes that wait at each egress port, by priority.
    egress: Vec<[u64; PRIORITIES]>,
    /// The bytes of the shared memory that are in use.
    shared_used: u64,
    /// The ingress links and priorities whose senders are to be paused, in the order of their pauses.
    paused: Vec<(u16, u8)>,
    peaks: BufferPeaks,
}

/// The bytes of one ingress link and priority.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Account {
    /// The bytes in the reserve and in the shared memory: the reserve is filled first.
    held: u64,
    /// The bytes in the headroom.
    headroom: u64,
    is_paused: bool,
}

/// The highest use of the memory so far, by lossless priorities.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BufferPeaks {
    /// The shared bytes of the link and priority that came closest to its threshold, then.
    pub shared: u64,
    /// The threshold of that link and priority at that time.
    pub threshold: u64,
    /// The bytes in the headroom of the link and priority that came closest to filling its own.
    pub headroom: u64,
    /// The size of that headroom; 0 where no packet has come, or the link has none.
    pub headroom_size: u64,
}

impl BufferPeaks {
    /// Returns the highest use as a share of the threshold: 1 or more where a pause was decided.
    pub fn share(&self) -> f64 {
        match self.threshold {
            0 if self.shared == 0 => 0.0,
            0 => f64::INFINITY,
            threshold => self.shared as f64 / threshold as f64,
        }
    }

    /// Returns whether merging `other` may change these peaks: never if it is no closer to its threshold, uses no
    /// headroom, and its headroom is at least the one that is known.
    #[inline]
    fn may_change(&self, other: &BufferPeaks) -> bool {
        self.is_below(other)
            || other.headroom > 0
            || self.threshold == 0
            || self.headroom_size == 0
            || other.headroom_size < self.headroom_size
    }

    /// Returns whether the shared bytes of `other` are a larger share of their threshold.
    #[inline]
    fn is_below(&self, other: &BufferPeaks) -> bool {
        u128::from(other.shared) * u128::from(self.threshold)
            > u128::from(self.shared) * u128::from(other.threshold)
    }

    /// Merges the peaks of another switch, or of the same after that.
    pub fn merge(&mut self, other: BufferPeaks) {
        let own = (self.headroom, self.headroom_size);
        (self.headroom, self.headroom_size) = fuller(own, (other.headroom, other.headroom_size));
        if self.is_below(&other) || self.threshold == 0 && self.shared == 0 {
            (self.shared, self.threshold) = (other.shared, other.threshold);
        }
    }
}

/// Returns the headroom that is filled further, of two with their used bytes and sizes; of equally full ones the
/// smaller. One without a size is not there.
pub fn fuller(one: (u64, u64), other: (u64, u64)) -> (u64, u64) {
    if one.1 == 0 || other.1 == 0 {
        return if one.1 == 0 { other } else { one };
    }
    let share = |(used, _): (u64, u64), (_, size): (u64, u64)| u128::from(used) * u128::from(size);
    match share(one, other).cmp(&share(other, one)) {
        Ordering::Greater => one,
        Ordering::Less => other,
        Ordering::Equal => {
            if one.1 <= other.1 {
                one
            } else {
                other
            }
        }
    }
}

/// The reason why a packet finds no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A lossless packet, for which the headroom is `missing` bytes too small.
    Headroom {
        /// The bytes that the packet does not find.
        missing: u64,
    },
    /// A lossy packet, whose ingress link has reached its threshold.
    Ingress,
    /// A lossy packet, whose egress queue has reached its threshold.
    Egress,
}

impl IngressBuffers {
    /// An empty memory, divided by `plan`, of a switch with the egress ports `0..egress`.
    pub fn new(plan: BufferPlan, egress: usize) -> IngressBuffers {
        IngressBuffers {
            accounts: vec![Default::default(); plan.headroom.len()],
            egress: vec![[0; PRIORITIES]; egress],
            plan,
            shared_used: 0,
            paused: Vec::new(),
            peaks: BufferPeaks::default(),
        }
    }

    /// Returns whether a packet of `bytes` from the link `ingress` finds room on its way to the port `egress`.
    ///
    /// # Errors
    /// The reason why it is dropped.
    ///
    /// # Panics
    /// If `priority` is 8 or more, or there are fewer links or ports.
    pub fn admit(&self, ingress: u16, egress: usize, priority: u8, bytes: u64) -> Result<(), Refusal> {
        let account = &self.accounts[usize::from(ingress)][usize::from(priority)];
        if account.held + bytes <= self.plan.reserve {
            return Ok(());
        }
        let in_shared = self.fits(account, bytes);
        if self.plan.lossless.has(priority) {
            let full = self.plan.headroom[usize::from(ingress)];
            let missing = (account.headroom + bytes).saturating_sub(full);
            return if in_shared || missing == 0 { Ok(()) } else { Err(Refusal::Headroom { missing }) };
        }
        if !in_shared {
            return Err(Refusal::Ingress);
        }
        let queue = self.egress[egress][usize::from(priority)] + bytes;
        let most = share(self.plan.egress_alpha, self.plan.shared - self.shared_used);
        if queue <= most { Ok(()) } else { Err(Refusal::Egress) }
    }

    /// A packet of `bytes` from the link `ingress`, which was admitted, waits at the port `egress`. Returns whether the
    /// sender of its priority on that link is to be paused now.
    ///
    /// # Panics
    /// If `priority` is 8 or more, or there are fewer links or ports.
    pub fn on_arrival(&mut self, ingress: u16, egress: usize, priority: u8, bytes: u64) -> Option<Signal> {
        self.egress[egress][usize::from(priority)] += bytes;
        let plan = &self.plan;
        let account = self.accounts[usize::from(ingress)][usize::from(priority)];
        let fits = self.fits(&account, bytes);
        let account = &mut self.accounts[usize::from(ingress)][usize::from(priority)];
        if fits {
            let before = plan.shared_part(account.held);
            account.held += bytes;
            self.shared_used += plan.shared_part(account.held) - before;
        } else {
            account.headroom += bytes;
        }
        if !plan.lossless.has(priority) {
            return None;
        }
        let shared = plan.shared_part(account.held);
        let after = plan.threshold_bytes(self.shared_used);
        // Headroom is used above the threshold, and where the shared memory is full.
        let used = if account.headroom > 0 { (shared + account.headroom).max(after) } else { shared };
        let (headroom, headroom_size) = (account.headroom, plan.headroom[usize::from(ingress)]);
        let peaks = BufferPeaks { shared: used, threshold: after, headroom, headroom_size };
        if self.peaks.may_change(&peaks) {
            self.peaks.merge(peaks);
        }
        let pauses = account.headroom > 0 || shared > 0 && shared >= after;
        if !pauses || account.is_paused {
            return None;
        }
        account.is_paused = true;
        self.paused.push((ingress, priority));
        Some(Signal::Pause(Priorities::one(priority)))
    }

    /// A packet of `bytes` that came by the link `ingress` waits at the port `egress` no longer. `signal` receives each
    /// link whose sender may resume now.
    ///
    /// # Panics
    /// If as many bytes are not held: bytes would have been made up.
    pub fn on_departure(
        &mut self,
        ingress: u16,
        egress: usize,
        priority: u8,
        bytes: u64,
        mut signal: impl FnMut(u16, Signal),
    ) {
        let queue = &mut self.egress[egress][usize::from(priority)];
        let account = &mut self.accounts[usize::from(ingress)][usize::from(priority)];
        assert!(*queue >= bytes && account.held + account.headroom >= bytes, "more leaves than is held");
        *queue -= bytes;
        let of_headroom = bytes.min(account.headroom);
        account.headroom -= of_headroom;
        let before = self.plan.shared_part(account.held);
        account.held -= bytes - of_headroom;
        self.shared_used -= before - self.plan.shared_part(account.held);
        if self.paused.is_empty() {
            return;
        }
        // Memory that is given back raises the threshold of all.
        let (plan, accounts, used) = (&self.plan, &mut self.accounts, self.shared_used);
        self.paused.retain(|&(ingress, priority)| {
            let account = &mut accounts[usize::from(ingress)][usize::from(priority)];
            let resumes = plan.resumes(account.headroom, account.held, used);
            if resumes {
                account.is_paused = false;
                signal(ingress, Signal::Resume(Priorities::one(priority)));
            }
            !resumes
        });
    }

    /// A packet of `bytes` from the link `ingress`, which was admitted, leaves by the port `egress` at once: an arrival
    /// and a departure in one. `signal` receives each link whose sender is to be paused, or may resume.
    ///
    /// # Panics
    /// If `priority` is 8 or more, or there are fewer links or ports.
    pub fn on_passing(
        &mut self,
        ingress: u16,
        egress: usize,
        priority: u8,
        bytes: u64,
        mut signal: impl FnMut(u16, Signal),
    ) {
        let (plan, account) = (&self.plan, &self.accounts[usize::from(ingress)][usize::from(priority)]);
        // Without headroom, and while no sender is paused, only the use of the memory is noted.
        if account.headroom == 0 && self.paused.is_empty() && self.fits(account, bytes) {
            if !plan.lossless.has(priority) {
                return;
            }
            let shared = plan.shared_part(account.held + bytes);
            let used = self.shared_used + shared - plan.shared_part(account.held);
            let threshold = plan.threshold_bytes(used);
            if shared == 0 || shared < threshold {
                let headroom_size = plan.headroom[usize::from(ingress)];
                let peaks = BufferPeaks { shared, threshold, headroom: 0, headroom_size };
                if self.peaks.may_change(&peaks) {
                    self.peaks.merge(peaks);
                }
                return;
            }
        }
        if let Some(pause) = self.on_arrival(ingress, egress, priority, bytes) {
            signal(ingress, pause);
        }
        self.on_departure(ingress, egress, priority, bytes, signal);
    }

    /// Forgets the signals sent to the sender on the link `ingress`, as the link has failed or come back. The sender is
    /// paused again when more arrives.
    pub fn forget_pauses(&mut self, ingress: u16) {
        self.paused.retain(|(paused, _)| *paused != ingress);
        for account in &mut self.accounts[usize::from(ingress)] {
            account.is_paused = false;
        }
    }

    /// Returns the priorities that the sender on the link `ingress` was signalled to stop.
    pub fn paused(&self, ingress: u16) -> Priorities {
        let of_link = self.paused.iter().filter(|(paused, _)| *paused == ingress);
        of_link.fold(Priorities::default(), |set, (_, priority)| set.with(*priority))
    }

    /// Returns the division of the memory.
    pub fn plan(&self) -> &BufferPlan {
        &self.plan
    }

    /// Returns the highest use of the memory so far, by lossless priorities.
    pub fn peaks(&self) -> BufferPeaks {
        self.peaks
    }

    /// Returns whether a packet of `bytes` fits into the reserve or the shared memory.
    #[inline]
    fn fits(&self, account: &Account, bytes: u64) -> bool {
        let before = self.plan.shared_part(account.held);
        let after = self.plan.shared_part(account.held + bytes);
        after == 0
            || self.shared_used + (after - before) <= self.plan.shared
                && after <= self.plan.threshold_bytes(self.shared_used)
    }
}

impl BufferPlan {
    /// Returns the part of `held` bytes that is in the shared memory.
    #[inline]
    fn shared_part(&self, held: u64) -> u64 {
        held.saturating_sub(self.reserve)
    }

    /// Returns whether the sender of the link `ingress` and `priority` stays paused while `left` is all that the memory
    /// holds, by link and priority, and none of it in headroom: with headroom in use a sender stays paused anyway.
    pub fn keeps_paused(&self, ingress: usize, priority: u8, left: &[[u64; PRIORITIES]]) -> bool {
        let used = left.iter().flatten().map(|held| self.shared_part(*held)).sum::<u64>().min(self.shared);
        !self.resumes(0, left[ingress][usize::from(priority)], used)
    }

    /// Returns whether the sender of a link and priority that holds these bytes may resume while `used` bytes of the
    /// shared memory are in use.
    #[inline]
    fn resumes(&self, headroom: u64, held: u64, used: u64) -> bool {
        let shared = self.shared_part(held);
        headroom == 0
            && (shared == 0 || shared.saturating_add(self.resume_offset) <= self.threshold_bytes(used))
    }
}

#[cfg(test)]
mod tests;
