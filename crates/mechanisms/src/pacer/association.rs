//! The set of paced flows: a table in flow order, into which congestion feedback draws flows.

use plimsoll_units::{Span, Time};

use super::PacerParams;
use crate::chance::Chance;

/// Number of draws for a flow, and their outcomes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AssociationCounts {
    /// Draws made, one for each piece of congestion feedback.
    pub draws: u64,
    /// Draws that succeeded, whether or not the flow was associated already.
    pub associations: u64,
    /// The part of `associations` that found the flow associated and restarted its timeout.
    pub renewals: u64,
    /// The number of associations that timed out.
    pub dissociations: u64,
}

impl AssociationCounts {
    /// Adds `other`'s counts, for totals over flows.
    pub fn add(&mut self, other: AssociationCounts) {
        self.draws += other.draws;
        self.associations += other.associations;
        self.renewals += other.renewals;
        self.dissociations += other.dissociations;
    }
}

/// The flows of one host that ever met congestion, until they are forgotten.
///
/// Timeouts are lazy: a flow is associated while `now` is before its deadline, and the passing of the
/// deadline is counted when the flow is next looked at, or when the counts are read.
#[derive(Clone, Debug)]
pub struct FlowAssociations {
    flows: Vec<AssociatedFlow>,
    chance: Chance,
    timeout: Span,
}

#[derive(Clone, Copy, Debug)]
struct AssociatedFlow {
    flow: u64,
    /// Paced until then; none if not associated.
    until: Option<Time>,
    /// An ECE acknowledgement came in and no data packet has left since.
    feedback: bool,
    /// Packets of the flow in the pacer's queue.
    queued: u32,
    counts: AssociationCounts,
}

impl AssociatedFlow {
    fn settle(&mut self, now: Time) {
        if self.until.is_some_and(|until| until <= now) {
            self.until = None;
            self.counts.dissociations += 1;
        }
    }
}

/// The state of one flow at one time.
#[derive(Clone, Copy, Debug)]
pub struct FlowState(AssociatedFlow);

impl FlowState {
    /// Returns the flow's counts up to `now`, if only time passes until then.
    pub fn counts(&self, now: Time) -> AssociationCounts {
        let FlowState(mut entry) = *self;
        entry.settle(now);
        entry.counts
    }
}

impl FlowAssociations {
    pub(super) fn new(params: &PacerParams) -> FlowAssociations {
        FlowAssociations {
            flows: Vec::new(),
            chance: Chance::of(params.association_probability),
            timeout: params.association_timeout,
        }
    }

    /// One draw for `flow`; a success associates it until `now` plus the timeout.
    pub(super) fn draw(&mut self, now: Time, flow: u64, draw: impl FnOnce() -> u64) -> bool {
        let (success, until) = (self.chance.hits(draw), now.saturating_add(self.timeout));
        let entry = self.entry(flow);
        entry.settle(now);
        entry.counts.draws += 1;
        if success {
            entry.counts.associations += 1;
            entry.counts.renewals += u64::from(entry.until.is_some());
            entry.until = Some(until);
        }
        success
    }

    /// Returns whether `flow` is paced at `now`.
    pub fn is_associated(&self, now: Time, flow: u64) -> bool {
        self.find(flow).is_some_and(|entry| entry.until.is_some_and(|until| now < until))
    }

    /// Returns whether `flow` is paced, or has packets queued that later ones must not overtake.
    pub(super) fn must_queue(&self, now: Time, flow: u64) -> bool {
        self.is_associated(now, flow) || self.find(flow).is_some_and(|entry| entry.queued > 0)
    }

    pub(super) fn on_queued(&mut self, flow: u64) {
        self.entry(flow).queued += 1;
    }

    pub(super) fn on_released(&mut self, flow: u64) {
        self.entry(flow).queued -= 1;
    }

    pub(super) fn note_feedback(&mut self, flow: u64) {
        self.entry(flow).feedback = true;
    }

    pub(super) fn take_feedback(&mut self, flow: u64) -> bool {
        match self.flows.binary_search_by_key(&flow, |entry| entry.flow) {
            Ok(place) => std::mem::take(&mut self.flows[place].feedback),
            Err(_) => false,
        }
    }

