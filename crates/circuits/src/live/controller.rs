//! [`LiveController`]: the controller's part of the loop, around the weeks of a [`CircuitController`].

use plimsoll_units::{Span, Time};

use super::message::{CircuitGrant, ControlMessage, DemandReport, MessageBody};
use crate::control::{CircuitController, Instruction};
use crate::demand::Demand;
use crate::matching::Matching;
use crate::params::ControlParams;
use crate::scheduler::{Scheduler, Switching};

/// The parameters of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LiveParams {
    /// The switches: `night` is the planned time between two configurations, `window` the week.
    pub switching: Switching,
    /// Time before the begin of a week at which its demand is read.
    pub lead: Span,
    /// Time after which a packet that has passed a gate has reached its receiver's side of the circuit switch.
    pub drain: Span,
    /// The length of a lease.
    pub lease: Span,
}

/// An action that the caller carries out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LiveAction {
    /// Send a message to the host that it names.
    Send(ControlMessage),
    /// Have the switch establish `to`, and call [`LiveController::on_installed`] once it has. No host sends by a
    /// circuit that differs between the two.
    Install {
        /// The number of the configuration.
        number: u64,
        /// The established matching; none if the state of the switch is unknown.
        from: Option<Matching>,
        /// The matching to establish.
        to: Matching,
    },
}

/// Events that a controller has counted since it began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LiveCounts {
    /// Weeks that have begun.
    pub weeks: u64,
    /// Matchings that the switch has established.
    pub configurations: u64,
    /// Reports that were accepted.
    pub reports: u64,
    /// Messages that were dropped: of another session, or not newer than the last.
    pub stale: u64,
    /// Grants that were sent.
    pub grants: u64,
    /// The last time from the decision for a matching, or the connection of the switch, to its confirmation by the
    /// switch.
    pub night: Span,
    /// The longest such time.
    pub night_max: Span,
}

/// The state machine of a controller.
#[derive(Debug)]
pub struct LiveController {
    params: LiveParams,
    planner: CircuitController,
    hosts: Vec<HostState>,
    is_switch_up: bool,
    /// The matching of the switch; none while its state is unknown.
    established: Option<Matching>,
    installing: Option<(u64, Matching)>,
    wanted: Matching,
    /// The number of the wanted matching, and the time of the decision for it, or of the connection of the switch.
    number: u64,
    wanted_at: Time,
    sequence: u64,
    counts: LiveCounts,
}

/// The session of the agent of one host, the demand that it reported last, and its lease of a circuit.
#[derive(Clone, Debug)]
struct HostState {
    session: Option<AgentSession>,
    /// A session whose agent has not used the controller's nonce yet.
    pending: Option<(u64, u64)>,
    /// The arrival of the last report, and the agent's time in it.
    heard: Option<(Time, Time)>,
    demand: Vec<(u16, u64)>,
    /// The host sends nothing by a circuit from this time on, unless it gets another lease.
    lease_end: Time,
    /// The end of the leases of earlier sessions, which this session's agent cannot end.
    lease_floor: Time,
    /// The sequence number of the last grant with a lease.
    last_lease: u64,
    /// The receiver in the last grant.
    granted: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct AgentSession {
    agent: u64,
    controller: u64,
    sequence: u64,
}

impl LiveController {
    /// Returns a controller of `ports` hosts at `now`, without a switch and without agents. Hosts may have leases of an
    /// earlier controller, so nothing is established until these are over.
    pub fn new(params: LiveParams, scheduler: Box<dyn Scheduler>, ports: usize, now: Time) -> LiveController {
        let control = ControlParams { lead: params.lead, ..ControlParams::default() };
        let lease_end = now + params.lease;
        let host = HostState {
            session: None,
            pending: None,
            heard: None,
            demand: Vec::new(),
            lease_end,
            lease_floor: lease_end,
            last_lease: 0,
            granted: None,
        };
        LiveController {
            planner: CircuitController::new(&control, params.switching, params.drain, scheduler, ports),
            params,
            hosts: vec![host; ports],
            is_switch_up: false,
            established: None,
            installing: None,
            wanted: Matching::dark(ports),
            number: 0,
            wanted_at: now,
            sequence: 0,
            counts: LiveCounts::default(),
        }
    }

