//! [`OneWay`]: flows, each a message in one direction, from a list made before the run or made one at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use plimsoll_fabric::net::HostId;
use plimsoll_units::{Span, Time};

use crate::record::{MessageRecord, Split};
use crate::source::{Actions, Arrival, ConnectionEnd, Hint, Opened, Source, SourceReach, Write};

/// A flow that has not started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PendingFlow {
    pub(crate) start: Time,
    pub(crate) source: HostId,
    pub(crate) destination: HostId,
    /// The size; without one the flow sends for as long as the run lasts.
    pub(crate) bytes: Option<u64>,
}

/// The flows that have not started, in order of their start.
#[derive(Clone, Debug)]
enum PendingFlows {
    /// A list with the next flow at its end.
    List(Vec<PendingFlow>),
    /// A sequence that makes them one at a time.
    Sequence(Box<dyn FlowSequence>),
}

/// Flows in the order of their starts, made one at a time.
pub(crate) trait FlowSequence: fmt::Debug + Send {
    /// Returns the start of the next flow; [`Time::MAX`] after the last one.
    fn next(&self) -> Time;

    /// Takes the next flow, of which there is one.
    fn pop(&mut self) -> PendingFlow;

    /// Returns a copy, which makes the same flows.
    fn copy(&self) -> Box<dyn FlowSequence>;
}

impl Clone for Box<dyn FlowSequence> {
    fn clone(&self) -> Box<dyn FlowSequence> {
        self.as_ref().copy()
    }
}

impl PendingFlows {
    fn next(&self) -> Time {
        match self {
            PendingFlows::List(flows) => flows.last().map_or(Time::MAX, |flow| flow.start),
            PendingFlows::Sequence(sequence) => sequence.next(),
        }
    }

    fn pop(&mut self) -> Option<PendingFlow> {
        match self {
            PendingFlows::List(flows) => flows.pop(),
            PendingFlows::Sequence(sequence) => Some(sequence.pop()),
        }
    }
}

/// A source of flows, each on a connection of its own unless flows share them.
#[derive(Debug)]
pub(crate) struct OneWay {
    workload: u16,
    warmup: Time,
    pending: PendingFlows,
    created: u64,
    /// The flows to hosts of this logical process that have not arrived, by index.
    open: BTreeMap<u64, PendingFlow>,
    /// The connection of each pair of hosts, where flows of a pair share one.
    shared: Option<BTreeMap<(HostId, HostId), u32>>,
}

/// The bytes that an endless flow writes: more than any run can send.
const ENDLESS_BYTES: u64 = 1 << 50;

impl OneWay {
    /// Returns the source of the flows of a list in any order.
    pub(crate) fn list(workload: u16, warmup: Time, mut flows: Vec<PendingFlow>) -> OneWay {
        flows.sort_by_key(|flow| flow.start);
        flows.reverse();
        OneWay::new(workload, warmup, PendingFlows::List(flows))
    }

    /// Returns the source of the flows of a sequence.
    pub(crate) fn sequence(workload: u16, warmup: Time, sequence: Box<dyn FlowSequence>) -> OneWay {
        OneWay::new(workload, warmup, PendingFlows::Sequence(sequence))
    }

    fn new(workload: u16, warmup: Time, pending: PendingFlows) -> OneWay {
        OneWay { workload, warmup, pending, created: 0, open: BTreeMap::new(), shared: None }
    }

    /// Puts the flows of a pair of hosts on one connection, one after the other, if `shared`.
    pub(crate) fn sharing_connections(mut self, shared: bool) -> OneWay {
        self.shared = shared.then(BTreeMap::new);
        self
    }

    fn connection(&mut self, source: HostId, destination: HostId, actions: &mut Actions) -> u32 {
        match &mut self.shared {
            None => actions.open(source, destination),
            Some(shared) => {
                *shared.entry((source, destination)).or_insert_with(|| actions.open(source, destination))
            }
        }
    }

