//! A virtual network between controller, agents and switch, in which messages are lost, repeated and reordered.

use std::collections::BTreeMap;

use plimsoll_units::{Rate, Span, Streams, Time};
use proptest::prelude::*;

use super::*;
use crate::matching::Matching;
use crate::scheduler::Switching;
use crate::solstice::Solstice;

const fn us(us: u64) -> Span {
    Span::from_us(us)
}

/// A week of 10 ms that is read 2 ms ahead, reports each millisecond, leases of 4 ms.
const PARAMS: LiveParams = LiveParams {
    switching: Switching {
        circuit_rate: Rate::from_gbps(10),
        packet_rate: Rate::from_gbps(1),
        night: us(300),
        window: us(10_000),
    },
    lead: us(2_000),
    drain: us(100),
    lease: us(4_000),
};
const REPORT: Span = us(1_000);

#[derive(Clone, Copy, Debug)]
struct Channel {
    /// The delay of a message: at least, and at most.
    delay_us: (u64, u64),
    /// Messages of a thousand that are lost, and that arrive twice.
    lost: u64,
    twice: u64,
    /// The time that the switch takes for a matching, at most.
    switch_us: u64,
}

#[derive(Clone, Debug)]
enum Event {
    ToController(Vec<u8>),
    ToAgent(Vec<u8>),
    /// The switch changes a rule, or confirms a configuration of a controller of this number.
    Rule(usize, Option<u32>),
    Installed(usize, u64),
}

struct Host {
    agent: CircuitAgent,
    /// The agent's clock less that of the world.
    offset: Span,
    /// The agent's process does not run until then; its gate ends with the lease nevertheless.
    stalled_until: Time,
    /// Agents that were replaced, whose gates are open until their leases end.
    replaced: Vec<(u16, Time)>,
    /// The time since which the gate is closed.
    closed_at: Time,
    demand: Vec<(u16, u64)>,
}

struct World {
    now: Time,
    channel: Channel,
    random: plimsoll_units::Stream,
    controller: Option<LiveController>,
    controllers: usize,
    hosts: Vec<Host>,
    rules: Vec<Option<u32>>,
    events: BTreeMap<(Time, u64), Event>,
    number: u64,
    opened: u64,
}

impl World {
    fn new(ports: u16, channel: Channel, seed: u64) -> World {
        let host = |host: u16| {
            let offset = us(1_000_000 * u64::from(host));
            Host {
                agent: CircuitAgent::new(
                    host,
                    REPORT,
                    PARAMS.lease,
                    u64::from(host) + 1,
                    Time::ZERO + offset,
                ),
                offset,
                stalled_until: Time::ZERO,
                replaced: Vec::new(),
                closed_at: Time::ZERO,
                demand: Vec::new(),
            }
        };
        let mut world = World {
            now: Time::ZERO,
            channel,
            random: Streams::new(seed).stream("world"),
            controller: None,
            controllers: 0,
            hosts: (0..ports).map(host).collect(),
            rules: vec![None; usize::from(ports)],
            events: BTreeMap::new(),
            number: 0,
            opened: 0,
        };
        world.start_controller();
        world
    }

    /// Starts a controller, which finds the switch with the rules of the one before.
    fn start_controller(&mut self) {
        self.controllers += 1;
        let ports = self.hosts.len();
        self.controller = Some(LiveController::new(PARAMS, Box::new(Solstice::default()), ports, self.now));
        self.control(|controller, now, out| controller.on_switch(now, true, out));
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.next_u64() % limit.max(1)
    }

    fn at(&mut self, time: Time, event: Event) {
        self.number += 1;
        self.events.insert((time, self.number), event);
    }

