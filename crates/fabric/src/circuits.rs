//! [`Circuits`]: the circuit switches of a hybrid network, and the controller that drives them and the hosts' queues.
//!
//! ```text
//! clock ──> Controller ──Instruction──> Crossbar of each circuit switch: dark, or a matching
//!               ^                  └──> every NIC: open this class, close it, a new week
//!               └── Demand, from the caller and the NICs
//!
//! packet at the circuit switch ──> Crossbar::pass ──> the link to its host's rack, or lost
//! ```
//!
//! The crossbar has no buffer: a packet that arrives while it is dark, or from a sender whose circuit leads elsewhere,
//! is lost and counted by cause.

mod follow;
mod gathering;
mod log;

use std::collections::BTreeMap;

use plimsoll_circuits::{
    CircuitController, Classify, Demand, Estimator, InvalidControl, Matching, ResidueRate, Switching,
};
use plimsoll_units::{Rate, Span, Time};

pub use gathering::DemandShare;
pub use log::{CircuitLog, CircuitLosses, CircuitUse, CircuitWeek, ScheduleTimes};

use gathering::DemandGathering;

use crate::engine::{Owner, OwnerKind};
use crate::net::port::ClassRates;
use crate::net::{HostId, Network, Packet, Port, PortId};
use crate::spec::CircuitSpec;
use crate::unbuildable::Unbuildable;

/// The number of the clock that drives circuits.
pub const CIRCUITS_CLOCK: u32 = 2;

/// The circuit switches, their controller, and the observations of both.
#[derive(Debug)]
pub(crate) struct Circuits {
    controller: CircuitController,
    /// The circuit switches by number.
    crossbars: Vec<Crossbar>,
    /// The place where demand is read.
    estimator: Estimator,
    /// Time from the reading until the controller has the demand of all hosts.
    gathering: Span,
    /// Time that the controller takes to compute a schedule.
    computation: Span,
    /// The share of the packet switch's rate over which a residue is spread; `None` if it is sent at once.
    residue_share: Option<f64>,
    /// The bytes sent by each pair of hosts, in total and up to the last reading of the demand, where switches count
    /// the demand.
    counted: Option<Counted>,
    /// True while demand is requested and not yet given.
    asked: bool,
    /// Times at which hosts have sent each other data.
    activity: Activities,
    /// The observations so far.
    log: CircuitLog,
    /// Gathers the demand of all hosts, in one logical process of several.
    shares: Option<Box<DemandGathering>>,
    /// Events so far; every logical process of a parallel run has them all.
    events: u64,
}

/// Bytes that hosts have sent to each other.
#[derive(Debug)]
struct Counted {
    sent: Demand,
    read: Demand,
}

/// Times at which each pair of hosts, the sender first, has sent data.
#[derive(Debug)]
struct Activities {
    hosts: usize,
    /// A pair that sends nothing for this time is idle.
    idle: Span,
    of: Vec<Option<Activity>>,
    /// By pair: the times at which it sent after it had been idle, in one logical process of several.
    onsets: Option<BTreeMap<usize, Vec<Time>>>,
}

/// Times at which a sender has sent data to a receiver.
#[derive(Clone, Copy, Debug)]
struct Activity {
    /// The first time that it sent after it had been idle.
    onset: Time,
    /// The last time that it sent.
    last: Time,
}

impl Activities {
    fn index(&self, packet: &Packet) -> usize {
        packet.src.0 as usize * self.hosts + packet.dst.0 as usize
    }

    fn get(&self, packet: &Packet) -> Option<Activity> {
        self.of[self.index(packet)]
    }

    /// Returns since when `sender` had sent to `receiver` at `first`, by what several logical processes have seen.
    fn onset_before(&self, sender: HostId, receiver: HostId, first: Time) -> Option<Time> {
        let onsets = self.onsets.as_ref()?.get(&(sender.0 as usize * self.hosts + receiver.0 as usize))?;
        onsets.iter().rev().find(|onset| **onset <= first).copied()
    }

