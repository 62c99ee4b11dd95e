//! [`CircuitSwitch`]: the connection to an OpenFlow 1.3 switch whose flow table is a matching.
//!
//! ```text
//! controller                                switch
//!   HELLO                          ──>
//!                                  <──        HELLO
//!   FEATURES_REQUEST               ──>
//!                                  <──        FEATURES_REPLY: up
//!   FLOW_MOD a port, BARRIER_REQUEST ──>
//!                                  <──        BARRIER_REPLY: installed
//! ```
//!
//! A circuit is one flow: all packets that arrive by the sender's port leave by the receiver's. A port without a
//! circuit has no flow, so that the switch drops its packets (1.3.5, section 5.4).

use plimsoll_circuits::Matching;
use plimsoll_openflow::{
    FlowChange, HEADER_BYTES, Header, Match, NO_BUFFER, Output, Version, Versions, Writer, kind, read, u16_at,
};
use plimsoll_units::{Span, Time};

/// An event on the OpenFlow connection to the switch, which the controller handles in turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwitchEvent {
    /// The switch is ready for flows.
    Up,
    /// The switch has installed the configuration of this number.
    Installed(u64),
}

/// The reason why the connection is to be closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SwitchError {
    /// The switch does not speak OpenFlow 1.3.
    #[error("the switch does not speak OpenFlow 1.3 (with Open vSwitch: protocols=OpenFlow13)")]
    Version,
    /// A message is malformed.
    #[error("message of type {0} has a length that does not fit")]
    Length(u8),
    /// The switch refuses a message.
    #[error("the switch reports error {class}.{code} (OFPET_ and code of OpenFlow 1.3)")]
    Refused {
        /// The type of the error, OFPET_...
        class: u16,
        /// The code within the type.
        code: u16,
    },
    /// The switch does not answer.
    #[error("the switch has been silent for {0}")]
    Silent(Span),
}

/// The state of a switch's connection. It has no socket: bytes come in, and bytes to send come out.
#[derive(Debug)]
pub struct CircuitSwitch {
    /// The OpenFlow port of each host.
    ports: Vec<u32>,
    input: Vec<u8>,
    phase: OpenFlowPhase,
    transaction: u32,
    /// The barrier of the last configuration, and the configuration's number.
    barrier: Option<(u32, u64)>,
    heard: Time,
    is_probed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OpenFlowPhase {
    Hello,
    Features,
    Up,
}

/// Time without a message after which the switch gets an echo request, and after as much again is lost.
const SILENCE: Span = Span::from_secs(2);
const PRIORITY: u16 = 0x8000;

impl CircuitSwitch {
    /// Begins a connection at `now`; `ports` are the OpenFlow ports of hosts.
    pub fn new(ports: Vec<u32>, now: Time, out: &mut Vec<u8>) -> CircuitSwitch {
        let mut switch = CircuitSwitch {
            ports,
            input: Vec::new(),
            phase: OpenFlowPhase::Hello,
            transaction: 0,
            barrier: None,
            heard: now,
            is_probed: false,
        };
        switch.writer(out).hello(Versions::only(Version::V13));
        switch
    }

