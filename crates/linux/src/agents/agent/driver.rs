//! [`SourceDriver`]: drives a source of traffic by the wall's clock and over the kernel's sockets.
//!
//! ```text
//! on_due, at the time it asked for ──> Source ──Actions──> Pipes: TCP, a byte stream in each direction
//!                                        ^                 Datagrams: UDP, single packets
//!                                        └── on_message <── epoll ──┘
//! ```
//!
//! The source is the simulator's own, with the same draws and the same records. One thread acts for all hosts of a
//! source, as the simulator does: a socket belongs to the namespace in which it was made, for every thread that uses
//! it. An event is handled with the time at which it was due, so a thread that wakes up late delays answers and drops
//! no request.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_fabric::net::{HostId, Packet, ideal_time};
use plimsoll_mechanisms::tcp::{Connections, TcpConfig};
use plimsoll_results::outcome;
use plimsoll_traffic::record::{Records, Split};
use plimsoll_traffic::{Actions, Arrival, ConnectionEnd, Datagram, MessageWaits, Source, SourceReach, Write};
use plimsoll_units::{Span, Time};
use rustix::event::{Timespec, epoll};

use super::context::{AgentContext, PATIENCE, Shared};
use super::datagrams::SourceSockets;
use super::events::{DATAGRAMS, LISTENER};
use super::pipes::{PipedMessage, Pipes};
use super::plan::DrivenSource;

/// A source of traffic and its sockets.
pub(super) struct SourceDriver {
    context: Arc<AgentContext>,
    driven: DrivenSource,
    shared: Arc<Shared>,
    /// The number of the source's workload.
    number: u16,
    source: Box<dyn Source>,
    epoll: OwnedFd,
    pipes: Pipes,
    datagrams: SourceSockets,
    /// The pipe of each connection, by the source's number.
    pipe_of: Vec<usize>,
    /// Whether a connection stays open when its messages have arrived.
    keeps_connections: bool,
    /// The pipes that were opened before the run, by client and server.
    spare: BTreeMap<(u32, u32), VecDeque<usize>>,
    /// The packets in flight, and the times at which they were last sent.
    in_flight: BTreeMap<PacketName, Time>,
    /// The packets in the order of their last sending; some have arrived, or were sent again.
    sent: VecDeque<(Time, PacketName)>,
    given_up: BTreeSet<PacketName>,
    actions: Actions,
    records: DriverRecords,
}

/// The sender and the tag of a datagram.
type PacketName = (u32, u64);

/// The records of a source, and of its connections.
#[derive(Debug, Default)]
pub(crate) struct DriverRecords {
    pub(crate) of_source: Records,
    pub(crate) connections: Vec<outcome::ConnectionRecord>,
}

/// The time after which a single packet counts as lost.
const LOST_AFTER: Span = Span::from_secs(1);
/// The number of events taken from the kernel at once.
const EVENTS: usize = 256;

