//! [`FlowControl`]: the buffer that every switch keeps for each of its links, and the pauses that it sends.
//!
//! ```text
//! on_link ──> admit: room in the link's buffer? ──> port ──> entered ──┐
//!                                                   port ──> left  ────┤
//!                                      IngressAccount: pause, resume <─┘
//!                                            │ behind the packet that the port back is sending,
//!                                            v one frame and the propagation later
//!                                     Port::on_signal of the port that sends on the link
//! ```
//!
//! A pause frame overtakes waiting packets and takes no time from them.
//!
//! A link's account is kept by the logical process of the switch at its end, and its [`PausedSender`] by the process of
//! the port that sends on it. A signal from one process to another is a message, as a packet is: it takes effect a
//! propagation and a pause frame later at the earliest. Switches that pause each other for ever are found by
//! [`deadlock`].

pub(crate) mod deadlock;
mod sender;

use std::collections::{BTreeSet, HashMap, VecDeque};

use plimsoll_mechanisms::pfc::{IngressAccount, PAUSE_FRAME, PausedLink, PfcParams, Signal};
use plimsoll_units::{Bytes, Rate, Span, Time};

pub use deadlock::{Deadlock, HeldPort};
pub use sender::SentSignal;

use crate::boundary::Boundary;
use crate::engine::{EventQueue, Owner, OwnerKind};
use crate::faults::{Faults, Schedule};
use crate::net::{Node, Packet, Port, PortId};
use crate::observed::{MeasurementWindow, PauseTotals};
use crate::spec::FabricSpec;
use crate::unbuildable::Unbuildable;
use sender::PausedSender;

/// The flow control of all switches.
#[derive(Debug)]
pub struct FlowControl {
    /// The links into switches, the ones of a switch side by side; `None` for a link that its switch does not pause.
    ingress: Vec<Option<PausableLink>>,
    /// The place in `ingress` of the link of each port.
    place: Vec<Option<u32>>,
    /// The number of each link among the links into the switch at its far end.
    local: Vec<u16>,
    /// The place of the first link into the switch of each port; `None` for a NIC.
    first: Vec<Option<u32>>,
    /// The signals that the current event has decided on.
    pending: Vec<(PortId, Signal)>,
    /// The ports of switches of which a priority is paused.
    paused: BTreeSet<PortId>,
    /// The number of events from which on a pause is reason to look for a deadlock.
    next_search: u64,
    /// The window in which pauses count.
    window: MeasurementWindow,
}

#[derive(Debug)]
struct PausableLink {
    account: IngressAccount,
    buffer: u64,
    held: u64,
    /// The port that sends on the link.
    port: PortId,
    /// The port that sends in the opposite direction.
    back: PortId,
    /// The time from the start of a pause frame until it is obeyed.
    delay: Span,
    sender: PausedSender,
}