    /// Returns when [`LiveController::on_due`] is to be called next.
    pub fn next_due(&self, now: Time) -> Time {
        let quiet = self.changed().map(|host| self.quiet_at(host)).max();
        let is_waiting = self.is_switch_up && self.installing.is_none();
        let install = quiet.filter(|quiet| is_waiting && *quiet > now).unwrap_or(Time::MAX);
        self.planner.next_due().min(install)
    }

    /// Carries out the steps of the week that are due at `now`.
    pub fn on_due(&mut self, now: Time, out: &mut Vec<LiveAction>) {
        while self.planner.next_due() <= now {
            let due = self.planner.next_due();
            match self.planner.on_due(due) {
                Some(Instruction::ReadDemand) => self.planner.on_demand(&self.demand(now)),
                Some(Instruction::Begin) => self.counts.weeks += 1,
                Some(Instruction::Pause(_)) => {
                    let coming = self.planner.coming().expect("a pause is for a configuration").clone();
                    if coming != self.wanted {
                        (self.wanted, self.wanted_at) = (coming, now);
                        self.number += 1;
                    }
                }
                // Hosts and switch confirm these steps; the planned times are the schedule's.
                Some(Instruction::Darken(_) | Instruction::Light(..)) | None => {}
            }
        }
        self.settle(now, out);
    }

    /// Handles an authentic message of an agent at `now`, and returns whether it is a report that was accepted. `nonce`
    /// is random, for a session that the agent may request.
    pub fn on_message(
        &mut self,
        now: Time,
        message: &ControlMessage,
        nonce: u64,
        out: &mut Vec<LiveAction>,
    ) -> bool {
        let number = usize::from(message.host);
        let Some(host) = self.hosts.get_mut(number) else {
            self.counts.stale += 1;
            return false;
        };
        match &message.body {
            MessageBody::Hello => {
                // A repeated Hello gets the same nonce.
                let pending = host.pending.filter(|(agent, _)| *agent == message.agent);
                let (agent, controller) = pending.unwrap_or((message.agent, nonce));
                host.pending = Some((agent, controller));
                let (host, body) = (message.host, MessageBody::Challenge);
                out.push(LiveAction::Send(ControlMessage { host, agent, controller, sequence: 0, body }));
            }
            MessageBody::Report(report) if host.accepts(message) => {
                host.on_report(now, report);
                self.counts.reports += 1;
                self.settle(now, out);
                self.grant(now, number, out);
                return true;
            }
            MessageBody::Report(_) | MessageBody::Challenge | MessageBody::Grant(_) => self.counts.stale += 1,
        }
        false
    }

    /// Notes at `now` that the switch is connected, in an unknown state, or that it is lost.
    pub fn on_switch(&mut self, now: Time, is_up: bool, out: &mut Vec<LiveAction>) {
        (self.is_switch_up, self.established, self.installing) = (is_up, None, None);
        self.wanted_at = now;
        self.settle(now, out);
    }

    /// Notes at `now` that the switch has established configuration `number`.
    pub fn on_installed(&mut self, now: Time, number: u64, out: &mut Vec<LiveAction>) {
        let Some((_, matching)) = self.installing.take_if(|(installing, _)| *installing == number) else {
            return;
        };
        self.established = Some(matching);
        self.counts.configurations += 1;
        self.counts.night = now.saturating_since(self.wanted_at);
        self.counts.night_max = self.counts.night_max.max(self.counts.night);
        self.settle(now, out);
    }

    /// Returns the counters.
    pub fn counts(&self) -> LiveCounts {
        self.counts
    }

    /// Returns the number of hosts whose agents have reported within a lease.
    pub fn hosts_heard(&self, now: Time) -> usize {
        (0..self.hosts.len()).filter(|host| self.is_heard(now, *host)).count()
    }

    /// Returns the matching of the switch; none while its state is unknown.
    pub fn established(&self) -> Option<&Matching> {
        self.established.as_ref()
    }

    /// Returns the demand between hosts whose agents have reported within a lease.
    pub fn demand(&self, now: Time) -> Demand {
        let mut demand = Demand::new(self.hosts.len());
        for sender in (0..self.hosts.len()).filter(|host| self.is_heard(now, *host)) {
            for &(receiver, bytes) in &self.hosts[sender].demand {
                let receiver = usize::from(receiver);
                if receiver < self.hosts.len() && receiver != sender && self.is_heard(now, receiver) {
                    *demand.get_mut(sender, receiver) = bytes;
                }
            }
        }
        demand
    }

