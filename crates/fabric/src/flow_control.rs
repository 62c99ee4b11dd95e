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
//! A pause frame overtakes waiting packets. With `pfc` it takes no time from them; with `lossless` it takes its own.

mod memory;

use std::collections::{HashSet, VecDeque};

use plimsoll_mechanisms::lossless::BufferPeaks;
use plimsoll_mechanisms::pfc::{IngressAccount, PAUSE_FRAME, PauseState, PausedLink, PfcParams, Signal};
use plimsoll_units::{Bytes, Rate, Span, Time};

use crate::engine::{EventQueue, Owner, OwnerKind};
use crate::faults::{Faults, Schedule};
use crate::net::{Network, Node, Packet, Port, PortId};
use crate::observed::{MeasurementWindow, PauseTotals};
use crate::spec::FabricSpec;
use crate::unbuildable::Unbuildable;

use memory::opposites;
pub use memory::{BufferKind, BufferUse, SwitchMemory, lossless_memories};

/// The flow control of all switches.
#[derive(Debug)]
pub struct FlowControl {
    /// The links into switches, the ones of a switch side by side; `None` for a link that its switch does not pause.
    ingress: Vec<Option<PausableLink>>,
    /// The place in `ingress` of the link of each port.
    place: Vec<Option<u32>>,
    /// The number of each link among the links into the switch at its far end.
    local: Vec<u16>,
    /// The number of the link opposite to each port's, among the links into the switch of the port.
    egress: Vec<u16>,
    /// The place of the first link into the switch of each port; `None` for a NIC.
    first: Vec<Option<u32>>,
    /// The memories of the switches with lossless priorities.
    memories: Vec<SwitchMemory>,
    /// The signals that the current event has decided on.
    pending: Vec<(PortId, Signal)>,
    /// The number of packets in all switches.
    held: u64,
    /// The number of signals under way.
    travelling: u64,
    /// The time at which a packet last completed a link or a signal last took effect.
    moved: Time,
    /// The window in which pauses count.
    window: MeasurementWindow,
}

#[derive(Debug)]
struct PausableLink {
    account: Account,
    /// The port that sends on the link.
    port: PortId,
    /// The port that sends in the opposite direction.
    back: PortId,
    /// The time from the start of a pause frame until it is obeyed; from its end, where it takes time on the link.
    delay: Span,
    /// The start of the last frame that takes time on the link. Signals that are decided by then go with it.
    frame_starts: Time,
    /// The number of pauses sent, in the whole run.
    sent: u64,
    travelling: VecDeque<(Time, Signal)>,
    /// The priorities that the port on the link may not send now.
    state: PauseState,
    /// The time since which at least one priority is paused.
    paused_since: Time,
    totals: PauseTotals,
}

