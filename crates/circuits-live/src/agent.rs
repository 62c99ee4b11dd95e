//! The agent of a host: it reads the host's sockets, reports them, and keeps the gate as its lease says.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_bpf::shared::CircuitGateCounts;
use plimsoll_bpf::{CircuitGate, HeldLink, HookDirection, Inputs};
use plimsoll_circuits::CircuitAgent;
use plimsoll_host::DeviceName;
use plimsoll_http::Listener;
use plimsoll_http::metrics::{self, Exposition, MetricKind};
use plimsoll_process::note;
use plimsoll_units::{Span, Time};
use rustix::event::{PollFd, PollFlags, poll};

use crate::config::{CircuitsConfig, LiveHost};
use crate::demand::DemandReader;
use crate::seal::{ControlKey, nonce};
use crate::{LiveClock, LiveError, WAIT_MAX, timespec};

/// Runs the agent of host `number` of `config` until `is_over`; metrics are served at `metrics`, if given. `ready` is
/// called once the gate is in place.
///
/// # Errors
/// Returns an error if the key cannot be read, a device does not exist or rejects packets of circuits, or the kernel
/// refuses the gate.
pub fn run_agent(
    config: &CircuitsConfig,
    number: usize,
    metrics: Option<Listener>,
    ready: impl FnOnce(),
    is_over: impl Fn() -> bool,
) -> Result<(), LiveError> {
    let host = &config.host[number];
    let key = config.key()?;
    let (packets, circuits) = (ifindex(&host.packet_device)?, ifindex(&host.circuit_device)?);
    check_address(host)?;
    check_filter(&host.circuit_device)?;
    let gate = CircuitGate::load(circuits, Inputs::Kernel)?;
    // The link is this process's: if it ends in any way, the kernel removes the gate.
    let link = gate.program().link(packets, HookDirection::Egress)?;
    let demand = DemandReader::open(config.estimator)?;
    let any = if config.controller.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let controller = UdpSocket::bind(any)
        .and_then(|socket| socket.set_nonblocking(true).map(|()| socket))
        .map_err(LiveError::doing("opening a UDP socket"))?;
    let clock = LiveClock::start();
    let first = nonce().map_err(LiveError::doing("beginning a session"))?;
    let shown = Arc::new(Mutex::new(AgentCounts::default()));
    if let Some(listener) = metrics {
        let shown = Arc::clone(&shown);
        let names: Vec<String> = config.host.iter().map(|host| host.name.clone()).collect();
        let text = move || Ok(shown.lock().unwrap_or_else(PoisonError::into_inner).text(&names));
        metrics::spawn(listener, text).map_err(LiveError::doing("serving metrics"))?;
    }
    let mut running = RunningAgent {
        agent: CircuitAgent::new(number as u16, config.report, config.lease, first, clock.now()),
        config,
        own: number,
        key,
        controller,
        demand,
        receivers: config.host.iter().zip(0..).map(|(host, number)| (host.address, number)).collect(),
        gate,
        _link: link,
        open: None,
        counted: Time::ZERO,
        counts: AgentCounts::default(),
        clock,
    };
    ready();
    while !is_over() {
        running.wait()?;
        *shown.lock().unwrap_or_else(PoisonError::into_inner) = running.counts.clone();
    }
    Ok(())
}

struct RunningAgent<'a> {
    agent: CircuitAgent,
    config: &'a CircuitsConfig,
    own: usize,
    key: ControlKey,
    controller: UdpSocket,
    demand: DemandReader,
    receivers: BTreeMap<Ipv4Addr, u16>,
    gate: CircuitGate,
    _link: HeldLink,
    /// The lease that the kernel has.
    open: Option<(u16, Time)>,
    /// The end of the time of which the open gate is counted.
    counted: Time,
    counts: AgentCounts,
    clock: LiveClock,
}

/// The counters of this agent and of its gate, and whether a circuit is open, as the metrics report them.
#[derive(Clone, Debug, Default)]
struct AgentCounts {
    reports: u64,
    answers: u64,
    refused: u64,
    demand: u64,
    gate: CircuitGateCounts,
    /// The time for which the gate was open to each receiver.
    open: BTreeMap<u16, Span>,
    is_connected: bool,
    is_open: bool,
}

