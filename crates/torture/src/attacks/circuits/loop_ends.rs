//! The well-behaved ends of a control loop: [`TrialAgents`] and [`CircuitsSwitch`].

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::thread::{self, JoinHandle};

use plimsoll_circuits::CircuitAgent;
use plimsoll_circuits_live::ControlKey;
use plimsoll_units::Time;

use super::{LEASE, REPORT, TrialClock, drive, socket};
use crate::trial::{Broken, Outcome, Trial};

/// TrialAgents of two hosts, of which the first has demand for the second.
pub(super) struct TrialAgents {
    ends: Vec<(CircuitAgent, UdpSocket)>,
    key: ControlKey,
    controller: SocketAddr,
    clock: TrialClock,
    /// All datagrams that the agents have sent.
    pub(super) sent: Vec<Vec<u8>>,
}

impl TrialAgents {
    pub(super) fn new(
        trial: &mut Trial,
        key: &ControlKey,
        controller: SocketAddr,
        clock: TrialClock,
    ) -> Result<TrialAgents, Broken> {
        let mut agents =
            TrialAgents { ends: Vec::new(), key: key.clone(), controller, clock, sent: Vec::new() };
        for host in 0..2 {
            let end = agents.end(trial, host)?;
            agents.ends.push(end);
        }
        Ok(agents)
    }

    /// Replaces the agent of a host by a new process's.
    pub(super) fn restart(&mut self, trial: &mut Trial, host: u16) -> Outcome {
        self.ends[usize::from(host)] = self.end(trial, host)?;
        Ok(())
    }

    fn end(&self, trial: &mut Trial, host: u16) -> Result<(CircuitAgent, UdpSocket), Broken> {
        let agent = CircuitAgent::new(host, REPORT, LEASE, nonce(trial), self.clock.now());
        Ok((agent, socket((Ipv4Addr::LOCALHOST, 0).into())?))
    }

    /// Lets the agents report until the first one has a circuit to the second by a grant of after now.
    pub(super) fn are_served(&mut self, trial: &mut Trial) -> Outcome {
        let begun = self.clock.now();
        drive("circuit for a host with demand", || {
            self.step(trial)?;
            let gate = self.ends[0].0.gate(self.clock.now());
            Ok(gate.is_some_and(|(receiver, until)| receiver == 1 && until > begun + LEASE))
        })
    }

    fn step(&mut self, trial: &mut Trial) -> Outcome {
        let mut datagram = [0; 2_048];
        for (host, (agent, socket)) in self.ends.iter_mut().enumerate() {
            while let Ok((length, _)) = socket.recv_from(&mut datagram) {
                let Ok(message) = self.key.open(&datagram[..length]) else {
                    return Err(Broken::Lost("the controller sends what is not authentic".to_owned()));
                };
                agent.on_message(self.clock.now(), &message);
            }
            let now: Time = self.clock.now();
            if now >= agent.next_due() {
                let demand = if host == 0 { vec![(1, 50_000_000)] } else { Vec::new() };
                let bytes = self.key.seal(&agent.on_due(now, demand, nonce(trial)));
                // A full buffer loses the datagram.
                let _ = socket.send_to(&bytes, self.controller);
                self.sent.push(bytes);
            }
        }
        Ok(())
    }
}

pub(super) fn nonce(trial: &mut Trial) -> u64 {
    trial.number(0..u64::MAX)
}

/// A circuit switch that accepts all flows. It closes its connection when dropped.
pub(super) struct CircuitsSwitch {
    stream: TcpStream,
    thread: Option<JoinHandle<()>>,
}

/// OpenFlow 1.3: version, and the types of messages.
const VERSION: u8 = 4;
const HELLO: u8 = 0;
const ECHO_REQUEST: u8 = 2;
const FEATURES_REQUEST: u8 = 5;
const BARRIER_REQUEST: u8 = 20;
/// The length of a header, and of the fields of a features reply behind it.
const HEADER: usize = 8;
const FEATURES: usize = 24;

impl CircuitsSwitch {
    pub(super) fn connect(controller: SocketAddr) -> Result<CircuitsSwitch, Broken> {
        let stream = TcpStream::connect(controller)?;
        let answering = stream.try_clone()?;
        let thread = Some(thread::spawn(move || answer(answering)));
        Ok(CircuitsSwitch { stream, thread })
    }
}

/// Answers the controller until the connection ends.
fn answer(mut stream: TcpStream) {
    let message = |kind: u8, transaction: &[u8], body: &[u8]| {
        let length = ((HEADER + body.len()) as u16).to_be_bytes();
        [&[VERSION, kind], &length[..], transaction, body].concat()
    };
    let mut out = message(HELLO, &[0; 4], &[]);
    loop {
        let mut header = [0; HEADER];
        if stream.write_all(&out).is_err() || stream.read_exact(&mut header).is_err() {
            return;
        }
        let mut body =
            vec![0; usize::from(u16::from_be_bytes([header[2], header[3]])).saturating_sub(HEADER)];
        if stream.read_exact(&mut body).is_err() {
            return;
        }
        out = match header[1] {
            kind @ ECHO_REQUEST => message(kind + 1, &header[4..], &body),
            kind @ FEATURES_REQUEST => message(kind + 1, &header[4..], &[0; FEATURES]),
            kind @ BARRIER_REQUEST => message(kind + 1, &header[4..], &[]),
            _ => Vec::new(),
        };
    }
}

impl Drop for CircuitsSwitch {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
