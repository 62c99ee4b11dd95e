//! Flows: a message one way, from a list made before the run or drawn as it goes.

use std::collections::BTreeMap;

use plimsoll_fabric::engine::{Stream, Streams};
use plimsoll_fabric::net::HostId;
use plimsoll_results::outcome::{Message, Split};
use plimsoll_scenario::distribution::{Sampler, exponential};
use plimsoll_units::{Bytes, Span, Time};

use super::{Actions, Arrival, Reach, Workload, Write, stretched, uniform_choice};
use crate::End;

/// A flow to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flow {
    pub(crate) start: Time,
    pub(crate) source: HostId,
    pub(crate) destination: HostId,
    /// Without a size the flow sends for as long as the run lasts.
    pub(crate) bytes: Option<u64>,
}

/// Where flows come from, in order of their start.
#[derive(Debug)]
pub(crate) enum Flows {
    /// A list, the next one last.
    List(Vec<Flow>),
    /// A Poisson process over all pairs.
    Poisson(Poisson),
}

/// Poisson arrivals between pairs drawn uniformly.
#[derive(Debug)]
pub(crate) struct Poisson {
    pub(crate) hosts: u32,
    pub(crate) size: Sampler<Bytes>,
    /// Mean seconds between flows of the whole network.
    pub(crate) mean_gap: f64,
    pub(crate) count: Option<u64>,
    pub(crate) until: Time,
    /// Family of the keyed streams.
    draws: u64,
    gaps: Stream,
    next: Time,
    drawn: u64,
}

impl Poisson {
    pub(crate) fn new(
        streams: &Streams,
        name: &str,
        hosts: u32,
        size: Sampler<Bytes>,
        mean_gap: f64,
        start: Time,
    ) -> Poisson {
        let mut poisson = Poisson {
            hosts,
            size,
            mean_gap,
            count: None,
            until: Time::MAX,
            draws: streams.word(&format!("workload/{name}/draws")),
            gaps: streams.stream(&format!("workload/{name}/gaps")),
            next: start,
            drawn: 0,
        };
        poisson.draw_gap();
        poisson
    }

    fn draw_gap(&mut self) {
        self.next = self.next.saturating_add(stretched(self.mean_gap, exponential(&mut self.gaps)));
    }

    fn next(&self) -> Time {
        let enough = self.count.is_some_and(|count| self.drawn >= count);
        if enough || self.next >= self.until { Time::MAX } else { self.next }
    }

    fn pop(&mut self) -> Flow {
        let mut stream = Streams::keyed(self.draws, self.drawn);
        let source = uniform_choice(&mut stream, u64::from(self.hosts)) as u32;
        let other = uniform_choice(&mut stream, u64::from(self.hosts) - 1) as u32;
        let flow = Flow {
            start: self.next,
            source: HostId(source),
            destination: HostId(other + u32::from(other >= source)),
            bytes: Some(self.size.sample(&mut stream).get().max(1)),
        };
        self.drawn += 1;
        self.draw_gap();
        flow
    }
}

impl Flows {
    fn next(&self) -> Time {
        match self {
            Flows::List(flows) => flows.last().map_or(Time::MAX, |flow| flow.start),
            Flows::Poisson(poisson) => poisson.next(),
        }
    }

    fn pop(&mut self) -> Option<Flow> {
        match self {
            Flows::List(flows) => flows.pop(),
            Flows::Poisson(poisson) => Some(poisson.pop()),
        }
    }
}

/// Flows, each on a connection of its own unless said otherwise.
#[derive(Debug)]
pub(crate) struct OneWay {
    workload: u16,
    warmup: Time,
    flows: Flows,
    created: u64,
    /// By index: those to hosts of this part of the network that have not arrived.
    open: BTreeMap<u64, Flow>,
    /// The connection of each pair, where flows of a pair share one.
    shared: Option<BTreeMap<(HostId, HostId), u32>>,
}

/// What an endless flow writes: more than any run can send.
const ENDLESS_BYTES: u64 = 1 << 50;

impl OneWay {
    /// The flows of a list, whatever its order.
    pub(crate) fn list(workload: u16, warmup: Time, mut flows: Vec<Flow>) -> OneWay {
        flows.sort_by_key(|flow| flow.start);
        flows.reverse();
        OneWay::new(workload, warmup, Flows::List(flows))
    }

    /// Flows drawn as the run goes.
    pub(crate) fn poisson(workload: u16, warmup: Time, poisson: Poisson) -> OneWay {
        OneWay::new(workload, warmup, Flows::Poisson(poisson))
    }

    fn new(workload: u16, warmup: Time, flows: Flows) -> OneWay {
        OneWay { workload, warmup, flows, created: 0, open: BTreeMap::new(), shared: None }
    }

    /// Flows of the same pair follow each other on one connection, if `shared`.
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
        flow: &Flow,
        completed: Option<Time>,
        ideal: Span,
        split: Split,
    ) -> Option<Message> {
        (flow.start >= self.warmup).then_some(Message {
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

impl Workload for OneWay {
    fn next_due(&self) -> Time {
        self.flows.next()
    }

    fn on_due(&mut self, now: Time, actions: &mut Actions) {
        while self.flows.next() <= now {
            let Some(flow) = self.flows.pop() else { return };
            let index = self.created;
            self.created += 1;
            if actions.is_here(flow.destination) {
                self.open.insert(index, flow);
            }
            let connection = self.connection(flow.source, flow.destination, actions);
            actions.writes.push(Write {
                connection,
                end: End::Client,
                bytes: flow.bytes.unwrap_or(ENDLESS_BYTES),
                tag: index,
                created: now,
            });
        }
    }

    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions) {
        let index = arrival.tag;
        let flow = self.open.remove(&index).expect("a flow arrives once, and where it is expected");
        actions.messages.extend(self.record(index, &flow, Some(arrival.now), arrival.ideal, arrival.split));
    }

    fn reach(&self) -> Reach {
        Reach::Receiver
    }

    fn is_finished(&self) -> bool {
        self.flows.next() == Time::MAX && self.open.is_empty()
    }

    fn on_end(&mut self, actions: &mut Actions) {
        let unfinished = self.open.iter();
        actions.messages.extend(
            unfinished
                .filter_map(|(&index, flow)| self.record(index, flow, None, Span::ZERO, Split::default())),
        );
    }
}
