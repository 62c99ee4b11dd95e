//! [`State`]: all of which the rest of an iteration depends, with times since now.

use plimsoll_units::{Span, Time};

use super::super::{Happening, JobSource};
use super::ChainUnderWay;
use crate::jobs::resources::Resource;
use crate::jobs::rounds::Chains;

/// The place in its chain of the first operation that has not ended, and for how many it and those after it wait.
type KnownOfChain = (u32, Vec<u32>);

/// The state of a job without a network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct State {
    /// What is known of each chain under way.
    chains: Vec<KnownOfChain>,
    /// What happens, in its order.
    events: Vec<(Span, Happening, u32)>,
    /// Resources that are not free, with the time until they are.
    held: Vec<(Resource, Span)>,
    /// Receives and messages that wait, in the order in which they came.
    receives: Vec<u32>,
    messages: Vec<u32>,
    /// The ideal times of the same, less that of the last end.
    ideal: Vec<i128>,
}

impl State {
    pub(super) fn of(job: &JobSource, now: Time, chains: &[ChainUnderWay]) -> State {
        let end = i128::from(job.ideal.end().as_ps());
        let since_end = |time: Span| i128::from(time.as_ps()) - end;
        let mut ideal: Vec<i128> = chains
            .iter()
            .flat_map(|chain| &chain.known)
            .map(|&operation| since_end(job.ideal.end_of(operation)))
            .collect();
        ideal.extend(job.ideal.held().map(|(_, free)| since_end(free)));
        ideal.extend(job.sent.values().map(|sent| since_end(sent.ideal)));
        ideal.extend(job.matching.messages().map(|message| since_end(message.ideal)));
        State {
            chains: chains
                .iter()
                .map(|chain| {
                    let waits = chain.known.iter().map(|&operation| job.open_waits[operation as usize]);
                    (chain.place, waits.collect())
                })
                .collect(),
            events: job
                .events
                .iter()
                .map(|((at, _), event)| (*at - now, event.what, event.operation))
                .collect(),
            held: job
                .free
                .all()
                .filter(|(_, free)| *free > now)
                .map(|(resource, free)| (resource, free - now))
                .collect(),
            receives: job.matching.receives().copied().collect(),
            messages: job.matching.messages().map(|message| message.operation).collect(),
            ideal,
        }
    }

    /// Returns whether `to` is the same state some rounds later.
    pub(super) fn is_moved(&self, to: &State, rounds: u32, chains: &Chains) -> bool {
        let is_later = |(from, to): (&u32, &u32)| chains.further(*from, rounds) == Some(*to);
        let are_later =
            |from: &[u32], to: &[u32]| from.len() == to.len() && from.iter().zip(to).all(is_later);
        let operations =
            |state: &State| state.events.iter().map(|(.., operation)| *operation).collect::<Vec<u32>>();
        let happenings = |state: &State| -> Vec<_> {
            state.events.iter().map(|(after, what, _)| (*after, *what)).collect()
        };
        let moved = |(from, to): (&KnownOfChain, &KnownOfChain)| from.0 + rounds == to.0 && from.1 == to.1;
        self.chains.len() == to.chains.len()
            && self.chains.iter().zip(&to.chains).all(moved)
            && self.held == to.held
            && self.ideal == to.ideal
            && happenings(self) == happenings(to)
            && are_later(&operations(self), &operations(to))
            && are_later(&self.receives, &to.receives)
            && are_later(&self.messages, &to.messages)
    }
}
