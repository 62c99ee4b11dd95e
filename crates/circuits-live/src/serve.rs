//! The controller: a UDP socket for agents, a TCP connection to the circuit switch, and one thread that waits for both.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_circuits::{LiveAction, LiveController, LiveCounts, MessageBody};
use plimsoll_http::Listener;
use plimsoll_http::metrics::{self, Exposition};
use plimsoll_process::note;
use plimsoll_units::Time;
use rustix::event::{PollFd, PollFlags, poll};

use crate::config::CircuitsConfig;
use crate::seal::{ControlKey, nonce};
use crate::switch::{CircuitSwitch, SwitchError, SwitchEvent};
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
    clock: LiveClock,
    refused: u64,
}

struct SwitchConnection {
    stream: TcpStream,
    switch: CircuitSwitch,
}

impl Serving {
    /// Waits until something is due, and handles it.
    fn wait(&mut self, switches: &TcpListener) -> io::Result<()> {
        let now = self.clock.now();
        let due = self.controller.next_due(now).saturating_since(now).min(WAIT_MAX);
        let mut waits = vec![PollFd::new(&self.agents, PollFlags::IN), PollFd::new(switches, PollFlags::IN)];
        waits.extend(self.connection.iter().map(|one| PollFd::new(&one.stream, PollFlags::IN)));
        match poll(&mut waits, Some(&timespec(due))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = waits.iter().map(|wait| !wait.revents().is_empty()).collect();
        if ready[0] {
            self.read_agents()?;
        }
        if ready.get(2) == Some(&true) {
            self.read_switch();
        }
        if ready[1] {
            self.accept(switches);
        }
        self.step(|controller, now, out| controller.on_due(now, out));
        self.with_switch(|switch, now, out| switch.on_tick(now, out).map(|()| Vec::new()));
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
        let options = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_nodelay(true))
            .and_then(|()| stream.set_write_timeout(Some(WRITE_MAX)));
        if options.is_err() {
            return;
        }
        note!("the circuit switch connects from {address}");
        // A switch that connects again has lost its earlier connection.
        self.lose(None);
        let mut out = Vec::new();
        let switch = CircuitSwitch::new(self.ports.clone(), self.clock.now(), &mut out);
        self.connection = Some(SwitchConnection { stream, switch });
        self.write(&out);
    }

    fn read_switch(&mut self) {
        let mut bytes = [0; 4_096];
        let Some(connection) = &mut self.connection else { return };
        match connection.stream.read(&mut bytes) {
            Ok(0) => self.lose(Some("the circuit switch has closed its connection".to_owned())),
            Ok(length) => self.with_switch(|switch, now, out| switch.on_bytes(now, &bytes[..length], out)),
            Err(error) => self.lose(Some(format!("the circuit switch is lost: {error}"))),
        }
    }

    /// Lets the switch's state machine act, and handles its events.
    fn with_switch(
        &mut self,
        act: impl FnOnce(&mut CircuitSwitch, Time, &mut Vec<u8>) -> Result<Vec<SwitchEvent>, SwitchError>,
    ) {
        let Some(connection) = &mut self.connection else { return };
        let mut out = Vec::new();
        let events = act(&mut connection.switch, self.clock.now(), &mut out);
        self.write(&out);
        match events {
            Err(error) => self.lose(Some(error.to_string())),
            Ok(events) => {
                for event in events {
                    self.step(|controller, now, out| match event {
                        SwitchEvent::Up => controller.on_switch(now, true, out),
                        SwitchEvent::Installed(number) => controller.on_installed(now, number, out),
                    });
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
        let mut bytes = Vec::new();
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
                    if let Some(connection) = &mut self.connection {
                        connection.switch.install(number, from.as_ref(), &to, &mut bytes);
                    }
                }
            }
        }
        self.write(&bytes);
    }

    fn write(&mut self, bytes: &[u8]) {
        let Some(connection) = &mut self.connection else { return };
        if let Err(error) = connection.stream.write_all(bytes) {
            self.lose(Some(format!("the circuit switch is lost: {error}")));
        }
    }

    fn lose(&mut self, why: Option<String>) {
        if self.connection.take().is_some() {
            if let Some(why) = why {
                note!("{why}");
            }
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
/// The time for which a switch may refuse bytes.
const WRITE_MAX: Duration = Duration::from_secs(1);