impl FlowControl {
    /// Builds the flow control of `spec`, if some switch pauses its neighbours.
    ///
    /// # Errors
    /// Fails if a link cannot be paused, or its buffer is too small for the headroom.
    pub fn new(spec: &FabricSpec, schedule: &Schedule) -> Result<Option<Box<FlowControl>>, Unbuildable> {
        if !spec.has_flow_control() {
            return Ok(None);
        }
        let network = &spec.network;
        let mut ports_between: HashMap<(Node, Node), VecDeque<PortId>> = HashMap::new();
        for (port, link) in (0..).map(PortId).zip(network.links()) {
            ports_between.entry((link.from, link.to)).or_default().push_back(port);
        }
        let mut control = FlowControl {
            ingress: Vec::new(),
            place: vec![None; network.links().len()],
            local: vec![0; network.links().len()],
            first: Vec::new(),
            pending: Vec::new(),
            paused: BTreeSet::new(),
            next_search: 0,
            window: spec.window,
        };
        let mut into: Vec<Vec<(PortId, Option<PausableLink>)>> = Vec::new();
        into.resize_with(network.switches() as usize, Vec::new);
        for (port, link) in (0..).map(PortId).zip(network.links()) {
            let Node::Switch(switch) = link.to else { continue };
            let into = &mut into[switch as usize];
            control.local[port.0 as usize] = u16::try_from(into.len())
                .map_err(|_| build_error("a switch with flow control has at most 65536 links"))?;
            let back = ports_between.get_mut(&(link.to, link.from)).and_then(VecDeque::pop_front);
            let back = back.ok_or_else(|| build_error("a link that goes one way only cannot be paused"))?;
            // The far switch's ports are all of one tier, including the one that sends back.
            let pausable = match spec.port(network.link(back)).pfc() {
                Some((params, buffer)) => {
                    let back_rate = schedule.slowest(back, network.link(back).rate);
                    Some(PausableLink::new(params, spec, port, back, back_rate, buffer)?)
                }
                None => None,
            };
            into.push((port, pausable));
        }
        let mut first_of_switch = Vec::new();
        for links in into {
            first_of_switch.push(control.ingress.len() as u32);
            for (port, pausable) in links {
                control.place[port.0 as usize] = Some(control.ingress.len() as u32);
                control.ingress.push(pausable);
            }
        }
        control.first.extend(network.links().iter().map(|link| match link.from {
            Node::Switch(switch) => Some(first_of_switch[switch as usize]),
            Node::Host(_) => None,
        }));
        Ok(Some(Box::new(control)))
    }

    /// Returns the link of `port`, if it is one that may be paused.
    fn link(&self, port: PortId) -> Option<&PausableLink> {
        self.place[port.0 as usize].and_then(|place| self.ingress[place as usize].as_ref())
    }

    fn link_mut(&mut self, port: PortId) -> Option<&mut PausableLink> {
        link_of(&self.place, &mut self.ingress, port)
    }

    /// The link that `port` sends on has failed or come back at `now`: both ends forget its pauses.
    pub fn forget(&mut self, now: Time, port: PortId) {
        let window = self.window;
        if let Some(link) = self.link_mut(port) {
            link.account.forget_pauses();
            link.sender.forget(now, window);
            self.paused.remove(&port);
        }
    }

    /// Returns whether the switch at the far end of `link` has room for `packet`, and notes in the packet the port by
    /// which it entered. With enough headroom it always has room.
    pub fn admit(&self, link: PortId, packet: &mut Packet) -> bool {
        packet.ingress = self.local[link.0 as usize];
        self.link(link).is_none_or(|link| link.held + u64::from(packet.size) <= link.buffer)
    }

    /// `packet` waits at `port`.
    pub fn entered(&mut self, port: PortId, packet: &Packet) {
        self.count(port, packet, |link| {
            link.held += u64::from(packet.size);
            link.account.on_arrival(packet.priority & 7, u64::from(packet.size))
        });
    }

    /// `packet` waits at `port` no longer.
    pub fn left(&mut self, port: PortId, packet: &Packet) {
        self.count(port, packet, |link| {
            link.held -= u64::from(packet.size);
            link.account.on_departure(packet.priority & 7, u64::from(packet.size))
        });
    }

    fn count(
        &mut self,
        port: PortId,
        packet: &Packet,
        count: impl FnOnce(&mut PausableLink) -> Option<Signal>,
    ) {
        let Some(first) = self.first[port.0 as usize] else { return };
        let Some(link) = &mut self.ingress[first as usize + usize::from(packet.ingress)] else { return };
        self.pending.extend(count(link).map(|signal| (link.port, signal)));
    }

    /// Returns how often and how long the link was paused until `end`.
    pub fn pauses(&self, link: PortId, end: Time) -> PauseTotals {
        self.link(link).map_or(PauseTotals::default(), |link| link.sender.totals(end, self.window))
    }

    /// Exchanges what has been observed of the pauses of `port` for what another logical process has observed.
    pub fn swap_pauses(&mut self, other: &mut FlowControl, port: PortId) {
        if let (Some(own), Some(other)) = (self.link_mut(port), other.link_mut(port)) {
            std::mem::swap(&mut own.sender, &mut other.sender);
        }
    }

