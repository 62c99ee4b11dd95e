//! [`HostStacks`]: what lies between the applications, TCP and the NICs of hosts, where a scenario says what that costs
//! (`host.processor`) or how it is limited (`host.bursts`).
//!
//! ```text
//! application ──Write──> TCP ──piece──> Transmit ──> transmit queues, in turn ──> port ──> link
//!     ^                   ^
//!     └──Deliver── Receive┘<── frames <── Interrupt <── ring of the NIC: coalescing, LRO <── link
//! ```
//!
//! `Interrupt`, `Receive` and `Transmit` are work of the first core, `Write` and `Deliver` of the last, which may be
//! the same. Without a processor, work takes no time. All state belongs to one host or to one end of a
//! connection.

mod application;
mod receive;
mod transmit;

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::{HostId, Network, Packet, PortId};
use plimsoll_mechanisms::nic_burst::NicBurstParams;
use plimsoll_mechanisms::processor::{Core, ProcessorParams};
use plimsoll_mechanisms::transmit_queues::TransmitQueues;
use plimsoll_results::outcome::ProcessorTotals;
use plimsoll_scenario::model::Model;
use plimsoll_units::{ByteTime, Bytes, Span, Time};

use crate::hosts::Hosts;
use crate::hosts::agenda::Delivery;
use crate::hosts::packet_lists::PacketLists;
use crate::sim_hooks::SimFabric;
use plimsoll_traffic::ConnectionEnd as End;

/// The stacks of all hosts.
#[derive(Debug)]
pub(super) struct HostStacks {
    costs: ProcessorParams,
    offloads: NicBurstParams,
    hosts: Vec<HostStack>,
    /// By end, twice its connection's number plus the end.
    ends: Vec<StackOfEnd>,
    /// The lists for the packets of pieces, which come back when the NIC has sent them.
    lists: PacketLists,
}

/// The stack of one host.
#[derive(Debug)]
struct HostStack {
    /// One or two cores; interrupts are for the first, applications for the last.
    cores: Vec<Core<CoreWork>>,
    /// The NIC has interrupted the host, and does not again until its packets are taken.
    polling: bool,
    transmit: TransmitQueues<StackPiece>,
    /// The end whose piece is on the link, and the size of the piece in bytes.
    sending: Option<(u32, u64)>,
    /// The ends that began a piece at this instant.
    began: Vec<u32>,
    byte_time: ByteTime,
    totals: ProcessorTotals,
}

/// The state of the stack for an end of a connection.
#[derive(Debug, Default)]
struct StackOfEnd {
    /// The packets of a piece that TCP has not completed; a list of [`HostStacks::lists`] while there are some.
    open: Vec<Packet>,
    /// The bytes between TCP and the link.
    below_tcp: u64,
    /// When TCP last sent data.
    called: Option<Time>,
    /// The number of segments that it sent then.
    sent_in_call: u32,
    /// The cost of that call is not part of a piece yet.
    owes_call: bool,
    /// TCP waits for some of these to leave.
    waits: bool,
    /// The bytes that the application has not handed over.
    unwritten: u64,
    /// The application is in a call that hands over data.
    in_call: bool,
    /// The number of bytes received that the application has copied, or will have.
    copied: u64,
}

/// A piece of work that a core does.
#[derive(Debug)]
enum CoreWork {
    /// The host takes all packets that the NIC holds.
    Interrupt,
    /// TCP gets the packets of a segment, which the host took at that time.
    Receive(Vec<Packet>, Time),
    /// All that was taken has been received; it was as much as the host takes at a time, or not.
    Taken { all: bool },
    /// The application copies what TCP has received.
    Copy,
    /// The application has copied messages to their last byte, in packets that TCP got at that time.
    Deliver(Box<Delivery>, Time),
    /// The application hands a number of bytes to the end of a connection.
    Write { place: u32, bytes: u64 },
    /// A piece is handed to the NIC.
    Transmit(StackPiece),
}

/// Packets that leave back to back.
#[derive(Debug)]
struct StackPiece {
    packets: Vec<Packet>,
    /// When TCP had completed it.
    since: Time,
    /// The end that sends it; none of a raw packet.
    place: Option<u32>,
}

impl HostStacks {
    /// Builds the stacks of all hosts; none where nothing costs time and nothing is limited.
    pub(super) fn new(model: &Model, network: &Network) -> Option<Box<HostStacks>> {
        let (processor, bursts) = (model.host.processor(), model.host.bursts());
        if processor.is_none() && !bursts.is_some_and(NicBurstParams::has_stack) {
            return None;
        }
        let free = ProcessorParams { interrupt: Span::ZERO, ring: u32::MAX, ..ProcessorParams::default() };
        let costs = processor.copied().unwrap_or(free);
        let mut offloads = bursts.copied().unwrap_or(NicBurstParams::off());
        if processor.is_some() || offloads.send_size > Bytes::ZERO {
            let or = |bytes: Bytes, default| if bytes == Bytes::ZERO { default } else { bytes };
            offloads.send_size = or(offloads.send_size, SEND_SIZE);
            offloads.socket_buffer = or(offloads.socket_buffer, SOCKET_BUFFER);
        }
        let counted_from = Time::ZERO + model.run.warmup;
        let stack = |host| HostStack {
            cores: (0..costs.cores).map(|_| Core::new(counted_from)).collect(),
            polling: false,
            transmit: TransmitQueues::new(offloads.queues),
            sending: None,
            began: Vec::new(),
            byte_time: network.link(PortId(host)).rate.byte_time(),
            totals: ProcessorTotals { host, ..ProcessorTotals::default() },
        };
        let hosts = (0..network.hosts()).map(stack).collect();
        Some(Box::new(HostStacks { costs, offloads, hosts, ends: Vec::new(), lists: PacketLists::default() }))
    }

