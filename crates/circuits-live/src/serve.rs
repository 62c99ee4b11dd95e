//! The controller: a UDP socket for agents, a TCP connection to the circuit switch, and one thread that waits for both.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_circuits::{LiveAction, LiveController, LiveCounts, MessageBody};
use plimsoll_http::Listener;
use plimsoll_http::metrics::{self, Exposition};
use plimsoll_process::note;
use plimsoll_units::Time;
use rustix::event::{PollFd, PollFlags, poll};

use crate::config::CircuitsConfig;
use crate::connection::SwitchConnection;
use crate::seal::{ControlKey, nonce};
use crate::switch::SwitchEvent;
use crate::{LiveClock, LiveError, WAIT_MAX, timespec};

/// Runs the controller of `config` until `is_over`; metrics are served at `metrics`, if given. `ready` is called once
/// it listens.
///
/// # Errors
/// Returns an error if an address is in use, the key cannot be read, or the system refuses to wait.
pub fn serve(
    config: &CircuitsConfig,
    metrics: Option<Listener>,
    ready: impl FnOnce(),
    is_over: impl Fn() -> bool,
) -> Result<(), LiveError> {
    let key = config.key()?;
    let listen = |address: SocketAddr| LiveError::doing(format!("listening on {address}"));
    let agents = UdpSocket::bind(config.controller).map_err(listen(config.controller))?;
    let switches = TcpListener::bind(config.openflow).map_err(listen(config.openflow))?;
    let unblocked = agents.set_nonblocking(true).and_then(|()| switches.set_nonblocking(true));
    unblocked.map_err(LiveError::doing("waiting for agents"))?;
    let clock = LiveClock::start();
    let shown = Arc::new(Mutex::new(ServedMetrics::default()));
    if let Some(listener) = metrics {
        let shown = Arc::clone(&shown);
        let text = move || Ok(shown.lock().unwrap_or_else(PoisonError::into_inner).text());
        metrics::spawn(listener, text).map_err(LiveError::doing("serving metrics"))?;
    }
    let ports = config.host.len();
    let mut serving = Serving {
        controller: LiveController::new(config.params(), config.scheduler.make(), ports, clock.now()),
        key,
        agents,
        ports: config.host.iter().map(|host| host.port).collect(),
        addresses: vec![None; ports],
        connection: None,
        candidates: VecDeque::new(),
        clock,
        refused: 0,
    };
    ready();
    while !is_over() {
        serving.wait(&switches).map_err(LiveError::doing("waiting for messages"))?;
        *shown.lock().unwrap_or_else(PoisonError::into_inner) = serving.shown();
    }
    Ok(())
}

struct Serving {
    controller: LiveController,
    key: ControlKey,
    agents: UdpSocket,
    /// The OpenFlow port of each host.
    ports: Vec<u32>,
    /// The source of the last report of each host.
    addresses: Vec<Option<SocketAddr>>,
    connection: Option<SwitchConnection>,
    /// Connections that have not shown to be a switch, the oldest first. One that does replaces the connection, so that
    /// a switch can come back before its old connection is lost, and a stranger cannot take its place by connecting.
    candidates: VecDeque<SwitchConnection>,
    clock: LiveClock,
    refused: u64,
}

impl Serving {
    /// Waits until something is due, and handles it.
    fn wait(&mut self, switches: &TcpListener) -> io::Result<()> {
        let now = self.clock.now();
        let due = self.controller.next_due(now).saturating_since(now).min(WAIT_MAX);
        let mut waits = vec![PollFd::new(&self.agents, PollFlags::IN), PollFd::new(switches, PollFlags::IN)];
        let connections = self.connection.iter().chain(&self.candidates);
        let switches_up = usize::from(self.connection.is_some());
        waits.extend(connections.map(|one| PollFd::new(&one.stream, PollFlags::IN)));
        match poll(&mut waits, Some(&timespec(due))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = waits.iter().map(|wait| !wait.revents().is_empty()).collect();
        if ready[0] {
            self.read_agents()?;
        }
        let (connection, candidates) = ready[2..].split_at(switches_up);
        // The switch comes first: a candidate may replace it, with nothing to read.
        self.read_switch(connection == [true]);
        self.read_candidates(candidates);
        if ready[1] {
            self.accept(switches);
        }
        self.step(|controller, now, out| controller.on_due(now, out));
        Ok(())
    }

    fn read_agents(&mut self) -> io::Result<()> {
        let mut datagram = [0; DATAGRAM_MAX];
        loop {
            let (length, source) = match self.agents.recv_from(&mut datagram) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // An agent that has ended answers with an error, which is reported by the next call.
                Err(_) => continue,
            };
            let Ok(message) = self.key.open(&datagram[..length]) else {
                self.refused += 1;
                continue;
            };
            let (nonce, host) = (nonce()?, usize::from(message.host));
            let mut out = Vec::new();
            if self.controller.on_message(self.clock.now(), &message, nonce, &mut out) {
                self.addresses[host] = Some(source);
            }
            self.carry_out(out, Some(source));
        }
    }

    fn accept(&mut self, switches: &TcpListener) {
        let Ok((stream, address)) = switches.accept() else { return };
        // A connection that has ended already was none.
        let Ok(candidate) = SwitchConnection::begin(stream, address, self.ports.clone(), self.clock.now())
        else {
            return;
        };
        if self.candidates.len() == CANDIDATES_MAX {
            self.candidates.pop_front();
        }
        self.candidates.push_back(candidate);
    }

