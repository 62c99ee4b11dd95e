//! Emulates switches that query an OpenFlow controller about packets, as cbench does.
//!
//! ```text
//!  Switch (no socket) ── packet-in ──> controller ── flow-mod or packet-out that names its buffer ──> Switch
//! ```
//! In latency mode each switch has one packet-in outstanding, in throughput mode as many as requested.

pub mod compare;
pub mod switch;
pub mod wire;

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::thread;

use anyhow::{Context, bail, ensure};
use plimsoll_units::{Span, Time};
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};
use socket2::Socket;

use crate::book::Book;
use crate::drive::{Clock, IdleWait};
use crate::endpoint::ServerAddress;
use crate::phase::{MeasurementEdge, pin};
use crate::process::ProcessorTime;
use crate::report::{Distribution, SuspectLimits};
use switch::{ControllerMessages, Switch};
use wire::ProtocolVersion;

/// The load on a controller.
#[derive(Clone, Debug)]
pub struct SwitchLoad {
    /// The OpenFlow version of the switches.
    pub version: ProtocolVersion,
    /// The number of switches; their datapath IDs are 1 and so on.
    pub switches: u32,
    /// The packet-ins outstanding at each switch: 1 is cbench's latency mode.
    pub outstanding: usize,
    /// The number of source addresses in each switch's packets.
    pub macs: u64,
    /// Whether packet-ins name a buffer.
    pub buffered: bool,
    /// The processor to run on; none leaves the choice to the system.
    pub cpu: Option<usize>,
    /// The behaviour of the thread when it has no work.
    pub wait: IdleWait,
    /// The length of the load before the measurement.
    pub warm_up: Span,
    /// The measured length of the run.
    pub time: Span,
    /// The time after which a packet-in counts as lost.
    pub timeout: Span,
}

/// The results of a run. Times are in microseconds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OpenFlowReport {
    /// The reasons why this run is suspect; empty if it is valid.
    pub suspect: Vec<String>,
    /// The packet-ins answered a second.
    pub rate: f64,
    /// The time from sending a packet-in to the first message that names its buffer.
    pub latency: Distribution,
    /// The answers within the measured time; flow-mods, packet-outs, errors and losses of the whole run.
    pub replies: ControllerMessages,
    /// The share of the time in which the generator was runnable, but others had its processor.
    pub generator_waited: f64,
    /// Descriptions of the first few errors.
    pub examples: Vec<String>,
}

/// A switch with its socket.
struct SwitchSocket {
    switch: Switch,
    socket: Socket,
}

struct SwitchBench<'a> {
    plan: &'a SwitchLoad,
    controller: &'a ServerAddress,
    ports: Vec<SwitchSocket>,
    poll: OwnedFd,
    events: Vec<epoll::Event>,
    buffer: Vec<u8>,
    clock: Clock,
    replies: ControllerMessages,
    book: Book,
    from: Time,
    to: Time,
}

impl SwitchLoad {
    /// Connects all switches to `controller`, waits until it has requested their features, and runs the load; `look` is
    /// called at the start and the end of the measured time.
    ///
    /// # Errors
    /// Returns an error if the controller cannot be reached, closes a connection, or speaks another version of
    /// OpenFlow.
    pub fn run(
        &self,
        controller: &ServerAddress,
        look: impl FnMut(MeasurementEdge) + Send,
    ) -> anyhow::Result<OpenFlowReport> {
        // The load has a thread of its own, so that only this thread is bound to the processor.
        let load = || {
            self.cpu.map_or(Ok(()), |cpu| pin(&[cpu]))?;
            self.run_here(controller, look)
        };
        thread::scope(|scope| {
            let load = thread::Builder::new().spawn_scoped(scope, load);
            let load = load.context("cannot start a thread for the load")?;
            load.join().expect("a thread that panics has said why")
        })
    }

