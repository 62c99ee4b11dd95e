//! [`PathSelector`]: which of several shortest paths a packet takes, where that is not its flow's hash.
//!
//! ```text
//! switch, destination ──> Network::choices ──> one of them: by hash, by chance, in turn, by flowlet, by load
//!                             Detours, where links are dead
//! ```
//!
//! A packet that is sent so carries the transit time of its links ([`Packet::transit`]).

use std::fmt;
use std::sync::Arc;

use plimsoll_mechanisms::PathMechanisms;
use plimsoll_mechanisms::paths::adaptive::{Adaptive, AdaptiveParams, CandidatePort};
use plimsoll_mechanisms::paths::flowlet::{FlowletParams, Flowlets};
use plimsoll_mechanisms::paths::spray::{Spray, SprayParams};
use plimsoll_mechanisms::paths::uniform;
use plimsoll_units::Time;
use rand::Rng;
use rand_pcg::Pcg64;

use super::topology::{Choices, HybridHops, choose as hashed};
use super::{Detours, Network, Packet, PathClass, Port, PortId};

/// Chooses among shortest paths, packet by packet.
#[derive(Debug)]
pub struct PathSelector {
    rule: PathRule,
    /// The random streams by switch, so that the draws of one do not depend on the packets of another.
    streams: Vec<Pcg64>,
    /// Detours, where some links are known to be dead.
    detours: Option<Box<Detours>>,
}

#[derive(Debug)]
enum PathRule {
    /// The flow's hash, as [`Network::next_port`].
    Hash,
    /// The state of each switch.
    Spray(Vec<Spray>),
    /// The state of each switch.
    Flowlet(Vec<Flowlets>),
    Adaptive(Adaptive),
    Custom(Box<dyn SelectPath>),
}

/// A path selector from outside.
pub trait SelectPath: fmt::Debug + Send {
    /// Chooses which of the paths `0..count` the packet takes at `switch`. `drain_bytes(choice)` returns the bytes
    /// that leave before it there, and `draw` 64 random bits.
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

/// Makes the path selector of a fabric: a closure, which may hold parameters.
#[derive(Clone)]
pub struct SelectorFactory(Arc<dyn Fn() -> Box<dyn SelectPath> + Send + Sync>);

impl SelectorFactory {
    /// Returns a factory that calls `make` once for each fabric that is built.
    pub fn new(make: impl Fn() -> Box<dyn SelectPath> + Send + Sync + 'static) -> SelectorFactory {
        SelectorFactory(Arc::new(make))
    }

    /// Makes the selector of a new fabric.
    pub fn make(&self) -> Box<dyn SelectPath> {
        (self.0)()
    }
}

impl fmt::Debug for SelectorFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SelectorFactory")
    }
}

/// The ports by which a switch may send a packet on.
#[derive(Clone, Copy)]
struct NextHops<'a> {
    network: &'a Network,
    choices: Choices,
    /// The live ports in place of the choices, where links are dead.
    live: Option<&'a [PortId]>,
    /// The number of the first of the ports among which `live` counts.
    first_live: u32,
}

impl NextHops<'_> {
    fn count(&self) -> u32 {
        self.live.map_or(self.choices.count, |ports| ports.len() as u32)
    }

    fn port(&self, index: u32) -> PortId {
        let live = self.live.map(|ports| PortId(self.first_live + ports[index as usize].0));
        live.unwrap_or_else(|| self.network.choice(self.choices, index))
    }
}

impl PathSelector {
    fn new(rule: PathRule, streams: Vec<Pcg64>) -> PathSelector {
        PathSelector { rule, streams, detours: None }
    }

    /// Returns the selector of the mechanism that is on, if one is. `streams` gives every switch a random stream of
    /// its own.
    pub fn of(paths: &PathMechanisms, streams: impl FnOnce() -> Vec<Pcg64>) -> Option<PathSelector> {
        match paths {
            PathMechanisms { spray: Some(params), .. } => Some(PathSelector::spray(params, streams())),
            PathMechanisms { flowlet: Some(params), .. } => Some(PathSelector::flowlet(params, streams())),
            PathMechanisms { adaptive: Some(params), .. } => Some(PathSelector::adaptive(params, streams())),
            PathMechanisms { spray: None, flowlet: None, adaptive: None } => None,
        }
    }

    /// Chooses by the flow's hash, in a network whose links may die.
    pub fn hash() -> PathSelector {
        PathSelector::new(PathRule::Hash, Vec::new())
    }

    /// Returns whether packets of a flow may take several paths at a time.
    pub fn spreads(&self) -> bool {
        !matches!(self.rule, PathRule::Hash)
    }

    /// Sets the detours that packets take from now on; `None` once all links are alive again.
    pub fn set_detours(&mut self, detours: Option<Detours>) {
        self.detours = detours.map(Box::new);
    }

    /// Builds packet spraying; every switch draws from its own stream.
    pub fn spray(params: &SprayParams, streams: Vec<Pcg64>) -> PathSelector {
        let rule = PathRule::Spray(streams.iter().map(|_| Spray::new(params)).collect());
        PathSelector::new(rule, streams)
    }

    /// Builds flowlet switching, with streams as for [`PathSelector::spray`].
    pub fn flowlet(params: &FlowletParams, streams: Vec<Pcg64>) -> PathSelector {
        let rule = PathRule::Flowlet(streams.iter().map(|_| Flowlets::new(params)).collect());
        PathSelector::new(rule, streams)
    }

