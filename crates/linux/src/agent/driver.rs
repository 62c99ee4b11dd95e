//! [`Driver`]: a source of traffic that reacts to what arrives, by the wall's clock and over the kernel's sockets.
//!
//! ```text
//! on_due, at the time it asked for ──> Workload ──Actions──> Pipes: TCP, a byte stream each way
//!                                         ^                  Datagrams: UDP, single packets
//!                                         └── on_message, on_packet <── epoll ──┘
//! ```
//!
//! The source is the simulator's own, with the same draws and the same records. One thread acts for all hosts of a
//! source, as the simulator does: a socket belongs to the namespace that it was made in, whoever uses it. What is due
//! happens at the time that it was due, so that a thread that wakes up late makes answers late, not questions fewer.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_fabric::net::{HostId, Network, Packet};
use plimsoll_mechanisms::tcp::{Config, Connections};
use plimsoll_results::outcome::{self, ExtraLoad, Message, Observation, Query, Split};
use plimsoll_units::{Span, Time};
use plimsoll_wiring::ideal_time;
use plimsoll_workloads::{Actions, Arrival, Workload, Write, raw_packet};
use rustix::event::{Timespec, epoll};

use super::datagrams::Datagrams;
use super::pipes::Pipes;
use super::plan::Driven;
use super::run::{PATIENCE, Settings, Shared};

/// What the hosts of a source need to know.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) settings: Settings,
    /// The hosts' namespaces.
    pub(crate) names: Vec<String>,
    /// What the ideal times are computed from.
    pub(crate) network: Network,
    pub(crate) transport: Config,
}

/// A source of traffic and its sockets.
pub(crate) struct Driver {
    place: Arc<Place>,
    shared: Arc<Shared>,
    source: Box<dyn Workload>,
    epoll: OwnedFd,
    pipes: Pipes,
    datagrams: Datagrams,
    /// By number of a connection, its pipe.
    pipe_of: Vec<usize>,
    /// Pipes that were opened beforehand, by client and server.
    spare: BTreeMap<(u32, u32), VecDeque<usize>>,
    /// Packets that have not arrived, and when they were made last.
    under_way: BTreeMap<PacketName, Time>,
    /// In that order; some have arrived, or were sent again.
    sent: VecDeque<(Time, PacketName)>,
    given_up: BTreeSet<PacketName>,
    actions: Actions,
    records: Records,
}

/// Sender, sequence and acknowledgement number.
type PacketName = (u32, u32, u32);

/// What a source has recorded.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) messages: Vec<Message>,
    pub(crate) queries: Vec<Query>,
    pub(crate) observations: Vec<Observation>,
    pub(crate) extra: Vec<ExtraLoad>,
    pub(crate) connections: Vec<outcome::Connection>,
}

/// A single packet that has not arrived by then is lost.
const LOST_AFTER: Span = Span::from_secs(1);
/// Events taken from the kernel at once.
const EVENTS: usize = 256;

/// What an event is about: the upper bits say of which kind its number is.
pub(super) mod token {
    pub(in super::super) const LISTENER: u64 = 1 << 62;
    pub(in super::super) const DATAGRAMS: u64 = 1 << 63;
}