    fn run_here(
        &self,
        controller: &ServerAddress,
        look: impl FnMut(MeasurementEdge),
    ) -> anyhow::Result<OpenFlowReport> {
        let mut bench = SwitchBench {
            plan: self,
            controller,
            ports: Vec::new(),
            poll: epoll::create(epoll::CreateFlags::CLOEXEC).context("cannot poll")?,
            events: Vec::with_capacity(EVENTS_MAX),
            buffer: vec![0; READ_BYTES],
            clock: Clock::start(),
            replies: ControllerMessages::default(),
            book: Book::default(),
            from: Time::MAX,
            to: Time::MAX,
        };
        // The switches connect one after the other: ovs-testcontroller disconnects a switch that is silent for a
        // second, and takes that long to accept many at once.
        for number in 0..self.switches {
            bench.connect(number)?;
        }
        let start = bench.clock.now();
        bench.from = start + self.warm_up;
        bench.to = bench.from + self.time;
        let before = ProcessorTime::of_this_thread().unwrap_or_default();
        bench.ask(look)?;
        let after = ProcessorTime::of_this_thread().unwrap_or_default();
        let waited = after.waited.saturating_sub(before.waited).as_secs_f64();
        Ok(bench.report(waited / (self.warm_up + self.time).as_secs_f64()))
    }
}

