//! Homa: all messages of a host share its NIC by their bytes left, and all messages to a host share its grants.
//!
//! ```text
//! send_homa ──> GrantScheduler of the host: who is granted ──> HomaEnd::grant ──> GRANT, at the highest priority
//!          └──> SenderQueue of the host: who sends ──> the NIC, while no packet waits there
//! ```
//!
//! A packet is handed to the NIC while another is in transmission and none waits, as the NIC would run dry. One of a
//! message with fewer bytes left than the packet that waits, and of a higher priority, is handed over as well: it
//! overtakes in a NIC with `order = "priorities"`.

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::{HostId, PortId};
use plimsoll_mechanisms::transports::{Endpoint, NicEnd};
use plimsoll_traffic::ConnectionEnd as End;
use plimsoll_units::Time;

use super::Hosts;
use super::agenda::Step;
use super::credit::CREDIT_EVENTS;
use super::homa_host::Key;
use super::tcp::announce;
use super::wire::{PacketAddress, packet_of};
use crate::sim_hooks::SimFabric;

impl Hosts {
    /// Sends what an end of Homa may send, has its host grant what it may, and arms the end's timer.
    pub(super) fn send_homa(&mut self, now: Time, fabric: &mut SimFabric, number: u32, end: End) {
        let Some(open) = self.connections.get_mut(number) else { return };
        let (host, peer) = (open.host(end), open.host(end.other()));
        // An acknowledged request may be without its answer: the server is still at work.
        let may_close = self.rules.close_when_idle && self.is_one_way[usize::from(open.workload)];
        let config = &self.transports.get(open.transport).homa;
        let Endpoint::Homa(homa) = &mut open.half(end).endpoint else { return };
        let key = key_of(number, end);
        let state = &mut self.homa[host.0 as usize];
        state.grants.set(key, peer.0, homa.left_to_grant(), state.degree, state.levels);
        state.sending.set(key, homa.ready(config).map(|(left, _)| left));
        let closes = may_close && config.params.repair && homa.is_idle();
        if homa.take_arrival() {
            self.grant_packets(now, fabric, host, Some(key));
        }
        self.send_control(now, fabric, number, end);
        self.send_data(now, fabric, host);
        self.arm_homa(now, fabric, number, end);
        if closes {
            self.leave(fabric, Step::Close(number));
        }
    }

    /// Hands data packets to the NIC of `host`, of the message with the fewest bytes left first.
    pub(super) fn send_data(&mut self, now: Time, fabric: &mut SimFabric, host: HostId) {
        while let Some((key, left)) = self.homa[host.0 as usize].sending.first() {
            let (number, end) = (key.0, End::from_bit(key.1.into()));
            let Some(open) = self.connections.get_mut(number) else {
                self.homa[host.0 as usize].sending.set(key, None);
                continue;
            };
            let dst = open.host(end.other());
            let (workload, config) = (open.workload, &self.transports.get(open.transport).homa);
            let Endpoint::Homa(homa) = &mut open.half(end).endpoint else { return };
            let (handed, priority) = self.homa[host.0 as usize].handed;
            let overtakes = left < handed && homa.ready(config).is_some_and(|(_, own)| own > priority);
            if !overtakes && !fabric.nic_is_empty(host) {
                return;
            }
            let Some((segment, priority)) = homa.next_data(config, now) else { return };
            let next = homa.ready(config).map(|(left, _)| left);
            let state = &mut self.homa[host.0 as usize];
            state.handed = (left, priority);
            state.sending.set(key, next);
            let address = PacketAddress { flow: number, src: host, dst, from_server: end == End::Server };
            let mut packet = packet_of(&segment, address, config.wire_bytes(&segment));
            packet.priority = priority;
            let half = open.half(end);
            let new_bytes = half.messages.on_sent(&segment);
            if new_bytes > 0 {
                self.goodput.on_sent(now, workload, new_bytes);
                if half.messages.has_sent_message() {
                    announce(self.process.as_deref_mut(), now, number, open, end);
                }
            }
            fabric.send(now, packet);
            self.arm_homa(now, fabric, number, end);
        }
    }

