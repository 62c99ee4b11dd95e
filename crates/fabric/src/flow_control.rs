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
//!
//! A link's account is kept by the logical process of the switch at its end, and its
//! [`PausedSender`](sender::PausedSender) by the process of the port that sends on it. A signal from one process to
//! another is a message, as a packet is: it takes effect a propagation and a pause frame later at the earliest.
//! Switches that pause each other for ever are found by [`deadlock`].

mod blocked;
pub(crate) mod deadlock;
mod link;
mod memory;
mod sender;
mod timer;

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_mechanisms::lossless::{
    BufferPeaks, IngressBuffers, PauseExpiry, PauseWatchdog, RefreshTimer, pause_time,
};
use plimsoll_mechanisms::pfc::{IngressAccount, Priorities, Signal};
use plimsoll_memory::prefetch_for_later;
use plimsoll_units::{Span, Time};

pub use blocked::BlockedFlow;
pub use deadlock::{Deadlock, HeldPort};
pub use memory::{BufferKind, BufferUse, SwitchMemory, lossless_memories};
pub use sender::{PauseChange, SentSignal};

use crate::boundary::Boundary;
use crate::engine::EventQueue;
use crate::faults::{Faults, Schedule};
use crate::net::{Network, Node, Packet, Port, PortId, Slot};
use crate::observed::{MeasurementWindow, PauseTotals, number_name};
use crate::spec::FabricSpec;
use crate::unbuildable::Unbuildable;
use blocked::BlockedTraffic;
use link::{Account, PausableLink};
use memory::{merge_use, opposites};

/// The flow control of all switches.
#[derive(Debug)]
pub struct FlowControl {
    /// The links into switches, the ones of a switch side by side; `None` for a link that its switch does not pause.
    ingress: Vec<Option<PausableLink>>,
    /// The places of each port.
    places: Vec<PortPlaces>,
    /// The memories of the switches with lossless priorities.
    memories: Vec<SwitchMemory>,
    /// The signals that the current event has decided on.
    pending: Vec<(PortId, Signal)>,
    /// The ports of switches of which a priority is paused.
    paused: BTreeSet<PortId>,
    /// The number of events from which on a pause is reason to look for a deadlock.
    next_search: u64,
    /// The uses of buffers in other logical processes, which have ended.
    absorbed: Vec<BufferUse>,
    /// The window in which pauses count.
    window: MeasurementWindow,
    /// Packets that wait for pauses, where links are observed.
    blocked: Option<Box<BlockedTraffic>>,
}

/// The places in [`FlowControl::ingress`] that concern a port, side by side: a packet needs several of them.
#[derive(Clone, Copy, Debug)]
struct PortPlaces {
    /// The place of the port's link; [`PortPlaces::NONE`] if it leads to a host.
    link: u32,
    /// The place of the first link into the switch of the port; [`PortPlaces::NONE`] for a NIC.
    first: u32,
    /// The number of the port's link among the links into the switch at its far end.
    local: u16,
    /// The number of the link opposite to the port's, among the links into the switch of the port.
    egress: u16,
    /// The memory of the switch at the far end of the port's link; [`PortPlaces::NONE`] if it has none.
    far_memory: u32,
    /// The memory of the switch of the port; [`PortPlaces::NONE`] if it has none.
    memory: u32,
}

/// The bytes of a packet that a switch holds, and where.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// The number of the link by which it came, among the links into the switch.
    ingress: u16,
    /// The number of its output port.
    egress: usize,
    priority: u8,
    bytes: u64,
}

impl PortPlaces {
    const NONE: u32 = u32::MAX;
    const NOWHERE: PortPlaces = PortPlaces {
        link: PortPlaces::NONE,
        first: PortPlaces::NONE,
        local: 0,
        egress: 0,
        far_memory: PortPlaces::NONE,
        memory: PortPlaces::NONE,
    };