impl SwitchBench<'_> {
    /// Connects switch `number`, counted from 0, and waits for the features request.
    fn connect(&mut self, number: u32) -> anyhow::Result<()> {
        let SwitchLoad { version, macs, buffered, .. } = self.plan;
        let controller = self.controller;
        let socket = controller.connect().with_context(|| format!("cannot connect to {controller}"))?;
        epoll::add(&self.poll, &socket, epoll::EventData::new_u64(u64::from(number)), epoll::EventFlags::IN)
            .context("cannot poll")?;
        let switch = Switch::new(*version, u64::from(number) + 1, *macs, *buffered);
        self.ports.push(SwitchSocket { switch, socket });
        let port = number as usize;
        self.send(port)?;
        let limit = self.clock.now() + HANDSHAKE_MAX;
        while !self.ports[port].switch.is_ready {
            ensure!(
                self.clock.now() < limit,
                "switch {} was not asked for its features within {HANDSHAKE_MAX}: is {controller} an OpenFlow \
                 controller?",
                port + 1
            );
            self.turn(Span::from_ms(10))?;
        }
        Ok(())
    }

    /// Sends packet-ins until the end of the run.
    fn ask(&mut self, mut look: impl FnMut(MeasurementEdge)) -> anyhow::Result<()> {
        let mut next_check = Time::ZERO;
        let mut is_measured = false;
        loop {
            let now = self.clock.now();
            if now >= self.from && !is_measured {
                is_measured = true;
                look(MeasurementEdge::Start);
            }
            if now >= self.to {
                look(MeasurementEdge::End);
                return Ok(());
            }
            if now >= next_check {
                next_check = now + CHECK_EVERY;
                let limit = Time::ZERO + now.saturating_since(Time::ZERO + self.plan.timeout);
                for port in &mut self.ports {
                    self.replies.lost += port.switch.give_up(limit);
                }
            }
            for port in 0..self.ports.len() {
                self.fill(port)?;
            }
            let wait = if self.plan.wait == IdleWait::Spin { Span::ZERO } else { CHECK_EVERY };
            self.turn(wait)?;
        }
    }

    /// Sends packet-ins until the limit of outstanding ones.
    fn fill(&mut self, port: usize) -> anyhow::Result<()> {
        let now = self.clock.now();
        let switch = &mut self.ports[port].switch;
        while switch.outstanding() < self.plan.outstanding && switch.out.len() < OUT_BYTES_MAX {
            switch.packet_in(now);
        }
        self.send(port)
    }

    fn send(&mut self, port: usize) -> anyhow::Result<()> {
        let SwitchSocket { switch, socket } = &mut self.ports[port];
        if switch.out.is_empty() {
            return Ok(());
        }
        let mut socket = &*socket;
        match socket.write(&switch.out) {
            Ok(bytes) => {
                switch.out.drain(..bytes);
                Ok(())
            }
            // The next iteration tries again.
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error).with_context(|| format!("switch {}: cannot send", port + 1)),
        }
    }

    /// Handles input that is available, or arrives within `wait`.
    fn turn(&mut self, wait: Span) -> anyhow::Result<()> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: (wait.as_ps() / 1_000) as i64 };
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        match epoll::wait(&self.poll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
            Err(rustix::io::Errno::INTR) | Ok(_) => {}
            Err(error) => return Err(io::Error::from(error)).context("cannot poll"),
        }
        for event in &events {
            self.receive(event.data.u64() as usize)?;
        }
        self.events = events;
        Ok(())
    }

    fn receive(&mut self, port: usize) -> anyhow::Result<()> {
        let Self { ports, buffer, replies, book, .. } = self;
        let SwitchSocket { switch, socket } = &mut ports[port];
        let mut socket = &*socket;
        let bytes = match socket.read(buffer) {
            Ok(0) => bail!("switch {}: the controller closed the connection", port + 1),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error).with_context(|| format!("switch {}: cannot receive", port + 1)),
        };
        let now = self.clock.now();
        let measured = (self.from..self.to).contains(&now);
        switch
            .receive(now, &buffer[..bytes], measured, replies, book)
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("switch {}", port + 1))?;
        // In latency mode the next packet-in is sent at once, not after the other switches' replies.
        if self.to == Time::MAX { self.send(port) } else { self.fill(port) }
    }

    fn report(self, generator_waited: f64) -> OpenFlowReport {
        let SwitchBench { plan, replies, book, .. } = self;
        let mut suspect = Vec::new();
        if replies.answered == 0 {
            suspect.push(
                "no packet-in was answered: no flow-mod or packet-out named its buffer (see --unbuffered)"
                    .to_owned(),
            );
        }
        if replies.lost > 0 {
            suspect.push(format!("{} packet-ins had no answer within {}", replies.lost, plan.timeout));
        }
        if replies.errors > 0 {
            suspect.push(format!("the controller sent {} errors", replies.errors));
        }
        if generator_waited > SuspectLimits::default().waited_share {
            let percent = 100.0 * generator_waited;
            suspect.push(format!("the generator waited for a processor for {percent:.0} % of the time"));
        }
        OpenFlowReport {
            suspect,
            rate: replies.answered as f64 / plan.time.as_secs_f64(),
            latency: Distribution::of(&book.latency),
            replies,
            generator_waited,
            examples: book.examples,
        }
    }
}

impl fmt::Display for OpenFlowReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for reason in &self.suspect {
            writeln!(f, "SUSPECT: {reason}")?;
        }
        writeln!(f, "answers/s     {:.0}", self.rate)?;
        Distribution::head(f)?;
        self.latency.row("latency", f)?;
        let ControllerMessages { answered, flow_mods, packet_outs, errors, lost } = self.replies;
        writeln!(
            f,
            "packet-ins    {answered} answered, {lost} lost; {flow_mods} flow-mods, {packet_outs} packet-outs, \
             {errors} errors"
        )?;
        self.examples.iter().try_for_each(|example| writeln!(f, "  {example}"))
    }
}

/// The longest handshake: a slower controller waits for something that this switch does not send.
const HANDSHAKE_MAX: Span = Span::from_secs(10);
/// The interval at which packet-ins are checked for timeouts.
const CHECK_EVERY: Span = Span::from_ms(10);
/// While more bytes than this are unsent, no further packet-ins are created.
const OUT_BYTES_MAX: usize = 64 * 1024;
const READ_BYTES: usize = 64 * 1024;
const EVENTS_MAX: usize = 256;
