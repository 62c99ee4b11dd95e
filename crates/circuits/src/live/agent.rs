//! [`CircuitAgent`]: a host's part of the loop.

use plimsoll_units::{Span, Time};

use super::message::{CircuitGrant, ControlMessage, DemandReport, MessageBody};

/// The state machine of a host: it reports demand, and has a gate that a grant opens until the end of its lease.
///
/// The caller sends the message of [`CircuitAgent::on_due`] when [`CircuitAgent::next_due`] has come, and lets packets
/// take the circuit only while [`CircuitAgent::gate`] is open.
#[derive(Debug)]
pub struct CircuitAgent {
    host: u16,
    /// Time between two reports.
    interval: Span,
    /// Time without a message after which the agent begins a new session, and the longest lease.
    lease: Span,
    nonce: u64,
    controller: Option<u64>,
    sequence: u64,
    seen: u64,
    gate: Option<(u16, Time)>,
    heard: Time,
    next: Time,
}

impl CircuitAgent {
    /// Returns the agent of a host without a circuit, whose first message is due at `now`. `nonce` is random.
    pub fn new(host: u16, interval: Span, lease: Span, nonce: u64, now: Time) -> CircuitAgent {
        CircuitAgent {
            host,
            interval,
            lease,
            nonce,
            controller: None,
            sequence: 0,
            seen: 0,
            gate: None,
            heard: now,
            next: now,
        }
    }

    /// Returns when [`CircuitAgent::on_due`] is to be called next.
    pub fn next_due(&self) -> Time {
        self.next
    }

    /// Returns the receiver at the other end of the host's circuit, and the end of the lease, which is after `now`.
    pub fn gate(&self, now: Time) -> Option<(u16, Time)> {
        self.gate.filter(|(_, until)| *until > now)
    }

    /// Returns whether the controller has answered within a lease.
    pub fn is_connected(&self, now: Time) -> bool {
        self.controller.is_some() && now.saturating_since(self.heard) <= self.lease
    }

    /// Returns the message that is due at `now`, with the bytes that wait for each receiver. `nonce` is random, for a
    /// new session if the controller is silent.
    pub fn on_due(&mut self, now: Time, demand: Vec<(u16, u64)>, nonce: u64) -> ControlMessage {
        self.next = now + self.interval;
        if self.controller.is_some() && !self.is_connected(now) {
            // The gate ends with its lease.
            (self.nonce, self.controller, self.sequence, self.seen) = (nonce, None, 0, 0);
        }
        self.sequence += 1;
        let body = match self.controller {
            None => MessageBody::Hello,
            Some(_) => MessageBody::Report(DemandReport {
                sent: now,
                seen: self.seen,
                is_open: self.gate(now).is_some(),
                demand,
            }),
        };
        let controller = self.controller.unwrap_or(0);
        ControlMessage { host: self.host, agent: self.nonce, controller, sequence: self.sequence, body }
    }

    /// Handles an authentic message at `now`, and returns whether it was accepted. A message of another session, or one
    /// that is not newer than the last, is dropped.
    pub fn on_message(&mut self, now: Time, message: &ControlMessage) -> bool {
        if (message.host, message.agent) != (self.host, self.nonce) {
            return false;
        }
        match (&message.body, self.controller) {
            (MessageBody::Challenge, None) => {
                self.controller = Some(message.controller);
                self.next = now;
            }
            (MessageBody::Grant(grant), Some(controller))
                if message.controller == controller && message.sequence > self.seen =>
            {
                self.seen = message.sequence;
                self.on_grant(now, grant);
            }
            _ => return false,
        }
        self.heard = now;
        true
    }

    /// Moves the gate. Its closing is reported at once, since the controller waits for it.
    fn on_grant(&mut self, now: Time, grant: &CircuitGrant) {
        let before = self.gate(now).map(|(receiver, _)| receiver);
        self.gate = grant.circuit.map(|(receiver, lease)| (receiver, grant.echo + lease.min(self.lease)));
        let after = self.gate(now).map(|(receiver, _)| receiver);
        if before.is_some() && before != after {
            self.next = now;
        }
    }
}