    /// Reads the connections that are no switch yet; `ready` says which of them have something to read.
    fn read_candidates(&mut self, ready: &[bool]) {
        let now = self.clock.now();
        for (mut candidate, is_ready) in std::mem::take(&mut self.candidates).into_iter().zip(ready) {
            let events =
                if *is_ready { candidate.read(now) } else { candidate.tick(now).map(|()| Vec::new()) };
            match events {
                Err(why) => note!("no circuit switch at {}: {why}", candidate.address),
                Ok(events) if events.contains(&SwitchEvent::Up) => {
                    note!("the circuit switch connects from {}", candidate.address);
                    self.connection = Some(candidate);
                    self.step(|controller, now, out| controller.on_switch(now, true, out));
                }
                Ok(_) if candidate.is_old(now) => {}
                Ok(_) => self.candidates.push_back(candidate),
            }
        }
    }

    /// Reads the switch if it `is_ready`, and checks that it answers.
    fn read_switch(&mut self, is_ready: bool) {
        let now = self.clock.now();
        let Some(connection) = &mut self.connection else { return };
        let events = if is_ready { connection.read(now) } else { Ok(Vec::new()) };
        let events = events.and_then(|events| connection.tick(now).map(|()| events));
        match events {
            Err(why) => self.lose(&why),
            Ok(events) => {
                for event in events {
                    if let SwitchEvent::Installed(number) = event {
                        self.step(|controller, now, out| controller.on_installed(now, number, out));
                    }
                }
            }
        }
    }

    fn step(&mut self, act: impl FnOnce(&mut LiveController, Time, &mut Vec<LiveAction>)) {
        let mut out = Vec::new();
        act(&mut self.controller, self.clock.now(), &mut out);
        self.carry_out(out, None);
    }

    /// Carries out actions; a challenge goes to `source`, and grants go to where their hosts report from.
    fn carry_out(&mut self, actions: Vec<LiveAction>, source: Option<SocketAddr>) {
        for action in actions {
            match action {
                LiveAction::Send(message) => {
                    let is_challenge = message.body == MessageBody::Challenge;
                    let known = self.addresses[usize::from(message.host)];
                    if let Some(address) = if is_challenge { source } else { known } {
                        // A message that is lost here is lost as one on the way.
                        let _ = self.agents.send_to(&self.key.seal(&message), address);
                    }
                }
                LiveAction::Install { number, from, to } => {
                    let installed = self
                        .connection
                        .as_mut()
                        .map_or(Ok(()), |connection| connection.install(number, from.as_ref(), &to));
                    if let Err(why) = installed {
                        self.lose(&why);
                    }
                }
            }
        }
    }

    fn lose(&mut self, why: &str) {
        if self.connection.take().is_some() {
            note!("{why}");
            self.step(|controller, now, out| controller.on_switch(now, false, out));
        }
    }

    fn shown(&self) -> ServedMetrics {
        let matching = self.controller.established();
        ServedMetrics {
            counts: self.controller.counts(),
            hosts: self.controller.hosts_heard(self.clock.now()),
            is_switch_up: matching.is_some(),
            circuits: matching.map_or(0, |matching| matching.circuits().count()),
            refused: self.refused,
        }
    }
}

/// The counters of the controller, and the numbers of hosts and of circuits, as the metrics report them.
#[derive(Clone, Copy, Debug, Default)]
struct ServedMetrics {
    counts: LiveCounts,
    hosts: usize,
    is_switch_up: bool,
    circuits: usize,
    refused: u64,
}

impl ServedMetrics {
    fn text(&self) -> String {
        let LiveCounts { weeks, configurations, reports, stale, grants, night, night_max } = self.counts;
        let mut out = Exposition::default();
        for (name, help, value) in [
            ("weeks", "Weeks that have begun.", weeks),
            ("configurations", "Matchings that the circuit switch has established.", configurations),
            ("reports", "Reports of agents that were accepted.", reports),
            ("stale_messages", "Messages of another session, or not newer than the last.", stale),
            ("refused_datagrams", "Datagrams that were not authentic, or no message.", self.refused),
            ("grants", "Grants that were sent.", grants),
        ] {
            out.counter(&format!("plimsoll_circuits_{name}"), help, value);
        }
        for (name, help, value) in [
            ("hosts", "Hosts whose agents have reported within a lease.", self.hosts as f64),
            (
                "switch_up",
                "1 while the matching of the circuit switch is known.",
                f64::from(self.is_switch_up),
            ),
            ("established", "Circuits that are established.", self.circuits as f64),
            ("night_seconds", "The last time from a decision to established circuits.", night.as_secs_f64()),
            ("night_max_seconds", "The longest such time.", night_max.as_secs_f64()),
        ] {
            out.gauge(&format!("plimsoll_circuits_{name}"), help, value);
        }
        metrics::process(&mut out);
        out.finish()
    }
}

/// More bytes than the report of 1,024 hosts has.
const DATAGRAM_MAX: usize = 16 << 10;
/// The most connections that are no switch yet; beyond it, the oldest is closed.
const CANDIDATES_MAX: usize = 8;
