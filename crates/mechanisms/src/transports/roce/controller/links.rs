//! The loads of the links that two acknowledgements have stamps of, for controllers that steer by telemetry.

use plimsoll_units::Span;

use crate::telemetry::{Stamp, Stamps};

/// The loads of the links of a path, in their order, and the time for which each was measured.
pub(super) struct LinkLoads {
    loads: [(f64, Span); Stamps::HOPS_MAX],
    count: usize,
}

impl LinkLoads {
    /// Returns the loads between two acknowledgements; `None` if their stamps are not comparable. `load` computes the
    /// load of a link from its new stamp, its old one, the bytes sent between them, and the time between them.
    pub(super) fn between(
        [new, old]: [&Stamps; 2],
        load: impl Fn(&Stamp, &Stamp, u64, Span) -> f64,
    ) -> Option<LinkLoads> {
        let mut loads = LinkLoads { loads: [(0.0, Span::ZERO); Stamps::HOPS_MAX], count: new.hops().len() };
        if loads.count == 0 || loads.count != old.hops().len() {
            return None;
        }
        for ((place, stamp), before) in loads.loads.iter_mut().zip(new.hops()).zip(old.hops()) {
            let (sent, time) = new.difference(stamp, before);
            if time.is_zero() {
                return None;
            }
            *place = (load(stamp, before, sent, time), time);
        }
        Some(loads)
    }

    /// Returns one load, which was averaged over `time`.
    pub(super) fn one(load: f64, time: Span) -> LinkLoads {
        let mut loads = [(0.0, Span::ZERO); Stamps::HOPS_MAX];
        loads[0] = (load, time);
        LinkLoads { loads, count: 1 }
    }

    pub(super) fn as_slice(&self) -> &[(f64, Span)] {
        &self.loads[..self.count]
    }

    /// Returns the largest load of a link, the first of equals, and the time for which it was measured.
    pub(super) fn most(&self) -> (f64, Span) {
        let later = |most: (f64, Span), other: &(f64, Span)| if other.0 > most.0 { *other } else { most };
        self.as_slice().iter().fold(self.loads[0], later)
    }
}