    fn is_heard(&self, now: Time, host: usize) -> bool {
        self.hosts[host].heard.is_some_and(|(at, _)| now.saturating_since(at) < self.params.lease)
    }

    /// Returns the hosts whose circuit differs between the established and the wanted matching.
    fn changed(&self) -> impl Iterator<Item = usize> + '_ {
        let differs = |host: &usize| {
            self.established
                .as_ref()
                .is_none_or(|matching| matching.receiver(*host) != self.wanted.receiver(*host))
        };
        (0..self.hosts.len()).filter(differs)
    }

    /// Returns the time from which no packet of a host is on a circuit.
    fn quiet_at(&self, host: usize) -> Time {
        self.hosts[host].lease_end.saturating_add(self.params.drain)
    }

    /// Has the switch establish the wanted matching once all hosts concerned are quiet, and sends the grants that have
    /// changed.
    fn settle(&mut self, now: Time, out: &mut Vec<LiveAction>) {
        let is_due = self.is_switch_up
            && self.installing.is_none()
            && self.established.as_ref() != Some(&self.wanted)
            && self.changed().all(|host| self.quiet_at(host) <= now);
        if is_due {
            self.installing = Some((self.number, self.wanted.clone()));
            let (from, to) = (self.established.clone(), self.wanted.clone());
            out.push(LiveAction::Install { number: self.number, from, to });
        }
        for host in 0..self.hosts.len() {
            if self.hosts[host].granted != self.circuit(now, host) {
                self.grant(now, host, out);
            }
        }
    }

    /// Returns the receiver to which a host may send: its circuit is established, and stays.
    fn circuit(&self, now: Time, host: usize) -> Option<u16> {
        let receiver = self.wanted.receiver(host)?;
        let leads = |matching: &Matching| matching.receiver(host) == Some(receiver);
        let stays = self.installing.as_ref().is_none_or(|(_, matching)| leads(matching));
        let is_open = self.established.as_ref().is_some_and(leads) && stays && self.is_heard(now, host);
        is_open.then_some(receiver as u16)
    }

    /// Sends a host its circuit.
    fn grant(&mut self, now: Time, number: usize, out: &mut Vec<LiveAction>) {
        let (receiver, lease) = (self.circuit(now, number), self.params.lease);
        let host = &mut self.hosts[number];
        host.granted = receiver;
        let (Some(session), Some((heard, echo))) = (host.session, host.heard) else { return };
        self.sequence += 1;
        if receiver.is_some() {
            host.last_lease = self.sequence;
            host.lease_end = host.lease_end.max(heard + lease);
        }
        let circuit = receiver.map(|receiver| (receiver, lease));
        self.counts.grants += 1;
        out.push(LiveAction::Send(ControlMessage {
            host: number as u16,
            agent: session.agent,
            controller: session.controller,
            sequence: self.sequence,
            body: MessageBody::Grant(CircuitGrant { echo, configuration: self.number, circuit }),
        }));
    }
}

impl HostState {
    /// Returns whether a report is the next of its session. The first one with the nonce of a pending session begins
    /// that session.
    fn accepts(&mut self, message: &ControlMessage) -> bool {
        let ControlMessage { agent, controller, sequence, .. } = *message;
        let next = AgentSession { agent, controller, sequence };
        let is_current =
            self.session.is_some_and(|session| (session.agent, session.controller) == (agent, controller));
        if is_current {
            let is_newer = self.session.is_some_and(|session| sequence > session.sequence);
            if is_newer {
                self.session = Some(next);
            }
            return is_newer;
        }
        let begins = self.pending == Some((agent, controller));
        if begins {
            (self.session, self.pending, self.lease_floor) = (Some(next), None, self.lease_end);
        }
        begins
    }

    fn on_report(&mut self, now: Time, report: &DemandReport) {
        self.heard = Some((now, report.sent));
        self.demand.clone_from(&report.demand);
        // The agent drops grants that are not newer than the one it has seen, so no lease reaches it any more.
        if !report.is_open && report.seen >= self.last_lease {
            self.lease_end = self.lease_floor.max(self.lease_end.min(now));
        }
    }
}