impl SourceDriver {
    /// Returns a driver of `source`, without connections.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub(super) fn new(
        context: &Arc<AgentContext>,
        shared: &Arc<Shared>,
        driven: DrivenSource,
        source: Box<dyn Source>,
    ) -> io::Result<SourceDriver> {
        Ok(SourceDriver {
            pipes: Pipes::new(context, driven),
            datagrams: SourceSockets::new(context, driven),
            context: Arc::clone(context),
            driven,
            shared: Arc::clone(shared),
            number: driven.number,
            source,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            pipe_of: Vec::new(),
            keeps_connections: true,
            spare: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            sent: VecDeque::new(),
            given_up: BTreeSet::new(),
            actions: Actions::default(),
            records: DriverRecords::default(),
        })
    }

    /// Drives the source until it is finished or the run has ended.
    ///
    /// # Errors
    /// Fails if the system refuses, or a connection breaks.
    pub(super) fn run(mut self) -> io::Result<DriverRecords> {
        self.announce();
        self.prepare()?;
        while !self.is_over() {
            let now = self.catch_up()?;
            if self.source.is_finished() {
                self.shared.open.fetch_sub(1, Ordering::Relaxed);
                break;
            }
            let lost = self.sent.front().map_or(Time::MAX, |(sent, _)| sent.saturating_add(LOST_AFTER));
            self.wait(self.source.next_due().min(lost).saturating_since(now))?;
        }
        self.source.on_end(&mut self.actions);
        self.take_records();
        self.records.connections = self.pipes.records(&self.pipe_of);
        Ok(self.records)
    }

    fn is_over(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// Opens the connections that are kept, and waits until workloads begin.
    fn prepare(&mut self) -> io::Result<()> {
        let kept = self.source.kept_connections();
        let per_message = self.transport().params.connections == Connections::PerMessage;
        // Flows that keep none have a connection each.
        self.keeps_connections =
            !per_message && (self.source.reach() != SourceReach::Receiver || !kept.is_empty());
        for opened in kept {
            let (client, server) = (opened.client.0, opened.server.0);
            let pipe = self.pipes.open(&self.epoll, client, server)?;
            self.spare.entry((client, server)).or_default().push_back(pipe);
        }
        while !self.is_over() && !self.pipes.are_open() {
            self.wait(PATIENCE_SPAN)?;
        }
        self.shared.connected.fetch_add(1, Ordering::Relaxed);
        let begin = Time::ZERO + self.context.settings.origin;
        while !self.is_over() && self.context.settings.clock.now() < begin {
            self.wait(begin.saturating_since(self.context.settings.clock.now()))?;
        }
        Ok(())
    }

    /// Handles all events that are due, each with its own time, and returns the time now.
    fn catch_up(&mut self) -> io::Result<Time> {
        let now = self.context.settings.now();
        loop {
            let due = self.source.next_due();
            let lost = self.sent.front().map_or(Time::MAX, |(sent, _)| sent.saturating_add(LOST_AFTER));
            if due.min(lost) > now {
                return Ok(now);
            }
            if due <= lost {
                self.act(due, |source, actions| source.on_due(due, actions))?;
            } else {
                self.give_up(lost)?;
            }
        }
    }

    /// Reports the first packet sent as lost, unless it has arrived or was sent again.
    fn give_up(&mut self, now: Time) -> io::Result<()> {
        let Some((sent, name)) = self.sent.pop_front() else { return Ok(()) };
        if self.in_flight.get(&name) != Some(&sent) {
            return Ok(());
        }
        self.in_flight.remove(&name);
        self.given_up.insert(name);
        self.act(now, |source, _| source.on_lost(now))
    }

    /// Waits for the sockets, at most `span`, and handles their events.
    fn wait(&mut self, span: Span) -> io::Result<()> {
        let span = span.min(PATIENCE_SPAN).as_ps();
        let timeout = Timespec {
            tv_sec: (span / PS_PER_S) as i64,
            tv_nsec: (span % PS_PER_S).div_ceil(PS_PER_NS) as i64,
        };
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events {
            let word = event.data.u64();
            if word & DATAGRAMS != 0 {
                self.on_datagrams((word & !DATAGRAMS) as u32)?;
            } else if word & LISTENER != 0 {
                self.pipes.accept(&self.epoll, (word & !LISTENER) as u32)?;
            } else {
                self.on_pipe((word >> 1) as usize, (word & 1) as usize)?;
            }
        }
        Ok(())
    }

    fn on_pipe(&mut self, pipe: usize, end: usize) -> io::Result<()> {
        self.pipes.flush(pipe, end)?;
        for message in self.pipes.read(pipe, end)? {
            let now = self.catch_up()?;
            let (client, server) = self.pipes.hosts(pipe);
            let (from, to) = if end == 0 { (server, client) } else { (client, server) };
            let packet = Packet::new(HostId(from), HostId(to), message.connection, 0);
            let ideal = self.ideal(packet, message.bytes);
            let (tag, bytes, split) = (message.tag, message.bytes, Split::default());
            let waits = MessageWaits::default();
            let arrival = Arrival { now, tag, from: HostId(from), bytes, split, ideal, waits };
            self.act(now, |source, actions| source.on_message(arrival, actions))?;
        }
        // A connection of one message has served when its client has the answer, or its server a flow.
        let is_last = end == ConnectionEnd::Client as usize || self.source.reach() == SourceReach::Receiver;
        if is_last && !self.keeps_connections {
            self.pipes.close_if_idle(pipe);
        }
        Ok(())
    }

    fn on_datagrams(&mut self, host: u32) -> io::Result<()> {
        while let Some(datagram) = self.datagrams.receive(host)? {
            let Datagram { from, to, size, tag } = datagram;
            let name = (from.0, tag);
            if self.given_up.contains(&name) {
                continue;
            }
            let made = self.in_flight.remove(&name);
            let now = self.catch_up()?;
            let payload = self.datagrams.payload(&datagram);
            // The part of its latency on idle links is known; the rest is attributed to the NIC, for the sum.
            let took = made.map_or(Span::MAX, |made| now.saturating_since(made));
            let ideal = self.ideal(Packet::new(from, to, 0, size), payload).min(took);
            let nic = made.map_or(Span::ZERO, |_| took - ideal);
            let split = Split { propagation: ideal, nic, ..Split::default() };
            let waits = MessageWaits::default();
            let arrival = Arrival { now, tag, from, bytes: u64::from(size), split, ideal, waits };
            self.act(now, |source, actions| source.on_message(arrival, actions))?;
        }
        Ok(())
    }

    fn ideal(&self, packet: Packet, bytes: u64) -> Span {
        ideal_time(&self.context.network, self.transport(), bytes, packet, false)
    }

    fn transport(&self) -> &TcpConfig {
        &self.context.transport(&self.driven).config
    }

    /// Lets the source act at its time `at`, and carries out its actions.
    fn act(&mut self, at: Time, act: impl FnOnce(&mut dyn Source, &mut Actions)) -> io::Result<()> {
        self.actions.next_connection = self.pipe_of.len() as u32;
        act(self.source.as_mut(), &mut self.actions);
        for opened in mem::take(&mut self.actions.opened) {
            let (client, server) = (opened.client.0, opened.server.0);
            let spare = self.spare.get_mut(&(client, server)).and_then(VecDeque::pop_front);
            let pipe = spare.map_or_else(|| self.pipes.open(&self.epoll, client, server), Ok)?;
            self.pipe_of.push(pipe);
        }
        for write in mem::take(&mut self.actions.writes) {
            self.write(write)?;
        }
        for datagram in mem::take(&mut self.actions.datagrams) {
            let name = (datagram.from.0, datagram.tag);
            self.in_flight.insert(name, at);
            self.sent.push_back((at, name));
            self.datagrams.send(&self.epoll, &datagram)?;
        }
        self.take_records();
        self.announce();
        Ok(())
    }

    /// Announces the data that the source will send.
    fn announce(&self) {
        if let Some(hints) = &self.context.hints {
            hints.replace(self.number, self.source.as_ref(), self.context.settings.origin);
        }
    }

    fn write(&mut self, write: Write) -> io::Result<()> {
        let Write { connection, end, bytes, tag, .. } = write;
        let pipe = self.pipe_of[connection as usize];
        self.pipes.write(pipe, end as usize, PipedMessage { connection, bytes, tag })
    }

    fn take_records(&mut self) {
        // The components of an emulated message's latency are unknown, except its ideal time.
        self.actions.records.messages.iter_mut().for_each(|message| message.split = Split::default());
        self.actions.records.path_waits.clear();
        self.actions.records.iterations.iter_mut().for_each(|iteration| iteration.split = Split::default());
        self.records.of_source.append(&mut self.actions.records);
    }
}

const PATIENCE_SPAN: Span = Span::from_ms(PATIENCE.as_millis() as u64);
const PS_PER_NS: u64 = 1_000;
const PS_PER_S: u64 = 1_000_000_000_000;
