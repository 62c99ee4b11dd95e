//! Attacks the controller: it must keep serving its agents and its switch, and accept nothing from others.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Instant;

use plimsoll_circuits_live::ControlKey;
use rustix::process::Signal;

use super::loop_ends::{CircuitsSwitch, TrialAgents};
use super::{STOPPED, TrialClock, any_message, configure, metric, send_foreign, settled, socket};
use crate::attacks::servers::free_address;
use crate::program::{ProgramFolder, RunningProgram, wait_until};
use crate::trial::{Broken, Outcome, Trial, hold};

/// Memory that the controller may keep beyond its initial memory, in bytes.
const GROWTH_BYTES: u64 = 32 << 20;
/// The most connections of one flood.
const CLIENTS: u64 = 300;

/// The controller under attack, and the ends that it serves.
struct Served {
    running: RunningProgram,
    key: ControlKey,
    controller: SocketAddr,
    openflow: SocketAddr,
    metrics: std::path::PathBuf,
    agents: TrialAgents,
    switch: CircuitsSwitch,
}

/// Runs three to six floods, after each of which a host with demand gets a circuit; then sockets and memory must be as
/// before, and SIGTERM must end the controller.
pub fn serve(trial: &mut Trial, programs: &ProgramFolder) -> Outcome {
    let (controller, openflow) = (free_datagram_address()?, free_address()?);
    let key = configure(trial, controller, openflow)?;
    let metrics = trial.path("serve.sock");
    let metrics_at = format!("unix:{}", metrics.display());
    let words = ["circuits", "serve", "circuits.toml", "--metrics", &metrics_at];
    let mut running = RunningProgram::start(&mut programs.plimsoll(trial.folder(), &words))?;
    wait_until("controller", || {
        !running.is_running() || metrics.exists() && TcpStream::connect(openflow).is_ok()
    })?;
    if !running.is_running() {
        return Err(Broken::Lost(format!("the controller does not start: {}", running.ended()?.described())));
    }
    let agents = TrialAgents::new(trial, &key, controller, TrialClock(Instant::now()))?;
    let switch = CircuitsSwitch::connect(openflow)?;
    let mut served = Served { running, key, controller, openflow, metrics, agents, switch };
    served.is_serving(trial, "the start")?;
    let (sockets, memory) = (settled(|| served.running.sockets())?, served.running.resident_bytes()?);
    for _ in 0..trial.number(3..7) {
        let what = match trial.number(0..6) {
            0 => served.foreign(trial)?,
            1 => served.replays(trial)?,
            2 => served.insiders(trial)?,
            3 => served.strangers(trial)?,
            4 => {
                let host = trial.number(0..2) as u16;
                served.agents.restart(trial, host)?;
                format!("an agent of host {host} that ended")
            }
            _ => {
                served.switch = CircuitsSwitch::connect(openflow)?;
                "a switch that ended".to_owned()
            }
        };
        served.is_serving(trial, &what)?;
    }
    let back = wait_until("the initial number of sockets", || {
        served.running.sockets().is_ok_and(|now| now <= sockets)
    });
    hold!(back.is_ok(), "{} sockets, {sockets} before the floods", served.running.sockets()?);
    let now = served.running.resident_bytes()?;
    hold!(now <= memory + GROWTH_BYTES, "{} MB resident, {} MB before", now >> 20, memory >> 20);
    served.running.signal(Signal::TERM);
    let ended = served.running.ended()?;
    hold!(ended.code() == Some(STOPPED), "stopped: {}", ended.described());
    Ok(())
}

impl Served {
    fn is_serving(&mut self, trial: &mut Trial, after: &str) -> Outcome {
        hold!(self.running.is_running(), "the controller is gone after {after}");
        self.agents.are_served(trial).map_err(|error| match error {
            Broken::Lost(lost) => Broken::Lost(format!("after {after}: {lost}")),
            other => other,
        })
    }

    /// Returns the reports that the controller has accepted, once it has read all datagrams.
    fn reports(&self) -> Result<u64, Broken> {
        let names = ["reports", "stale_messages", "refused_datagrams"];
        let read = || -> Result<Vec<u64>, Broken> {
            names.iter().map(|name| metric(&self.metrics, &format!("circuits_{name}_total"))).collect()
        };
        Ok(settled(read)?[0])
    }

    /// Sends datagrams that are not authentic, which are not accepted.
    fn foreign(&mut self, trial: &mut Trial) -> Result<String, Broken> {
        let before = self.reports()?;
        let stranger = stranger()?;
        let mut send = |bytes: &[u8]| drop(stranger.send_to(bytes, self.controller));
        let count = send_foreign(trial, &self.agents.sent, &mut send)?;
        let after = self.reports()?;
        hold!(after == before, "{} of {count} datagrams without the key are accepted", after - before);
        Ok(format!("{count} datagrams without the key"))
    }

    /// Repeats the agents' datagrams out of order and from another address. None of it is accepted.
    fn replays(&mut self, trial: &mut Trial) -> Result<String, Broken> {
        let (before, stranger, count) = (self.reports()?, stranger()?, trial.number(1..3_000));
        for _ in 0..count {
            let _ = stranger.send_to(trial.one_of::<Vec<u8>>(&self.agents.sent), self.controller);
        }
        let after = self.reports()?;
        hold!(after == before, "{} of {count} repeated datagrams are accepted", after - before);
        Ok(format!("{count} repeated datagrams"))
    }

    /// Sends random messages by the key, as a host with a defect might.
    fn insiders(&mut self, trial: &mut Trial) -> Result<String, Broken> {
        let (stranger, count) = (stranger()?, trial.number(1..1_000));
        for _ in 0..count {
            let _ = stranger.send_to(&self.key.seal(&any_message(trial)), self.controller);
        }
        Ok(format!("{count} random messages with the key"))
    }

    /// Holds connections that are no switch: silent ones, half messages, and random bytes. The switch keeps its place.
    fn strangers(&mut self, trial: &mut Trial) -> Result<String, Broken> {
        let (clients, mut held) = (trial.number(1..CLIENTS), Vec::new());
        for _ in 0..clients {
            let mut stream = TcpStream::connect(self.openflow)?;
            let bytes: Vec<u8> = match trial.number(0..4) {
                0 => Vec::new(),
                1 => vec![4, 0, 0, 8, 0, 0],
                2 => vec![4, 0, 0, 8, 0, 0, 0, 1],
                _ => (0..trial.number(1..3_000)).map(|_| trial.number(0..256) as u8).collect(),
            };
            // The controller may have closed the connection.
            let _ = stream.write_all(&bytes);
            held.push(stream);
        }
        let is_up = metric(&self.metrics, "circuits_switch_up")?;
        hold!(is_up == 1, "{clients} connections take the place of the switch");
        self.is_serving(trial, "connections that are held")?;
        Ok(format!("{clients} connections that are no switch"))
    }
}

fn stranger() -> Result<UdpSocket, Broken> {
    socket((Ipv4Addr::LOCALHOST, 0).into())
}

/// Returns a loopback address without a socket of UDP.
fn free_datagram_address() -> Result<SocketAddr, Broken> {
    Ok(stranger()?.local_addr()?)
}