    /// Returns the place of the first link into the switch of the port; `None` for a NIC.
    fn first(self) -> Option<usize> {
        (self.first != PortPlaces::NONE).then_some(self.first as usize)
    }
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
            places: vec![PortPlaces::NOWHERE; network.links().len()],
            memories: lossless_memories(spec, &number_name)?,
            pending: Vec::new(),
            paused: BTreeSet::new(),
            next_search: 0,
            absorbed: Vec::new(),
            window: spec.window,
            blocked: spec
                .counts_links
                .then(|| Box::new(BlockedTraffic::new(network.links().len(), spec.window))),
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
            control.places[port.0 as usize].local = u16::try_from(into.len())
                .map_err(|_| build_error("a switch with flow control has at most 65536 links"))?;
            let back = opposite[port.0 as usize];
            let back = back.ok_or_else(|| build_error("a link that goes one way only cannot be paused"))?;
            control.places[back.0 as usize].egress = control.places[port.0 as usize].local;
            // The far switch's ports are all of one tier, including the one that sends back.
            let settings = spec.port(network.link(back));
            let mut pausable: Option<PausableLink> = match (settings.pfc(), memory_of[switch as usize]) {
                (Some((params, buffer)), _) => {
                    let back_rate = schedule.slowest(back, network.link(back).rate);
                    Some(PausableLink::with_buffer(params, spec, port, back, back_rate, buffer)?)
                }
                (None, Some(memory)) => {
                    let params = settings.lossless();
                    let response = params.map_or(Span::ZERO, |params| params.response);
                    let delay = link.propagation + response;
                    let mut pausable = PausableLink::new(Account::InMemory(memory), port, back, delay);
                    let quanta = params.and_then(|params| params.quanta);
                    let time = quanta.map(|quanta| pause_time(quanta, link.rate));
                    pausable.refresh = time.map(RefreshTimer::new);
                    pausable.sender.expiry = time.map(PauseExpiry::new);
                    Some(pausable)
                }
                (None, None) => None,
            };
            if let Some(pausable) = &mut pausable {
                // The watchdog is the sending switch's.
                let own = spec.port(link).lossless().filter(|_| matches!(link.from, Node::Switch(_)));
                let watchdog = own.and_then(|params| params.watchdog);
                pausable.sender.watchdog = watchdog.map(|params| Box::new(PauseWatchdog::new(params)));
            }
            into.push((port, pausable));
        }
        let mut first_of_switch = Vec::new();
        for links in into {
            first_of_switch.push(control.ingress.len() as u32);
            for (port, pausable) in links {
                control.places[port.0 as usize].link = control.ingress.len() as u32;
                control.ingress.push(pausable);
            }
        }
        let memory_of = |node: Node| match node {
            Node::Switch(switch) => memory_of[switch as usize].unwrap_or(PortPlaces::NONE),
            Node::Host(_) => PortPlaces::NONE,
        };
        for (places, link) in control.places.iter_mut().zip(network.links()) {
            if let Node::Switch(switch) = link.from {
                places.first = first_of_switch[switch as usize];
            }
            (places.far_memory, places.memory) = (memory_of(link.to), memory_of(link.from));
        }
        Ok(Some(Box::new(control)))
    }

    /// Returns the link of `port`, if it is one that may be paused.
    #[inline]
    fn link(&self, port: PortId) -> Option<&PausableLink> {
        self.ingress.get(self.places[port.0 as usize].link as usize)?.as_ref()
    }

    fn link_mut(&mut self, port: PortId) -> Option<&mut PausableLink> {
        link_of(&self.places, &mut self.ingress, port)
    }

    /// The link that `port` sends on has failed or come back at `now`: both ends forget its pauses.
    pub fn forget(&mut self, now: Time, port: PortId, events: &mut EventQueue) {
        self.forget_pauses(port);
        let window = self.window;
        if let Some(link) = self.link_mut(port) {
            link.frame = None;
            link.sender.forget(now, window);
            link.sender.call_when_due(now, port, events);
            self.paused.remove(&port);
        }
        if let Some(blocked) = &mut self.blocked {
            blocked.on_paused(now, port, Priorities::default());
        }
    }

    /// The account of the link of `port` forgets the pauses that it has decided.
    fn forget_pauses(&mut self, port: PortId) {
        let number = self.places[port.0 as usize].local;
        let Some(link) = link_of(&self.places, &mut self.ingress, port) else { return };
        match &mut link.account {
            Account::Own { account, .. } => account.forget_pauses(),
            Account::InMemory(memory) => self.memories[*memory as usize].buffers.forget_pauses(number),
        }
    }

    /// Returns whether the switch at the far end of `link` has room for `packet`, which is to leave by the port `out`,
    /// and notes in the packet the port by which it entered. With enough headroom a lossless packet always has room.
    #[inline]
    pub fn admit(&mut self, link: PortId, out: PortId, packet: &mut Packet) -> bool {
        let PortPlaces { local, far_memory, .. } = self.places[link.0 as usize];
        packet.ingress = local;
        if let Some(memory) = self.memories.get_mut(far_memory as usize) {
            return memory.admit(self.places[out.0 as usize].egress, packet);
        }
        match self.link(link).map(|link| &link.account) {
            Some(Account::Own { buffer, held, .. }) => held + u64::from(packet.size) <= *buffer,
            _ => true,
        }
    }

    /// `packet` waits at `port`.
    #[inline]
    pub fn entered(&mut self, port: PortId, packet: &Packet) {
        self.account(
            port,
            packet,
            |buffers, Held { ingress, egress, priority, bytes }, signal| {
                let pause = buffers.on_arrival(ingress, egress, priority, bytes);
                pause.into_iter().for_each(|pause| signal(ingress, pause));
            },
            |account, held, Held { priority, bytes, .. }| {
                *held += bytes;
                [account.on_arrival(priority, bytes), None]
            },
        );
    }

    /// `packet` waits at `port` no longer.
    #[inline]
    pub fn left(&mut self, port: PortId, packet: &Packet) {
        self.account(
            port,
            packet,
            |buffers, Held { ingress, egress, priority, bytes }, signal| {
                buffers.on_departure(ingress, egress, priority, bytes, signal);
            },
            |account, held, Held { priority, bytes, .. }| {
                *held -= bytes;
                [account.on_departure(priority, bytes), None]
            },
        );
    }

    /// `packet` would wait at `port`, and leaves at once: [`entered`](Self::entered) and [`left`](Self::left) in one.
    #[inline]
    pub fn passed(&mut self, port: PortId, packet: &Packet) {
        self.account(
            port,
            packet,
            |buffers, Held { ingress, egress, priority, bytes }, signal| {
                buffers.on_passing(ingress, egress, priority, bytes, signal);
            },
            |account, _, Held { priority, bytes, .. }| {
                [account.on_arrival(priority, bytes), account.on_departure(priority, bytes)]
            },
        );
    }

    /// Accounts for `packet`, which is at `port`: in the memory of the switch, or in the buffer of the link by which it
    /// came. A NIC has neither.
    #[inline(always)]
    fn account(
        &mut self,
        port: PortId,
        packet: &Packet,
        in_memory: impl FnOnce(&mut IngressBuffers, Held, &mut dyn FnMut(u16, Signal)),
        in_buffer: impl FnOnce(&mut IngressAccount, &mut u64, Held) -> [Option<Signal>; 2],
    ) {
        let FlowControl { places, ingress, memories, pending, .. } = self;
        let PortPlaces { first, memory, egress, .. } = places[port.0 as usize];
        let of = Held {
            ingress: packet.ingress,
            egress: usize::from(egress),
            priority: packet.priority & 7,
            bytes: u64::from(packet.size),
        };
        if let Some(SwitchMemory { links, buffers, .. }) = memories.get_mut(memory as usize) {
            let mut signal = |ingress: u16, signal| pending.push((links[usize::from(ingress)], signal));
            return in_memory(buffers, of, &mut signal);
        }
        // The place of a NIC is beyond all links.
        let place = first as usize + usize::from(packet.ingress);
        if let Some(PausableLink { port, account: Account::Own { account, held, .. }, .. }) =
            ingress.get_mut(place).and_then(Option::as_mut)
        {
            let signals = in_buffer(account, held, of).into_iter().flatten();
            pending.extend(signals.map(|signal| (*port, signal)));
        }
    }

    /// `packet` joins the queue of `port` at `now`; noted where links are observed.
    #[inline]
    pub fn observe_entered(&mut self, now: Time, port: PortId, slot: Slot, packet: &Packet) {
        if self.blocked.is_some() {
            let link = self.link_in(port, packet);
            self.blocked.iter_mut().for_each(|blocked| blocked.entered(now, link, port, slot, packet));
        }
    }

    /// `packet` leaves the queue of `port`; noted where links are observed.
    #[inline]
    pub fn observe_left(&mut self, port: PortId, slot: Slot, packet: &Packet) {
        if self.blocked.is_some() {
            let link = self.link_in(port, packet);
            self.blocked.iter_mut().for_each(|blocked| blocked.left(link, port, slot, packet));
        }
    }

    /// Returns the port that sends on the link by which `packet`, which is at `port`, came to its switch.
    fn link_in(&self, port: PortId, packet: &Packet) -> Option<PortId> {
        let place = self.ingress_place(port, packet)?;
        self.ingress[place].as_ref().map(|link| link.port)
    }

    /// Returns the time in which packets waited at `port` while their priority was paused, summed over priorities,
    /// until `end`; 0 where links are not observed.
    pub fn blocked_time(&self, port: PortId, end: Time) -> Span {
        self.blocked.as_ref().map_or(Span::ZERO, |blocked| blocked.blocked(port, end))
    }

    /// Returns the flows of which data packets waited for pauses, where links are observed. `by_hash` says that the
    /// hash of a flow chooses its path.
    pub fn blocked_flows(&self, network: &Network, by_hash: bool) -> Vec<BlockedFlow> {
        self.blocked.as_ref().map_or_else(Vec::new, |blocked| blocked.flows(network, by_hash))
    }

    /// Returns the place of the link by which `packet`, which is at `port`, came to its switch.
    fn ingress_place(&self, port: PortId, packet: &Packet) -> Option<usize> {
        Some(self.places[port.0 as usize].first()? + usize::from(packet.ingress))
    }

    /// Prefetches the places of `port`, which [`FlowControl::prefetch_account`] reads.
    #[inline]
    pub fn prefetch_places(&self, port: PortId) {
        prefetch_for_later(&self.places[port.0 as usize]);
    }

    /// Prefetches the account of the link of `port`.
    #[inline]
    pub fn prefetch_account(&self, port: PortId) {
        if let Some(link) = self.link(port) {
            prefetch_for_later(&link.account);
        }
    }

    /// Returns how often and how long the link was paused until `end`.
    pub fn pauses(&self, link: PortId, end: Time) -> PauseTotals {
        self.link(link).map_or(PauseTotals::default(), |link| link.sender.totals(end, self.window))
    }

    /// Adds the observations of another logical process, which has ended at `end`.
    pub fn absorb(&mut self, other: &FlowControl, end: Time) {
        other.uses().iter().for_each(|of| merge_use(&mut self.absorbed, of));
        if let (Some(own), Some(other)) = (&mut self.blocked, &other.blocked) {
            own.absorb(other, end);
        }
    }

    /// Returns whether a priority of `port` stays paused once only the bytes in `held` are left, by the port on whose
    /// link they came and their priority.
    fn keeps_paused(&self, port: PortId, priority: u8, held: &BTreeMap<PortId, [u64; 8]>) -> bool {
        let of = |port: PortId| held.get(&port).copied().unwrap_or_default();
        match self.link(port).map(|link| &link.account) {
            Some(Account::Own { account, .. }) => {
                let members = account.members(priority).iter();
                account.keeps_paused(members.map(|member| of(port)[usize::from(member)]).sum())
            }
            Some(Account::InMemory(memory)) => {
                let SwitchMemory { links, buffers, .. } = &self.memories[*memory as usize];
                let left: Vec<[u64; 8]> = links.iter().map(|link| of(*link)).collect();
                buffers.plan().keeps_paused(usize::from(self.places[port.0 as usize].local), priority, &left)
            }
            None => false,
        }
    }

    /// Returns the priorities that are paused together with `priority` of `port`.
    fn members(&self, port: PortId, priority: u8) -> Priorities {
        match self.link(port).map(|link| &link.account) {
            Some(Account::Own { account, .. }) => account.members(priority),
            _ => Priorities::one(priority),
        }
    }

    /// Returns how far the buffers of each kind were used, for the kinds that there are.
    pub fn uses(&self) -> Vec<BufferUse> {
        let mut uses = self.absorbed.clone();
        let mut merge = |of: BufferUse| merge_use(&mut uses, &of);
        for link in self.ingress.iter().flatten() {
            let (kind, peaks) = match &link.account {
                Account::Own { account, .. } => {
                    let (shared, threshold) = account.peak();
                    (BufferKind::Link, BufferPeaks { shared, threshold, ..BufferPeaks::default() })
                }
                Account::InMemory(_) => (BufferKind::Memory, BufferPeaks::default()),
            };
            merge(BufferUse { pauses: link.sent, peaks, refreshes: link.refreshed, ..BufferUse::none(kind) });
            if link.sender.storms > 0 {
                merge(BufferUse { storms: link.sender.storms, ..BufferUse::none(BufferKind::Memory) });
            }
        }
        self.memories.iter().for_each(|memory| merge(memory.used()));
        uses
    }

    /// Exchanges the observed pauses of `port` for the ones that another logical process has observed.
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
        ports: &mut [Port],
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
        ports: &mut [Port],
        faults: Option<&Faults>,
        mut boundary: Option<&mut Boundary>,
        events: &mut EventQueue,
    ) {
        // In the order of the decisions: a pause and its end may be decided in one event.
        let mut pending = std::mem::take(&mut self.pending);
        for (port, signal) in pending.drain(..) {
            let is_sent = self.send(now, port, signal, ports, faults, boundary.as_deref_mut(), events);
            if let Signal::Pause(priorities) = signal
                && is_sent
            {
                self.link_mut(port).into_iter().for_each(|link| link.sent += 1);
                self.blocked.iter_mut().for_each(|blocked| blocked.on_pause(port, priorities));
            }
        }
        self.pending = pending;
    }

    /// Sends a signal to `port`, unless its link is dead: then the account forgets its pauses. Returns whether it was
    /// sent.
    fn send(
        &mut self,
        now: Time,
        port: PortId,
        signal: Signal,
        ports: &mut [Port],
        faults: Option<&Faults>,
        boundary: Option<&mut Boundary>,
        events: &mut EventQueue,
    ) -> bool {
        let paused = self.paused_in_memory(port);
        let Some(link) = link_of(&self.places, &mut self.ingress, port) else { return false };
        if faults.is_some_and(|faults| faults.is_dead(port) || faults.is_dead(link.back)) {
            self.forget_pauses(port);
            return false;
        }
        let at = link.send_frame(now, &mut ports[link.back.0 as usize], events);
        link.time_refresh(now, at, paused, events);
        let sent = link.sender.sent(port, at, signal);
        match boundary {
            Some(boundary) if boundary.is_crossed_by(link.back) => boundary.signal(link.back, sent),
            _ => link.receive(sent, events),
        }
        true
    }

    /// Returns the priorities of `port` that are paused by a memory whose pauses are refreshed.
    fn paused_in_memory(&self, port: PortId) -> Priorities {
        match self.link(port) {
            Some(&PausableLink { account: Account::InMemory(memory), refresh: Some(_), .. }) => {
                self.memories[memory as usize].buffers.paused(self.places[port.0 as usize].local)
            }
            _ => Priorities::default(),
        }
    }

    /// Repeats the pauses of `port` if that is due at `now`.
    pub fn refresh(
        &mut self,
        now: Time,
        port: PortId,
        ports: &mut [Port],
        faults: Option<&Faults>,
        boundary: Option<&mut Boundary>,
        events: &mut EventQueue,
    ) {
        let Some(link) = link_of(&self.places, &mut self.ingress, port) else { return };
        let is_due = link.refresh.as_mut().is_some_and(|timer| timer.take_due(now));
        let paused = self.paused_in_memory(port);
        if is_due
            && !paused.is_empty()
            && self.send(now, port, Signal::Pause(paused), ports, faults, boundary, events)
        {
            self.link_mut(port).into_iter().for_each(|link| link.refreshed += 1);
        }
        self.link_mut(port).into_iter().for_each(|link| link.call_for_refresh(now, events));
    }

    /// Takes a signal that another logical process has sent to a port of this one.
    pub fn receive(&mut self, sent: SentSignal, events: &mut EventQueue) {
        if let Some(link) = self.link_mut(sent.port) {
            link.receive(sent, events);
        }
    }

    /// Returns the next change of the pauses of `port` that takes effect by `now`.
    pub fn take_due(&mut self, now: Time, port: PortId, events: &mut EventQueue) -> Option<PauseChange> {
        let link = link_of(&self.places, &mut self.ingress, port)?;
        let Some(change) = link.sender.take_due(now, self.window) else {
            link.sender.call_when_due(now, port, events);
            return None;
        };
        if let Some(blocked) = &mut self.blocked {
            blocked.on_paused(now, port, link.sender.stopped());
        }
        if !link.sender.is_paused() {
            self.paused.remove(&port);
        } else if self.places[port.0 as usize].first().is_some() {
            self.paused.insert(port);
        }
        Some(change)
    }
}

/// Returns the link of `port`, if it may be paused, and leaves the rest of the flow control to be changed beside it.
fn link_of<'a>(
    places: &[PortPlaces],
    ingress: &'a mut [Option<PausableLink>],
    port: PortId,
) -> Option<&'a mut PausableLink> {
    ingress.get_mut(places[port.0 as usize].link as usize)?.as_mut()
}

fn build_error(problem: impl ToString) -> Unbuildable {
    Unbuildable::new("port.switch.pfc", problem)
}