    fn send(&mut self, message: &ControlMessage, to: fn(Vec<u8>) -> Event) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let copies = 1 + u64::from(self.below(1_000) < self.channel.twice);
        for _ in 0..copies {
            if self.below(1_000) < self.channel.lost {
                continue;
            }
            let (least, most) = self.channel.delay_us;
            let delay = us(least + self.below(most - least + 1));
            self.at(self.now + delay, to(bytes.clone()));
        }
    }

    fn control(&mut self, act: impl FnOnce(&mut LiveController, Time, &mut Vec<LiveAction>)) {
        let mut out = Vec::new();
        let Some(controller) = &mut self.controller else { return };
        act(controller, self.now, &mut out);
        for action in out {
            match action {
                LiveAction::Send(message) => self.send(&message, Event::ToAgent),
                LiveAction::Install { number, from, to } => self.install(number, from.as_ref(), &to),
            }
        }
    }

    fn install(&mut self, number: u64, from: Option<&Matching>, to: &Matching) {
        let mut last = self.now;
        for sender in 0..to.ports() {
            if from.is_some_and(|from| from.receiver(sender) == to.receiver(sender)) {
                continue;
            }
            // A rule may change at any time after the request.
            let at = self.now + us(self.below(self.channel.switch_us));
            last = last.max(at);
            self.at(at, Event::Rule(sender, to.receiver(sender)));
        }
        self.at(last, Event::Installed(self.controllers, number));
    }

    /// Notes where the gate of a host is. An open one leads to where the switch has a circuit.
    fn gate(&mut self, host: usize, before: Option<(u16, Time)>) {
        let Host { agent, offset, closed_at, .. } = &mut self.hosts[host];
        let after = agent.gate(self.now + *offset);
        if let Some((receiver, until)) = after {
            assert_eq!(self.rules[host], Some(u32::from(receiver)), "host {host} sends into the dark");
            *closed_at = Time::ZERO + until.saturating_since(Time::ZERO + *offset);
            self.opened += u64::from(before.is_none());
        } else if before.is_some() {
            *closed_at = (*closed_at).min(self.now);
        }
    }

    /// Lets the next thing happen; returns false if it is after `until`.
    fn step(&mut self, until: Time) -> bool {
        let event = self.events.keys().next().map(|(at, _)| *at);
        let controller = self.controller.as_ref().map(|controller| controller.next_due(self.now));
        let due = |host: &Host| {
            let due = Time::ZERO + host.agent.next_due().saturating_since(Time::ZERO + host.offset);
            due.max(host.stalled_until)
        };
        let agent = (0..self.hosts.len()).map(|host| (due(&self.hosts[host]), host)).min();
        let next = [event, controller, agent.map(|(at, _)| at)].into_iter().flatten().min();
        let Some(next) = next.filter(|next| *next <= until) else {
            self.now = until;
            return false;
        };
        self.now = self.now.max(next);
        if event == Some(next) {
            let (_, event) = self.events.pop_first().expect("it is the next");
            self.handle(event);
        } else if controller == Some(next) {
            self.control(|controller, now, out| controller.on_due(now, out));
        } else if let Some((_, host)) = agent {
            let nonce = self.random.next_u64();
            let Host { agent, offset, demand, .. } = &mut self.hosts[host];
            let message = agent.on_due(self.now + *offset, demand.clone(), nonce);
            self.send(&message, Event::ToController);
        }
        true
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::ToController(bytes) => {
                let message = ControlMessage::decode(&bytes).expect("an agent wrote it");
                let nonce = self.random.next_u64();
                self.control(|controller, now, out| {
                    controller.on_message(now, &message, nonce, out);
                });
            }
            Event::ToAgent(bytes) => {
                let message = ControlMessage::decode(&bytes).expect("the controller wrote it");
                let host = usize::from(message.host);
                if self.hosts[host].stalled_until > self.now {
                    // It waits in the socket.
                    return self.at(self.hosts[host].stalled_until, Event::ToAgent(bytes));
                }
                let Host { agent, offset, .. } = &mut self.hosts[host];
                let (now, before) = (self.now + *offset, agent.gate(self.now + *offset));
                agent.on_message(now, &message);
                self.gate(host, before);
            }
            Event::Rule(sender, receiver) => {
                let (host, now) = (&self.hosts[sender], self.now);
                let since = now.saturating_since(host.closed_at);
                let replaced = host.replaced.iter().all(|(_, until)| *until + PARAMS.drain <= now);
                assert!(
                    host.closed_at <= now && since >= PARAMS.drain && replaced,
                    "host {sender} still sends"
                );
                self.rules[sender] = receiver;
            }
            Event::Installed(controller, number) if controller == self.controllers => {
                let senders = self.rules.iter().flatten();
                let mut receivers: Vec<u32> = senders.copied().collect();
                receivers.sort_unstable();
                receivers.dedup();
                assert_eq!(receivers.len(), self.rules.iter().flatten().count(), "a port has two circuits");
                self.control(|controller, now, out| controller.on_installed(now, number, out));
            }
            Event::Installed(..) => {}
        }
    }

    fn run(&mut self, until: Time) {
        while self.step(until) {}
    }

    fn open_gates(&self) -> usize {
        self.hosts.iter().filter(|host| host.agent.gate(self.now + host.offset).is_some()).count()
    }

    /// Replaces an agent by a new process. The worst case: the gate of the old one ends with its lease only.
    fn replace_agent(&mut self, host: usize) {
        let nonce = self.random.next_u64();
        let now = self.now;
        let Host { agent, offset, replaced, .. } = &mut self.hosts[host];
        if let Some((receiver, until)) = agent.gate(now + *offset) {
            replaced.push((receiver, Time::ZERO + until.saturating_since(Time::ZERO + *offset)));
        }
        *agent = CircuitAgent::new(host as u16, REPORT, PARAMS.lease, nonce, now + *offset);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// With any loss, delay and order of messages, stalled and replaced agents and a controller that dies, no host
    /// sends by a circuit that the switch does not have, or within a drain of its change.
    #[test]
    fn no_host_sends_into_the_dark(
        seed in any::<u64>(),
        delay_us in (1u64..200, 200u64..3_000),
        lost in 0u64..400,
        twice in 0u64..300,
        switch_us in 1u64..2_000,
        troubles in prop::collection::vec((0u64..100_000, 0usize..4, 0u32..9), 0..40),
    ) {
        let mut world = World::new(4, Channel { delay_us, lost, twice, switch_us }, seed);
        let mut troubles = troubles;
        troubles.sort_unstable();
        for (at_us, host, trouble) in troubles {
            world.run(Time::ZERO + us(at_us));
            // All to all, of sizes that change.
            for sender in 0..4u16 {
                let others = (0..4).filter(|receiver| *receiver != sender);
                world.hosts[usize::from(sender)].demand =
                    others.map(|receiver| (receiver, 100_000 * (1 + u64::from(sender * 7 + receiver) % 5))).collect();
            }
            match trouble {
                0 => world.hosts[host].stalled_until = world.now + us(9_000),
                1..4 => world.replace_agent(host),
                4 => world.start_controller(),
                _ => {}
            }
        }
        world.run(Time::ZERO + us(150_000));
        // The controller dies: all gates are closed when a lease has passed.
        world.controller = None;
        world.events.retain(|_, event| !matches!(event, Event::ToAgent(_)));
        world.run(world.now + PARAMS.lease);
        prop_assert_eq!(world.open_gates(), 0);
        // A new one takes over, and circuits come back.
        world.run(world.now + us(3_000));
        world.hosts[0].demand = vec![(1, 10_000_000)];
        let opened = world.opened;
        world.start_controller();
        world.run(world.now + us(400_000));
        prop_assert!(world.opened > opened, "no circuit within 400 ms");
    }

    #[test]
    fn messages_are_read_as_written(
        (host, sequence, seen, sent_ns) in (0u16..1_024, any::<u64>(), any::<u64>(), 0u64..1 << 50),
        is_open in any::<bool>(),
        demand in prop::collection::btree_map(0u16..1_024, any::<u64>(), 0..40),
        circuit in prop::option::of((0u16..1_024, 0u64..1 << 40)),
        cut in any::<prop::sample::Index>(),
    ) {
        let sent = Time::ZERO + Span::from_ns(sent_ns);
        let circuit = circuit.map(|(receiver, lease)| (receiver, Span::from_ns(lease)));
        for body in [
            MessageBody::Hello,
            MessageBody::Challenge,
            MessageBody::Report(DemandReport { sent, seen, is_open, demand: demand.clone().into_iter().collect() }),
            MessageBody::Grant(CircuitGrant { echo: sent, configuration: seen, circuit }),
        ] {
            let message = ControlMessage { host, agent: seen, controller: sequence, sequence, body };
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            prop_assert_eq!(ControlMessage::decode(&bytes), Ok(message));
            // No prefix and no longer text is a message.
            prop_assert!(ControlMessage::decode(&bytes[..cut.index(bytes.len())]).is_err());
            bytes.push(0);
            prop_assert_eq!(ControlMessage::decode(&bytes), Err(MessageError::Length(bytes.len())));
        }
    }

    #[test]
    fn arbitrary_bytes_are_an_error_or_a_message(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut headed = b"plim\x01".to_vec();
        headed.extend(&bytes);
        for bytes in [bytes, headed] {
            if let Ok(message) = ControlMessage::decode(&bytes) {
                let mut again = Vec::new();
                message.encode(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}

#[test]
fn a_bad_message_names_its_field() {
    let message = ControlMessage { host: 3, agent: 1, controller: 2, sequence: 3, body: MessageBody::Hello };
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    let changed = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        ControlMessage::decode(&bytes).expect_err("it is not allowed").to_string()
    };
    assert_eq!(changed(0, b'x'), "the datagram is not a message of `plimsoll circuits`");
    assert_eq!(changed(4, 9), "version 9 of the protocol is not supported; expected 1");
    assert_eq!(changed(5, 7), "kind is 7; expected 1 to 4");
    assert_eq!(changed(6, 4), "host is 1027; expected 0 to 1023");
    assert_eq!(changed(5, 3), "the message has 32 bytes, which does not fit its kind and its entries");
}

/// The worst time from new demand to an open gate, of 64 hosts whose other demand fills circuits. The bound: a report
/// that has just been sent, a week that has just been read, the lead, the days of others in that week, and the nights.
#[test]
fn sixty_four_hosts_react_within_two_weeks() {
    let channel = Channel { delay_us: (20, 60), lost: 0, twice: 0, switch_us: 1_000 };
    let week = PARAMS.switching.window;
    let mut worst = [Span::ZERO; 2];
    for (is_busy, worst) in [false, true].into_iter().zip(&mut worst) {
        let mut world = World::new(64, channel, 38);
        for sender in 0..64u16 {
            // Of the circuit's 12.5 MB a week, half for the next two hosts.
            let far = |by: u16| ((sender + by) % 64, 3_000_000);
            let mut demand = vec![far(1), far(2)];
            demand.sort_unstable();
            world.hosts[usize::from(sender)].demand = if is_busy { demand } else { Vec::new() };
        }
        world.run(Time::ZERO + us(50_000));
        for trial in 0..20u64 {
            // A new flow at another moment of the week; the last one has ended.
            let start = world.now + us(20_000 + 700 * trial);
            world.run(start);
            let idle = std::mem::replace(&mut world.hosts[5].demand, vec![(60, 6_000_000)]);
            let is_open = |world: &World| {
                let Host { agent, offset, .. } = &world.hosts[5];
                agent.gate(world.now + *offset).is_some_and(|(receiver, _)| receiver == 60)
            };
            while !is_open(&world) {
                assert!(world.step(start + week * 4), "trial {trial}: no circuit within four weeks");
            }
            *worst = (*worst).max(world.now.saturating_since(start));
            world.hosts[5].demand = if is_busy { idle } else { vec![(1, 6_000_000)] };
        }
        let counts = world.controller.as_ref().expect("it runs").counts();
        assert!(counts.configurations > 20 && counts.weeks > 60, "{counts:?}");
    }
    let night = PARAMS.drain + us(1_000) + us(60) * 3;
    let idle = REPORT + week + PARAMS.lead + night;
    println!("worst reaction: idle {}, busy {}; bounds {idle}, {}", worst[0], worst[1], idle + week);
    assert!(worst[0] <= idle && worst[1] <= idle + week, "{worst:?}");
}
