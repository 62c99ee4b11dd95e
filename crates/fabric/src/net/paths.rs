//! [`PathSelector`]: which of several shortest paths a packet takes, where that is not its flow's hash.
//!
//! ```text
//! switch, destination ──> Network::choices ──> one of them: by chance, in turn, by flowlet, by load
//! ```
//!
//! A packet's account of waiting is read against its flow's hashed path, so all shortest paths between two
//! hosts must take the same time when idle; the scenario's checks see to it.

use std::fmt;

use plimsoll_mechanisms::paths::adaptive::{Adaptive, AdaptiveParams, Candidate};
use plimsoll_mechanisms::paths::flowlet::{FlowletParams, Flowlets};
use plimsoll_mechanisms::paths::spray::{Spray, SprayParams};
use plimsoll_mechanisms::paths::uniform;
use plimsoll_units::Time;
use rand::Rng;
use rand_pcg::Pcg64;

use super::topology::Choices;
use super::{Network, Packet, Port, PortId};

/// Chooses among shortest paths, packet by packet.
#[derive(Debug)]
pub struct PathSelector {
    rule: Rule,
    stream: Pcg64,
}

#[derive(Debug)]
enum Rule {
    /// By switch.
    Spray(Vec<Spray>),
    /// By switch.
    Flowlet(Vec<Flowlets>),
    Adaptive(Adaptive),
    Custom(Box<dyn SelectPath>),
}

/// A path selector from outside.
pub trait SelectPath: fmt::Debug + Send {
    /// Which of the choices `0..count` at `switch` the packet takes; `drain_bytes(choice)` tells what leaves
    /// before it there. `draw` gives 64 random bits.
    fn choose(
        &mut self,
        now: Time,
        switch: u32,
        packet: &Packet,
        count: u32,
        drain_bytes: &dyn Fn(u32) -> u64,
        draw: &mut dyn FnMut() -> u64,
    ) -> u32;
}

impl PathSelector {
    /// Packet spraying, drawing from `stream` where it draws.
    pub fn spray(params: &SprayParams, switches: u32, stream: Pcg64) -> PathSelector {
        let rule = Rule::Spray((0..switches).map(|_| Spray::new(params)).collect());
        PathSelector { rule, stream }
    }

    /// Flowlet switching.
    pub fn flowlet(params: &FlowletParams, switches: u32, stream: Pcg64) -> PathSelector {
        let rule = Rule::Flowlet((0..switches).map(|_| Flowlets::new(params)).collect());
        PathSelector { rule, stream }
    }

    /// DeTail's adaptive load balancing; every switch port must count its drain bytes.
    pub fn adaptive(params: &AdaptiveParams, stream: Pcg64) -> PathSelector {
        PathSelector { rule: Rule::Adaptive(Adaptive::new(params)), stream }
    }

    /// A selector from outside; every switch port must count its drain bytes.
    pub fn custom(rule: Box<dyn SelectPath>, stream: Pcg64) -> PathSelector {
        PathSelector { rule: Rule::Custom(rule), stream }
    }

    /// The port by which `switch` passes `packet` on.
    pub fn next_port(
        &mut self,
        now: Time,
        network: &Network,
        ports: &[Port],
        switch: u32,
        packet: &Packet,
    ) -> PortId {
        let choices = network.choices(switch, packet.dst);
        if choices.count == 1 {
            return network.choice(choices, 0);
        }
        let index = self.choose(now, network, ports, switch, packet, choices);
        network.choice(choices, index)
    }

    fn choose(
        &mut self,
        now: Time,
        network: &Network,
        ports: &[Port],
        switch: u32,
        packet: &Packet,
        choices: Choices,
    ) -> u32 {
        let (count, stream) = (choices.count, &mut self.stream);
        let drain_bytes = |choice| {
            let port = network.choice(choices, choice);
            ports[port.0 as usize].drain_bytes(packet.priority)
        };
        match &mut self.rule {
            Rule::Spray(switches) => {
                switches[switch as usize].choose(packet.dst.0, count, || stream.next_u64())
            }
            Rule::Flowlet(switches) => {
                let hash = network.flow_hash(packet, switch, choices.tier);
                let possible = |choice| choice < count;
                switches[switch as usize].port(now, hash, possible, || uniform(count, || stream.next_u64()))
            }
            Rule::Adaptive(rule) => {
                let candidates = (0..count).map(|choice| Candidate {
                    port: choice,
                    drain_bytes: drain_bytes(choice),
                    shortest: true,
                });
                rule.choose(candidates, || stream.next_u64()).unwrap_or(0)
            }
            Rule::Custom(rule) => {
                let choice = rule.choose(now, switch, packet, count, &drain_bytes, &mut || stream.next_u64());
                assert!(choice < count, "a path selector chose path {choice} of {count}");
                choice
            }
        }
    }
}