    /// Every flow that met congestion with its counts up to `now`, in order of flow.
    pub fn counts(&self, now: Time) -> impl Iterator<Item = (u64, AssociationCounts)> + '_ {
        self.flows.iter().map(move |entry| (entry.flow, FlowState(*entry).counts(now)))
    }

    /// The counts of `flow` up to `now`; all zero if it never met congestion.
    pub fn counts_of(&self, now: Time, flow: u64) -> AssociationCounts {
        self.state_of(flow).map_or_else(AssociationCounts::default, |state| state.counts(now))
    }

    /// Returns the state of `flow` as it is now, to be read later; `None` if it never met congestion.
    pub fn state_of(&self, flow: u64) -> Option<FlowState> {
        self.find(flow).map(|entry| FlowState(*entry))
    }

    /// Removes the state of a flow that has ended, and returns its counts up to `now`. The state of a flow with packets
    /// still queued is kept; the result is `None` then.
    pub fn forget(&mut self, now: Time, flow: u64) -> Option<AssociationCounts> {
        let place = self.flows.binary_search_by_key(&flow, |entry| entry.flow).ok()?;
        if self.flows[place].queued > 0 {
            return None;
        }
        let mut entry = self.flows.remove(place);
        entry.settle(now);
        Some(entry.counts)
    }

    fn find(&self, flow: u64) -> Option<&AssociatedFlow> {
        self.flows.binary_search_by_key(&flow, |entry| entry.flow).ok().map(|place| &self.flows[place])
    }

    fn entry(&mut self, flow: u64) -> &mut AssociatedFlow {
        let place = self.flows.binary_search_by_key(&flow, |entry| entry.flow).unwrap_or_else(|place| {
            let counts = AssociationCounts::default();
            self.flows
                .insert(place, AssociatedFlow { flow, until: None, feedback: false, queued: 0, counts });
            place
        });
        &mut self.flows[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIT: fn() -> u64 = || 0;
    const MISS: fn() -> u64 = || u64::MAX;

    fn at_ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn a_success_lasts_for_the_timeout_and_a_new_one_restarts_it() {
        let mut flows = FlowAssociations::new(&PacerParams::default());
        assert!(!flows.draw(at_ms(0), 7, MISS));
        assert!(!flows.is_associated(at_ms(0), 7));
        assert!(flows.draw(at_ms(1), 7, HIT));
        assert!(flows.is_associated(at_ms(10), 7));
        assert!(flows.draw(at_ms(10), 7, HIT));
        assert!(flows.is_associated(at_ms(19), 7));
        assert!(!flows.is_associated(at_ms(20), 7));
        assert!(!flows.is_associated(at_ms(10), 8));

        let counts = AssociationCounts { draws: 3, associations: 2, renewals: 1, dissociations: 0 };
        assert_eq!(flows.counts_of(at_ms(19), 7), counts);
        assert_eq!(
            flows.counts(at_ms(20)).collect::<Vec<_>>(),
            [(7, AssociationCounts { dissociations: 1, ..counts })]
        );
    }

    #[test]
    fn a_late_draw_counts_the_timeout_before_it() {
        let mut flows = FlowAssociations::new(&PacerParams::default());
        flows.draw(at_ms(0), 7, HIT);
        flows.draw(at_ms(30), 7, HIT);
        let counts = AssociationCounts { draws: 2, associations: 2, renewals: 0, dissociations: 1 };
        assert_eq!(flows.counts_of(at_ms(30), 7), counts);
    }

    #[test]
    fn feedback_is_taken_once() {
        let mut flows = FlowAssociations::new(&PacerParams::default());
        assert!(!flows.take_feedback(7));
        flows.note_feedback(7);
        flows.note_feedback(7);
        assert!(flows.take_feedback(7));
        assert!(!flows.take_feedback(7));
    }

    #[test]
    fn a_flow_that_ended_is_forgotten_once_its_packets_have_left() {
        let mut flows = FlowAssociations::new(&PacerParams::default());
        flows.draw(at_ms(0), 7, HIT);
        flows.on_queued(7);
        assert!(flows.must_queue(at_ms(50), 7));
        assert_eq!(flows.forget(at_ms(50), 7), None);
        flows.on_released(7);
        assert!(!flows.must_queue(at_ms(50), 7));
        assert_eq!(flows.forget(at_ms(50), 7).unwrap().dissociations, 1);
        assert_eq!(flows.counts(at_ms(50)).count(), 0);
    }
}
