//! [`IdealTimes`]: when operations would begin and end if each message had idle links, but for the other messages of
//! its ends.

use std::collections::BTreeMap;

use plimsoll_units::Span;

use super::graph::JobGraph;
use super::resources::{Resource, Resources};

/// The ideal times of an iteration, since its beginning.
#[derive(Debug, Default)]
pub(super) struct IdealTimes {
    /// When each operation may begin at the earliest; of one that has begun, when it ends.
    begins: Vec<Span>,
    end: Span,
    free: Resources<Span>,
}

/// The ends of a message's way, which it shares with other messages, and how long it holds each.
pub(super) struct MessageEnds {
    pub(super) out: (Resource, Span),
    pub(super) into: (Resource, Span),
}

impl IdealTimes {
    /// Begins an iteration of so many operations.
    pub(super) fn begin(&mut self, operations: usize) {
        self.begins.clear();
        self.begins.resize(operations, Span::ZERO);
        self.end = Span::ZERO;
        self.free.clear();
    }

    /// Returns when the last operation ends.
    pub(super) fn end(&self) -> Span {
        self.end
    }

    /// Returns when an operation that has begun ends.
    pub(super) fn end_of(&self, operation: u32) -> Span {
        self.begins[operation as usize]
    }

    /// An operation holds its stream for a time, from when all is there that it waits for, and something else `from`
    /// then on.
    pub(super) fn hold(&mut self, graph: &JobGraph, stream: Resource, number: u32, from: Span, time: Span) {
        let begins = self.begins[number as usize].max(from);
        let ends = self.free.hold(stream, begins, time) + time;
        for dependent in graph.dependents(number).iter().filter(|dependent| dependent.on_begin) {
            self.await_until(dependent.operation, ends - time);
        }
        self.begins[number as usize] = ends;
        self.end = self.end.max(ends);
    }

    /// An operation begins at this time at the earliest.
    pub(super) fn await_until(&mut self, operation: u32, time: Span) {
        let begins = &mut self.begins[operation as usize];
        *begins = time.max(*begins);
    }

    /// Returns the resources that were held, with the times from which they are free.
    pub(super) fn held(&self) -> impl Iterator<Item = (Resource, Span)> + '_ {
        self.free.all()
    }

    /// Gives the times of operations to those of later rounds, by so much later.
    pub(super) fn move_on(&mut self, moved: &BTreeMap<u32, u32>, later: Span) {
        let times: Vec<(u32, Span)> =
            moved.iter().map(|(&from, &to)| (to, self.begins[from as usize] + later)).collect();
        for (operation, time) in times {
            self.begins[operation as usize] = time;
        }
        self.end += later;
        self.free.all_later(later);
    }

    /// Returns when a message arrives that leaves at a time, where its way is idle and takes `ideal`.
    pub(super) fn arrival(&mut self, leaves: Span, ideal: Span, ends: &MessageEnds) -> Span {
        let leaves = self.free.hold(ends.out.0, leaves, ends.out.1);
        let arriving = ends.into.1.min(ideal);
        self.free.hold(ends.into.0, leaves + (ideal - arriving), arriving) + arriving
    }
}
