//! [`SwitchConnection`]: the TCP connection of a switch, or of a stranger that has not shown to be one.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_circuits::Matching;
use plimsoll_units::{Span, Time};

use crate::switch::{CircuitSwitch, SwitchEvent};

/// A connection with the state machine of its switch.
#[derive(Debug)]
pub(crate) struct SwitchConnection {
    /// The other end, which is waited for.
    pub(crate) stream: TcpStream,
    /// The address of the other end, for messages.
    pub(crate) address: SocketAddr,
    switch: CircuitSwitch,
    since: Time,
}

impl SwitchConnection {
    /// Begins a connection at `now`; `ports` are the OpenFlow ports of hosts.
    ///
    /// # Errors
    /// Returns an error if the connection has ended.
    pub(crate) fn begin(
        stream: TcpStream,
        address: SocketAddr,
        ports: Vec<u32>,
        now: Time,
    ) -> io::Result<SwitchConnection> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_MAX))?;
        let mut out = Vec::new();
        let switch = CircuitSwitch::new(ports, now, &mut out);
        (&stream).write_all(&out)?;
        Ok(SwitchConnection { stream, address, switch, since: now })
    }

    /// Reads the received bytes, and returns their events. The stream is readable.
    ///
    /// # Errors
    /// Returns the reason why the connection is lost.
    pub(crate) fn read(&mut self, now: Time) -> Result<Vec<SwitchEvent>, String> {
        let (mut bytes, mut out) = ([0; 4_096], Vec::new());
        let length = self.stream.read(&mut bytes).map_err(lost)?;
        if length == 0 {
            return Err("the circuit switch has closed its connection".to_owned());
        }
        let events = self.switch.on_bytes(now, &bytes[..length], &mut out);
        self.write(&out)?;
        events.map_err(|error| error.to_string())
    }

    /// Checks at `now` that the switch answers.
    ///
    /// # Errors
    /// Returns the reason why the connection is lost.
    pub(crate) fn tick(&mut self, now: Time) -> Result<(), String> {
        let mut out = Vec::new();
        let checked = self.switch.on_tick(now, &mut out);
        self.write(&out)?;
        checked.map_err(|error| error.to_string())
    }

    /// Writes the flows of a configuration.
    ///
    /// # Errors
    /// Returns the reason why the connection is lost.
    pub(crate) fn install(
        &mut self,
        number: u64,
        from: Option<&Matching>,
        to: &Matching,
    ) -> Result<(), String> {
        let mut out = Vec::new();
        self.switch.install(number, from, to, &mut out);
        self.write(&out)
    }

    /// Returns whether the connection began long before `now`. A switch is up by then.
    pub(crate) fn is_old(&self, now: Time) -> bool {
        now.saturating_since(self.since) > BEGIN_MAX
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.write_all(bytes).map_err(lost)
    }
}

fn lost(error: io::Error) -> String {
    format!("the circuit switch is lost: {error}")
}

/// The time for which a switch may refuse bytes.
const WRITE_MAX: Duration = Duration::from_secs(1);
/// The time within which a switch says that it is one.
const BEGIN_MAX: Span = Span::from_secs(4);
