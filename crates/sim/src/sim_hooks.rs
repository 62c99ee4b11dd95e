//! [`SimHooks`]: the notes that a simulated world takes of its fabric's events.

use std::collections::BTreeMap;

use plimsoll_fabric::net::{Packet, PortId};
use plimsoll_fabric::{Fabric, Hooks, LostAt};
use plimsoll_mechanisms::pfc::Signal;
use plimsoll_mechanisms::transports::PacketTypes;
use plimsoll_units::Time;

use crate::hosts::datagram_workload;
use crate::packet_capture::PacketCapture;
use crate::packet_recorder::PacketRecorder;

/// The fabric of a simulated world.
pub(crate) type SimFabric = Fabric<SimHooks>;

/// The notes that a simulated world takes of its fabric's events.
#[derive(Debug, Default)]
pub(crate) struct SimHooks {
    /// NICs with room for a transport that waits.
    pub(crate) room: Vec<PortId>,
    /// The workloads whose raw packets were lost, one entry a packet: no transport sends those again.
    pub(crate) lost: Vec<u16>,
    /// The lost packets of each flow by type, where some workload has queue pairs.
    pub(crate) lost_types: Option<BTreeMap<u32, PacketTypes>>,
    /// The event needs a step after it: something has arrived, a raw packet was lost, a workload has acted, or a port
    /// is paused.
    pub(crate) has_aftermath: bool,
    /// A pause has reached its port in the event.
    pub(crate) has_paused: bool,
    /// Keeps packets, where the scenario asks for a capture.
    pub(crate) capture: Option<Box<PacketCapture>>,
    /// Keeps hops, where the run is repeated for a replay.
    pub(crate) recorder: Option<Box<PacketRecorder>>,
}

impl Hooks for SimHooks {
    fn observes_hops(&self) -> bool {
        self.capture.is_some() || self.recorder.is_some()
    }

    fn on_hop(&mut self, left: Time, port: PortId, packet: &Packet) {
        if let Some(capture) = &mut self.capture {
            capture.on_packet(left, port, packet);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.on_hop(left, port, packet);
        }
    }

    fn on_sent(&mut self, now: Time, packet: &Packet) {
        if let Some(recorder) = &mut self.recorder {
            recorder.on_sent(now, packet);
        }
    }

    fn on_lost(&mut self, now: Time, at: LostAt, packet: &Packet) {
        if let Some(recorder) = &mut self.recorder {
            recorder.on_lost(now, at, packet);
        }
        self.loses(packet);
    }

    fn on_signal(&mut self, now: Time, port: PortId, signal: Signal) {
        if let Some(recorder) = &mut self.recorder {
            recorder.on_signal(now, port, signal);
        }
        if matches!(signal, Signal::Pause(_)) {
            (self.has_paused, self.has_aftermath) = (true, true);
        }
    }

    fn on_room(&mut self, nic: PortId) {
        self.room.push(nic);
    }
}

impl SimHooks {
    /// Adds the packets that were lost in another logical process.
    pub(crate) fn absorb(&mut self, other: &SimHooks) {
        if let (Some(own), Some(other)) = (&mut self.lost_types, &other.lost_types) {
            other.iter().for_each(|(flow, types)| *own.entry(*flow).or_default() += *types);
        }
    }

    /// `packet` will not arrive with its payload: a workload of single datagrams learns of it.
    pub(crate) fn loses(&mut self, packet: &Packet) {
        if let Some(lost) = &mut self.lost_types {
            let types = lost.entry(packet.flow).or_default();
            types.of(packet.len.into(), packet.flags).lost += 1;
        }
        self.lost.extend(datagram_workload(packet.flow));
        self.has_aftermath |= !self.lost.is_empty();
    }
}
