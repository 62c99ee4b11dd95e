//! Two ends of an MPTCP connection, and a path with a delay and losses for each subflow. Segments carry their mappings,
//! as on a wire, and a second receiver, which only marks bytes in a list, checks the delivered bytes.

use std::collections::{BTreeMap, HashMap};

use plimsoll_mechanisms::mptcp::{Mapping, MptcpConfig, MptcpEndpoint, MptcpParams, PathState, Transmit};
use plimsoll_mechanisms::tcp::{TcpSegment, TransportParams};
use plimsoll_units::{Bytes, Span, Time};

pub const MSS: u64 = 1_000;

/// TCP without delayed ACKs, with timers for a data center and segments of 1,000 bytes.
pub fn tcp() -> TransportParams {
    TransportParams {
        segment: Bytes::new(MSS),
        ack_every: 1,
        min_rto: Span::from_ms(10),
        initial_rto: Span::from_ms(10),
        rto_granularity: Span::from_us(1),
        handshake: false,
        ..TransportParams::default()
    }
}

pub fn config(tcp: &TransportParams, mptcp: &MptcpParams) -> MptcpConfig {
    mptcp.resolve(tcp.resolve().expect("the test's keys are in range"))
}

/// A segment on its way.
#[derive(Clone, Debug)]
pub struct InFlight {
    pub to: usize,
    pub subflow: usize,
    pub segment: TcpSegment,
    pub data_ack: u64,
    pub mappings: Vec<Mapping>,
    pub reinjected: bool,
}

/// The path of a subflow; both directions are alike.
#[derive(Clone, Debug)]
pub struct Path {
    pub delay: Span,
    pub state: PathState,
}

/// Decides whether a segment is lost: `(now, segment)`.
pub type Loses = Box<dyn FnMut(Time, &InFlight) -> bool>;

pub struct Net {
    pub config: MptcpConfig,
    pub ends: [MptcpEndpoint; 2],
    pub paths: Vec<Path>,
    pub loses: Loses,
    pub now: Time,
    /// Everything sent, with the time, losses too.
    pub log: Vec<(Time, InFlight)>,
    flying: BTreeMap<(Time, u64), InFlight>,
    sent: u64,
    /// The bytes that the second receiver has, by end.
    marked: [Marked; 2],
}

/// A receiver that marks bytes in lists.
struct Marked {
    data: Vec<bool>,
    /// The bytes of `data` that have arrived without a hole.
    whole: usize,
    /// The data offset of each byte that has arrived, by subflow.
    subflows: Vec<HashMap<u64, u64>>,
    /// The bytes in order, by subflow.
    in_order: Vec<u64>,
}

impl Net {
    pub fn new(config: MptcpConfig, delays_us: &[u64]) -> Net {
        let path = |&us: &u64| Path { delay: Span::from_us(us), state: PathState::Open };
        let marked = || Marked {
            data: Vec::new(),
            whole: 0,
            subflows: vec![HashMap::new(); config.subflows],
            in_order: vec![0; config.subflows],
        };
        Net {
            ends: [MptcpEndpoint::new(&config), MptcpEndpoint::new(&config)],
            marked: [marked(), marked()],
            config,
            paths: delays_us.iter().map(path).collect(),
            loses: Box::new(|_, _| false),
            now: Time::ZERO,
            log: Vec::new(),
            flying: BTreeMap::new(),
            sent: 0,
        }
    }

    /// The application at `end` writes `bytes`, and the segments leave that may.
    pub fn write(&mut self, end: usize, bytes: u64) {
        self.ends[end].write(&self.config, self.now, bytes);
        self.send(end);
    }

    /// Sends what `end` may send.
    pub fn send(&mut self, end: usize) {
        let paths = self.paths.clone();
        let mut path = |subflow: usize, _is_ack: bool| paths[subflow].state;
        while let Some(transmit) = self.ends[end].poll_transmit(&self.config, self.now, &mut path) {
            let Transmit { subflow, segment, data_ack, reinjected, .. } = transmit;
            assert_ne!(paths[subflow].state, PathState::Full, "no path that is full is used");
            let mappings = self.ends[end].mappings(subflow, segment.seq, segment.len).collect();
            let flying = InFlight { to: 1 - end, subflow, segment, data_ack, mappings, reinjected };
            self.log.push((self.now, flying.clone()));
            self.sent += 1;
            if !(self.loses)(self.now, &flying) {
                self.flying.insert((self.now + self.paths[subflow].delay, self.sent), flying);
            }
        }
    }

    /// Handles the next arrival or timer, up to `until`. Returns whether there was one.
    pub fn step(&mut self, until: Time) -> bool {
        let arrival = self.flying.keys().next().map_or(Time::MAX, |key| key.0);
        let timer = self.ends.iter().map(MptcpEndpoint::deadline).min().unwrap_or(Time::MAX);
        let next = arrival.min(timer);
        if next == Time::MAX || next > until {
            return false;
        }
        self.now = next;
        if arrival <= timer {
            let (_, flying) = self.flying.pop_first().expect("it was seen");
            self.arrive(flying);
        } else {
            for end in 0..2 {
                if self.ends[end].deadline() <= self.now {
                    self.ends[end].on_deadline(&self.config, self.now);
                    self.send(end);
                }
            }
        }
        true
    }

    /// Runs until nothing is scheduled, or until `until`.
    pub fn run(&mut self, until: Time) {
        while self.step(until) {}
    }

    fn arrive(&mut self, flying: InFlight) {
        let InFlight { to, subflow, segment, data_ack, mappings, .. } = flying;
        let before = self.ends[to].received();
        let mapped = mappings.iter().copied();
        let delivered = self.ends[to].on_segment(&self.config, self.now, subflow, &segment, data_ack, mapped);
        assert_eq!(self.ends[to].received() - before, delivered.new_bytes);
        if self.ends[to].subflow(subflow).is_established() {
            self.marked[to].mark(subflow, &segment, &mappings);
        }
        let expected = self.marked[to].delivered();
        assert_eq!(self.ends[to].received(), expected, "what is delivered is what has arrived in order");
        assert!(self.ends[1 - to].sent() >= expected, "nothing is delivered that was not sent");
        self.send(to);
    }
}

impl Marked {
    /// Returns the bytes that an application has.
    fn delivered(&mut self) -> u64 {
        self.whole += self.data[self.whole..].iter().take_while(|arrived| **arrived).count();
        self.whole as u64
    }

    fn mark(&mut self, subflow: usize, segment: &TcpSegment, mappings: &[Mapping]) {
        for mapping in mappings {
            for at in 0..mapping.len {
                let known = self.subflows[subflow].insert(mapping.subflow + at, mapping.data + at);
                assert!(known.is_none_or(|data| data == mapping.data + at), "a byte keeps its mapping");
            }
        }
        assert!(segment.len == 0 || !mappings.is_empty() || segment.end() <= self.in_order[subflow]);
        while let Some(&data) = self.subflows[subflow].get(&self.in_order[subflow]) {
            self.in_order[subflow] += 1;
            let data = data as usize;
            if data >= self.data.len() {
                self.data.resize(data + 1, false);
            }
            self.data[data] = true;
        }
    }
}