    /// Returns what each host's processor did until `end`; nothing where there are no processors.
    pub(super) fn totals(&self, model_has_processor: bool, end: Time) -> Vec<ProcessorTotals> {
        let of = |stack: &HostStack| {
            let busy = stack.cores.iter().map(|core| core.busy(end)).collect();
            ProcessorTotals { busy, ..stack.totals.clone() }
        };
        if model_has_processor { self.hosts.iter().map(of).collect() } else { Vec::new() }
    }

    fn of_end(&mut self, place: u32) -> &mut StackOfEnd {
        stack_of(&mut self.ends, place)
    }

    fn core(&mut self, host: HostId, core: usize) -> &mut Core<CoreWork> {
        &mut self.hosts[host.0 as usize].cores[core]
    }

    /// Gives a core of a host something to do.
    fn add_work(
        &mut self,
        fabric: &mut SimFabric,
        now: Time,
        host: HostId,
        core: usize,
        cost: Span,
        work: CoreWork,
    ) {
        let core_of_host = self.core(host, core);
        if core_of_host.on_work(now, cost, work)
            && let Some(due) = core_of_host.next_due()
        {
            fabric.schedule(due, owner_of(host, core as u32));
        }
    }

    fn application_core(&self) -> usize {
        self.costs.cores as usize - 1
    }
}

impl Hosts {
    /// The event `number` of a stack has come: a core has done something, or a piece has left.
    #[cold]
    pub(super) fn on_stack_due(&mut self, now: Time, fabric: &mut SimFabric, number: u32) {
        if let Some(host) = number.checked_sub(PIECE_EVENTS) {
            return self.end_pieces(now, fabric, HostId(host));
        }
        let (host, part) = (HostId(number / PARTS), number % PARTS);
        if part == TRANSMIT {
            return self.transmit_next(now, fabric, host);
        }
        let Some(stacks) = &mut self.stacks else { return };
        let core = stacks.core(host, part as usize);
        let done = core.poll(now);
        if let (Some(_), Some(due)) = (&done, core.next_due()) {
            fabric.schedule(due, owner_of(host, part));
        }
        match done {
            None => {}
            Some(CoreWork::Interrupt) => self.take_received(now, fabric, host),
            Some(CoreWork::Receive(packets, taken)) => self.receive_segment(now, packets, taken),
            Some(CoreWork::Taken { all }) => self.on_taken(now, fabric, host, all),
            Some(CoreWork::Copy) => {}
            Some(CoreWork::Deliver(delivery, since)) => self.on_copied(now, *delivery, since),
            Some(CoreWork::Write { place, bytes }) => self.on_written(now, fabric, place, bytes),
            Some(CoreWork::Transmit(piece)) => self.hand_to_nic(now, fabric, host, piece),
        }
    }
}

/// Returns the state of the stack for the end at `place`.
fn stack_of(ends: &mut Vec<StackOfEnd>, place: u32) -> &mut StackOfEnd {
    let index = place as usize;
    if index >= ends.len() {
        ends.resize_with(index + 1, StackOfEnd::default);
    }
    &mut ends[index]
}

/// Returns the owner of the events of a part of a host's stack.
fn owner_of(host: HostId, part: u32) -> Owner {
    Owner::new(OwnerKind::Receive, STACK_EVENTS + host.0 * PARTS + part)
}

/// Returns the owner of the events of a host that end pieces.
fn owner_of_pieces(host: HostId) -> Owner {
    Owner::new(OwnerKind::Receive, STACK_EVENTS + PIECE_EVENTS + host.0)
}

/// Returns the place of a connection's end.
fn place_of(number: u32, end: End) -> u32 {
    number * 2 + end as u32
}

/// The numbers of the stacks' events begin here, above the numbers of receiving NICs and reorder buffers.
pub(super) const STACK_EVENTS: u32 = 1 << 28;

/// A host has events of two cores and of its transmit queues.
const PARTS: u32 = 3;
const TRANSMIT: u32 = 2;

/// Above these, counted from [`STACK_EVENTS`], are the hosts' events that end pieces.
const PIECE_EVENTS: u32 = 1 << 27;

/// What an application hands over with a call, where the scenario does not say.
const SEND_SIZE: Bytes = Bytes::new(64_000);

/// The most that a socket holds, where the scenario sets no limit: the largest of Linux's `tcp_wmem`.
const SOCKET_BUFFER: Bytes = Bytes::new(4_000_000);
