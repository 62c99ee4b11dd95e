//! Attacks the control loop of circuits between real hosts: `plimsoll circuits serve` and `plimsoll circuits agent`.
//!
//! ```text
//! well-behaved agents and a switch, of this process ──> serve <── floods, replays, strangers
//! well-behaved controller, of this process          ──> agent <── the same; then SIGKILL, SIGTERM or silence
//! ```

mod agent;
mod loop_ends;
mod serve;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_circuits::{CircuitGrant, ControlMessage, DemandReport, MessageBody};
use plimsoll_circuits_live::ControlKey;
use plimsoll_units::{Span, Time};

use crate::program::PATIENCE;
use crate::trial::{Broken, Outcome, Trial};

pub use agent::agent;
pub use serve::serve;

/// Time between two reports of an agent.
const REPORT: Span = Span::from_ms(10);
/// The length of a lease, which covers that a busy machine runs nothing of the loop for a while.
const LEASE: Span = Span::from_ms(400);

/// The exit status of both programs after SIGTERM, which has number 15.
const STOPPED: i32 = 128 + 15;

/// Writes a key and the configuration of two hosts into the trial's folder, and returns the key.
fn configure(trial: &mut Trial, controller: SocketAddr, openflow: SocketAddr) -> Result<ControlKey, Broken> {
    let bytes: Vec<u8> = (0..trial.number(32..100)).map(|_| trial.number(0..256) as u8).collect();
    let key = trial.path("circuits.key");
    std::fs::write(&key, &bytes)?;
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600))?;
    let estimator = trial.one_of(&["socket_buffers", "send_calls"]);
    let mut text = format!(
        "controller = \"{controller}\"\nopenflow = \"{openflow}\"\nkey = \"circuits.key\"\n\
         estimator = \"{estimator}\"\ncircuit_rate = \"1Gbps\"\npacket_rate = \"100Mbps\"\nweek = \"50ms\"\n\
         lead = \"5ms\"\nnight = \"10ms\"\ndrain = \"2ms\"\nreport = \"{REPORT}\"\nlease = \"{LEASE}\"\n"
    );
    for (number, name) in ["h1", "h2"].iter().enumerate() {
        text += &format!(
            "[[host]]\nname = \"{name}\"\naddress = \"192.0.2.{}\"\nport = {}\n\
             circuit_address = \"02:00:00:00:00:0{}\"\npacket_device = \"packet\"\ncircuit_device = \"circuit\"\n",
            number + 1,
            number + 1,
            number + 1,
        );
    }
    trial.write("circuits.toml", &text)?;
    Ok(ControlKey::new(&bytes)?)
}

/// The time since the start of a trial, as the state machines of circuits take it.
#[derive(Clone, Copy, Debug)]
struct TrialClock(Instant);

impl TrialClock {
    fn now(self) -> Time {
        Time::ZERO + Span::from_ns(self.0.elapsed().as_nanos() as u64)
    }
}

/// Sends datagrams that are no authentic messages: random bytes, changed copies of authentic ones in `known`, and
/// messages with another key. Returns their number.
fn send_foreign(trial: &mut Trial, known: &[Vec<u8>], send: &mut impl FnMut(&[u8])) -> Result<u64, Broken> {
    let other = ControlKey::new(&[trial.number(0..256) as u8; 31].map(|byte| byte ^ 0x55).repeat(2))?;
    let count = trial.number(1..3_000);
    for _ in 0..count {
        match trial.number(0..3) {
            0 => {
                let length = *trial.one_of(&[0_u64, 1, 31, 32, 33, 100, 1_024, 20_000, 65_507]);
                let first = trial.number(0..256) as u8;
                send(&(0..length).map(|at| first.wrapping_add(at as u8)).collect::<Vec<u8>>());
            }
            1 if !known.is_empty() => {
                let mut datagram = trial.one_of(known).clone();
                let at = trial.number(0..datagram.len() as u64) as usize;
                datagram[at] ^= 1 << trial.number(0..8);
                send(&datagram);
            }
            _ => send(&other.seal(&any_message(trial))),
        }
    }
    Ok(count)
}

/// Returns a message with random content, which has a valid form, and mostly no host or session of this trial.
fn any_message(trial: &mut Trial) -> ControlMessage {
    let number = |trial: &mut Trial| *trial.one_of(&[0, 1, 7, 1 << 40, u64::MAX >> 10]);
    let body = match trial.number(0..4) {
        0 => MessageBody::Hello,
        1 => MessageBody::Challenge,
        2 => MessageBody::Report(DemandReport {
            sent: Time::ZERO + Span::from_ns(number(trial) >> 12),
            seen: number(trial),
            is_open: trial.once_in(2),
            demand: (0..trial.number(0..1_024) as u16).map(|receiver| (receiver, u64::MAX >> 20)).collect(),
        }),
        _ => MessageBody::Grant(CircuitGrant {
            echo: Time::ZERO + Span::from_ns(number(trial) >> 12),
            configuration: number(trial),
            circuit: trial.once_in(2).then(|| (trial.number(0..3) as u16, Span::from_secs(1_000))),
        }),
    };
    let host = *trial.one_of(&[0, 1, 2, 1_023]);
    ControlMessage { host, agent: number(trial), controller: number(trial), sequence: number(trial), body }
}

/// Returns a metric that a program serves at this socket.
fn metric(socket: &Path, name: &str) -> Result<u64, Broken> {
    let mut stream = UnixStream::connect(socket)?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("plimsoll_{name} ")));
    line.and_then(|value| value.parse().ok()).ok_or_else(|| Broken::Lost(format!("no metric {name}: {text}")))
}

/// Waits until a reading has not changed for a quarter of a second, and returns it.
fn settled<T: PartialEq>(mut read: impl FnMut() -> Result<T, Broken>) -> Result<T, Broken> {
    let (begun, mut last, mut since) = (Instant::now(), read()?, Instant::now());
    while since.elapsed() < Duration::from_millis(250) {
        if begun.elapsed() > PATIENCE {
            return Err(Broken::Lost("a counter rises without an end".to_owned()));
        }
        thread::sleep(Duration::from_millis(20));
        let next = read()?;
        if next != last {
            (last, since) = (next, Instant::now());
        }
    }
    Ok(last)
}

/// Opens a socket that does not block.
fn socket(address: SocketAddr) -> Result<UdpSocket, Broken> {
    let socket = UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Calls `step` until it returns true; after [`PATIENCE`], returns an error that names `what`.
fn drive(what: &str, mut step: impl FnMut() -> Result<bool, Broken>) -> Outcome {
    let begun = Instant::now();
    while !step()? {
        if begun.elapsed() > PATIENCE {
            return Err(Broken::Lost(format!("no {what} within {} s", PATIENCE.as_secs())));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
