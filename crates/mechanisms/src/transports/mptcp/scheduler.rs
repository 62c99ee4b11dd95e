//! The packet schedulers: the order in which subflows are tried for the next segment.

use plimsoll_units::Span;

use super::params::SubflowScheduler;

impl SubflowScheduler {
    /// Sorts the subflows of `eligible` into the order in which they are tried. `srtt(i)` is a subflow's smoothed RTT,
    /// zero before the first sample, and `last` the one that sent data last.
    pub(super) fn order(self, eligible: &mut [usize], srtt: impl Fn(usize) -> Span, last: usize) {
        match self {
            SubflowScheduler::Default | SubflowScheduler::ActivePath => {
                eligible.sort_by_key(|&index| (srtt(index), index))
            }
            // The subflows after the last one come first.
            SubflowScheduler::RoundRobin => eligible.sort_by_key(|&index| (index <= last, index)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(scheduler: SubflowScheduler, eligible: &[usize], last: usize) -> Vec<usize> {
        let rtts = [30, 10, 0, 20];
        let mut order = eligible.to_vec();
        scheduler.order(&mut order, |index| Span::from_us(rtts[index]), last);
        order
    }

    #[test]
    fn the_default_asks_by_rtt_and_the_unmeasured_first() {
        assert_eq!(order(SubflowScheduler::Default, &[0, 1, 2, 3], 0), [2, 1, 3, 0]);
        assert_eq!(order(SubflowScheduler::Default, &[3, 0], 0), [3, 0]);
    }

    #[test]
    fn round_robin_goes_on_after_the_last() {
        assert_eq!(order(SubflowScheduler::RoundRobin, &[0, 1, 2, 3], 1), [2, 3, 0, 1]);
        assert_eq!(order(SubflowScheduler::RoundRobin, &[0, 1, 2, 3], 3), [0, 1, 2, 3]);
        assert_eq!(order(SubflowScheduler::RoundRobin, &[0, 3], 1), [3, 0]);
    }
}