/// The account of the packets that came by a link.
#[derive(Debug)]
enum Account {
    /// A buffer of the link's own.
    Own {
        /// The bytes by priority, with fixed thresholds.
        account: IngressAccount,
        buffer: u64,
        held: u64,
    },
    /// A part of the memory of this number.
    InMemory(u32),
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
        let opposite = opposites(spec);
        let mut control = FlowControl {
            ingress: Vec::new(),
            place: vec![None; network.links().len()],
            local: vec![0; network.links().len()],
            first: Vec::new(),
            memories: lossless_memories(spec)?,
            egress: vec![0; network.links().len()],
            pending: Vec::new(),
            held: 0,
            travelling: 0,
            moved: Time::ZERO,
            window: spec.window,
        };
        let mut memory_of = vec![None; network.switches() as usize];
        for (number, memory) in (0u32..).zip(&control.memories) {
            memory_of[memory.switch as usize] = Some(number);
        }
        let mut into: Vec<Vec<(PortId, Option<PausableLink>)>> = Vec::new();
        into.resize_with(network.switches() as usize, Vec::new);
        for (port, link) in (0..).map(PortId).zip(network.links()) {
            let Node::Switch(switch) = link.to else { continue };
            let into = &mut into[switch as usize];
            control.local[port.0 as usize] = u16::try_from(into.len())
                .map_err(|_| build_error("a switch with flow control has at most 65536 links"))?;
            let back = opposite[port.0 as usize];
            let back = back.ok_or_else(|| build_error("a link that goes one way only cannot be paused"))?;
            control.egress[back.0 as usize] = control.local[port.0 as usize];
            // The far switch's ports are all of one tier, including the one that sends back.
            let settings = spec.port(network.link(back));
            let pausable = match (settings.pfc(), memory_of[switch as usize]) {
                (Some((params, buffer)), _) => {
                    let back_rate = schedule.slowest(back, network.link(back).rate);
                    Some(PausableLink::with_buffer(params, spec, port, back, back_rate, buffer)?)
                }
                (None, Some(memory)) => {
                    let response = settings.lossless().map_or(Span::ZERO, |params| params.response);
                    let delay = link.propagation + response;
                    Some(PausableLink::new(Account::InMemory(memory), port, back, delay))
                }
                (None, None) => None,
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

    /// The link that `port` sends on has failed or come back: both ends forget its pauses.
    pub fn forget(&mut self, port: PortId) {
        self.forget_pauses(port);
        if let Some(link) = self.link_mut(port) {
            let forgotten = link.travelling.drain(..).count() as u64;
            self.travelling -= forgotten;
        }
    }

    /// The account of the link of `port` forgets the pauses that it has decided.
    fn forget_pauses(&mut self, port: PortId) {
        let number = self.local[port.0 as usize];
        let Some(link) = link_of(&self.place, &mut self.ingress, port) else { return };
        match &mut link.account {
            Account::Own { account, .. } => account.forget_pauses(),
            Account::InMemory(memory) => self.memories[*memory as usize].buffers.forget_pauses(number),
        }
    }

    /// Returns whether the switch at the far end of `link` has room for `packet`, and notes in the packet the port by
    /// which it entered. With enough headroom it always has room.
    pub fn admit(&mut self, now: Time, link: PortId, packet: &mut Packet) -> bool {
        self.moved = now;
        packet.ingress = self.local[link.0 as usize];
        self.link(link).is_none_or(|link| match link.account {
            Account::Own { buffer, held, .. } => held + u64::from(packet.size) <= buffer,
            Account::InMemory(_) => true,
        })
    }

    /// Returns whether the memory of the switch, where it has one, has room for `packet`, which has come by `link` and
    /// is to leave by the port `out`.
    pub fn admit_to(&mut self, link: PortId, out: PortId, packet: &Packet) -> bool {
        let Some(&Account::InMemory(memory)) = self.link(link).map(|link| &link.account) else { return true };
        self.memories[memory as usize].admit(self.egress[out.0 as usize], packet)
    }

    /// `packet` waits at `port`.
    pub fn entered(&mut self, port: PortId, packet: &Packet) {
        self.held += 1;
        let Some(link) = self.ingress_place(port, packet).and_then(|place| self.ingress[place].as_mut())
        else {
            return;
        };
        let (priority, bytes) = (packet.priority & 7, u64::from(packet.size));
        let signal = match &mut link.account {
            Account::Own { account, held, .. } => {
                *held += bytes;
                account.on_arrival(priority, bytes)
            }
            Account::InMemory(memory) => {
                let egress = usize::from(self.egress[port.0 as usize]);
                self.memories[*memory as usize].buffers.on_arrival(packet.ingress, egress, priority, bytes)
            }
        };
        self.pending.extend(signal.map(|signal| (link.port, signal)));
    }

    /// `packet` waits at `port` no longer.
    pub fn left(&mut self, port: PortId, packet: &Packet) {
        self.held -= 1;
        let Some(link) = self.ingress_place(port, packet).and_then(|place| self.ingress[place].as_mut())
        else {
            return;
        };
        let (priority, bytes) = (packet.priority & 7, u64::from(packet.size));
        match &mut link.account {
            Account::Own { account, held, .. } => {
                *held -= bytes;
                let signal = account.on_departure(priority, bytes);
                self.pending.extend(signal.map(|signal| (link.port, signal)));
            }
            Account::InMemory(memory) => {
                let egress = usize::from(self.egress[port.0 as usize]);
                let SwitchMemory { links, buffers, .. } = &mut self.memories[*memory as usize];
                buffers.on_departure(packet.ingress, egress, priority, bytes, |ingress, signal| {
                    self.pending.push((links[usize::from(ingress)], signal));
                });
            }
        }
    }

    /// Returns the place of the link by which `packet`, which is at `port`, came to its switch.
    fn ingress_place(&self, port: PortId, packet: &Packet) -> Option<usize> {
        Some(self.first[port.0 as usize]? as usize + usize::from(packet.ingress))
    }

    /// Returns how often and how long the link was paused until `end`.
    pub fn pauses(&self, link: PortId, end: Time) -> PauseTotals {
        let Some(link) = self.link(link) else { return PauseTotals::default() };
        let mut totals = link.totals;
        if !link.state.paused().is_empty() {
            totals.paused += self.window.part_of(link.paused_since, end);
        }
        totals
    }

    /// Returns how far the buffers of each kind were used, for the kinds that there are.
    pub fn uses(&self) -> Vec<BufferUse> {
        let mut uses: Vec<BufferUse> = Vec::new();
        let mut merge = |of: BufferUse| match uses.iter_mut().find(|known| known.kind == of.kind) {
            Some(known) => known.merge(&of),
            None => uses.push(of),
        };
        for link in self.ingress.iter().flatten() {
            let (kind, peaks) = match &link.account {
                Account::Own { account, .. } => {
                    let (shared, threshold) = account.peak();
                    (BufferKind::Link, BufferPeaks { shared, threshold, headroom: 0 })
                }
                Account::InMemory(_) => (BufferKind::Memory, BufferPeaks::default()),
            };
            merge(BufferUse { pauses: link.sent, peaks, ..BufferUse::none(kind) });
        }
        self.memories.iter().for_each(|memory| merge(memory.used()));
        uses
    }

    /// Returns whether packets wait and nothing will ever move them: all of the network's `packets` wait. A port that
    /// is not paused sends its packets, so if no packet and no signal is under way, all that wait are paused; and a
    /// pause ends only when a packet leaves. `now` must be later than the last movement, as all events of one instant
    /// count.
    pub fn is_stuck(&self, now: Time, packets: usize) -> bool {
        self.held > 0 && self.held == packets as u64 && self.travelling == 0 && now > self.moved
    }

    /// Returns the time at which a packet last completed a link or a signal last took effect.
    pub fn moved(&self) -> Time {
        self.moved
    }

    /// Returns whether pauses were decided that have not been sent.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Sends the pauses that have just been decided.
    pub fn send_pending(
        &mut self,
        now: Time,
        ports: &mut [Port],
        faults: Option<&Faults>,
        events: &mut EventQueue,
    ) {
        // In the order of the decisions: a pause and its end may be decided in one event.
        let mut pending = std::mem::take(&mut self.pending);
        for (port, signal) in pending.drain(..) {
            let Some(link) = link_of(&self.place, &mut self.ingress, port) else { continue };
            if let Some(faults) = faults
                && (faults.is_dead(port) || faults.is_dead(link.back))
            {
                self.forget_pauses(port);
                continue;
            }
            self.travelling += 1;
            link.sent += u64::from(matches!(signal, Signal::Pause(_)));
            let at = link.send_frame(now, &mut ports[link.back.0 as usize], events);
            if link.travelling.back().is_none_or(|(last, _)| *last != at) {
                events.push(at, Owner::new(OwnerKind::Pause, port.0));
            }
            link.travelling.push_back((at, signal));
        }
        self.pending = pending;
    }

    /// Removes the next signal that takes effect at `port` by `now`.
    pub fn take_due(&mut self, now: Time, port: PortId) -> Option<Signal> {
        let link = link_of(&self.place, &mut self.ingress, port)?;
        let (_, signal) = link.travelling.pop_front_if(|(at, _)| *at <= now)?;
        self.travelling -= 1;
        self.moved = now;
        link.on_signal(self.window, now, signal);
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
    /// A signal takes effect at the port that sends on the link.
    fn on_signal(&mut self, window: MeasurementWindow, now: Time, signal: Signal) {
        let was_paused = !self.state.paused().is_empty();
        self.state.on_signal(signal);
        match (was_paused, !self.state.paused().is_empty()) {
            (false, true) => {
                self.paused_since = now;
                self.totals.pauses += u64::from(window.has(now));
            }
            (true, false) => {
                self.totals.paused += window.part_of(self.paused_since, now);
            }
            _ => {}
        }
    }

    /// Sends a pause frame behind the packet that the port back is sending. Returns when it is obeyed.
    fn send_frame(&mut self, now: Time, back: &mut Port, events: &mut EventQueue) -> Time {
        if let Account::Own { .. } = self.account {
            return now.max(back.busy_until()) + self.delay;
        }
        // A frame that has not begun carries what is decided meanwhile.
        if let Some((at, _)) = self.travelling.back().filter(|_| self.frame_starts >= now) {
            return *at;
        }
        self.frame_starts = now.max(back.busy_until());
        let waits = back.send_frame(now, PAUSE_FRAME.get());
        if waits {
            events.push(back.busy_until(), Owner::new(OwnerKind::Port, self.back.0));
        }
        back.busy_until() + self.delay
    }

    fn with_buffer(
        params: &PfcParams,
        spec: &FabricSpec,
        port: PortId,
        back: PortId,
        back_rate: Rate,
        buffer: Bytes,
    ) -> Result<PausableLink, Unbuildable> {
        let (mtu, priorities) = (Bytes::new(spec.full_size), spec.priorities_in_use.count());
        let link = spec.network.link(port);
        let (rate, propagation) = (link.rate, link.propagation);
        let paused = PausedLink { rate, back_rate, propagation, mtu, buffer, priorities };
        let thresholds = params.resolve(&paused).map_err(build_error)?;
        let account = IngressAccount::new(&thresholds);
        let delay = PAUSE_FRAME.time_at(link.rate) + link.propagation + params.response;
        Ok(PausableLink::new(Account::Own { account, buffer: buffer.get(), held: 0 }, port, back, delay))
    }

    fn new(account: Account, port: PortId, back: PortId, delay: Span) -> PausableLink {
        PausableLink {
            account,
            port,
            back,
            delay,
            frame_starts: Time::ZERO,
            sent: 0,
            travelling: VecDeque::new(),
            state: PauseState::default(),
            paused_since: Time::ZERO,
            totals: PauseTotals::default(),
        }
    }
}

fn build_error(problem: impl ToString) -> Unbuildable {
    Unbuildable::new("port.switch.pfc", problem)
}

/// Switches that pause each other in a circle: none of these links will ever move again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deadlock {
    /// When something last moved.
    pub at: Time,
    /// The links of the circle, each as `from -> to`.
    pub links: Vec<String>,
}

/// Describes the deadlock of `ports`, of which none has moved since `at`.
pub(crate) fn deadlock(network: &Network, ports: &[Port], at: Time) -> Deadlock {
    let name = |node| match node {
        Node::Host(host) => format!("h{}", host.0),
        Node::Switch(switch) => format!("s{switch}"),
    };
    let links = circle(network, ports).into_iter().map(|port| {
        let link = network.link(port);
        format!("{} -> {}", name(link.from), name(link.to))
    });
    Deadlock { at, links: links.collect() }
}

/// Returns the paused ports that wait for each other in a circle; all paused ports if none is found.
fn circle(network: &Network, ports: &[Port]) -> Vec<PortId> {
    let numbers = (0..ports.len() as u32).map(PortId);
    let mut blocked: Vec<PortId> = numbers.filter(|port| ports[port.0 as usize].is_blocked()).collect();
    let all = blocked.clone();
    // A blocked port waits for a blocked port of the switch at the far end of its link. A port that waits for none of
    // these is only behind the circle.
    loop {
        let at: HashSet<Node> = blocked.iter().map(|port| network.link(*port).from).collect();
        let before = blocked.len();
        blocked.retain(|port| at.contains(&network.link(*port).to));
        if blocked.len() == before {
            break;
        }
    }
    let mut circle: Vec<PortId> = blocked.first().copied().into_iter().collect();
    while let Some(&last) = circle.last()
        && let Some(&next) = blocked.iter().find(|port| network.link(**port).from == network.link(last).to)
    {
        if let Some(first) = circle.iter().position(|port| *port == next) {
            return circle.split_off(first);
        }
        circle.push(next);
    }
    all
}
