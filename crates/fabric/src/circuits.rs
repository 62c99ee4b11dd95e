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

use std::ops::{AddAssign, Range};

use plimsoll_circuits::{
    CircuitController, Classify, Demand, Estimator, InvalidControl, Matching, ResidueRate, Switching,
};
use plimsoll_units::{Rate, Span, Time};

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

    /// The sender of `packet` has sent it.
    fn on_sent(&mut self, now: Time, packet: &Packet) {
        if packet.len == 0 {
            return;
        }
        let index = self.index(packet);
        let before = self.of[index].filter(|before| now.saturating_since(before.last) < self.idle);
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

/// Reasons for which the circuit switch lost packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CircuitLosses {
    /// Packets that arrived, or had begun to, while the switch was dark.
    pub dark: u64,
    /// Packets whose sender's circuit led to another host, or whose sender had none.
    pub unmatched: u64,
}

impl CircuitLosses {
    /// Returns the number of packets lost.
    pub fn total(&self) -> u64 {
        self.dark + self.unmatched
    }
}

impl AddAssign for CircuitLosses {
    fn add_assign(&mut self, other: CircuitLosses) {
        self.dark += other.dark;
        self.unmatched += other.unmatched;
    }
}

/// Use of one circuit while it was established.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CircuitUse {
    /// The number of the week, from 1.
    pub week: u64,
    /// The number of the configuration in the run, from 0: circuits of the same number were established at the same
    /// time.
    pub configuration: u64,
    /// When the circuit was established.
    pub from: Time,
    /// When it was taken down, or the week ended, or the run.
    pub until: Time,
    /// The host that sends by it.
    pub sender: HostId,
    /// The host that receives by it.
    pub receiver: HostId,
    /// When the first packet that it carried reached the circuit switch.
    pub first: Option<Time>,
    /// When the sender had sent the first data to the receiver, after two weeks at least without any, as of `first`.
    pub onset: Option<Time>,
    /// The packets that it carried.
    pub packets: u64,
    /// The bytes of these packets.
    pub bytes: u64,
    /// The rate at which its sender may send by circuits.
    pub rate: Rate,
}

impl CircuitUse {
    /// Returns the time for which the circuit was established.
    pub fn stood(&self) -> Span {
        self.until.saturating_since(self.from)
    }

    /// Returns the number of bytes that fit into the time for which the circuit was established.
    pub fn capacity(&self) -> f64 {
        self.rate.as_bps() as f64 / 8.0 * self.stood().as_secs_f64()
    }

    /// Returns the share of its capacity that the circuit carried, at most 1; zero if it was established for no time. A
    /// packet counts where its last bit arrives, so one that arrives early in a short circuit may be more than fits.
    pub fn filled(&self) -> f64 {
        if self.stood().is_zero() { 0.0 } else { (self.bytes as f64 / self.capacity()).min(1.0) }
    }
}

/// One week of the control loop, and the traffic that bypassed its circuits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CircuitWeek {
    /// The number of the week, from 0; week 0 has no schedule, as its demand is unknown.
    pub week: u64,
    /// When its schedule was made; none for week 0.
    pub made: Option<ScheduleTimes>,
    /// When the week began.
    pub begins: Time,
    /// When the next week began, or the run ended.
    pub ends: Time,
    /// The configurations of its schedule.
    pub configurations: u64,
    /// The bytes that its schedule was made for: the demand that was read, of all pairs of hosts.
    pub known_bytes: u64,
    /// The part of `known_bytes` that had been sent by the end of the week, by either switch and with headers.
    pub known_sent_bytes: u64,
    /// The packets that passed the packet switch between racks.
    pub packet_packets: u64,
    /// The bytes of these packets.
    pub packet_bytes: u64,
    /// The packets that the circuit switch lost while it was dark.
    pub lost_dark: u64,
    /// The packets that the circuit switch lost because their sender had no circuit to their receiver.
    pub lost_unmatched: u64,
}

/// The moments at which a schedule was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScheduleTimes {
    /// When hosts began to sum up their demand.
    pub read: Time,
    /// When the controller had the demand of all hosts.
    pub gathered: Time,
    /// When the schedule was ready.
    pub ready: Time,
}

/// Observations of the circuit switch and its controller.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CircuitLog {
    /// The circuits in the order in which they were established; within one configuration, by sender.
    pub circuits: Vec<CircuitUse>,
    /// The weeks in their order, that which has not ended last.
    pub weeks: Vec<CircuitWeek>,
    /// When the schedule of the next week was made, once its demand has been read.
    next_made: Option<ScheduleTimes>,
    /// The demand of the next week, once it has been read.
    next_known: Option<Demand>,
    /// The part of this week's demand that has not been sent.
    unsent: Option<Demand>,
    /// The rate of every circuit.
    rate: Rate,
    /// The packets that the circuit switch lost.
    pub losses: CircuitLosses,
    /// The established circuits by circuit switch.
    established: Vec<EstablishedCircuits>,
    /// The configurations so far.
    configurations: u64,
}