    /// Sends the pauses that the event at `now` has decided on. A signal to a port of another logical process leaves by
    /// the `boundary`.
    #[inline]
    pub fn send_pending(
        &mut self,
        now: Time,
        ports: &[Port],
        faults: Option<&Faults>,
        boundary: Option<&mut Boundary>,
        events: &mut EventQueue,
    ) {
        if !self.pending.is_empty() {
            self.send_all(now, ports, faults, boundary, events);
        }
    }

    fn send_all(
        &mut self,
        now: Time,
        ports: &[Port],
        faults: Option<&Faults>,
        mut boundary: Option<&mut Boundary>,
        events: &mut EventQueue,
    ) {
        // In the order of the decisions: a pause and its end may be decided in one event.
        for (port, signal) in self.pending.drain(..) {
            let Some(link) = link_of(&self.place, &mut self.ingress, port) else { continue };
            if let Some(faults) = faults
                && (faults.is_dead(port) || faults.is_dead(link.back))
            {
                link.account.forget_pauses();
                continue;
            }
            let at = now.max(ports[link.back.0 as usize].busy_until()) + link.delay;
            let sent = link.sender.sent(port, at, signal);
            match &mut boundary {
                Some(boundary) if boundary.is_crossed_by(link.back) => boundary.signal(link.back, sent),
                _ => link.receive(sent, events),
            }
        }
    }

    /// Takes a signal that another logical process has sent to a port of this one.
    pub fn receive(&mut self, sent: SentSignal, events: &mut EventQueue) {
        if let Some(link) = self.link_mut(sent.port) {
            link.receive(sent, events);
        }
    }

    /// Removes the next signal that takes effect at `port` by `now`.
    pub fn take_due(&mut self, now: Time, port: PortId) -> Option<Signal> {
        let link = link_of(&self.place, &mut self.ingress, port)?;
        let signal = link.sender.take_due(now, self.window)?;
        if !link.sender.is_paused() {
            self.paused.remove(&port);
        } else if self.first[port.0 as usize].is_some() {
            self.paused.insert(port);
        }
        Some(signal)
    }
}

/// Returns the link of `port`, if it may be paused, and leaves the rest of the flow control to be changed beside it.
fn link_of<'a>(
    place: &[Option<u32>],
    ingress: &'a mut [Option<PausableLink>],
    port: PortId,
) -> Option<&'a mut PausableLink> {
    place[port.0 as usize].and_then(|place| ingress[place as usize].as_mut())
}

impl PausableLink {
    /// A signal is on its way to the port on the link.
    fn receive(&mut self, sent: SentSignal, events: &mut EventQueue) {
        if sent.is_event {
            events.push(sent.at, Owner::new(OwnerKind::Pause, sent.port.0));
        }
        self.sender.expect(sent);
    }

    fn new(
        params: &PfcParams,
        spec: &FabricSpec,
        port: PortId,
        back: PortId,
        back_rate: Rate,
        buffer: Bytes,
    ) -> Result<PausableLink, Unbuildable> {
        let (mtu, priorities) = (Bytes::new(spec.full_size), spec.priorities_in_use);
        let link = spec.network.link(port);
        let (rate, propagation) = (link.rate, link.propagation);
        let paused = PausedLink { rate, back_rate, propagation, mtu, buffer, priorities };
        let thresholds = params.resolve(&paused).map_err(build_error)?;
        Ok(PausableLink {
            account: IngressAccount::new(&thresholds),
            buffer: buffer.get(),
            held: 0,
            port,
            back,
            delay: PAUSE_FRAME.time_at(link.rate) + link.propagation + params.response,
            sender: PausedSender::default(),
        })
    }
}

fn build_error(problem: impl ToString) -> Unbuildable {
    Unbuildable::new("port.switch.pfc", problem)
}
