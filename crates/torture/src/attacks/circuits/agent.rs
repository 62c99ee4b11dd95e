//! Attacks the agent of a host, in namespaces that end with the trial, from the address of its controller.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_circuits::{CircuitGrant, ControlMessage, MessageBody};
use plimsoll_circuits_live::ControlKey;
use plimsoll_units::Time;
use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::loop_ends::nonce;
use super::{LEASE, STOPPED, any_message, configure, drive, metric, send_foreign, settled, socket};
use crate::attacks::namespaces::{HeldNamespaces, differences};
use crate::program::{ProgramFolder, RunningProgram, wait_until};
use crate::trial::{Broken, Outcome, Trial, hold};

/// Prepares a host: a device to each switch, the second one with the address of the configuration.
const PREPARATION: &str = "mount -t sysfs sysfs /sys && ip link set lo up && \
    ip link add packet type veth peer name packets && ip link add circuit type veth peer name circuits && \
    ip link set circuit address 02:00:00:00:00:01 && ip link set packet up && ip link set packets up && \
    ip link set circuit up && ip link set circuits up && \
    for of in all circuit; do echo 0 > /proc/sys/net/ipv4/conf/$of/rp_filter || exit 1; done";

/// Prints the host's devices, queues, filters and routes.
const LOOK: &str = "ip -o link; tc qdisc show; tc filter show dev packet egress; ip -4 route show table all; ip rule; \
    bpftool net show | sed -E 's/ (prog_)?id [0-9]+//g'; grep . /proc/sys/net/ipv4/conf/*/rp_filter";

/// A controller that gives host 0 a circuit to host 1, and its agent under attack.
struct Attacked {
    running: RunningProgram,
    metrics: PathBuf,
    key: ControlKey,
    socket: UdpSocket,
    agent: Option<SocketAddr>,
    /// The nonces of the agent and of the controller.
    session: Option<(u64, u64)>,
    sequence: u64,
    /// All datagrams that the controller has sent.
    sent: Vec<Vec<u8>>,
}

/// Runs two to five attacks, after each of which the agent's gate opens by a new grant. Then the agent is killed or
/// ended, and the host must be as before.
pub fn agent(trial: &mut Trial, programs: &ProgramFolder) -> Outcome {
    let inside = HeldNamespaces::create(trial, PREPARATION)?;
    let socket = socket_in(inside.network()?)?;
    let key = configure(trial, socket.local_addr()?, (Ipv4Addr::LOCALHOST, 6653).into())?;
    let before = settled(|| inside.look(LOOK))?;
    let metrics = trial.path("agent.sock");
    let (file, metrics_at) = (trial.path("circuits.toml"), format!("unix:{}", metrics.display()));
    let words = ["circuits", "agent", &file.to_string_lossy(), "--host", "h1", "--metrics", &metrics_at];
    let mut running = RunningProgram::start(&mut inside.plimsoll(programs, &words))?;
    // The file of a socket exists before connections are accepted.
    wait_until("agent", || UnixStream::connect(&metrics).is_ok() || !running.is_running())?;
    if !running.is_running() {
        let ended = running.ended()?;
        let is_unable = ended.stderr.contains("make kernel") || ended.stderr.contains("send_calls needs");
        hold!(is_unable, "the agent does not start: {}", ended.described());
        return Err(Broken::NotTried(ended.stderr.trim().to_owned()));
    }
    let (agent, session, sent) = (None, None, Vec::new());
    let mut attacked = Attacked { running, metrics, key, socket, agent, session, sequence: 0, sent };
    attacked.opens(trial, "the start")?;
    for _ in 0..trial.number(2..6) {
        let what = match trial.number(0..4) {
            0 => attacked.foreign(trial)?,
            1 => attacked.replays(trial)?,
            2 => attacked.insider(trial)?,
            _ => attacked.silence()?,
        };
        attacked.opens(trial, &what)?;
    }
    let is_killed = trial.once_in(2);
    if is_killed {
        attacked.running.signal(Signal::KILL);
    } else {
        attacked.running.signal(Signal::TERM);
    }
    let ended = attacked.running.ended()?;
    hold!(is_killed || ended.code() == Some(STOPPED), "stopped: {}", ended.described());
    let mut after = String::new();
    let is_back = wait_until("the host as before", || {
        after = inside.look(LOOK).unwrap_or_default();
        after == before
    });
    hold!(is_back.is_ok(), "the agent leaves: {}", differences(&before, &after));
    Ok(())
}