/// The established circuits of a circuit switch, as indices of [`CircuitLog::circuits`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct EstablishedCircuits {
    all: Range<usize>,
    /// The circuit of each sender, where it has one.
    of_sender: Vec<Option<u32>>,
}

impl CircuitLog {
    /// Returns the log of so many circuit switches whose senders may send at `rate`.
    fn new(rate: Rate, planes: usize) -> CircuitLog {
        let established = vec![EstablishedCircuits::default(); planes];
        CircuitLog { rate, established, weeks: vec![CircuitWeek::default()], ..CircuitLog::default() }
    }

    /// Records that a week begins, and the number of configurations in its schedule.
    fn begin_week(&mut self, now: Time, week: u64, configurations: usize) {
        self.end_week(now);
        self.unsent = self.next_known.take();
        self.weeks.push(CircuitWeek {
            week,
            made: self.next_made.take(),
            begins: now,
            configurations: configurations as u64,
            known_bytes: self.unsent.as_ref().map_or(0, Demand::total),
            ..CircuitWeek::default()
        });
    }

    fn end_week(&mut self, now: Time) {
        if let Some(week) = self.weeks.last_mut() {
            week.ends = now;
        }
    }

    /// Returns the week that has begun last.
    fn this_week(&mut self) -> &mut CircuitWeek {
        self.weeks.last_mut().expect("week 0 has begun with the run")
    }

    /// Records that the circuit switch of number `plane` has established a configuration at `now`.
    fn put_up(&mut self, now: Time, week: u64, plane: usize, matching: &Matching) {
        let EstablishedCircuits { all, of_sender } = &mut self.established[plane];
        let first = self.circuits.len();
        of_sender.clear();
        of_sender.resize(matching.ports(), None);
        for (sender, receiver) in matching.circuits() {
            of_sender[sender] = Some(self.circuits.len() as u32);
            self.circuits.push(CircuitUse {
                week,
                configuration: self.configurations,
                from: now,
                until: Time::MAX,
                sender: HostId(sender as u32),
                receiver: HostId(receiver as u32),
                first: None,
                onset: None,
                packets: 0,
                bytes: 0,
                rate: self.rate,
            });
        }
        *all = first..self.circuits.len();
        self.configurations += 1;
    }

    /// Records that the established circuits of a circuit switch end at `now`.
    fn take_down(&mut self, now: Time, plane: usize) {
        let all = std::mem::take(&mut self.established[plane].all);
        for circuit in &mut self.circuits[all] {
            circuit.until = circuit.until.min(now);
        }
    }

    fn lose_dark(&mut self) {
        self.losses.dark += 1;
        self.this_week().lost_dark += 1;
    }

    fn lose_unmatched(&mut self) {
        self.losses.unmatched += 1;
        self.this_week().lost_unmatched += 1;
    }

    /// Counts a packet against the demand that its week was scheduled for.
    fn count_known(&mut self, packet: &Packet) {
        if let Some(unsent) = &mut self.unsent {
            let unsent = unsent.get_mut(packet.src.0 as usize, packet.dst.0 as usize);
            let sent = u64::from(packet.size).min(*unsent);
            *unsent -= sent;
            self.this_week().known_sent_bytes += sent;
        }
    }

    /// Counts a packet that has reached the packet switch.
    fn count_beside(&mut self, packet: &Packet) {
        self.count_known(packet);
        let week = self.this_week();
        week.packet_packets += 1;
        week.packet_bytes += u64::from(packet.size);
    }

    fn count(&mut self, now: Time, packet: &Packet, onset: Option<Time>) {
        self.count_known(packet);
        let of_sender = &self.established[packet.circuit_plane() as usize].of_sender;
        if let Some(Some(index)) = of_sender.get(packet.src.0 as usize) {
            let circuit = &mut self.circuits[*index as usize];
            if circuit.first.is_none() {
                (circuit.first, circuit.onset) = (Some(now), onset);
            }
            circuit.packets += 1;
            circuit.bytes += u64::from(packet.size);
        }
    }
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
            activity: Activities { hosts: ports, idle: control.week * 2, of: vec![None; ports * ports] },
            log: CircuitLog::new(rates.circuit, rates.planes),
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