impl Driver {
    /// Drives `source`, which is `driven` in the plan.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn new(
        place: &Arc<Place>,
        shared: &Arc<Shared>,
        driven: Driven,
        source: Box<dyn Workload>,
    ) -> io::Result<Driver> {
        Ok(Driver {
            pipes: Pipes::new(place, driven),
            datagrams: Datagrams::new(place, driven),
            place: Arc::clone(place),
            shared: Arc::clone(shared),
            source,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            pipe_of: Vec::new(),
            spare: BTreeMap::new(),
            under_way: BTreeMap::new(),
            sent: VecDeque::new(),
            given_up: BTreeSet::new(),
            actions: Actions::default(),
            records: Records::default(),
        })
    }

    /// Drives the source until it is finished or the run is over.
    ///
    /// # Errors
    /// If the system refuses, or a connection breaks.
    pub(crate) fn run(mut self) -> io::Result<Records> {
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

    /// Opens what is certain to be opened, and waits until workloads begin.
    fn prepare(&mut self) -> io::Result<()> {
        for opened in self.source.kept_connections() {
            let (client, server) = (opened.client.0, opened.server.0);
            let pipe = self.pipes.open(&self.epoll, client, server)?;
            self.spare.entry((client, server)).or_default().push_back(pipe);
        }
        while !self.is_over() && !self.pipes.are_open() {
            self.wait(PATIENCE_SPAN)?;
        }
        self.shared.connected.fetch_add(1, Ordering::Relaxed);
        let begin = Time::ZERO + self.place.settings.origin;
        while !self.is_over() && self.place.settings.clock.now() < begin {
            self.wait(begin.saturating_since(self.place.settings.clock.now()))?;
        }
        Ok(())
    }

    /// Everything that is due up to now happens, each at its own time. Gives now.
    fn catch_up(&mut self) -> io::Result<Time> {
        let now = self.place.settings.now();
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

    /// The packet that was sent first is lost, unless it has arrived or was sent again.
    fn give_up(&mut self, now: Time) -> io::Result<()> {
        let Some((sent, name)) = self.sent.pop_front() else { return Ok(()) };
        if self.under_way.get(&name) != Some(&sent) {
            return Ok(());
        }
        self.under_way.remove(&name);
        self.given_up.insert(name);
        self.act(now, |source, _| source.on_lost(now))
    }

    /// Waits for the sockets, at most `span`, and takes what they have.
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
            if word & token::DATAGRAMS != 0 {
                self.on_datagrams((word & !token::DATAGRAMS) as u32)?;
            } else if word & token::LISTENER != 0 {
                self.pipes.accept(&self.epoll, (word & !token::LISTENER) as u32)?;
            } else {
                self.on_pipe((word >> 1) as usize, (word & 1) as usize)?;
            }
        }
        Ok(())
    }

    fn on_pipe(&mut self, pipe: usize, end: usize) -> io::Result<()> {
        self.pipes.flush(pipe, end)?;
        for (tag, ideal) in self.pipes.read(pipe, end)? {
            let now = self.catch_up()?;
            let arrival = Arrival { now, tag, split: Split::default(), ideal };
            self.act(now, |source, actions| source.on_message(arrival, actions))?;
        }
        // What a connection was opened for is done when its client has an answer.
        if end == 0 && self.place.transport.connections == Connections::PerMessage {
            self.pipes.close_if_idle(pipe);
        }
        Ok(())
    }

    fn on_datagrams(&mut self, host: u32) -> io::Result<()> {
        while let Some(packet) = self.datagrams.receive(host)? {
            let name = (packet.src.0, packet.seq, packet.ack);
            if self.given_up.contains(&name) {
                continue;
            }
            let made = self.under_way.remove(&name);
            let now = self.catch_up()?;
            let payload = self.datagrams.payload(&packet);
            // Its part that is known is what it takes on idle links; the rest is lent to the NIC, so that the sum is
            // right.
            let took = made.map_or(Span::MAX, |made| now.saturating_since(made));
            let propagation = self.ideal(packet, payload).min(took);
            let nic = made.map_or(Span::ZERO, |_| took - propagation);
            let split = Split { propagation, nic, ..Split::default() };
            self.act(now, |source, actions| source.on_packet(now, &packet, split, actions))?;
        }
        Ok(())
    }

    fn ideal(&self, packet: Packet, bytes: u64) -> Span {
        ideal_time(&self.place.network, &self.place.transport, bytes, packet, false)
    }

    /// Lets the source act at its time `at`, and does what it wants.
    fn act(&mut self, at: Time, act: impl FnOnce(&mut dyn Workload, &mut Actions)) -> io::Result<()> {
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
        for packet in mem::take(&mut self.actions.packets) {
            let name = (packet.src.0, packet.seq, packet.ack);
            self.under_way.insert(name, at);
            self.sent.push_back((at, name));
            self.datagrams.send(&self.epoll, &packet)?;
        }
        self.take_records();
        Ok(())
    }

    fn write(&mut self, write: Write) -> io::Result<()> {
        let Write { connection, end, bytes, tag, .. } = write;
        let pipe = self.pipe_of[connection as usize];
        let (client, server) = self.pipes.hosts(pipe);
        let ends = [HostId(client), HostId(server)];
        let (from, to) = (ends[end as usize], ends[end.other() as usize]);
        let ideal = self.ideal(Packet::new(from, to, connection, 0), bytes);
        self.pipes.write(pipe, end as usize, bytes, tag, ideal)
    }

    fn take_records(&mut self) {
        // Where its time went is not known of an emulated message, but for the parts that were lent for its ideal time.
        let unsplit = |message: Message| Message { split: Split::default(), ..message };
        self.records.messages.extend(self.actions.messages.drain(..).map(unsplit));
        self.records.queries.append(&mut self.actions.queries);
        self.records.observations.append(&mut self.actions.observations);
        self.records.extra.append(&mut self.actions.extra);
    }
}

/// A single packet as it was sent: who sent it, and what it says.
pub(super) fn packet_of(workload: u16, (from, to): (u32, u32), size: u16, seq: u32, ack: u32) -> Packet {
    let mut packet = raw_packet(workload, HostId(from), HostId(to), size);
    (packet.seq, packet.ack) = (seq, ack);
    packet
}

const PATIENCE_SPAN: Span = Span::from_ms(PATIENCE.as_millis() as u64);
const PS_PER_NS: u64 = 1_000;
const PS_PER_S: u64 = 1_000_000_000_000;