    fn record(
        &self,
        index: u64,
        flow: &PendingFlow,
        completed: Option<Time>,
        ideal: Span,
        split: Split,
    ) -> Option<MessageRecord> {
        (flow.start >= self.warmup).then_some(MessageRecord {
            workload: self.workload,
            index,
            query: None,
            source: flow.source.0,
            destination: flow.destination.0,
            bytes: flow.bytes?,
            created: flow.start,
            completed,
            ideal,
            split,
        })
    }
}

impl Source for OneWay {
    fn next_due(&self) -> Time {
        self.pending.next()
    }

    fn on_due(&mut self, now: Time, actions: &mut Actions) {
        while self.pending.next() <= now {
            let Some(flow) = self.pending.pop() else { return };
            let index = self.created;
            self.created += 1;
            if actions.is_here(flow.destination) {
                self.open.insert(index, flow);
            }
            let connection = self.connection(flow.source, flow.destination, actions);
            actions.writes.push(Write {
                connection,
                end: ConnectionEnd::Client,
                bytes: flow.bytes.unwrap_or(ENDLESS_BYTES),
                tag: index,
                created: now,
            });
        }
    }

    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions) {
        let index = arrival.tag;
        let flow = self.open.remove(&index).expect("a flow arrives once, and where it is expected");
        actions.records.messages.extend(self.record(
            index,
            &flow,
            Some(arrival.now),
            arrival.ideal,
            arrival.split,
        ));
    }

    /// Returns the pairs of hosts of all flows to come, where flows share connections.
    fn kept_connections(&self) -> Vec<Opened> {
        if self.shared.is_none() {
            return Vec::new();
        }
        let mut pending = self.pending.clone();
        let flows = std::iter::from_fn(|| (pending.next() < Time::MAX).then(|| pending.pop()).flatten());
        let pairs: BTreeSet<Opened> =
            flows.map(|flow| Opened { client: flow.source, server: flow.destination }).collect();
        pairs.into_iter().collect()
    }

    fn reach(&self) -> SourceReach {
        SourceReach::Receiver
    }

    /// The flows of a list that have not started: their starts are known.
    fn hints(&self, tell: &mut dyn FnMut(Hint)) {
        let PendingFlows::List(flows) = &self.pending else { return };
        for PendingFlow { start, source, destination, bytes } in flows {
            let (from, to, ready) = (*source, *destination, *start);
            bytes.iter().for_each(|&bytes| tell(Hint { from, to, bytes, ready }));
        }
    }

    fn is_finished(&self) -> bool {
        self.pending.next() == Time::MAX && self.open.is_empty()
    }

    fn on_end(&mut self, actions: &mut Actions) {
        let unfinished = self.open.iter();
        actions.records.messages.extend(
            unfinished
                .filter_map(|(&index, flow)| self.record(index, flow, None, Span::ZERO, Split::default())),
        );
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::testing::{drive, parsed, traffic_of};

    #[test]
    fn kept_connections_are_those_that_flows_open() {
        for text in [
            "kind = 'all-to-all'\nsize = { constant = '10KB' }\nload = 0.5\ncount = 30",
            "kind = 'incast'\nto = 'h2'\nsize = '10KB'\nevery = '1ms'\nrounds = 3",
        ] {
            let workload = parsed(text);
            let mut traffic = traffic_of(8, &workload, 1, true);
            let kept = traffic.sources[0].kept_connections();
            let (opened, sent) = drive(&mut traffic);
            assert_eq!(
                opened.iter().copied().collect::<BTreeSet<_>>(),
                kept.iter().copied().collect(),
                "{text}"
            );
            assert!(opened.len() == kept.len() && opened.len() < sent.len(), "each is opened once: {text}");
            let mut traffic = traffic_of(8, &workload, 1, false);
            assert_eq!(traffic.sources[0].kept_connections(), [], "{text}");
            let (opened, sent) = drive(&mut traffic);
            assert_eq!(opened.len(), sent.len(), "each flow has its own: {text}");
        }
    }
}
