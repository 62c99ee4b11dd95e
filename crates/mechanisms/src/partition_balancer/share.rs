//! The fair share of a thread, and Algorithm 1 over units of placement.

/// The fair share of a thread, or of the threads of a node, in the load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// The whole load is multiplied by `part`.
    fair: u128,
    of: u128,
    requests: u128,
    /// The largest square of the excess, times the requests, that chance explains; `None` for no test.
    noise: Option<u128>,
}

impl Share {
    /// Makes the fair share of `part` of `of` threads in `load`, made by `requests`, and `deviations` beyond it.
    pub(super) fn of(load: u128, requests: u64, part: u32, of: u32, deviations: u32) -> Share {
        // `assigned - ideal > deviations * ideal / sqrt(requests * part / of)`, squared.
        let (part, of) = (u128::from(part), u128::from(of));
        let noise = u128::from(deviations).pow(2).saturating_mul(load.saturating_pow(2));
        let noise = (deviations > 0).then(|| noise.saturating_mul(of * part));
        Share { fair: load * part, of, requests: u128::from(requests), noise }
    }

    /// Returns whether `assigned <= ideal`, as in the algorithm, without rounding.
    pub(super) fn has_room(&self, assigned: u64) -> bool {
        u128::from(assigned) * self.of <= self.fair
    }

    /// Returns whether `assigned` is above the fair share by more than chance explains.
    pub(super) fn has_too_much(&self, assigned: u64) -> bool {
        let excess = (u128::from(assigned) * self.of).saturating_sub(self.fair);
        let squared = || excess.saturating_pow(2).saturating_mul(self.requests);
        excess > 0 && self.noise.is_none_or(|noise| squared() > noise)
    }

    /// Returns whether `load` is at least a `divisor`th of the fair share.
    pub(super) fn is_part(&self, load: u64, divisor: u32) -> bool {
        u128::from(load) * self.of * u128::from(divisor) >= self.fair
    }

    /// Returns whether `load` is more than a `divisor`th of the fair share.
    pub(super) fn is_more(&self, load: u64, divisor: u32) -> bool {
        u128::from(load) * self.of * u128::from(divisor) > self.fair
    }
}

/// Algorithm 1: a unit stays with its owner, unless that is overloaded and another has room. `assigned` is the load
/// given to each owner so far.
pub(super) fn place<'a, 'b>(
    units: impl Iterator<Item = (u64, &'a mut u32)>,
    assigned: &mut [u64],
    share: impl Fn(usize) -> &'b Share,
) {
    for (load, owner) in units {
        let own = *owner as usize;
        if share(own).has_too_much(assigned[own])
            && let Some(other) = (0..assigned.len()).find(|&other| share(other).has_room(assigned[other]))
        {
            *owner = other as u32;
        }
        assigned[*owner as usize] += load;
    }
}