/// Opens a socket in another network namespace, by a thread of its own.
fn socket_in(network: File) -> Result<UdpSocket, Broken> {
    let open = move || -> Result<UdpSocket, Broken> {
        use std::os::fd::AsFd as _;
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(std::io::Error::from)?;
        socket((Ipv4Addr::LOCALHOST, 0).into())
    };
    let opened = thread::spawn(open).join();
    opened.unwrap_or_else(|_| Err(Broken::Lost("the attack itself failed: a thread ended".to_owned())))
}

impl Attacked {
    /// Answers the agent until its gate is open.
    fn opens(&mut self, trial: &mut Trial, after: &str) -> Outcome {
        hold!(self.running.is_running(), "the agent is gone after {after}");
        drive(&format!("open gate after {after}"), || {
            self.step(trial)?;
            self.is_open()
        })
    }

    fn is_open(&self) -> Result<bool, Broken> {
        Ok(metric(&self.metrics, "circuits_agent_gate_open")? == 1)
    }

    /// Answers the agent's datagrams.
    fn step(&mut self, trial: &mut Trial) -> Outcome {
        let mut datagram = [0; 2_048];
        while let Ok((length, from)) = self.socket.recv_from(&mut datagram) {
            let Ok(message) = self.key.open(&datagram[..length]) else {
                return Err(Broken::Lost("the agent sends what is not authentic".to_owned()));
            };
            self.agent = Some(from);
            let (nonces, body) = match message.body {
                MessageBody::Hello => {
                    // A repeated Hello gets the same nonce.
                    let same = self.session.filter(|(agent, _)| *agent == message.agent);
                    (same.unwrap_or((message.agent, nonce(trial))), MessageBody::Challenge)
                }
                MessageBody::Report(report) if self.session == Some((message.agent, message.controller)) => {
                    (self.session.unwrap_or_default(), grant(report.sent))
                }
                _ => continue,
            };
            self.session = Some(nonces);
            self.sequence += 1;
            let (agent, controller) = nonces;
            let answer = ControlMessage { host: 0, agent, controller, sequence: self.sequence, body };
            let bytes = self.key.seal(&answer);
            self.send(&bytes);
            self.sent.push(bytes);
        }
        Ok(())
    }

    fn send(&self, bytes: &[u8]) {
        if let Some(agent) = self.agent {
            // A full buffer loses the datagram.
            let _ = self.socket.send_to(bytes, agent);
        }
    }

    /// Sends datagrams that are not authentic, which open no gate.
    fn foreign(&mut self, trial: &mut Trial) -> Result<String, Broken> {
        self.silence()?;
        let sent = self.sent.clone();
        let count = send_foreign(trial, &sent, &mut |bytes| self.send(bytes))?;
        self.stays_closed(&format!("{count} datagrams without the key"))
    }

    /// Repeats the controller's datagrams out of order, which opens no gate.
    fn replays(&mut self, trial: &mut Trial) -> Result<String, Broken> {
        self.silence()?;
        let count = trial.number(1..3_000);
        for _ in 0..count {
            self.send(trial.one_of::<Vec<u8>>(&self.sent));
        }
        self.stays_closed(&format!("{count} repeated datagrams"))
    }

    /// Sends random messages by the key, as a controller with a defect might. A message that an agent accepts by chance
    /// cannot exist: its nonces are random.
    fn insider(&mut self, trial: &mut Trial) -> Result<String, Broken> {
        let count = trial.number(1..1_000);
        for _ in 0..count {
            self.send(&self.key.seal(&any_message(trial)));
        }
        Ok(format!("{count} random messages with the key"))
    }

    /// Answers nothing until the gate is closed, and until the lease of a grant that was lost on the way has ended.
    fn silence(&mut self) -> Result<String, Broken> {
        thread::sleep(LEASE_TIME);
        wait_until("closed gate without a controller", || self.is_open().is_ok_and(|is_open| !is_open))?;
        Ok("a silent controller".to_owned())
    }

    /// Checks that the gate is closed for two leases.
    fn stays_closed(&mut self, after: &str) -> Result<String, Broken> {
        let begun = Instant::now();
        while begun.elapsed() < LEASE_TIME * 2 {
            hold!(!self.is_open()?, "{after} open the gate");
            thread::sleep(Duration::from_millis(5));
        }
        Ok(after.to_owned())
    }
}

fn grant(echo: Time) -> MessageBody {
    MessageBody::Grant(CircuitGrant { echo, configuration: 1, circuit: Some((1, LEASE)) })
}

const LEASE_TIME: Duration = Duration::from_nanos(LEASE.as_ps() / 1_000);