    /// Takes bytes of the switch, and returns their events.
    ///
    /// # Errors
    /// Returns the reason why the connection is to be closed.
    pub fn on_bytes(
        &mut self,
        now: Time,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Vec<SwitchEvent>, SwitchError> {
        let mut input = std::mem::take(&mut self.input);
        input.extend(bytes);
        let (mut rest, mut events) = (&input[..], Vec::new());
        while let Some(header) = Header::read(rest) {
            let length = usize::from(header.length);
            if length < HEADER_BYTES {
                return Err(SwitchError::Length(header.kind));
            }
            let Some(message) = rest.get(..length) else { break };
            rest = &rest[length..];
            (self.heard, self.is_probed) = (now, false);
            events.extend(self.on_message(header, message, out)?);
        }
        self.input = rest.to_vec();
        Ok(events)
    }

    /// Checks at `now` that the switch answers.
    ///
    /// # Errors
    /// Returns an error if it has been silent for long.
    pub fn on_tick(&mut self, now: Time, out: &mut Vec<u8>) -> Result<(), SwitchError> {
        let silence = now.saturating_since(self.heard);
        if silence >= SILENCE * 2 {
            return Err(SwitchError::Silent(silence));
        }
        if silence >= SILENCE && !self.is_probed && self.phase == OpenFlowPhase::Up {
            self.is_probed = true;
            self.writer(out).bare(kind::ECHO_REQUEST);
        }
        Ok(())
    }

    /// Writes the flows of a configuration, and a barrier behind them. Without `from` the table is emptied first.
    pub fn install(&mut self, number: u64, from: Option<&Matching>, to: &Matching, out: &mut Vec<u8>) {
        if from.is_none() {
            self.writer(out).flow_mod(Match::Any, FlowChange::Delete(None));
        }
        for sender in 0..self.ports.len() {
            let before = from.and_then(|from| from.receiver(sender));
            let after = to.receiver(sender);
            if before == after {
                continue;
            }
            let change = match after {
                None => FlowChange::Delete(None),
                Some(receiver) => FlowChange::Add {
                    idle_seconds: 0,
                    hard_seconds: 0,
                    priority: PRIORITY,
                    buffer: NO_BUFFER,
                    output: Output::Port(self.ports[receiver as usize]),
                },
            };
            let matched = Match::Port(self.ports[sender]);
            self.writer(out).flow_mod(matched, change);
        }
        self.writer(out).bare(kind::barrier_request(Version::V13));
        self.barrier = Some((self.transaction, number));
    }

    fn on_message(
        &mut self,
        header: Header,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<SwitchEvent>, SwitchError> {
        match (self.phase, header.kind) {
            (OpenFlowPhase::Hello, kind::HELLO) => {
                let versions = Versions::only(Version::V13);
                let version = versions.agree(header.version, read::hello_bitmap(message));
                version.ok_or(SwitchError::Version)?;
                self.phase = OpenFlowPhase::Features;
                self.writer(out).bare(kind::FEATURES_REQUEST);
            }
            (OpenFlowPhase::Hello, _) => return Err(SwitchError::Version),
            (_, kind::ECHO_REQUEST) => {
                let transaction = header.transaction;
                Writer { version: Version::V13, transaction, out }.echo_reply(&message[HEADER_BYTES..]);
            }
            (_, kind::ERROR) => {
                let number = |at| u16_at(message, at).ok_or(SwitchError::Length(header.kind));
                return Err(SwitchError::Refused { class: number(8)?, code: number(10)? });
            }
            (OpenFlowPhase::Features, kind::FEATURES_REPLY) => {
                read::features(Version::V13, message).ok_or(SwitchError::Length(header.kind))?;
                self.phase = OpenFlowPhase::Up;
                return Ok(Some(SwitchEvent::Up));
            }
            (OpenFlowPhase::Up, number) if number == kind::barrier_reply(Version::V13) => {
                let installed = self.barrier.take_if(|(transaction, _)| *transaction == header.transaction);
                return Ok(installed.map(|(_, number)| SwitchEvent::Installed(number)));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Returns a writer of the next transaction.
    fn writer<'a>(&mut self, out: &'a mut Vec<u8>) -> Writer<'a> {
        self.transaction = self.transaction.wrapping_add(1);
        Writer { version: Version::V13, transaction: self.transaction, out }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// Returns the kind of each message.
    fn kinds(bytes: &[u8]) -> Vec<u8> {
        let (mut rest, mut kinds) = (bytes, Vec::new());
        while let Some(header) = Header::read(rest) {
            kinds.push(header.kind);
            rest = &rest[usize::from(header.length)..];
        }
        kinds
    }

    fn message(kind: u8, transaction: u32, body: &[u8]) -> Vec<u8> {
        let length = (HEADER_BYTES + body.len()) as u16;
        [&[4, kind][..], &length.to_be_bytes(), &transaction.to_be_bytes(), body].concat()
    }

    fn up() -> CircuitSwitch {
        let mut out = Vec::new();
        let mut switch = CircuitSwitch::new(vec![11, 12, 13], Time::ZERO, &mut out);
        let hello = message(kind::HELLO, 1, &[]);
        let features = message(kind::FEATURES_REPLY, 2, &[0; 24]);
        // Bytes may arrive in any pieces.
        let (first, second) = hello.split_at(3);
        assert_eq!(switch.on_bytes(Time::ZERO, first, &mut out), Ok(vec![]));
        assert_eq!(switch.on_bytes(Time::ZERO, second, &mut out), Ok(vec![]));
        assert_eq!(switch.on_bytes(Time::ZERO, &features, &mut out), Ok(vec![SwitchEvent::Up]));
        assert_eq!(kinds(&out), [kind::HELLO, kind::FEATURES_REQUEST]);
        switch
    }

    #[test]
    fn a_matching_is_a_flow_a_port_and_is_confirmed_by_its_barrier() {
        let (mut switch, mut out) = (up(), Vec::new());
        let barrier = kind::barrier_request(Version::V13);
        let first = Matching::new(vec![Some(1), Some(2), None]);
        switch.install(7, None, &first, &mut out);
        assert_eq!(kinds(&out), [kind::FLOW_MOD, kind::FLOW_MOD, kind::FLOW_MOD, barrier]);
        let confirmed = Header::read(&out[out.len() - HEADER_BYTES..]).unwrap().transaction;
        let reply = |transaction| message(kind::barrier_reply(Version::V13), transaction, &[]);
        assert_eq!(switch.on_bytes(Time::ZERO, &reply(confirmed - 1), &mut Vec::new()), Ok(vec![]));
        let installed = switch.on_bytes(Time::ZERO, &reply(confirmed), &mut Vec::new());
        assert_eq!(installed, Ok(vec![SwitchEvent::Installed(7)]));

        // Only what differs: port 12 loses its circuit, and port 13 gets one.
        out.clear();
        switch.install(8, Some(&first), &Matching::new(vec![Some(1), None, Some(0)]), &mut out);
        assert_eq!(kinds(&out), [kind::FLOW_MOD, kind::FLOW_MOD, barrier]);
        // Deleting: command 3 in byte 25, in port in the match. Adding: command 0, in port and output.
        let (delete, add) = out.split_at(usize::from(Header::read(&out).unwrap().length));
        let is_in_port =
            |bytes: &[u8], port: u8| bytes.windows(8).any(|at| at == [0x80, 0, 0, 4, 0, 0, 0, port]);
        assert!(delete[25] == 3 && is_in_port(delete, 12), "{delete:?}");
        assert!(add[25] == 0 && is_in_port(add, 13), "{add:?}");
        assert!(add.windows(8).any(|at| at == [0, 0, 0, 16, 0, 0, 0, 11]), "{add:?}");
    }

    #[test]
    fn a_switch_that_is_old_or_refuses_or_is_silent_is_lost() {
        let mut out = Vec::new();
        let mut switch = CircuitSwitch::new(vec![1], Time::ZERO, &mut out);
        assert_eq!(
            switch.on_bytes(Time::ZERO, &[1, 0, 0, 8, 0, 0, 0, 1], &mut out),
            Err(SwitchError::Version)
        );
        let refusal = message(kind::ERROR, 3, &[0, 5, 0, 1]);
        let refused = SwitchError::Refused { class: 5, code: 1 };
        assert_eq!(up().on_bytes(Time::ZERO, &refusal, &mut out), Err(refused));
        assert_eq!(
            up().on_bytes(Time::ZERO, &[4, 10, 0, 7, 0, 0, 0, 0], &mut out),
            Err(SwitchError::Length(10))
        );

        let mut switch = up();
        out.clear();
        let at = |ms| Time::ZERO + Span::from_ms(ms);
        assert_eq!((switch.on_tick(at(1_999), &mut out), kinds(&out)), (Ok(()), vec![]));
        assert_eq!((switch.on_tick(at(2_000), &mut out), kinds(&out)), (Ok(()), vec![kind::ECHO_REQUEST]));
        assert_eq!((switch.on_tick(at(3_999), &mut out), kinds(&out).len()), (Ok(()), 1));
        assert_eq!(switch.on_tick(at(4_000), &mut out), Err(SwitchError::Silent(Span::from_secs(4))));
        // Any message is an answer, and a request of the switch is answered.
        let mut switch = up();
        out.clear();
        switch.on_bytes(at(3_000), &message(kind::ECHO_REQUEST, 9, b"abc"), &mut out).unwrap();
        assert_eq!(out, message(kind::ECHO_REPLY, 9, b"abc"));
        assert_eq!(switch.on_tick(at(4_999), &mut out), Ok(()));
    }
}