    /// The sender of `packet` has sent it.
    fn on_sent(&mut self, now: Time, packet: &Packet) {
        if packet.len == 0 {
            return;
        }
        let index = self.index(packet);
        let before = self.of[index].filter(|before| now.saturating_since(before.last) < self.idle);
        if let Some(onsets) = self.onsets.as_mut().filter(|_| before.is_none()) {
            onsets.entry(index).or_default().push(now);
        }
        self.of[index] = Some(Activity { onset: before.map_or(now, |before| before.onset), last: now });
    }
}

/// The circuit switch: its state, and the one before.
#[derive(Debug)]
struct Crossbar {
    state: CircuitState,
    /// The time of the last change of state.
    since: Time,
    /// The state before, and since when it was: a frame that ends at the very instant of a change has passed.
    before: (CircuitState, Time),
}

impl Crossbar {
    fn change(&mut self, now: Time, state: CircuitState) {
        let before = std::mem::replace(&mut self.state, state);
        self.before = (before, std::mem::replace(&mut self.since, now));
    }
}

#[derive(Debug)]
enum CircuitState {
    Dark,
    Lit(Matching),
}

/// The rates at which the hosts of `network` may send, and the time by which circuits outlast a pause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HybridRates {
    pub(crate) classes: ClassRates,
    /// The number of circuit switches.
    planes: usize,
    circuit: Rate,
    packet: Rate,
    drain: Span,
}

impl HybridRates {
    /// Derives the rates from the links of a hybrid network; `full_size` is the size of the largest frame in bytes.
    pub(crate) fn of(network: &Network, full_size: u64, classify: Classify) -> Option<HybridRates> {
        let hops = network.hybrid()?;
        let host = *network.link(PortId(0));
        let out = *network.link(hops.circuit_to(0, 0));
        let planes = u64::from(hops.planes());
        let up = *network.link(hops.of_packet_network(PortId(0)));
        let circuit = out.rate.min(host.rate);
        let packet = up.rate.min(host.rate);
        // The switches together must not exceed the rate of the receiver's link (Kapoor's thesis, section 7.2),
        // unless the packet switch is as fast as a circuit.
        let rest = Rate::from_bps(host.rate.as_bps() - packet.as_bps());
        let circuit_first = rest < packet;
        let shared = if circuit_first { host.rate } else { rest };
        let limit = circuit.min(Rate::from_bps(shared.as_bps() / planes));
        // A frame that has just started, the ToR that sends it on, and both links.
        let frame = |rate: Rate| rate.byte_time().span(full_size);
        let drain = frame(host.rate) + host.propagation + frame(out.rate) + out.propagation;
        Some(HybridRates {
            classes: ClassRates {
                circuit: limit,
                circuit_uplinks: hops.planes(),
                packet,
                circuit_first,
                classify,
            },
            planes: hops.planes() as usize,
            circuit: limit,
            packet,
            drain,
        })
    }
}

/// Returns how long the circuits of a hybrid `network` must outlast a pause for frames of `full_size` bytes: the
/// default of `circuits.drain`. Other networks have no circuits.
pub fn circuit_drain(network: &Network, full_size: u64) -> Option<Span> {
    HybridRates::of(network, full_size, Classify::default()).map(|rates| rates.drain)
}