impl RunningAgent<'_> {
    fn wait(&mut self) -> Result<(), LiveError> {
        let now = self.clock.now();
        let due = self.agent.next_due().saturating_since(now).min(WAIT_MAX);
        let mut waits = [PollFd::new(&self.controller, PollFlags::IN)];
        match poll(&mut waits, Some(&timespec(due))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(LiveError::doing("waiting for the controller")(error.into())),
        }
        self.read()?;
        if self.clock.now() >= self.agent.next_due() {
            self.report()?;
        }
        self.count_open();
        self.counts.gate = self.gate.counts()?;
        let now = self.clock.now();
        let is_connected = self.agent.is_connected(now);
        self.counts.is_open = self.agent.gate(now).is_some();
        if std::mem::replace(&mut self.counts.is_connected, is_connected) != is_connected {
            let address = self.config.controller;
            if is_connected {
                note!("the controller at {address} answers");
            } else {
                note!("the controller at {address} is silent: all packets take the packet switch");
            }
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), LiveError> {
        let mut datagram = [0; 1_024];
        loop {
            let length = match self.controller.recv_from(&mut datagram) {
                Ok((length, source)) if source == self.config.controller => length,
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // A controller that does not run answers with an error, which is reported by the next call.
                Err(_) => continue,
            };
            match self.key.open(&datagram[..length]) {
                Ok(message) => {
                    self.counts.answers += u64::from(self.agent.on_message(self.clock.now(), &message));
                    self.set_gate()?;
                }
                Err(_) => self.counts.refused += 1,
            }
        }
    }

    fn report(&mut self) -> Result<(), LiveError> {
        let mut waiting: BTreeMap<u16, u64> = BTreeMap::new();
        self.demand.read(|to, bytes| {
            if let Some(receiver) = self.receivers.get(&to).filter(|_| bytes > 0) {
                *waiting.entry(*receiver).or_default() += bytes;
            }
        })?;
        waiting.remove(&(self.own as u16));
        self.counts.demand = waiting.values().sum();
        let nonce = nonce().map_err(LiveError::doing("beginning a session"))?;
        let message = self.agent.on_due(self.clock.now(), waiting.into_iter().collect(), nonce);
        self.counts.reports += 1;
        // Without a way to the controller, the host is as good as without one.
        let _ = self.controller.send_to(&self.key.seal(&message), self.config.controller);
        Ok(())
    }

    /// Counts the time for which the gate was open until now.
    fn count_open(&mut self) {
        let now = self.clock.now();
        if let Some((receiver, until)) = self.open {
            let open = self.counts.open.entry(receiver).or_default();
            *open += until.min(now).saturating_since(self.counted);
        }
        self.counted = now;
    }

    /// Hands the agent's lease to the kernel, which ends it by itself.
    fn set_gate(&mut self) -> Result<(), LiveError> {
        self.count_open();
        let lease = self.agent.gate(self.clock.now());
        let address = |receiver: u16| self.config.host.get(usize::from(receiver));
        if let Some(before) = self.open.filter(|before| Some(before.0) != lease.map(|lease| lease.0))
            && let Some(LiveHost { address, .. }) = address(before.0)
        {
            self.gate.close(*address)?;
        }
        if let Some((receiver, until)) = lease
            && let Some(LiveHost { address, circuit_address, .. }) = address(receiver)
        {
            self.gate.open(*address, circuit_address.0, self.clock.monotonic(until))?;
        }
        self.open = lease;
        Ok(())
    }
}

impl AgentCounts {
    /// Returns the metrics; `names` are the names of all hosts.
    fn text(&self, names: &[String]) -> String {
        let AgentCounts { reports, answers, refused, demand, gate, ref open, is_connected, is_open } = *self;
        let mut out = Exposition::default();
        for (name, help, value) in [
            ("reports", "Reports that were sent.", reports),
            ("answers", "Messages of the controller that were accepted.", answers),
            ("refused_datagrams", "Datagrams that were not authentic, or no message.", refused),
            ("gate_packets", "Packets that took a circuit, long segments counted as one.", gate.packets),
            ("gate_bytes", "Bytes of these packets.", gate.bytes),
            ("late_packets", "Packets whose circuit's lease had ended, by the packet switch.", gate.late),
        ] {
            out.counter(&format!("plimsoll_circuits_agent_{name}"), help, value);
        }
        for (name, help, value) in [
            ("connected", "1 while the controller answers.", u64::from(is_connected)),
            ("gate_open", "1 while the host has a circuit.", u64::from(is_open)),
            ("demand_bytes", "Bytes in the last report.", demand),
        ] {
            out.gauge(&format!("plimsoll_circuits_agent_{name}"), help, value);
        }
        let help = "Time for which the host had a circuit to the receiver.";
        let family = out.family("plimsoll_circuits_agent_open_seconds", MetricKind::Counter, help);
        for (name, number) in names.iter().zip(0..) {
            if let Some(open) = open.get(&number) {
                family.sample(&[("receiver", name)], open.as_secs_f64());
            }
        }
        metrics::process(&mut out);
        out.finish()
    }
}

fn ifindex(device: &DeviceName) -> Result<i32, LiveError> {
    let text = read(&format!("/sys/class/net/{device}/ifindex"))
        .map_err(|error| LiveError::Host(format!("no device `{device}` on this host: {error}")))?;
    text.parse().map_err(|_| LiveError::Host(format!("device `{device}` has no index")))
}

/// Checks that the circuit device has the address to which other hosts send.
fn check_address(host: &LiveHost) -> Result<(), LiveError> {
    let LiveHost { name, circuit_device, circuit_address, .. } = host;
    let found = read(&format!("/sys/class/net/{circuit_device}/address"))
        .map_err(LiveError::doing(format!("reading the address of {circuit_device}")))?;
    let is_same = crate::LinkAddress::try_from(found.clone()).is_ok_and(|found| found == *circuit_address);
    is_same.then_some(()).ok_or_else(|| {
        LiveError::Host(format!(
            "circuit_address of host {name} is not the address of {circuit_device}; expected {found}"
        ))
    })
}

/// Checks that the kernel accepts packets of circuits, whose sources it reaches by the packet device.
fn check_filter(device: &DeviceName) -> Result<(), LiveError> {
    let setting = |of: &str| {
        let path = PathBuf::from(format!("/proc/sys/net/ipv4/conf/{of}/rp_filter"));
        read(&path.to_string_lossy()).map_err(LiveError::doing(format!("reading {}", path.display())))
    };
    let (all, own) = (setting("all")?, setting(device.as_str())?);
    // The larger of the two counts (ip-sysctl.rst of the kernel). A device without an address drops also in loose mode.
    if all == "0" && own == "0" {
        return Ok(());
    }
    Err(LiveError::Host(format!(
        "{device} drops packets of circuits, as its reverse-path filter is on (net.ipv4.conf.all.rp_filter = {all}, \
         {device}: {own}); expected 0 for both: sysctl -w net.ipv4.conf.all.rp_filter=0 \
         net.ipv4.conf.{device}.rp_filter=0"
    )))
}

fn read(path: &str) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim().to_owned())
}