    /// Builds DeTail's adaptive load balancing, with streams as for [`PathSelector::spray`]. Every switch port must
    /// count its drain bytes.
    pub fn adaptive(params: &AdaptiveParams, streams: Vec<Pcg64>) -> PathSelector {
        PathSelector::new(PathRule::Adaptive(Adaptive::new(params)), streams)
    }

    /// Wraps a selector from outside, with streams as for [`PathSelector::spray`]. Every switch port must count its
    /// drain bytes.
    pub fn custom(rule: Box<dyn SelectPath>, streams: Vec<Pcg64>) -> PathSelector {
        PathSelector::new(PathRule::Custom(rule), streams)
    }

    /// Returns whether the choice of a switch depends on that switch alone. A selector from outside may depend on more.
    pub fn is_local(&self) -> bool {
        !matches!(self.rule, PathRule::Custom(_))
    }

    /// Returns the port by which `switch` sends `packet` on; `None` if no live link leads to its destination.
    pub fn next_port(
        &mut self,
        now: Time,
        network: &Network,
        ports: &[Port],
        switch: u32,
        packet: &Packet,
    ) -> Option<PortId> {
        if let Some(hops) = network.hybrid() {
            return self.next_port_in_hybrid(now, network, hops, ports, switch, packet);
        }
        let choices = network.choices(switch, packet.dst);
        let live = self.detours.as_ref().and_then(|known| known.next_hops(network, switch, packet.dst));
        let hops = NextHops { network, choices, live, first_live: 0 };
        choose(&mut self.rule, &mut self.streams, now, ports, switch, packet, hops)
    }

    /// Returns the port that [`PathSelector::next_port`] will choose if no other packet reaches the switch before;
    /// `None` where that depends on more. The memory behind it is asked for early.
    pub(crate) fn likely_port(&self, network: &Network, switch: u32, packet: &Packet) -> Option<PortId> {
        let PathRule::Spray(switches) = &self.rule else { return None };
        if self.detours.is_some() || network.hybrid().is_some() {
            return None;
        }
        let choices = network.choices(switch, packet.dst);
        let draw = || self.streams[switch as usize].clone().next_u64();
        let index = switches[switch as usize].likely(packet.dst.0, choices.count, draw);
        Some(network.choice(choices, index))
    }

    /// Returns the port as [`PathSelector::next_port`] does, in a hybrid network. Circuits have no detours.
    fn next_port_in_hybrid(
        &mut self,
        now: Time,
        network: &Network,
        hybrid: &HybridHops,
        ports: &[Port],
        switch: u32,
        packet: &Packet,
    ) -> Option<PortId> {
        let PathSelector { rule, streams, detours } = self;
        let known = detours.as_ref().filter(|_| packet.path_class() != PathClass::Circuit);
        if known.is_some_and(|known| known.is_cut_off(packet.dst)) {
            return None;
        }
        let (mut live, first_live) = (None, hybrid.of_packet_network(PortId(0)).0);
        let choices = match (known.and_then(|known| known.of_uplinks()), hybrid.packet_switch(switch)) {
            (Some(uplinks), Some(within)) => {
                let uplink = uplinks.towards(network, hybrid, within, packet)?;
                live = uplinks.next_hops(hybrid, within, uplink);
                hybrid.choices_to(within, uplink)
            }
            (Some(uplinks), None) if network.switch_of(packet.dst) != Some(switch) => {
                let uplink = uplinks.leaving(network, hybrid, switch, packet)?;
                return Some(hybrid.of_packet_network(PortId(uplink.0)));
            }
            _ => match hybrid.own_port(switch, packet) {
                Some(own) => return Some(own),
                None => network.choices(switch, packet.dst),
            },
        };
        choose(rule, streams, now, ports, switch, packet, NextHops { network, choices, live, first_live })
    }
}

/// Chooses which of the `hops` the packet takes; `None` if there is none.
fn choose(
    rule: &mut PathRule,
    streams: &mut [Pcg64],
    now: Time,
    ports: &[Port],
    switch: u32,
    packet: &Packet,
    hops: NextHops<'_>,
) -> Option<PortId> {
    let (network, count) = (hops.network, hops.count());
    if count < 2 {
        return (count == 1).then(|| hops.port(0));
    }
    let hash = || network.flow_hash(packet, switch, hops.choices.of_which(count));
    let drain_bytes = |choice| ports[hops.port(choice).0 as usize].drain_bytes(packet.priority);
    let mut draw = || streams[switch as usize].next_u64();
    let index = match rule {
        PathRule::Hash => hashed(hash(), count),
        PathRule::Spray(switches) => switches[switch as usize].choose(packet.dst.0, count, draw),
        PathRule::Flowlet(switches) => {
            let possible = |choice| choice < count;
            switches[switch as usize].port(now, hash(), possible, || uniform(count, draw))
        }
        PathRule::Adaptive(rule) => {
            let candidates = (0..count).map(|choice| CandidatePort {
                port: choice,
                drain_bytes: drain_bytes(choice),
                shortest: true,
            });
            rule.choose(candidates, draw).unwrap_or(0)
        }
        PathRule::Custom(rule) => {
            let choice = rule.choose(now, switch, packet, count, &drain_bytes, &mut draw);
            assert!(choice < count, "a path selector chose path {choice} of {count}");
            choice
        }
    };
    Some(hops.port(index))
}