impl Circuits {
    /// Builds the circuits of a hybrid `network`.
    ///
    /// # Errors
    /// Names the key of the control loop that is invalid.
    pub(crate) fn new(
        spec: &CircuitSpec,
        network: &Network,
        full_size: u64,
    ) -> Result<Option<Box<Circuits>>, Unbuildable> {
        let control = &spec.control;
        let Some(rates) = HybridRates::of(network, full_size, control.classify) else { return Ok(None) };
        control.validate(rates.drain).map_err(|invalid: InvalidControl| {
            Unbuildable::new(format!("circuits.{}", invalid.key), invalid)
        })?;
        let drain = control.drain.unwrap_or(rates.drain);
        let switching = Switching {
            circuit_rate: rates.circuit,
            packet_rate: rates.packet,
            night: control.reconfiguration + drain,
            window: control.week,
        };
        let ports = network.hosts() as usize;
        let scheduler =
            spec.scheduler.as_ref().map_or_else(|| control.scheduler.make(), |factory| factory.make());
        let counted = || Counted { sent: Demand::new(ports), read: Demand::new(ports) };
        let dark = |_| Crossbar {
            state: CircuitState::Dark,
            since: Time::ZERO,
            before: (CircuitState::Dark, Time::ZERO),
        };
        let controller = CircuitController::new(control, switching, drain, scheduler, ports);
        Ok(Some(Box::new(Circuits {
            controller: controller.with_planes(rates.planes),
            crossbars: (0..rates.planes).map(dark).collect(),
            estimator: control.estimator,
            gathering: control.demand_loop + control.demand_packet,
            computation: control.computation,
            residue_share: (control.residue == ResidueRate::Scheduled).then_some(control.residue_share),
            counted: (control.estimator == Estimator::SwitchCounters).then(counted),
            asked: false,
            activity: Activities {
                hosts: ports,
                idle: control.week * 2,
                of: vec![None; ports * ports],
                onsets: None,
            },
            log: CircuitLog::new(rates.circuit, rates.planes),
            shares: None,
            events: 0,
        })))
    }

    /// A host has sent `packet`.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, packet: &Packet) {
        self.activity.on_sent(now, packet);
    }

    /// Returns when the clock is due next.
    pub(crate) fn next_event(&self) -> (Time, Owner) {
        (self.controller.next_due(), Owner::new(OwnerKind::Clock, CIRCUITS_CLOCK))
    }

    /// A packet has arrived at its circuit switch by a link on which its bits took `serialisation`. Returns whether it
    /// passes.
    fn passes(&mut self, now: Time, serialisation: Span, packet: &Packet) -> bool {
        let began = Time::from_ps(now.as_ps().saturating_sub(serialisation.as_ps()));
        let Crossbar { state, since, before } = &self.crossbars[packet.circuit_plane() as usize];
        let (state, since) = if now > *since { (state, since) } else { (&before.0, &before.1) };
        let CircuitState::Lit(matching) = state else {
            self.log.lose_dark();
            return false;
        };
        if began < *since {
            self.log.lose_dark();
            return false;
        }
        if matching.receiver(packet.src.0 as usize) != Some(packet.dst.0) {
            self.log.lose_unmatched();
            return false;
        }
        let onset = self.activity.get(packet).map(|activity| activity.onset);
        self.log.count(now, packet, onset);
        true
    }

    /// Restricts this to the hosts and switches of one of `processes` logical processes.
    pub(crate) fn become_process(&mut self, processes: usize) {
        self.shares = Some(Box::new(DemandGathering::new(processes)));
        self.activity.onsets = Some(BTreeMap::new());
        self.log.share();
    }

    /// Adds the observations of another logical process up to `end`.
    pub(crate) fn absorb(&mut self, other: Circuits, end: Time) {
        self.log.absorb(other.log, end);
        if let (Some(own), Some(other)) = (&mut self.activity.onsets, other.activity.onsets) {
            // A sender is in one process.
            own.extend(other);
        }
    }

    /// Returns in how many events the controller has acted.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Adds the bytes that wait in the NICs to `demand`, as far as the estimator reads them.
    fn add_nic_demand(&mut self, ports: &[Port], demand: &mut Demand) {
        if let Some(counted) = &mut self.counted {
            for sender in 0..demand.ports() {
                for receiver in 0..demand.ports() {
                    let sent = counted.sent.get(sender, receiver);
                    *demand.get_mut(sender, receiver) = sent - counted.read.get(sender, receiver);
                }
            }
            counted.read.clone_from(&counted.sent);
            return;
        }
        for (sender, port) in ports.iter().enumerate().take(demand.ports()) {
            let Some(queues) = port.class_queues() else { continue };
            for receiver in 0..demand.ports() {
                *demand.get_mut(sender, receiver) += queues.class_bytes(receiver as u32);
            }
        }
    }
}

/// The way that a packet takes next in a hybrid network.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Passage {
    /// By the port of the switch that it has reached, or to its host.
    OnPath,
    /// Through the circuit switch: it arrives at the end of this port's link at this time.
    Through(PortId, Time),
    /// The circuit switch has lost it.
    Lost,
}