    /// Sends the packets without data that an end owes.
    fn send_control(&mut self, now: Time, fabric: &mut SimFabric, number: u32, end: End) {
        let Some(open) = self.connections.get_mut(number) else { return };
        let (src, dst) = (open.host(end), open.host(end.other()));
        let address = PacketAddress { flow: number, src, dst, from_server: end == End::Server };
        let config = &self.transports.get(open.transport).homa;
        let Endpoint::Homa(homa) = &mut open.half(end).endpoint else { return };
        while let Some(segment) = homa.next_control() {
            let mut packet = packet_of(&segment, address, config.wire_bytes(&segment));
            packet.priority = CONTROL_PRIORITY;
            fabric.send(now, packet);
        }
    }

    /// Grants packets of the messages to `host`: one of the message whose packet has `arrived`, and of each other for
    /// which the time of its last granted packet has passed.
    fn grant_packets(&mut self, now: Time, fabric: &mut SimFabric, host: HostId, mut arrived: Option<Key>) {
        let byte_time = fabric.network().link(PortId(host.0)).rate.byte_time();
        loop {
            let state = &self.homa[host.0 as usize];
            let is_due =
                |key: &Key| arrived == Some(*key) || state.next_grant.get(key).is_none_or(|at| *at <= now);
            let mut active = state.grants.active(state.degree, state.levels);
            let found = active.find(|(key, _)| is_due(key) && self.may_grant(*key));
            drop(active);
            let Some((key, slot)) = found else { break };
            arrived = arrived.filter(|arrived| *arrived != key);
            let (number, end) = (key.0, End::from_bit(key.1.into()));
            let Some(open) = self.connections.get_mut(number) else { break };
            let (peer, config) = (open.host(end.other()), &self.transports.get(open.transport).homa);
            let Endpoint::Homa(homa) = &mut open.half(end).endpoint else { break };
            let wire = homa.grant(config, now, slot);
            let left = homa.left_to_grant();
            let state = &mut self.homa[host.0 as usize];
            if left > 0 {
                state.next_grant.insert(key, now + byte_time.span(wire));
            } else {
                state.next_grant.remove(&key);
            }
            state.grants.set(key, peer.0, left, state.degree, state.levels);
            self.send_control(now, fabric, number, end);
            self.arm_homa(now, fabric, number, end);
        }
        self.arm_grants(now, fabric, host);
    }

    /// Returns whether fewer bytes of a message are in flight than may be, and some are left to grant.
    fn may_grant(&self, (number, is_server): Key) -> bool {
        let Some(open) = self.connections.get(number) else { return false };
        let config = &self.transports.get(open.transport).homa;
        let endpoint = &open.half_of(End::from_bit(is_server.into())).endpoint;
        matches!(endpoint, Endpoint::Homa(homa) if homa.may_grant(config))
    }

    fn arm_grants(&mut self, now: Time, fabric: &mut SimFabric, host: HostId) {
        let state = &self.homa[host.0 as usize];
        let active = state.grants.active(state.degree, state.levels).map(|(key, _)| key);
        let due = active
            .filter(|key| self.may_grant(*key))
            .map(|key| state.next_grant.get(&key).copied().unwrap_or(now).max(now))
            .min()
            .unwrap_or(Time::MAX);
        if due < state.armed {
            self.homa[host.0 as usize].armed = due;
            fabric.schedule(due, Owner::new(OwnerKind::Receive, HOMA_EVENTS + host.0));
        }
    }

    /// A host may grant again.
    #[cold]
    pub(super) fn on_grants_due(&mut self, now: Time, fabric: &mut SimFabric, host: HostId) {
        let state = &mut self.homa[host.0 as usize];
        if state.armed == now {
            state.armed = Time::MAX;
            self.grant_packets(now, fabric, host, None);
        }
    }

    /// Schedules the event of an end's timer, if it is earlier than the one that the queue has.
    fn arm_homa(&mut self, now: Time, fabric: &mut SimFabric, number: u32, end: End) {
        let Some(open) = self.connections.get_mut(number) else { return };
        let transport = self.transports.get(open.transport);
        let half = open.half(end);
        let deadline = half.endpoint.deadline(transport, now);
        if deadline < half.armed {
            half.armed = deadline;
            fabric.schedule(deadline, Owner::new(OwnerKind::Endpoint, number * 2 + end as u32));
        }
    }
}

fn key_of(number: u32, end: End) -> Key {
    (number, end == End::Server)
}

/// The priority of packets without data, which the highest unscheduled level shares, as in the Linux module.
const CONTROL_PRIORITY: u8 = 7;

/// The numbers of the events of grants begin here, above those of credit.
pub(super) const HOMA_EVENTS: u32 = CREDIT_EVENTS + (1 << 25);
